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
)

// changing is an operation on a job, by its ID.
type changing struct {
	done string // "replayed"
	do   func(retryjob.Admin, context.Context, string) error
	json func(*changed, bool)
}

var (
	replay = changing{"replayed", retryjob.Admin.Replay,
		func(c *changed, done bool) { c.Replayed = &done }}
	cancel = changing{"canceled", retryjob.Admin.Cancel,
		func(c *changed, done bool) { c.Canceled = &done }}
	purge = changing{"purged", func(m retryjob.Admin, ctx context.Context, id string) error { return retryjob.PurgeOne(ctx, m, id) }, func(c *changed, done bool) { c.Purged = &done }}
)

// changed is what --json prints for each ID.
type changed struct {
	Job      string `json:"job"`
	Replayed *bool  `json:"replayed,omitempty"`
	Canceled *bool  `json:"canceled,omitempty"`
	Purged   *bool  `json:"purged,omitempty"`
	Err      string `json:"err,omitempty"`
}

// each changes one job after the other. If one fails, it continues with the others.
func (s *session) each(ctx context.Context, c changing, ids []string) error {
	failed := 0
	var last error
	for _, id := range ids {
		result := changed{Job: id}
		err := c.do(s.store, ctx, id)
		if err != nil {
			failed, last = failed+1, about(id, err)
			result.Err = s.text(last)
			if len(ids) > 1 {
				s.remark("%w", last)
			}
		}
		switch c.json(&result, err == nil); {
		case s.json:
			if err := s.printJSON(result); err != nil {
				return err
			}
		case err == nil:
			fmt.Fprintf(s.out, "%s %s\n", c.done, printable(id))
		}
	}
	if failed > 0 && len(ids) > 1 {
		return fmt.Errorf("%d of %s were not %s", failed, plural(len(ids), "job"), c.done)
	}
	return last
}

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "cancel ID...",
		Short:             "Cancel jobs that have not ended: they make no more attempts",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.work(cmd, a.Now(), func(ctx context.Context, s *session) error { return s.each(ctx, cancel, args) })
		},
	}
}

// confirmed asks a question, and reports whether the answer is yes.
func (s *session) confirmed(ctx context.Context, question string) (bool, error) {
	if err := s.out.Flush(); err != nil {
		return false, err
	}
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
		return answer == "y" || answer == "yes", nil
	case <-ctx.Done():
		fmt.Fprintln(s.err)
		return false, ctx.Err()
	}
}
