package jobtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

var errFlaky = errors.New("the peer is down")

// refusal is an error of a client that knows the status of the response and when the server wants to be asked again.
type refusal struct {
	status int
	hint   time.Duration
}

func (r *refusal) Error() string   { return "refused" }
func (r *refusal) HTTPStatus() int { return r.status }
func (r *refusal) Unwrap() error   { return retry.After(r.hint, errFlaky) }

// attempts has the claims about attempts and their traces in the record.
var attempts = []scenario{
	{claim: "an attempt is found by its ID, whatever the job's ID, and one that the record does not have is unknown", play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(2, short)}, d.script(errFlaky))
		ctx := s.t.Context()
		for _, id := range []string{"plain", "with.dots.in.it"} {
			s.enqueue(id, "p")
			for _, a := range s.ends(id, retryjob.Succeeded, 0, 2).History {
				i, found, err := retryjob.GetAttempt(ctx, s.q, a.ID)
				require.NoError(s.t, err)
				require.Equal(s.t, []any{id, a.Number, a.ID}, []any{i.JobID, found.Number, found.ID})
			}
		}
		for _, id := range []string{"", "plain", "plain.0.1", "plain.0.3.x", "nope.0.1.x"} {
			_, _, err := retryjob.GetAttempt(ctx, s.q, id)
			require.ErrorIs(s.t, err, retryjob.ErrUnknownJob, id)
		}
	}},

	{claim: "a panic is the failure of its attempt", play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(3, short)}, func(ctx context.Context, job retryjob.Job) error {
			switch d.note(ctx, job).Number {
			case 1:
				panic("out of cheese")
			case 2:
				panic(errFlaky)
			}
			return nil
		})
		s.enqueue("loud", "p")
		i := s.ends("loud", retryjob.Succeeded, 0, 3)
		require.Equal(s.t, "retryjob: the handler panicked: out of cheese", i.History[0].Err)
		require.Equal(s.t, "retryjob: the handler panicked: the peer is down", i.History[1].Err)
	}},

	{claim: "attempts count from 1 and know their job, the history has the result of each, and Observe gets it and the end", play: func(s *stage) {
		var d diary
		events := make(chan retry.Event, 10)
		p := fixed(3, s.unit/10)
		p.Observe = func(_ context.Context, e retry.Event) { events <- e }
		s.openWith(retryjob.Options{
			Policies: retryjob.FromMap(policies{"p": p}),
			Handlers: map[string]retryjob.Handler{kind: d.always(errFlaky)},
			Code:     func(err error) string { return "503" },
		})
		s.put(retryjob.Job{ID: "told", Kind: kind, Policy: "p", Correlation: "trace-7"})
		i := s.ends("told", retryjob.DeadLettered, retry.AttemptsExhausted, 3)
		all := d.all()
		require.Len(s.t, all, 3)
		require.Len(s.t, i.History, 3)
		for n, a := range i.History {
			made := all[n]
			require.True(s.t, made.FirstDue.Equal(i.FirstDue), "%v is not %v", made.FirstDue, i.FirstDue)
			made.FirstDue = time.Time{}
			require.Equal(s.t, retryjob.AttemptInfo{JobID: "told", Kind: kind, AttemptID: i.AttemptID(n + 1), Correlation: "trace-7", Number: n + 1}, made.AttemptInfo)
			require.Equal(s.t, []any{i.AttemptID(n + 1), n + 1, errFlaky.Error(), "503"}, []any{a.ID, a.Number, a.Err, a.Code})
			require.False(s.t, a.Start.Before(i.FirstDue), "the attempt started before the job was due")
			require.False(s.t, a.End.Before(a.Start))
			if n < 2 {
				require.Equal(s.t, retryjob.WaitingRetry, a.Status)
				require.Zero(s.t, a.Reason)
				require.Equal(s.t, s.unit/10, a.Due.Sub(a.End))
				require.False(s.t, i.History[n+1].Start.Before(a.End))
			}
			e := receive(s, events, "an event")
			require.Nil(s.t, e.Outcome)
			require.Equal(s.t, []any{"p", n + 1}, []any{e.Policy, e.Attempt.Number})
			require.ErrorIs(s.t, e.Attempt.Err, errFlaky)
		}
		end := receive(s, events, "the last event")
		require.Equal(s.t, []any{3, retry.AttemptsExhausted}, []any{end.Outcome.Attempts, end.Outcome.Reason})
		require.ErrorAs(s.t, end.Err, new(*retry.Error))
		require.Empty(s.t, events)
		last := i.Last()
		require.Equal(s.t, []any{retryjob.DeadLettered, retry.AttemptsExhausted}, []any{last.Status, last.Reason})
		require.True(s.t, last.Due.IsZero() && i.Due.IsZero())
		require.True(s.t, i.Ended.Equal(last.End), "%v is not %v", i.Ended, last.End)
	}},

	{claim: "what a job says of itself comes back as it was given, with its attempts and after a replay", play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(1, short)}, d.always(errFlaky))
		payloads := map[string]string{
			"none":    ``,
			"null":    `null`,
			"number":  `12345678901234567890.125`,
			"unicode": `{"größe": "日本語 🚀", "quote": "\"\\\n\t", "line": "\u2028"}`,
			"nested":  `{"a": [{"b": {"c": [1, 2, {"d": null}]}}, [], {}], "e": true}`,
			"deep":    strings.Repeat(`[{"a":`, 250) + `1` + strings.Repeat(`}]`, 250),
			"large":   `"` + strings.Repeat("0123456789", 10_000) + `"`,
		}
		job := retryjob.Job{
			Kind: kind, Policy: "p", TTL: 20 * s.unit, BudgetKey: "acme/orders", Queue: "default", Priority: 3, Tags: []string{"bulk", "eu-west"},
			Correlation: "Ωmega",
		}
		for id, payload := range payloads {
			job.ID, job.Payload = id, json.RawMessage(payload)
			s.put(job)
		}
		for id, payload := range payloads {
			s.final(id)
			require.NoError(s.t, s.q.Replay(s.t.Context(), id))
			i := s.final(id)
			require.Equal(s.t, []any{kind, "Ωmega", job.TTL, job.BudgetKey, 3, job.Tags}, []any{i.Kind, i.Correlation, i.TTL, i.BudgetKey, i.Priority, i.Tags})
			sameJSON(s, payload, i.Payload)
		}
		all := d.all()
		require.Len(s.t, all, 2*len(payloads))
		for _, made := range all {
			require.Equal(s.t, []any{kind, "Ωmega"}, []any{made.Kind, made.Correlation})
			require.Equal(s.t, "default", cmp.Or(made.job.Queue, "default"))
			require.False(s.t, made.job.Due.IsZero())
			sameJSON(s, payloads[made.JobID], made.job.Payload)
			job.ID, job.Payload = made.JobID, made.job.Payload
			made.job.Due, made.job.Queue = time.Time{}, job.Queue
			require.Equal(s.t, job, made.job)
		}
	}},
}

// sameJSON holds a payload to the given one, to the last digit. A database may spell the same JSON in another way, and
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
