package retryjob_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// TestStepperDecidesWhatDoDecides checks that the attempts of a job have the same results as those of a retry.Do that
// waits in virtual time with the same jitter.
func TestStepperDecidesWhatDoDecides(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		p := retry.Policy{MaxAttempts: rnd.IntN(7), Disabled: rnd.IntN(12) == 0, Backoff: retry.Backoff{
			Base: time.Duration(1+rnd.IntN(5000)) * time.Millisecond, Factor: 1 + 2*rnd.Float64(),
			Mode: retry.Mode(rnd.IntN(4)), Jitter: retry.JitterMode(rnd.IntN(5)), Cap: time.Duration(6+rnd.IntN(60)) * sec,
		}}
		if rnd.IntN(2) == 0 {
			p.TTL = time.Duration(1+rnd.IntN(40)) * sec
		}
		if p.Jitter == retry.DecorrelatedJitter {
			p.Mode = retry.Exponential
		}
		if rnd.IntN(4) == 0 {
			p.Backoff = retry.Backoff{Delays: []time.Duration{sec, 3 * sec, 2 * sec}, Jitter: retry.FullJitter}
		}
		require.NoError(t, p.Validate())
		tokens := 0
		if rnd.IntN(3) == 0 {
			tokens = 1 + rnd.IntN(4)
		}
		var script []outcome
		var took []time.Duration
		for range 9 {
			script = append(script, []outcome{fails, fails, fails, fails, asksForSevenSeconds, succeeds, isTerminal, asksForTooLong, givesUp, progresses}[rnd.IntN(10)])
			took = append(took, time.Duration(rnd.IntN(3000))*time.Millisecond)
		}
		budget := func() *retry.Budget {
			if tokens == 0 {
				return nil
			}
			return retry.NewBudget(retry.BudgetConfig{Initial: tokens})
		}
		synctest.Test(t, func(t *testing.T) {
			var inline, deferred told
			began := time.Now()

			c := &clock{began}
			p.Name, p.Observe, p.Budget = "p", deferred.observe, budget()
			s, r := stepper(p, c), record(c)
			var last, lastOfJob []bool
			for n := 1; !r.Status.Final(); n++ {
				step(t, s, &r, c, n, func(ctx context.Context) error {
					lastOfJob = append(lastOfJob, retry.LastAttempt(ctx))
					c.pass(took[n-1])
					return script[n-1].err()
				})
			}

			drawn, n := 0, 0
			p.Observe, p.Budget = inline.observe, budget()
			p.Rand = func() float64 { drawn = n; return u("j", 0, drawn) }
			err := retry.Do(t.Context(), p, func(ctx context.Context) error {
				last = append(last, retry.LastAttempt(ctx))
				n++
				<-time.After(took[n-1])
				return script[n-1].err()
			})
			require.Equal(t, r.Status == retryjob.Succeeded, err == nil)
			require.Equal(t, last, lastOfJob, "%v, %v", p, script)
			require.Equal(t, plain(inline, began), plain(deferred, began), "%v, %v", p, script)
		})
	}
}

// plain removes from events the differences between an error and its text, and between clocks.
func plain(events told, began time.Time) (list told) {
	attempt := func(a retry.Attempt) retry.Attempt {
		if a.Err != nil {
			a.Err = errors.New(a.Err.Error())
			a.Start = epoch.Add(a.Start.Sub(began))
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
