package cli

import (
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
		Short: "Count jobs by status and queue, and dead letters by cause; show what runs and what recurs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.work(cmd, a.Now(), func(ctx context.Context, s *session) error {
				st, err := jobsui.Summarize(ctx, s.store, s.now)
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
	s.queues(st)
	if len(st.DeadLetters) > 0 {
		fmt.Fprintln(s.out)
		t = s.newTable("DEAD LETTERS", "KIND", "REASON", "CAUSE", "FIRST", "NEWEST", "ENDED", "ERROR")
		t.shorten = true
		for _, f := range st.DeadLetters {
			jobs := strconv.Itoa(f.Jobs)
			if f.InDoubt > 0 {
				jobs += fmt.Sprintf(" (%d in doubt)", f.InDoubt)
			}
			t.line(jobs, f.Kind, f.Reason.Error(), jobsui.RedactText(f.Cause), stamp(f.First), f.Newest, stamp(f.Ended), jobsui.RedactText(f.Err))
		}
		t.flush()
	}
	if len(st.Schedules) > 0 {
		fmt.Fprintln(s.out)
		s.schedules(st.Schedules)
	}
	fmt.Fprintln(s.out)
	t = s.newTable()
	t.line("next due", s.relative(st.NextDue))
	t.line("oldest due", s.relative(st.OldestDue))
	t.line("last hour", lastHour(st))
	t.flush()
}

// queues prints the waiting and running jobs of each queue.
func (s *session) queues(st *jobsui.Summary) {
	if len(st.Queues) > 0 {
		fmt.Fprintln(s.out)
		t := s.newTable("QUEUE", "DUE", "OLDEST", "LATER", "RUNNING")
		for _, q := range st.Queues {
			t.line(q.Queue, strconv.Itoa(q.Due), s.relative(q.Oldest), strconv.Itoa(q.Later), strconv.Itoa(q.Running))
		}
		t.flush()
	}
	if len(st.Running) > 0 {
		fmt.Fprintln(s.out)
		t := s.newTable("RUNNING", "KIND", "SINCE", "PROCESS")
		for _, r := range st.Running {
			t.line(r.Job, r.Kind, s.relative(r.Since), r.Worker)
		}
		t.flush()
	}
}

// lastHour returns the numbers of jobs that ended, and bars for each five minutes.
func lastHour(st *jobsui.Summary) string {
	if len(st.Rate) == 0 {
		return ""
	}
	highest := 0
	for _, r := range st.Rate {
		highest = max(highest, r.Succeeded+r.Failed)
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	line := make([]rune, len(st.Rate))
	for i, r := range st.Rate {
		line[i] = bars[(r.Succeeded+r.Failed)*(len(bars)-1)/highest]
	}
	succeeded, failed := st.Ended()
	return fmt.Sprintf("%s %d succeeded, %d failed", string(line), succeeded, failed)
}
