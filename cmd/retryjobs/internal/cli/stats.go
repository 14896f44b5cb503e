package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

func (a *app) statsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Count jobs by status, and dead letters by error; show what recurs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.work(cmd, a.Now(), func(ctx context.Context, s *session) error {
				st, err := jobsui.Summarize(ctx, s.store)
				switch {
				case err != nil:
					return err
				case s.json:
					return s.printJSON(st)
				}
				s.stats(&st)
				return nil
			})
		},
	}
}

func (s *session) stats(st *jobsui.Summary) {
	t := s.newTable("STATUS", "JOBS")
	for _, status := range retryjob.Statuses() {
		t.line(status.String(), strconv.Itoa(st.ByStatus[status]))
	}
	t.line("total", strconv.Itoa(st.Jobs))
	t.flush()
	if len(st.DeadLetters) > 0 {
		fmt.Fprintln(s.out)
		t = s.newTable("DEAD LETTERS", "KIND", "REASON", "CAUSE", "NEWEST", "ENDED", "ERROR")
		t.shorten = true
		for _, f := range st.DeadLetters {
			t.line(strconv.Itoa(f.Jobs), f.Kind, f.Reason.Error(), f.Cause, f.Newest, stamp(f.Ended), f.Err)
		}
		t.flush()
	}
	if len(st.Recurring) > 0 {
		fmt.Fprintln(s.out)
		t = s.newTable("RECURRING", "KIND", "STATUS", "DUE", "ATTEMPTS", "JOB", "ERROR")
		t.shorten = true
		for _, r := range st.Recurring {
			t.line(r.Name, r.Kind, r.Status.String(), stamp(r.Due), strconv.Itoa(r.Attempts), r.Job, r.Err)
		}
		t.flush()
	}
	fmt.Fprintf(s.out, "\nnext due  %s\n", cmp.Or(s.relative(st.NextDue), "-"))
}
