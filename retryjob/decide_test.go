package retryjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// scene is a policy and what happens to one job under it.
type scene struct {
	policy   retry.Policy
	tokens   int           // of the budget; 0 means no budget
	shut     time.Duration // how long the gate is shut after the job's start; 0 means no gate
	attempts []happening
}

// happening is what happens in one attempt.
type happening struct {
	took     time.Duration
	err      error
	canceled bool
	lost     bool // and noticed at once
}

// randomScene returns a scene whose policy validates.
func randomScene(rnd *rand.Rand) scene {
	chance := func(percent int) bool { return rnd.IntN(100) < percent }
	upTo := func(n int) time.Duration { return time.Duration(rnd.IntN(n)) * time.Millisecond }
	p := retry.Policy{
		MaxAttempts: []int{0, 1, 2, 3, 5, 9, retry.Unlimited}[rnd.IntN(7)], Disabled: chance(4),
		Backoff: retry.Backoff{Base: upTo(5000), Mode: retry.Mode(rnd.IntN(4)), Jitter: retry.JitterMode(rnd.IntN(5))},
	}
	if p.Jitter == retry.DecorrelatedJitter {
		p.Mode = retry.Exponential
	}
	if p.Mode == retry.Exponential && chance(50) {
		p.Factor = 1 + 3*rnd.Float64()
	}
	if chance(20) {
		p.Backoff = retry.Backoff{Delays: []time.Duration{upTo(3000), 0, upTo(9000)}, Jitter: retry.FullJitter}
	}
	if chance(50) {
		p.Cap = max(p.Base, upTo(20_000))
	}
	if chance(50) {
		p.TTL = upTo(60_000)
	}
	if chance(50) {
		p.MaxHint = upTo(10_000)
	}
	if chance(30) {
		p.ResetAfter = upTo(3000)
	}
	if chance(20) {
		p.Classify = retry.FirstOf(retry.StopOn(retryjob.ErrLost), retry.RetryOn(context.Canceled))
	}
	if chance(20) {
		p.Wait = func(attempt int, err error, computed time.Duration) time.Duration {
			switch {
			case attempt == 4:
				return retry.Stop
			case errors.Is(err, errFlaky):
				return computed / 2
			}
			return time.Duration(attempt) * sec
		}
	}
	if chance(20) {
		p.Pay = func(_ context.Context, d retry.Decision) bool { return d.Delay%7 != 0 }
	}
	s := scene{policy: p}
	if chance(30) {
		s.tokens = 1 + rnd.IntN(5)
	}
	if chance(30) {
		s.shut = upTo(30_000)
	}
	for range 12 {
		h := happening{took: upTo(4000), lost: s.shut == 0 && chance(10), canceled: chance(3)} // Lost asks no gate
		h.err = []error{
			errFlaky, errFlaky, errFlaky, errFlaky, retry.Transient(context.Canceled), context.Canceled, retry.Permanent(errFlaky), nil,
			retry.After(upTo(12_000), errFlaky), retry.Ambiguous(errFlaky), retryjob.ErrLost, context.DeadlineExceeded,
			retry.Progressed(errFlaky),
		}[rnd.IntN(13)]
		if h.lost {
			h.took, h.err, h.canceled = 0, retryjob.ErrLost, false
		}
		if h.err == nil {
			h.canceled = false // Step ends a canceled success otherwise than Do
		}
		s.attempts = append(s.attempts, h)
	}
	s.attempts = append(s.attempts, happening{err: retry.Permanent(errFlaky)})
	return s
}

// at returns the scene's policy for a job or a call that begins now, with a budget and a gate of its own.
func (s *scene) at(now func() time.Time, seen *told) retry.Policy {
	p, began := s.policy, now()
	p.Name, p.Observe = "p", seen.observe
	if s.tokens > 0 {
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: s.tokens})
	}
	if s.shut > 0 {
		p.Gate = func(context.Context) time.Duration { return began.Add(s.shut).Sub(now()) }
	}
	return p
}

