package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
)

func (a *app) purgeCommand() *cobra.Command {
	s := selection{able: statusesThat(retryjob.Status.Final)}
	var yes, dry bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Remove jobs that have ended",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := a.Now()
			f, err := s.change(cmd, now, yes || dry)
			if err != nil {
				return err
			}
			return a.work(cmd, now, func(ctx context.Context, s *session) error {
				if dry {
					n, err := s.count(ctx, f)
					return s.counted("would_purge", n, err)
				}
				n, err := s.store.Purge(ctx, f)
				return s.counted("purged", n, err)
			})
		},
	}
	s.add(cmd, 0)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count the jobs, and remove none")
	cmd.Flags().BoolVar(&yes, "yes", false, "without a filter: yes, every job that has ended")
	return cmd
}

// countPage is how many jobs are read at once where they are only counted: few queries, and some megabytes of payloads.
const countPage = 500

// count returns how many jobs f selects now.
func (s *session) count(ctx context.Context, f retryjob.Filter) (int, error) {
	f.PageSize = countPage
	n := 0
	for _, err := range s.store.List(ctx, f) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
