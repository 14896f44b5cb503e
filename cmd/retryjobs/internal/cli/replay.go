package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
)

func (a *app) replayCommand() *cobra.Command {
	s := selection{able: statusesThat(retryjob.Status.Replayable)}
	var all, yes bool
	cmd := &cobra.Command{
		Use:               "replay ID... | --all",
		Short:             "Make jobs that were given up due again, with no attempts made",
		ValidArgsFunction: a.completeIDs(0, retryjob.Status.Replayable),
		RunE: func(cmd *cobra.Command, args []string) error {
			now := a.Now()
			switch {
			case all && len(args) > 0:
				return errors.New("replay takes IDs or --all, not both")
			case !all && len(args) == 0:
				return errors.New("replay takes the IDs of jobs, or --all with a filter")
			case !all && (s.given(cmd) || yes || cmd.Flags().Changed("limit")):
				return errors.New("filters, --limit and --yes go with --all")
			case !all:
				return a.work(cmd, now, func(ctx context.Context, s *session) error { return s.each(ctx, replay, args) })
			}
			f, err := s.change(cmd, now, yes, "--yes")
			if err != nil {
				return err
			}
			return a.work(cmd, now, func(ctx context.Context, s *session) error {
				n, err := s.many(ctx, "replaying", f, s.store.ReplayAll)
				return s.counted("replayed", n, err)
			})
		},
	}
	s.add(cmd, 0)
	a.completeSelection(cmd, &s)
	cmd.Flags().BoolVar(&all, "all", false, "replay all jobs that the filter selects")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --all and no filter: yes, every job that was given up")
	return cmd
}

// statusesThat returns those of which f holds.
func statusesThat(f func(retryjob.Status) bool) []retryjob.Status {
	return slices.DeleteFunc(retryjob.Statuses(), func(s retryjob.Status) bool { return !f(s) })
}

// counted prints how many jobs have become what verb says. That holds where err ended it, too.
func (s *session) counted(verb string, n int, err error) error {
	if s.json {
		return errors.Join(s.printJSON(map[string]int{verb: n}), err)
	}
	fmt.Fprintf(s.out, "%s %s\n", strings.ReplaceAll(verb, "_", " "), plural(n, "job"))
	return err
}
