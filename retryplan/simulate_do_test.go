package retryplan_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryplan"
	"github.com/stretchr/testify/require"
)

// trace is the course of one run, with the time at which each attempt was sent and ended, and the reason of its end.
type trace struct {
	Sent, Ended []time.Duration
	Calls       int // with hedges
	Reason      retry.Reason
}

// lone is one run of one client, against a server that is down at first.
type lone struct {
	policy   retry.Policy
	deadline time.Duration
	service  time.Duration
	outage   time.Duration
	fails    bool // every attempt that is worked on
	budget   *retry.BudgetConfig
	hedge    time.Duration // the delay of one; 0 for none
	seed     uint64
}

func randomLone(rng *rand.Rand) lone {
	// Odd nanoseconds, so that no two things happen at the same time by accident.
	span := func(hi time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(hi))) | 1 }
	maybe := func(d time.Duration) time.Duration {
		if rng.IntN(2) == 0 {
			return 0
		}
		return d
	}
	l := lone{
		deadline: maybe(span(time.Minute)), service: span(4 * time.Second),
		outage: span(10 * time.Second), seed: rng.Uint64(),
	}
	l.policy = retry.Policy{MaxAttempts: rng.IntN(12), AttemptTimeout: maybe(span(3 * time.Second)), TTL: maybe(span(time.Minute) + 3*time.Second), Disabled: rng.IntN(20) == 0}
	l.policy.Backoff = retry.Backoff{Base: span(3 * time.Second), Cap: 3*time.Second + span(20*time.Second), Jitter: retry.JitterMode(rng.IntN(5))}
	if rng.IntN(4) == 0 {
		l.policy.Backoff = retry.Backoff{Delays: []time.Duration{span(time.Second), span(9 * time.Second), 0, span(time.Minute)}, Jitter: retry.FullJitter}
	}
	if rng.IntN(3) == 0 {
		l.budget = &retry.BudgetConfig{Initial: 1 + rng.IntN(4), Trickle: maybe(span(5 * time.Second))}
	}
	if rng.IntN(3) == 0 {
		l.hedge = span(time.Second)
	}
	return l
}

// simulated returns the course of l in the simulation.
func (l lone) simulated(t *testing.T) (got trace) {
	s := retryplan.Scenario{
		Policy:   l.policy,
		Deadline: l.deadline,
		Server:   retryplan.Server{Workers: 1, Service: retryplan.Constant(l.service)},
		Trigger:  retryplan.Trigger{Kind: retryplan.Outage, For: l.outage},
		Budget:   l.budget,
		Duration: time.Hour,
		Step:     time.Hour,
		Seed:     l.seed,
	}
	if l.hedge > 0 {
		s.Hedge.Delay, s.Server.Workers = l.hedge, 0
	}
	if l.fails {
		s.Server.FailureRate = 1
	}
	r, sent, ended, err := retryplan.Traced(t.Context(), s)
	require.NoError(t, err)
	require.Len(t, r.Endings, 1)
	got = trace{Sent: sent, Ended: ended, Calls: r.Attempts}
	for reason := range r.Endings {
		got.Reason = reason
	}
	if got.Reason == 0 {
		require.Equal(t, ended[len(ended)-1], r.Latency.Quantile(1))
	}
	require.Equal(t, len(sent), r.Attempts-r.Hedges)
	return got
}

// done returns the course of l in retry.Do, with the given random numbers.
func (l lone) done(t *testing.T, draws []float64) (got trace) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx := t.Context()
		if l.deadline > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, l.deadline)
			defer cancel()
		}
		p := l.policy
		p.Rand = func() (u float64) {
			u, draws = draws[0], draws[1:]
			return u
		}
		if l.budget != nil {
			p.Budget = retry.NewBudget(*l.budget)
		}
		err := retry.Do(ctx, p, func(ctx context.Context) error {
			got.Sent = append(got.Sent, time.Since(began))
			defer func() { got.Ended = append(got.Ended, time.Since(began)) }()
			var calls atomic.Int32
			defer func() { got.Calls += int(calls.Load()) }()
			hedge := retryhedge.Policy{Delay: l.hedge, Budget: p.Budget, InRun: true}
			return retryhedge.Do(ctx, hedge, func(ctx context.Context) error {
				calls.Add(1)
				return l.attempt(ctx, began)
			})
		})
		errors.As(err, &got.Reason)
	})
	return got
}

func (l lone) attempt(ctx context.Context, began time.Time) error {
	if time.Since(began) < l.outage {
		return errors.New("rejected")
	}
	timer := time.NewTimer(l.service)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestSimulateDoesWhatDoDoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	endings := map[retry.Reason]int{}
	attempts, hedges := 0, 0
	for i := range 900 {
		l := randomLone(rng)
		if l.policy.Validate() != nil {
			continue
		}
		what := fmt.Sprintf("case %d: %+v", i, l)
		want := l.simulated(t)
		require.Equal(t, want, l.done(t, retryplan.Draws(l.seed, 20)), what)
		endings[want.Reason]++
		attempts += len(want.Sent)
		hedges += want.Calls - len(want.Sent)
	}
	t.Log(endings, attempts, hedges)
	require.Greater(t, hedges, 100)
	for _, reason := range []retry.Reason{0, retry.AttemptsExhausted, retry.BudgetExhausted, retry.TTLElapsed, retry.DeadlinePassed, retry.DeadlineTooNear, retry.RetriesDisabled} {
		require.Positive(t, endings[reason], "no case ends as %q", reason.Error())
	}
}
