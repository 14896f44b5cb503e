package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

// change is the flags of a command that changes jobs.
type change struct {
	selection
	jobsui.Action
	all, yes, dry bool
	doubt         bool // replay jobs in doubt too
}

// changeCommand returns the command of an action on jobs with the given IDs, or on those that a filter selects.
func (a *app) changeCommand(action jobsui.Action) *cobra.Command {
	c := &change{selection: selection{able: action.Statuses(nil)}, Action: action}
	cmd := &cobra.Command{
		Use:   action.Name + " ID... | --all",
		Short: action.Short,
		RunE: func(cmd *cobra.Command, ids []string) error {
			now := a.Now()
			f, err := c.filter(cmd, now)
			switch {
			case err != nil:
				return err
			case len(ids) > 0 && (c.all || c.given(cmd) || cmd.Flags().Changed("limit")):
				return fmt.Errorf("%s takes IDs or a filter, not both; --all and --limit go with a filter", c.Name)
			case len(ids) == 0 && !c.all && !c.dry && !c.given(cmd):
				return fmt.Errorf("no filter selects the jobs to %s: give IDs or a filter (--%s), or --all for all of them",
					c.Name, strings.Join(retryjob.FilterKeys(), ", --"))
			}
			ask := !c.yes && !c.dry && (c.Name == "purge" || len(ids) == 0 && !c.given(cmd))
			if ask && a.Answers == nil {
				return fmt.Errorf("%s needs a terminal to ask for confirmation, or --yes", cmd.Name())
			}
			if c.Name == "replay" && f.InDoubt == retryjob.OnlyInDoubt && !c.doubt {
				return errors.New("a replay of jobs in doubt needs --doubt: it does their work again, which may have been done")
			}
			if f.IDs = ids; len(f.Statuses) == 0 {
				f.Statuses = c.able
			}
			return a.work(cmd, now, func(ctx context.Context, s *session) error { return s.change(ctx, c, f, ask) })
		},
	}
	c.add(cmd, 0)
	cmd.Flags().BoolVar(&c.all, "all", false, "without a filter: all jobs that the command can change")
	cmd.Flags().BoolVar(&c.dry, "dry-run", false, "count the jobs, and change none")
	cmd.Flags().BoolVar(&c.yes, "yes", false, "do not ask")
	if action.Name == "replay" {
		cmd.Flags().BoolVar(&c.doubt, "doubt", false, "also jobs in doubt, whose work may have been done: find out first")
	}
	return cmd
}

// change changes the jobs with f.IDs or, if there are none, those that f selects.
func (s *session) change(ctx context.Context, c *change, f retryjob.Filter, ask bool) error {
	action := c.Action
	if c.doubt {
		action = c.WithDoubt()
	}
	if c.dry || ask {
		n, err := s.count(ctx, f)
		if err != nil {
			return err
		}
		doubts, err := s.doubts(ctx, c, f)
		if err != nil {
			return err
		}
		if n -= doubts; f.Limit > 0 {
			n = min(n, f.Limit)
		}
		if c.dry {
			return s.counted("would_"+c.Name, n, doubts, nil)
		}
		if n > 0 {
			if err := s.confirm(ctx, fmt.Sprintf("%s %s%s?", c.Name, plural(n, "job"), leftOut(doubts))); err != nil {
				return err
			}
		}
	}
	if len(f.IDs) > 0 {
		return s.each(ctx, action, f.IDs)
	}
	n, err := action.All(s.store, ctx, f)
	doubts := 0
	if err == nil {
		doubts, err = s.doubts(ctx, c, f)
	}
	return s.counted(strings.ToLower(c.Done), n, doubts, err)
}

// count returns how many jobs f selects, whatever its limit.
func (s *session) count(ctx context.Context, f retryjob.Filter) (n int, err error) {
	counts, err := s.store.Count(ctx, f)
	for _, tally := range counts {
		n += tally.Jobs
	}
	return n, err
}

// doubts returns how many of the jobs that f selects a replay leaves out since they are in doubt, without those that have
// changed since the command began.
func (s *session) doubts(ctx context.Context, c *change, f retryjob.Filter) (int, error) {
	if c.Name != "replay" || c.doubt || f.InDoubt == retryjob.NotInDoubt {
		return 0, nil
	}
	f.InDoubt = retryjob.OnlyInDoubt
	if f.Until.IsZero() {
		f.Until = s.now
	}
	return s.count(ctx, f)
}

// leftOut says how many jobs in doubt a replay leaves out.
func leftOut(doubts int) string {
	if doubts == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d in doubt left out: --doubt replays them too)", doubts)
}

// each changes one job after the other. If one fails, it continues with the others.
func (s *session) each(ctx context.Context, a jobsui.Action, ids []string) (err error) {
	done, failed := strings.ToLower(a.Done), 0
	for _, id := range ids {
		result := map[string]any{"job": id, done: true}
		if err = a.One(s.store, ctx, id); err != nil {
			failed++
			if errors.Is(err, retryjob.ErrInDoubt) {
				err = fmt.Errorf("%w: find out, and replay it with --doubt", err)
			}
			err = fmt.Errorf("job %s: %w", id, err)
			result[done], result["err"] = false, s.text(err)
			if len(ids) > 1 {
				s.remark("%w", err)
			}
		}
		if s.json {
			if err := s.printJSON(result); err != nil {
				return err
			}
		} else if err == nil {
			fmt.Fprintf(s.out, "%s %s\n", done, printable(id))
		}
	}
	if failed > 0 && len(ids) > 1 {
		return fmt.Errorf("%d of %s were not %s", failed, plural(len(ids), "job"), done)
	}
	return err
}

// counted prints the number of changed jobs with the verb, and that of jobs in doubt that were left out, even if err ended
// the change early.
func (s *session) counted(verb string, n, doubts int, err error) error {
	if s.json {
		result := map[string]int{verb: n}
		if doubts > 0 {
			result["left_in_doubt"] = doubts
		}
		return errors.Join(s.printJSON(result), err)
	}
	fmt.Fprintf(s.out, "%s %s%s\n", strings.ReplaceAll(verb, "_", " "), plural(n, "job"), leftOut(doubts))
	return err
}

// confirm asks a question. It returns an error unless the answer is yes.
func (s *session) confirm(ctx context.Context, question string) error {
	fmt.Fprintf(s.err, "retryjobs: %s [y/N] ", question)
	answers := make(chan string, 1)
	go func() { // it ends with the process if there is no answer
		line, err := bufio.NewReader(s.Answers).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New("no job was changed")
	case <-ctx.Done():
		fmt.Fprintln(s.err)
		return ctx.Err()
	}
}
