package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
)

const (
	watchedRows = 1000             // changes that are shown at the start
	watchedBack = 10 * time.Second // how late a change may be stored and still be seen
)

func (a *app) watchCommand() *cobra.Command {
	s := selection{able: retryjob.Statuses()}
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print a line for each job that changes, until it is interrupted",
		Long: `watch prints the jobs that changed last, then a line for each change of a job as it is stored. A job that changes
twice between two looks at the database shows once.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := a.Now()
			f, err := s.filter(cmd, now)
			switch {
			case err != nil:
				return err
			case every < 100*time.Millisecond:
				return errors.New("--every is below 100ms")
			}
			return a.work(cmd, now, func(ctx context.Context, s *session) error { return s.watch(ctx, f, every) })
		},
	}
	s.add(cmd, 10)
	cmd.Flags().Lookup("limit").Usage = "begin with this `number` of jobs at most; 0 means with none"
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "look at the database this often")
	a.completeSelection(cmd, &s)
	return cmd
}

// change is a state of a job.
type change struct {
	id       string
	status   retryjob.Status
	attempts int
	changed  int64
}

// watch prints changes until ctx ends.
func (s *session) watch(ctx context.Context, f retryjob.Filter, every time.Duration) error {
	first, begin, since := true, f.Limit, f.Since
	f.Limit = 0
	var seen map[change]bool
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		recent := s.Now().Add(-watchedBack - every)
		if !first && since.Before(recent) {
			f.Since = recent
		}
		var fresh []retryjob.Info
		found := map[change]bool{}
		for info, err := range s.store.List(ctx, f) {
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			enough := len(found) >= watchedRows || first && info.Changed().Before(recent)
			if enough && (!first || len(fresh) >= begin) {
				if !first {
					s.remark("more than %s have changed", plural(watchedRows, "job"))
				}
				break
			}
			c := change{info.JobID, info.Status, info.Attempts, info.Changed().UnixNano()}
			if found[c] = true; !seen[c] && (!first || len(fresh) < begin) {
				if !s.json {
					info.Payload = nil
				}
				fresh = append(fresh, info)
			}
		}
		for i := len(fresh) - 1; i >= 0; i-- {
			if err := s.printChange(&fresh[i]); err != nil {
				return err
			}
		}
		if s.out.Flush() != nil {
			return nil // it fails again at the end
		}
		first, seen = false, found
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// printChange prints the current state of a job, without table columns: its lines come one by one.
func (s *session) printChange(info *retryjob.Info) error {
	if s.json {
		return s.printInfo(info)
	}
	t := s.newTable()
	t.line(fineStamp(info.Changed()), info.JobID, info.Kind, info.Policy, info.Status.String(), info.Reason.Error(),
		plural(info.Attempts, "attempt"), info.LastErr())
	t.fit = true
	t.flush()
	return nil
}
