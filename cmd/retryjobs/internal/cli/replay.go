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
		Use:   "replay ID... | --all",
		Short: "Make jobs that were given up due again, with no attempts made",
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
				return a.work(cmd, now, func(ctx context.Context, s *session) error { return s.replay(ctx, args) })
			}
			f, err := s.change(cmd, now, yes)
			if err != nil {
				return err
			}
			return a.work(cmd, now, func(ctx context.Context, s *session) error {
				n, err := s.store.ReplayAll(ctx, f)
				return s.counted("replayed", n, err)
			})
		},
	}
	s.add(cmd, 0)
	cmd.Flags().BoolVar(&all, "all", false, "replay all jobs that the filter selects")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --all and no filter: yes, every job that was given up")
	return cmd
}

// statusesThat returns those of which f holds.
func statusesThat(f func(retryjob.Status) bool) []retryjob.Status {
	return slices.DeleteFunc(retryjob.Statuses(), func(s retryjob.Status) bool { return !f(s) })
}

// replayed is what --json prints for each ID.
type replayed struct {
	Job      string `json:"job"`
	Replayed bool   `json:"replayed"`
	Err      string `json:"err,omitempty"`
}

// replay replays one after the other. One that fails does not keep the others from it.
func (s *session) replay(ctx context.Context, ids []string) error {
	failed := 0
	var last error
	for _, id := range ids {
		result := replayed{Job: id, Replayed: true}
		if err := s.store.Replay(ctx, id); err != nil {
			failed, last = failed+1, about(id, err)
			result = replayed{Job: id, Err: s.text(last)}
			if len(ids) > 1 {
				s.remark("%w", last)
			}
		}
		switch {
		case s.json:
			if err := s.printJSON(result); err != nil {
				return err
			}
		case result.Replayed:
			fmt.Fprintf(s.out, "replayed %s\n", printable(id))
		}
	}
	if failed > 0 && len(ids) > 1 {
		return fmt.Errorf("%d of %s were not replayed", failed, plural(len(ids), "job"))
	}
	return last
}

// counted prints how many jobs have become what verb says. That holds where err ended it, too.
func (s *session) counted(verb string, n int, err error) error {
	if s.json {
		return errors.Join(s.printJSON(map[string]int{verb: n}), err)
	}
	fmt.Fprintf(s.out, "%s %s\n", strings.ReplaceAll(verb, "_", " "), plural(n, "job"))
	return err
}
