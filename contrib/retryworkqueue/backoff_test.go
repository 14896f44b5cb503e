package retryworkqueue_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	ours "github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryworkqueue"
)

// attemptsOf returns the times at which ExponentialBackoff makes its attempts with b.
func attemptsOf(b wait.Backoff) (at []time.Duration) {
	began := time.Now()
	_ = wait.ExponentialBackoff(b, func() (bool, error) {
		at = append(at, time.Since(began))
		return false, nil
	})
	return at
}

// attemptsUnder returns the times at which Do makes its attempts under p.
func attemptsUnder(ctx context.Context, p ours.Policy) (at []time.Duration) {
	began := time.Now()
	_ = ours.Do(ctx, p, func(context.Context) error {
		at = append(at, time.Since(began))
		return errBusy
	})
	return at
}

func TestABackoffWithoutJitterMakesTheSameAttemptsAsItsPolicy(t *testing.T) {
	for name, b := range map[string]wait.Backoff{
		"DefaultRetry without jitter": {Steps: 5, Duration: 10 * ms, Factor: 1},
		"exponential":                 {Steps: 6, Duration: 10 * ms, Factor: 5},
		"a fraction":                  {Steps: 6, Duration: 10 * ms, Factor: 1.5},
		"constant":                    {Steps: 3, Duration: time.Second},
		"constant above a cap":        {Steps: 3, Duration: time.Second, Cap: ms},
		"factor 1 above a cap":        {Steps: 3, Duration: time.Second, Factor: 1, Cap: ms},
		"once":                        {Steps: 1, Duration: time.Second, Factor: 2},
		"no wait":                     {Steps: 3},
		"the cap ends the run":        {Steps: 10, Duration: time.Second, Factor: 2, Cap: 5 * time.Second},
		"the cap is met":              {Steps: 4, Duration: time.Second, Factor: 2, Cap: 4 * time.Second},
		"the first is above the cap":  {Steps: 4, Duration: time.Second, Factor: 2, Cap: ms},
		"negative jitter":             {Steps: 3, Duration: time.Second, Jitter: -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := retryworkqueue.FromBackoff(b)
				require.NoError(t, err)
				require.NoError(t, p.Validate())
				require.Equal(t, attemptsOf(b), attemptsUnder(t.Context(), p))
			})
		})
	}
}

func TestTheCapOfABackoffEndsTheRunAfterAUselessSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := wait.Backoff{Steps: 10, Duration: time.Second, Factor: 2, Cap: 5 * time.Second}
		began := time.Now()
		require.Equal(t, []time.Duration{0, time.Second, 3 * time.Second}, attemptsOf(b))
		require.Equal(t, 7*time.Second, time.Since(began))

		p, err := retryworkqueue.FromBackoff(b)
		require.NoError(t, err)
		began = time.Now()
		require.Equal(t, []time.Duration{0, time.Second, 3 * time.Second}, attemptsUnder(t.Context(), p))
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestTheBoundsOfABackoffWithJitterAreThoseOfItsPolicy(t *testing.T) {
	for name, b := range map[string]wait.Backoff{
		"DefaultRetry":   retry.DefaultRetry,
		"DefaultBackoff": retry.DefaultBackoff,
		"doubling":       {Steps: 8, Duration: 100 * ms, Factor: 2, Jitter: 1},
		"wide":           {Steps: 5, Duration: time.Second, Factor: 3, Jitter: 4},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := retryworkqueue.FromBackoff(b)
			require.NoError(t, err)
			require.NoError(t, p.Validate())
			require.Equal(t, b.Steps, p.MaxAttempts)
			back, lost, err := retryworkqueue.Backoff(p)
			require.NoError(t, err)
			require.Empty(t, lost)
			d := float64(b.Duration)
			for n := 1; n < b.Steps; n++ {
				lo, hi := p.Bounds(n)
				require.InEpsilon(t, d, float64(lo), 1e-6)
				require.InEpsilon(t, d*(1+b.Jitter), float64(hi), 1e-6)
				d *= b.Factor
			}
			require.Equal(t, b.Steps, back.Steps)
			require.InDelta(t, b.Jitter, back.Jitter, 1e-9)
			require.InDelta(t, float64(b.Duration), float64(back.Duration), 1)
		})
	}
}