// inline plays the scene as a call of Do. It returns the events, and which attempts could be the last.
func (s *scene) inline(t *testing.T) (events told, last []bool) {
	synctest.Test(t, func(t *testing.T) {
		began, n := time.Now(), 0
		p := s.at(time.Now, &events)
		p.Rand = func() float64 { return u("j", 0, n) }
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_ = retry.Do(ctx, p, func(ctx context.Context) error {
			h := s.attempts[n]
			n++
			if !h.lost {
				last = append(last, retry.LastAttempt(ctx))
			}
			<-time.After(h.took)
			if h.canceled {
				cancel()
			}
			return h.err
		})
		events = plain(events, began)
	})
	return events, last
}

// deferred plays the scene as a job, likewise. It encodes and decodes the record as JSON between two steps.
func (s *scene) deferred(t *testing.T) (events told, last []bool) {
	c := &clock{epoch}
	x := &trial{t, c, stepper(s.at(c.Now, &events), c), record(c)}
	for n := 0; !x.r.Status.Final(); {
		text, err := json.Marshal(x.r)
		require.NoError(t, err)
		x.r = retryjob.Record{}
		require.NoError(t, json.Unmarshal(text, &x.r))

		h := s.attempts[n]
		ctx, cancel := context.WithCancelCause(t.Context())
		var next retryjob.Next
		if h.lost {
			next = x.lost(n + 1)
		} else {
			next = x.stepIn(ctx, n+1, func(ctx context.Context) error {
				last = append(last, retry.LastAttempt(ctx))
				c.pass(h.took)
				if h.canceled {
					cancel(retryjob.ErrCanceled)
				}
				return h.err
			})
		}
		cancel(nil)
		next.Tell()
		if !next.Due.IsZero() {
			c.now = next.Due
		}
		if !next.Deferred {
			n++
		}
	}
	return plain(events, epoch), last
}

// plain removes from events the differences between an error and its text, and between clocks.
func plain(events told, began time.Time) (list told) {
	attempt := func(a retry.Attempt) retry.Attempt {
		if a.Err != nil {
			a.Start = epoch.Add(a.Start.Sub(began))
			if a.Err.Error() == retryjob.ErrLost.Error() {
				a.Start, a.Delay = time.Time{}, 0 // the record of a lost attempt has no times
			}
			a.Err = errors.New(a.Err.Error())
		}
		return a
	}
	for _, e := range events {
		e.Attempt = attempt(e.Attempt)
		if e.Err != nil {
			e.Err = errors.New(e.Err.Error())
		}
		if e.Outcome != nil {
			o := *e.Outcome
			o.History = nil
			for _, a := range e.Outcome.History {
				o.History = append(o.History, attempt(a))
			}
			e.Outcome = &o
		}
		list = append(list, e)
	}
	return list
}

// TestStepperDecidesWhatDoDecides checks that, for random policies, errors, durations, losses and cancellations, the
// attempts of a job have the same results as those of a retry.Do that waits in virtual time with the same jitter. The
// log has the first scenes.
func TestStepperDecidesWhatDoDecides(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 14))
	reasons := map[retry.Reason]int{}
	resets := 0
	scenes := 10_000
	if testing.Short() {
		scenes = 2000
	}
	for n := 0; n < scenes; {
		s := randomScene(rnd)
		if s.policy.Validate() != nil {
			continue
		}
		n++
		want, last := s.inline(t)
		have, lastOfJob := s.deferred(t)
		require.Equal(t, want, have, "scene %d: %v, %+v", n, s.policy, s)
		require.Equal(t, last, lastOfJob, "scene %d: %v, %+v", n, s.policy, s)
		for i, e := range want {
			reasons[e.Decision.Reason]++
			if e.Decision.Forgiven > 0 {
				resets++
			}
			if n <= 3 && e.Outcome == nil {
				t.Logf("scene %d: %v: %v: %v", n, s.policy, s.attempts[i], e.Decision)
			}
		}
	}
	for _, reason := range retryjob.Reasons() {
		if reason != retry.DeadlinePassed && reason != retry.DeadlineTooNear { // a job has no deadline
			require.Greater(t, reasons[reason], scenes/100, reason)
		}
	}
	require.Greater(t, reasons[0], scenes)
	require.Greater(t, resets, scenes/10)
}
