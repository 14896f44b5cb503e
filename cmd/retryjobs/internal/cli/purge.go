package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
)

func (a *app) purgeCommand() *cobra.Command {
	s := selection{able: statusesThat(retryjob.Status.Final)}
	var all, yes, dry bool
	cmd := &cobra.Command{
		Use:               "purge ID... | --all",
		Short:             "Remove jobs that have ended",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := a.Now()
			if len(args) > 0 && (all || dry || s.given(cmd) || cmd.Flags().Changed("limit")) {
				return errors.New("purge takes IDs or a filter, not both; --all, --dry-run and --limit go with a filter")
			}
			f, err := s.change(cmd, now, all || dry || len(args) > 0, "--all")
			switch {
			case err != nil:
				return err
			case a.Answers == nil && !yes && !dry:
				return errors.New("purge needs a terminal to ask for confirmation, or --yes")
			}
			return a.work(cmd, now, func(ctx context.Context, s *session) error { return s.purge(ctx, args, f, yes, dry) })
		},
	}
	s.add(cmd, 0)
	s.complete(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "without a filter: every job that has ended")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count the jobs, and remove none")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// purge removes the jobs with the IDs or, without IDs, those that f selects.
func (s *session) purge(ctx context.Context, ids []string, f retryjob.Filter, yes, dry bool) error {
	if !yes || dry {
		n := len(ids)
		if n == 0 {
			var err error
			if n, err = s.count(ctx, f); err != nil {
				return err
			}
			if dry {
				return s.counted("would_purge", n, nil)
			}
		}
		if n > 0 {
			sure, err := s.confirmed(ctx, fmt.Sprintf("remove %s for good?", plural(n, "job")))
			switch {
			case err != nil:
				return err
			case !sure:
				return errors.New("nothing was removed")
			}
		}
	}
	if len(ids) > 0 {
		return s.each(ctx, purge, ids)
	}
	n, err := s.store.Purge(ctx, f)
	return s.counted("purged", n, err)
}

// count returns the number of jobs that f selects now.
func (s *session) count(ctx context.Context, f retryjob.Filter) (int, error) {
	counts, err := s.store.Count(ctx, f)
	n := 0
	for _, tally := range counts {
		n += tally.Jobs
	}
	if f.Limit > 0 {
		n = min(n, f.Limit)
	}
	return n, err
}
