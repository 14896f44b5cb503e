package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const unreleased = "## [Unreleased]\n"

// title returns the heading of a release's section in the changelog: the version of the root module, or the first tag if
// the root is not released.
func title(tags []string) string { return tags[0] }

// dateChangelog puts the title and the day under the heading of unreleased changes.
func dateChangelog(file, version string, now time.Time) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(string(data), unreleased)
	if !found {
		return fmt.Errorf("%s has no line %q", file, strings.TrimSpace(unreleased))
	}
	number := strings.TrimPrefix(version, "v")
	heading := fmt.Sprintf("## [%s] - %s\n", number, now.Format(time.DateOnly))
	if strings.Contains(after, strings.SplitAfter(heading, "]")[0]) {
		return fmt.Errorf("%s has a section for %s already", file, version)
	}
	link := fmt.Sprintf("[%s]: https://%s/releases/tag/%s\n", number, rootPath, version)
	return os.WriteFile(file, []byte(before+unreleased+"\n"+heading+after+link), 0o644)
}

func readNotes(file, version string) (string, error) {
	changelog, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return notes(string(changelog), version)
}

// notes returns the section of a version, or the unreleased one if that version has none yet, without its heading.
func notes(changelog, version string) (string, error) {
	for _, heading := range []string{"\n## [" + strings.TrimPrefix(version, "v") + "]", "\n" + strings.TrimSpace(unreleased)} {
		_, section, found := strings.Cut(changelog, heading)
		if !found {
			continue
		}
		_, section, _ = strings.Cut(section, "\n")
		section, _, _ = strings.Cut(section, "\n## [")
		section, _, _ = strings.Cut(section, "\n[")
		return strings.TrimSpace(section) + "\n", nil
	}
	return "", fmt.Errorf("CHANGELOG.md has no section for %s", version)
}
