package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

// listLimit is the number of jobs that list shows by default: a screen or two.
const listLimit = 50

func (a *app) listCommand() *cobra.Command {
	s := selection{able: retryjob.Statuses()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs, the one that changed last first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := a.Now()
			f, err := s.filter(cmd, now)
			if err != nil {
				return err
			}
			return a.work(cmd, now, func(ctx context.Context, s *session) error { return s.list(ctx, f) })
		},
	}
	s.add(cmd, listLimit)
	return cmd
}

// list prints the jobs that f selects. If there are more than the limit, it says so.
func (s *session) list(ctx context.Context, f retryjob.Filter) error {
	limit := f.Limit
	if limit > 0 {
		f.Limit++ // to see whether there are more
	}
	t := s.newTable("ID", "KIND", "POLICY", "STATUS", "REASON", "ATTEMPTS", "TAGS", "DUE OR ENDED", "LAST ERROR")
	t.shorten = true
	shown, more, err := 0, false, error(nil)
	for info, failed := range s.store.List(ctx, f) {
		if more = limit > 0 && shown == limit; failed != nil || more {
			err = failed
			break
		}
		shown++
		if s.json {
			if err := s.printJSON(info); err != nil {
				return err
			}
			continue
		}
		at := info.Due
		if info.Status.Final() {
			at = info.Ended
		}
		reason := info.Reason.Error()
		if info.InDoubt() {
			reason += " (in doubt)"
		}
		t.line(info.JobID, info.Kind, info.Policy, info.Status.String(), reason,
			strconv.Itoa(info.Attempts), strings.Join(info.Tags, ","), stamp(at), jobsui.RedactText(info.LastErr()))
	}
	if shown > 0 && !s.json {
		t.flush()
	}
	switch {
	case err != nil:
	case more:
		s.remark("there are more than %s; --limit 0 lists all", plural(limit, "job"))
	case shown == 0:
		s.remark("no such jobs")
	}
	return err
}
