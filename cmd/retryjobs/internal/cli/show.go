package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show all that is known of a job, and the timeline of its attempts",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.work(cmd, a.Now(), func(ctx context.Context, s *session) error {
				info, err := s.store.Get(ctx, args[0])
				if err != nil {
					return fmt.Errorf("job %s: %w", args[0], err)
				}
				if s.json {
					return s.printJSON(info)
				}
				s.show(&info)
				return nil
			})
		},
	}
}

// show prints the job, its attempts, and its payload without secrets, indented if it is JSON.
func (s *session) show(info *retryjob.Info) {
	t := s.newTable()
	t.line("job", info.JobID)
	t.line("status", info.Status.String())
	for _, f := range jobsui.Facts(info) {
		t.line(f.Name, f.Text+s.relative(f.At))
	}
	t.flush()
	if attempts := jobsui.Attempts(&info.Record, s.now); len(attempts) > 0 {
		fmt.Fprintln(s.out)
		t = s.newTable("ATTEMPT", "START", "DURATION", "STATUS", "WAIT", "CODE", "ERROR")
		for _, a := range attempts {
			t.line(a.Number, stamp(a.Start), a.Took, a.Status.String(), a.Wait, a.Code, jobsui.RedactText(a.Err))
		}
		t.flush()
	}
	if len(info.Earlier) > 0 {
		fmt.Fprintln(s.out)
		t = s.newTable("BEFORE A REPLAY", "ENDED", "STATUS", "REASON", "ATTEMPTS", "CODE", "ERROR")
		for _, l := range info.Earlier {
			err := jobsui.RedactText(l.Err)
			if l.Ambiguous {
				err = "in doubt, the work may have been done: " + err
			}
			t.line(stamp(l.FirstDue), stamp(l.Ended), l.Status.String(), l.Reason.Error(), strconv.Itoa(l.Attempts), l.Code, err)
		}
		t.flush()
	}
	fmt.Fprintf(s.out, "\npayload:\n%s\n", cmp.Or(jobsui.PayloadText(jobsui.RedactSecrets(info.Payload)), "null"))
}

// relative returns a time and its distance from now, "" for the zero time.
func (s *session) relative(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return stamp(at) + " (" + jobsui.Ago(at, s.now) + ")"
}
