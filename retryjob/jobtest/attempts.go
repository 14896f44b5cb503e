package jobtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

var errFlaky = errors.New("the peer is down")

// attempts is what one attempt after the other is and leaves behind.
var attempts = []scenario{
	{claim: "attempts count from 1 and know their job", play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(3, short)}, d.script(errFlaky, errFlaky))
		s.put(retryjob.Job{ID: "counted", Kind: kind, Policy: "p", Correlation: "trace-7"})
		i := s.final("counted")
		runs := d.all()
		require.Len(s.t, runs, 3)
		for n, run := range runs {
			require.Equal(s.t, n+1, run.Attempt)
			require.Equal(s.t, "counted", run.JobID)
			require.Equal(s.t, i.RunID(n+1), run.RunID)
			require.Equal(s.t, "trace-7", run.Correlation)
			require.Equal(s.t, 0, run.Replays)
			require.True(s.t, run.First.Equal(i.First), "%v is not %v", run.First, i.First)
			require.Equal(s.t, "counted", run.job.ID)
			require.Equal(s.t, kind, run.job.Kind)
			require.Equal(s.t, "p", run.job.Policy)
			require.Equal(s.t, "trace-7", run.job.Correlation)
		}
		require.Equal(s.t, retryjob.Succeeded, i.Status)
		require.Equal(s.t, 3, i.Attempts)
		require.Equal(s.t, "trace-7", i.Correlation)
	}},

	{claim: "there are MaxAttempts attempts, the first included, and no more", play: func(s *stage) {
		var d diary
		s.open(policies{"one": fixed(1, short), "four": fixed(4, short)}, d.always(errFlaky))
		for policy, want := range map[string]int{"one": 1, "four": 4} {
			s.enqueue(policy+"-job", policy)
			i := s.final(policy + "-job")
			require.Equal(s.t, retryjob.DeadLettered, i.Status)
			require.Equal(s.t, retry.AttemptsExhausted, i.Reason.Reason)
			require.Equal(s.t, want, i.Attempts)
			require.Len(s.t, i.Runs, want)
		}
		require.Len(s.t, d.all(), 5)
	}},

	{claim: "a terminal error is a dead letter at once, whatever attempts are left", play: func(s *stage) {
		var d diary
		p := fixed(5, s.unit)
		p.Classify = retry.StopIf(func(err error) bool { return err.Error() == "no such account" })
		s.open(policies{"p": p}, func(ctx context.Context, job retryjob.Job) error {
			d.note(ctx, job)
			if job.ID == "marked" {
				return fmt.Errorf("charge: %w", retry.Permanent(errFlaky))
			}
			return errors.New("no such account")
		})
		for _, id := range []string{"marked", "classified"} {
			s.enqueue(id, "p")
			i := s.final(id)
			require.Equal(s.t, retryjob.DeadLettered, i.Status)
			require.Equal(s.t, retry.TerminalError, i.Reason.Reason)
			require.Len(s.t, i.Runs, 1)
			require.Equal(s.t, retry.TerminalError, i.Last().Reason.Reason)
		}
		require.Len(s.t, d.all(), 2)
	}},

	{claim: "a failure under a disabled policy is failed_no_retries and no dead letter", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {Disabled: true}}, d.always(errFlaky))
		s.enqueue("off", "p")
		i := s.final("off")
		require.Equal(s.t, retryjob.Failed, i.Status)
		require.Equal(s.t, retry.RetriesDisabled, i.Reason.Reason)
		require.Len(s.t, d.all(), 1)
		require.Empty(s.t, ids(s, s.q.DeadLetters(s.t.Context(), retryjob.Filter{})))
		require.Equal(s.t, []string{"off"}, ids(s, s.q.List(s.t.Context(), retryjob.Filter{Statuses: []retryjob.Status{retryjob.Failed}})))
	}},

	{claim: "a panic is the failure of its attempt", play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(3, short)}, func(ctx context.Context, job retryjob.Job) error {
			switch d.note(ctx, job).Attempt {
			case 1:
				panic("out of cheese")
			case 2:
				panic(errFlaky)
			}
			return nil
		})
		s.enqueue("loud", "p")
		i := s.final("loud")
		require.Equal(s.t, retryjob.Succeeded, i.Status)
		require.Len(s.t, i.Runs, 3)
		require.Equal(s.t, "retryjob: the handler panicked: out of cheese", i.Runs[0].Err)
		require.Equal(s.t, "retryjob: the handler panicked: the peer is down", i.Runs[1].Err)
	}},

	{claim: "the history tells what each attempt came to", play: func(s *stage) {
		var d diary
		s.openWith(retryjob.Config{
			Policies: retryjob.FromMap(policies{"p": fixed(3, s.unit/10)}),
			Handlers: map[string]retryjob.Handler{kind: d.always(errFlaky)},
			Code:     func(err error) string { return "503" },
		})
		s.enqueue("told", "p")
		i := s.final("told")
		require.Len(s.t, i.Runs, 3)
		seen := map[string]bool{}
		for n, run := range i.Runs {
			seen[run.ID] = true
			require.Equal(s.t, n+1, run.Attempt)
			require.False(s.t, run.Start.Before(i.First), "the attempt started before the job was due")
			require.False(s.t, run.End.Before(run.Start))
			require.Equal(s.t, errFlaky.Error(), run.Err)
			require.Equal(s.t, "503", run.Code)
			if n < 2 {
				require.Equal(s.t, retryjob.WaitingRetry, run.Status)
				require.Zero(s.t, run.Reason)
				require.Equal(s.t, s.unit/10, run.Due.Sub(run.End))
				require.False(s.t, i.Runs[n+1].Start.Before(run.End))
			}
		}
		require.Len(s.t, seen, 3, "run ids repeat")
		last := i.Last()
		require.Equal(s.t, retryjob.DeadLettered, last.Status)
		require.Equal(s.t, retry.AttemptsExhausted, last.Reason.Reason)
		require.True(s.t, last.Due.IsZero())
		require.True(s.t, i.Due.IsZero())
		require.True(s.t, i.Ended.Equal(last.End), "%v is not %v", i.Ended, last.End)
	}},

	{claim: "a success leaves its run, without an error", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {}}, d.script())
		s.enqueue("well", "p")
		i := s.final("well")
		require.Equal(s.t, retryjob.Succeeded, i.Status)
		require.True(s.t, i.Reason.IsZero())
		require.Len(s.t, i.Runs, 1)
		require.Equal(s.t, retryjob.Succeeded, i.Runs[0].Status)
		require.Empty(s.t, i.Runs[0].Err)
		require.False(s.t, i.Ended.IsZero())
		require.True(s.t, i.Due.IsZero())
	}},

	{claim: "payload and correlation arrive as they were given", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {}}, d.script())
		payloads := map[string]string{
			"none":    ``,
			"null":    `null`,
			"number":  `12345678901234567890.125`,
			"unicode": `{"größe": "日本語 🚀", "quote": "\"\\\n\t", "line": "\u2028"}`,
			"nested":  `{"a": [{"b": {"c": [1, 2, {"d": null}]}}, [], {}], "e": true}`,
			"large":   `"` + strings.Repeat("0123456789", 10_000) + `"`,
		}
		for id, payload := range payloads {
			s.put(retryjob.Job{ID: id, Kind: kind, Policy: "p", Payload: json.RawMessage(payload), Correlation: "Ωmega/" + id})
		}
		for id, payload := range payloads {
			i := s.final(id)
			require.Equal(s.t, kind, i.Kind)
			require.Equal(s.t, "Ωmega/"+id, i.Correlation)
			sameJSON(s, payload, i.Payload)
		}
		runs := d.all()
		require.Len(s.t, runs, len(payloads))
		for _, run := range runs {
			require.Equal(s.t, "Ωmega/"+run.job.ID, run.job.Correlation)
			require.Equal(s.t, "Ωmega/"+run.job.ID, run.Correlation)
			sameJSON(s, payloads[run.job.ID], run.job.Payload)
		}
	}},

	{claim: "a long run keeps its first attempt and the newest 63", needs: virtualTime, play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(80, s.unit)}, d.always(errFlaky))
		s.enqueue("long", "p")
		s.poll(ages, "the job is done", func() bool { return s.get("long").Status.Final() })
		i := s.get("long")
		require.Equal(s.t, 80, i.Attempts)
		require.Len(s.t, i.Runs, 64)
		require.Equal(s.t, 1, i.Runs[0].Attempt)
		require.Equal(s.t, 18, i.Runs[1].Attempt)
		require.Equal(s.t, 80, i.Runs[63].Attempt)
	}},
}

// sameJSON holds a payload to what was given, to the last digit. A database may spell the same JSON in another way, and
// nothing is null.
func sameJSON(s *stage, want string, got json.RawMessage) {
	s.t.Helper()
	decode := func(text string) (v any) {
		d := json.NewDecoder(strings.NewReader(cmp.Or(text, "null")))
		d.UseNumber()
		require.NoError(s.t, d.Decode(&v))
		return v
	}
	require.Equal(s.t, decode(want), decode(string(got)))
}