func TestAPolicyMakesTheSameAttemptsAsItsBackoff(t *testing.T) {
	for name, p := range map[string]ours.Policy{
		"exponential":  doubling,
		"fixed":        {MaxAttempts: 3, Backoff: ours.Backoff{Mode: ours.Fixed, Base: time.Second}},
		"the default":  {},
		"one attempt":  {MaxAttempts: 1, Backoff: ours.Backoff{Jitter: ours.FullJitter}},
		"disabled":     {Disabled: true},
		"cap is met":   {MaxAttempts: 4, Backoff: ours.Backoff{Base: time.Second, Cap: 4 * time.Second}},
		"equal jitter": {MaxAttempts: 5, Backoff: ours.Backoff{Base: time.Second, Jitter: ours.EqualJitter}},
		"ratio jitter": {MaxAttempts: 5, Backoff: ours.Backoff{Base: time.Second, Jitter: ours.RatioJitter, JitterRatio: 0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, err := retryworkqueue.Backoff(p)
			require.NoError(t, err)
			d := b.Duration
			for n := 1; n < b.Steps; n++ {
				lo, hi := p.Bounds(n)
				require.Equal(t, lo, d)
				require.Equal(t, hi, d+time.Duration(b.Jitter*float64(d)))
				d = time.Duration(float64(d) * b.Factor)
			}
			if p.Jitter == ours.NoJitter {
				synctest.Test(t, func(t *testing.T) { require.Equal(t, attemptsUnder(t.Context(), p), attemptsOf(b)) })
			}
		})
	}
}

func TestWhatABackoffCannotExpressIsRefused(t *testing.T) {
	for want, p := range map[string]ours.Policy{
		"retryworkqueue: Policy.MaxAttempts Unlimited is not a number of Steps":        {MaxAttempts: ours.Unlimited},
		"retryworkqueue: Policy.Mode list is neither exponential nor fixed":            ours.Standard(),
		"retryworkqueue: Policy.Mode linear is neither exponential nor fixed":          {Backoff: ours.Backoff{Mode: ours.Linear}},
		"retryworkqueue: Policy.Jitter full is neither equal nor ratio jitter":         ours.Inline(),
		"retryworkqueue: Policy.Jitter decorrelated is neither equal nor ratio jitter": {Backoff: ours.Backoff{Jitter: ours.DecorrelatedJitter}},
		"retryworkqueue: Policy.JitterRatio 1 lets a wait begin at 0":                  {Backoff: ours.Backoff{Jitter: ours.RatioJitter, JitterRatio: 1}},
		"retryworkqueue: Policy.Wait func is not called":                               {Wait: func(int, error, time.Duration) time.Duration { return 0 }},
		"retryworkqueue: Policy.Cap 1h is reached, and would end the run":              {MaxAttempts: 12},
		"retryworkqueue: Policy.Cap 10s is reached, and would end the run":             {MaxAttempts: 3, Backoff: ours.Backoff{Base: 5 * time.Second, Cap: 10 * time.Second, Jitter: ours.RatioJitter}},
		"retry: Policy.TTL -1ns is negative":                                           {TTL: -1},
	} {
		_, _, err := retryworkqueue.Backoff(p)
		require.EqualError(t, err, want)
		var bad *ours.FieldError
		require.ErrorAs(t, err, &bad)
	}
}

