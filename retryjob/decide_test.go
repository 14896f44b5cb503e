package retryjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
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
	skipped  bool // lost, and noticed when the next attempt is to be made
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
		h := happening{took: upTo(4000), lost: chance(5), skipped: chance(5), canceled: chance(3)}
		h.err = []error{
			errFlaky, errFlaky, errFlaky, errFlaky, retry.Transient(context.Canceled), context.Canceled, retry.Permanent(errFlaky), nil,
			retry.After(upTo(12_000), errFlaky), retry.Ambiguous(errFlaky), retryjob.ErrLost, context.DeadlineExceeded,
			retry.Progressed(errFlaky),
		}[rnd.IntN(13)]
		if last := len(s.attempts) - 1; h.lost || h.skipped {
			h.skipped = !h.lost
			if last >= 0 {
				s.attempts[last].skipped = false // the attempt after it is to be made
			}
		}
		s.attempts = append(s.attempts, h)
	}
	s.attempts[11].skipped = false
	return s
}

// at returns the scene's policy with a budget and a gate of its own, for a clock.
func (s *scene) at(now func() time.Time) retry.Policy {
	p := s.policy
	if s.tokens > 0 {
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: s.tokens})
	}
	if s.shut > 0 {
		p.Gate = func(context.Context) time.Duration { return epoch.Add(s.shut).Sub(now()) }
	}
	return p
}

// plainly returns the decisions of the scene by the functions of package retry alone, and whether the job ended.
func (s *scene) plainly(ctx context.Context) (decisions []retry.Decision, ended bool) {
	c := clock{epoch}
	p := s.at(c.Now)
	pr := retry.Progress{}
	decide := func(now retry.Progress, err error) bool {
		now.Forgiven, now.Prev, now.Elapsed = pr.Forgiven, pr.Prev, c.now.Sub(epoch)
		d := p.Spend(ctx, p.Decide(now, err, u("j", 0, now.Attempt)), c.now)
		if now.Waited {
			d.Delay = 0 // it is over
		}
		if err != nil {
			decisions = append(decisions, d)
		}
		if d.Status != retry.WaitingRetry {
			decisions = append(decisions, d)
			return false
		}
		pr = retry.Progress{Attempt: now.Attempt, Forgiven: d.Forgiven, Prev: d.Backoff}
		c.pass(d.Delay)
		return true
	}
	for i, h := range s.attempts {
		n := i + 1
		switch {
		case h.lost:
			if !decide(retry.Progress{Attempt: n}, retryjob.ErrLost) {
				return decisions, true
			}
			continue
		case h.skipped:
			c.pass(h.took)
			if !decide(retry.Progress{Attempt: n, Waited: true}, retryjob.ErrLost) {
				return decisions, true
			}
			continue
		}
		for deferred := true; deferred; {
			pr.Elapsed = c.now.Sub(epoch)
			d := p.Admit(pr, 0)
			if p.Gate != nil && d.Status == retry.WaitingRetry {
				d = p.Admit(pr, p.Gate(ctx))
			}
			if d.Status != retry.WaitingRetry {
				return append(decisions, d), true
			}
			deferred = d.Delay > 0
			c.pass(d.Delay)
		}
		c.pass(h.took)
		now := retry.Progress{Attempt: n, Lasted: h.took}
		if h.canceled {
			now.Caller = retry.CallerCanceled
		}
		if !decide(now, h.err) {
			return decisions, true
		}
	}
	return decisions, false
}

// stepped returns the decisions of the scene that a Stepper passed to Observe, and whether the job ended. It encodes
// and decodes the record as JSON between two steps.
func (s *scene) stepped(t *testing.T) (decisions []retry.Decision, ended bool) {
	c := &clock{epoch}
	p := s.at(c.Now)
	p.Observe = func(_ context.Context, e retry.Event) { decisions = append(decisions, e.Decision) }
	stepper, rec := stepper(p, c), record(c)
	for i := 0; i < len(s.attempts) && !rec.Status.Final(); {
		text, err := json.Marshal(rec)
		require.NoError(t, err)
		rec = retryjob.Record{}
		require.NoError(t, json.Unmarshal(text, &rec))

		h, n := s.attempts[i], i+1
		var next retryjob.Next
		switch {
		case h.lost:
			next, err = stepper.Lost(t.Context(), &rec, n)
		case h.skipped:
			c.pass(h.took)
			i++
			continue
		default:
			ctx, cancel := context.WithCancelCause(t.Context())
			next, err = stepper.Step(ctx, &rec, n, func(context.Context) error {
				c.pass(h.took)
				if h.canceled && h.err != nil { // Step ends a canceled success otherwise than Decide
					cancel(retryjob.ErrCanceled)
				}
				return h.err
			})
			cancel(nil)
		}
		require.NoError(t, err)
		next.Tell()
		if !next.Due.IsZero() {
			c.now = next.Due
		}
		if !next.Deferred {
			i++
		}
	}
	return decisions, rec.Status.Final()
}

// TestStepperDecidesWhatThePolicyDecides checks that, for random policies, errors, durations, losses and cancellations,
// a Stepper decides as Decide, Admit and Spend do in a plain loop.
func TestStepperDecidesWhatThePolicyDecides(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 14))
	seen := map[retry.Reason]int{}
	resets := 0
	for n := 0; n < 10_000; {
		s := randomScene(rnd)
		if s.policy.Validate() != nil {
			continue
		}
		n++
		want, ended := s.plainly(t.Context())
		have, final := s.stepped(t)
		require.Equal(t, want, have, "scene %d: %v, %+v", n, s.policy, s)
		require.Equal(t, ended, final, "scene %d: %v, %+v", n, s.policy, s)
		for _, d := range want {
			seen[d.Reason]++
			if d.Forgiven > 0 {
				resets++
			}
		}
	}
	for _, reason := range retryjob.Reasons() {
		if reason != retry.DeadlinePassed && reason != retry.DeadlineTooNear { // a job has no deadline
			require.Greater(t, seen[reason], 100, reason)
		}
	}
	require.Greater(t, seen[0], 10_000)
	require.Greater(t, resets, 1000)
}
