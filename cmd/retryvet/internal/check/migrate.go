package check

import (
	"context"
	"fmt"
	"io"

	"github.com/retrygo/retry/cmd/retryvet/internal/migrate"
)

// migration moves the calls of other retry libraries in the packages, or prints what it would do. The status is 0 if
// none is left.
func migration(patterns []string, diff, write bool, stdout, stderr io.Writer) int {
	report, err := migrate.Run(context.Background(), ".", patterns, write)
	if err != nil {
		fmt.Fprintln(stderr, "retryvet:", err)
		return 1
	}
	left := 0
	for _, site := range report.Sites {
		site.Position.Filename = relative(site.Position.Filename)
		fmt.Fprintln(stdout, site)
		if !write || site.Grade == migrate.Refused {
			left = 1
		}
	}
	if diff {
		fmt.Fprint(stdout, report.Diff)
	}
	return left
}
