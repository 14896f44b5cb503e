package check

import (
	"context"
	"fmt"
	"io"

	"github.com/retrygo/retry/cmd/retryvet/internal/migrate"
)

const differences = "https://github.com/retrygo/retry/blob/main/docs/migrating.md#what-differs-from-all-of-them"

// migration moves the calls of other retry libraries, or the hand-written loops, or prints what it would do. The status
// is 0 if none is left.
func migration(ctx context.Context, patterns []string, diff bool, o migrate.Options, stdout, stderr io.Writer) int {
	report, err := migrate.Run(ctx, ".", patterns, o)
	left, remarked := clean, ""
	for _, site := range report.Sites {
		site.Position.Filename = shown(relative(site.Position.Filename))
		fmt.Fprintln(stdout, site)
		if !o.Write || site.Why != "" {
			left = hasFindings
		}
		if name := site.Position.Filename; site.Why == "" && name != remarked {
			remarked = name
			fmt.Fprintf(stdout, "%s: errors are of type *retry.Error now: %s\n", name, differences)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "retryvet:", err)
		return notLoaded
	}
	if diff {
		fmt.Fprint(stdout, report.Diff)
	}
	return left
}
