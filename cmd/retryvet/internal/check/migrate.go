package check

import (
	"context"
	"fmt"
	"io"

	"github.com/retrygo/retry/cmd/retryvet/internal/migrate"
)

// migration moves the calls of other retry libraries in the packages, or prints what it would do. The status is 0 if
// none is left.
func migration(ctx context.Context, patterns []string, diff, write bool, stdout, stderr io.Writer) int {
	report, err := migrate.Run(ctx, ".", patterns, write)
	if err != nil {
		fmt.Fprintln(stderr, "retryvet:", err)
		return notLoaded
	}
	left := clean
	for _, site := range report.Sites {
		site.Position.Filename = shown(relative(site.Position.Filename))
		fmt.Fprintln(stdout, site)
		if !write || site.Grade == migrate.Refused {
			left = hasFindings
		}
	}
	if diff {
		fmt.Fprint(stdout, report.Diff)
	}
	return left
}