func TestWhatAPolicyCannotExpressIsRefused(t *testing.T) {
	for want, b := range map[string]wait.Backoff{
		"retryworkqueue: Backoff.Steps 0 is below 1, so that no attempt is made":                           {Duration: 1},
		"retryworkqueue: Backoff.Duration -1s is negative; Backoff.Factor 0.5 is below 1, or not a number": {Steps: 1, Duration: -time.Second, Factor: 0.5},
		"retryworkqueue: Backoff.Jitter NaN is not a number":                                               {Steps: 1, Jitter: math.NaN()},
		"retryworkqueue: Backoff.Steps 40 lets a wait grow beyond the largest Duration":                    {Steps: 40, Duration: time.Second, Factor: 2},
		"retryworkqueue: Backoff.Steps 9223372036854775807 lets a wait grow beyond the largest Duration":   {Steps: math.MaxInt, Duration: time.Second, Factor: 2},
	} {
		_, err := retryworkqueue.FromBackoff(b)
		require.EqualError(t, err, want)
	}
	p, err := retryworkqueue.FromBackoff(wait.Backoff{Steps: math.MaxInt, Duration: time.Second})
	require.NoError(t, err)
	require.Equal(t, math.MaxInt, p.MaxAttempts)
}

// Each row has a field that a wait.Backoff cannot express, and the line for it. retry.OnError of client-go shows it: it
// makes the three attempts of the schedule, without a call of the policy's functions.
func TestWhatABackoffLoses(t *testing.T) {
	plain := []time.Duration{0, 100 * ms, 300 * ms}
	for lost, change := range map[string]func(*ours.Policy){
		`Policy.Name "objects": a wait.Backoff has no place for it`:                                func(p *ours.Policy) { p.Name = "objects" },
		"Policy.AttemptTimeout 1s: an attempt has no timeout of its own":                           func(p *ours.Policy) { p.AttemptTimeout = time.Second },
		"Policy.TTL 150ms: an attempt starts at any time":                                          func(p *ours.Policy) { p.TTL = 150 * ms },
		"Policy.MaxHint 1ms: hints are not obeyed":                                                 func(p *ours.Policy) { p.MaxHint = ms },
		"Policy.ResetAfter 1ms: a long attempt counts like any other":                              func(p *ours.Policy) { p.ResetAfter = ms },
		"Policy.Disabled true: Steps is 1, and a failure ends like one whose attempts are used up": func(p *ours.Policy) { p.Disabled = true },
		"Policy.Classify is set: it is not called":                                                 func(p *ours.Policy) { p.Classify = func(error) ours.Class { panic("called") } },
		"Policy.Budget is set: it is not asked, and retries are free":                              func(p *ours.Policy) { p.Budget = ours.NewBudget(ours.BudgetConfig{Initial: -1}) },
		"Policy.Pay is set: it is not called":                                                      func(p *ours.Policy) { p.Pay = func(context.Context, ours.Decision) bool { panic("called") } },
		"Policy.Gate is set: it is not called":                                                     func(p *ours.Policy) { p.Gate = func(context.Context) time.Duration { panic("called") } },
		"Policy.Observe is set: it is not called":                                                  func(p *ours.Policy) { p.Observe = func(context.Context, ours.Event) { panic("called") } },
		"Policy.Rand is set: it is not called":                                                     func(p *ours.Policy) { p.Rand = func() float64 { panic("called") } },
	} {
		t.Run(lost, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := doubling
				p.MaxAttempts = 3
				change(&p)
				b, lines, err := retryworkqueue.Backoff(p)
				require.NoError(t, err)
				require.Equal(t, []string{lost}, lines)
				var at []time.Duration
				began := time.Now()
				err = retry.OnError(b, func(error) bool { return true }, func() error {
					at = append(at, time.Since(began))
					return ours.After(time.Second, errBusy)
				})
				require.ErrorIs(t, err, errBusy)
				require.False(t, errors.Is(err, ours.AttemptsExhausted))
				if p.Disabled {
					require.Equal(t, plain[:1], at)
				} else {
					require.Equal(t, plain, at)
				}
			})
		})
	}
}
