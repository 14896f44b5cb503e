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

// attempts has the claims about attempts and what they leave in the record. refusal is an error of a client that knows
// the status of the response and when the server wants to be asked again.
type refusal struct {
	status int
	hint   time.Duration
}

func (r *refusal) Error() string   { return "refused" }
func (r *refusal) HTTPStatus() int { return r.status }
func (r *refusal) Unwrap() error   { return retry.After(r.hint, errFlaky) }

var attempts = []scenario{
	{claim: "attempts count from 1 and know their job", play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(3, short)}, d.script(errFlaky, errFlaky))
		s.put(retryjob.Job{ID: "counted", Kind: kind, Policy: "p", Correlation: "trace-7"})
		i := s.final("counted")
		all := d.all()
		require.Len(s.t, all, 3)
		for n, a := range all {
			require.Equal(s.t, n+1, a.Number)
			require.Equal(s.t, "counted", a.JobID)
			require.Equal(s.t, i.AttemptID(n+1), a.AttemptID)
			require.Equal(s.t, "trace-7", a.Correlation)
			require.Equal(s.t, 0, a.Replays)
			require.True(s.t, a.FirstDue.Equal(i.FirstDue), "%v is not %v", a.FirstDue, i.FirstDue)
			require.Equal(s.t, "counted", a.job.ID)
			require.Equal(s.t, kind, a.job.Kind)
			require.Equal(s.t, "p", a.job.Policy)
			require.Equal(s.t, "trace-7", a.job.Correlation)
		}
		require.Equal(s.t, retryjob.Succeeded, i.Status)
		require.Equal(s.t, 3, i.Attempts)
		require.Equal(s.t, "trace-7", i.Correlation)
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

	{claim: "the history has the result of each attempt", play: func(s *stage) {
		var d diary
		s.openWith(retryjob.Options{
			Policies: retryjob.FromMap(policies{"p": fixed(3, s.unit/10)}),
			Handlers: map[string]retryjob.Handler{kind: d.always(errFlaky)},
			Code:     func(err error) string { return "503" },
		})
		s.enqueue("told", "p")
		i := s.final("told")
		require.Len(s.t, i.History, 3)
		seen := map[string]bool{}
		for n, a := range i.History {
			seen[a.ID] = true
			require.Equal(s.t, n+1, a.Number)
			require.False(s.t, a.Start.Before(i.FirstDue), "the attempt started before the job was due")
			require.False(s.t, a.End.Before(a.Start))
			require.Equal(s.t, errFlaky.Error(), a.Err)
			require.Equal(s.t, "503", a.Code)
			if n < 2 {
				require.Equal(s.t, retryjob.WaitingRetry, a.Status)
				require.Zero(s.t, a.Reason)
				require.Equal(s.t, s.unit/10, a.Due.Sub(a.End))
				require.False(s.t, i.History[n+1].Start.Before(a.End))
			}
		}
		require.Len(s.t, seen, 3, "attempt IDs repeat")
		last := i.Last()
		require.Equal(s.t, retryjob.DeadLettered, last.Status)
		require.Equal(s.t, retry.AttemptsExhausted, last.Reason)
		require.True(s.t, last.Due.IsZero())
		require.True(s.t, i.Due.IsZero())
		require.True(s.t, i.Ended.Equal(last.End), "%v is not %v", i.Ended, last.End)
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
			"deep":    strings.Repeat(`[{"a":`, 250) + `1` + strings.Repeat(`}]`, 250),
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
		all := d.all()
		require.Len(s.t, all, len(payloads))
		for _, a := range all {
			require.Equal(s.t, "Ωmega/"+a.job.ID, a.job.Correlation)
			require.Equal(s.t, "Ωmega/"+a.job.ID, a.Correlation)
			sameJSON(s, payloads[a.job.ID], a.job.Payload)
		}
	}},

	{claim: "a job with many attempts keeps the first one and the newest 63", needs: virtualTime, play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(80, s.unit)}, d.always(errFlaky))
		s.enqueue("long", "p")
		s.poll(ages, "the job is done", func() bool { return s.get("long").Status.Final() })
		i := s.get("long")
		require.Equal(s.t, 80, i.Attempts)
		require.Len(s.t, i.History, 64)
		require.Equal(s.t, 1, i.History[0].Number)
		require.Equal(s.t, 18, i.History[1].Number)
		require.Equal(s.t, 80, i.History[63].Number)
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
