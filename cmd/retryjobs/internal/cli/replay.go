package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
)

func (a *app) replayCommand() *cobra.Command {
	s := selection{able: statusesThat(retryjob.Status.Replayable)}
	var all, yes, dry bool
	var rate float64
	cmd := &cobra.Command{
		Use:               "replay ID... | --all",
		Short:             "Make jobs that were given up due again, with no attempts made",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := a.Now()
			switch {
			case all && len(args) > 0:
				return errors.New("replay takes IDs or --all, not both")
			case !all && len(args) == 0:
				return errors.New("replay takes the IDs of jobs, or --all with a filter")
			case !all && (s.given(cmd) || yes || dry || cmd.Flags().Changed("limit") || cmd.Flags().Changed("rate")):
				return errors.New("filters, --dry-run, --limit, --rate and --yes go with --all")
			case cmd.Flags().Changed("rate") && !(rate >= slowest && rate <= fastest):
				return fmt.Errorf("--rate %v is outside %v to %v", rate, slowest, fastest)
			case !all:
				return a.work(cmd, now, func(ctx context.Context, s *session) error { return s.each(ctx, replay, args) })
			}
			f, err := s.change(cmd, now, yes || dry, "--yes")
			if err != nil {
				return err
			}
			return a.work(cmd, now, func(ctx context.Context, s *session) error {
				if dry {
					n, err := s.count(ctx, f)
					if err != nil {
						return err
					}
					return s.counted("would_replay", n, nil)
				}
				if rate > 0 {
					return s.paced(ctx, f, rate)
				}
				n, err := s.store.ReplayAll(ctx, f)
				return s.counted("replayed", n, err)
			})
		},
	}
	s.add(cmd, 0)
	s.complete(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "replay all jobs that the filter selects")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "with --all: count the jobs, and replay none")
	cmd.Flags().Float64Var(&rate, "rate", 0, "with --all: replay at most this `number` of jobs in a second, spread over it")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --all and no filter: yes, every job that was given up")
	return cmd
}

// The bounds of --rate: a job in a quarter of an hour, and more than a database replays one at a time.
const (
	slowest = 0.001
	fastest = 1e6
)

// paced replays the jobs that f selects, the most recently changed first, one after the other. It skips a job that
// another client has changed in the meantime. It reports a job that cannot be replayed and continues with the others.
func (s *session) paced(ctx context.Context, f retryjob.Filter, rate float64) error {
	if f.Until.IsZero() {
		f.Until = s.now // replayed jobs may fail again meanwhile
	}
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	done, failed := 0, 0
	f.PageSize = 100 // a job read long before its turn may have changed
	for info, err := range s.store.List(ctx, f) {
		if err != nil {
			return s.counted("replayed", done, err)
		}
		if done+failed > 0 {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return s.counted("replayed", done, ctx.Err())
			}
		}
		switch err := s.store.Replay(ctx, info.JobID); {
		case err == nil:
			done++
		case !errors.Is(err, retryjob.ErrNotReplayable) && !errors.Is(err, retryjob.ErrUnknownJob):
			failed++
			s.remark("%w", about(info.JobID, err))
		}
	}
	var err error
	if failed > 0 {
		err = fmt.Errorf("not replayed: %s", plural(failed, "job"))
	}
	return s.counted("replayed", done, err)
}

// statusesThat returns the statuses for which f returns true.
func statusesThat(f func(retryjob.Status) bool) []retryjob.Status {
	return slices.DeleteFunc(retryjob.Statuses(), func(s retryjob.Status) bool { return !f(s) })
}

// counted prints the number of changed jobs with the verb, even if err ended the change early.
func (s *session) counted(verb string, n int, err error) error {
	if s.json {
		return errors.Join(s.printJSON(map[string]int{verb: n}), err)
	}
	fmt.Fprintf(s.out, "%s %s\n", strings.ReplaceAll(verb, "_", " "), plural(n, "job"))
	return err
}
