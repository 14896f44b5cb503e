package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

// schedulesCommand returns the command that lists schedules, with a command for each change of one.
func (a *app) schedulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedules",
		Short: "List the schedules of recurring jobs, and run, pause or resume one",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.work(cmd, a.Now(), func(ctx context.Context, s *session) error { return s.listSchedules(ctx) })
		},
	}
	for _, action := range jobsui.ScheduleActions() {
		cmd.AddCommand(&cobra.Command{
			Use:   action.Name + " NAME...",
			Short: action.Short,
			Args:  cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, names []string) error {
				return a.work(cmd, a.Now(), func(ctx context.Context, s *session) error { return s.changeSchedules(ctx, action, names) })
			},
		})
	}
	return cmd
}

func (s *session) listSchedules(ctx context.Context) error {
	infos, err := retryjob.ReadSchedules(ctx, s.store, s.now)
	if err != nil {
		return err
	}
	all := make([]jobsui.Schedule, len(infos))
	for i := range infos {
		all[i] = jobsui.ScheduleOf(&infos[i])
	}
	if !s.json {
		s.schedules(all)
		return nil
	}
	for i := range all {
		if err := s.printJSON(all[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) schedules(all []jobsui.Schedule) {
	t := s.newTable("SCHEDULE", "KIND", "STATE", "DUE", "JOB", "LAST", "ENDED", "ERROR")
	t.shorten = true
	for _, row := range all {
		state := row.State
		if row.Overdue > 0 {
			state += " by " + row.Overdue.Round(time.Second).String()
		}
		t.line(row.Name, row.Kind, state, stamp(row.Due), row.Job, row.Last.Status.String(), stamp(row.Last.Ended),
			jobsui.RedactText(cmp.Or(row.Err, row.Last.Err)))
	}
	t.flush()
}

// changeSchedules changes one schedule after the other until one fails.
func (s *session) changeSchedules(ctx context.Context, action jobsui.ScheduleAction, names []string) error {
	for _, name := range names {
		if err := action.Do(ctx, s.store, name); err != nil {
			return fmt.Errorf("schedule %s: %w", name, err)
		}
		if !s.json {
			fmt.Fprintf(s.out, "%s %s\n", strings.ToLower(action.Done), printable(name))
		} else if err := s.printJSON(map[string]any{"schedule": name, "done": action.Name}); err != nil {
			return err
		}
	}
	return nil
}
