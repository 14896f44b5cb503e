package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const unreleased = "## [Unreleased]\n"

// dateChangelog puts the version and the day under the heading of unreleased changes.
func dateChangelog(out io.Writer, file, version string, now time.Time, write bool) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(string(data), unreleased)
	if !found {
		return fmt.Errorf("%s has no line %q", file, strings.TrimSpace(unreleased))
	}
	heading := fmt.Sprintf("## [%s] - %s\n", strings.TrimPrefix(version, "v"), now.Format(time.DateOnly))
	if strings.Contains(after, strings.SplitAfter(heading, "]")[0]) {
		return fmt.Errorf("%s has a section for %s already", file, version)
	}
	fmt.Fprintf(out, "CHANGELOG.md: %s", heading)
	if !write {
		return nil
	}
	return os.WriteFile(file, []byte(before+unreleased+"\n"+heading+after), 0o644)
}
