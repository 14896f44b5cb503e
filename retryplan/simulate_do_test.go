package retryplan_test

import (
	"context"
	"errors"
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
	fails    bool // every attempt that is worked on fails
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

// anyLone is randomLone with attempts that fail at the server, errors that are terminal, waits of one's own, and attempts
// that are long enough to restart the schedule. It has no hedges.
func anyLone(rng *rand.Rand) lone {
	l := randomLone(rng)
	l.service += 20 * time.Millisecond // bounds the number of attempts
	l.fails = rng.IntN(3) == 0
	l.hedge = 0
	p := &l.policy
	errs := []error{retryplan.ErrWorkFailed, retryplan.ErrRejected, retry.ErrAttemptTimeout}
	if rng.IntN(5) == 0 {
		p.Classify = retry.StopOn(errs[rng.IntN(len(errs))])
	}
	if rng.IntN(5) == 0 {
		p.Wait = func(attempt int, err error, computed time.Duration) time.Duration {
			if err == retryplan.ErrWorkFailed {
				return time.Duration(attempt) * 101 * time.Millisecond
			}
			return computed/2 + 1
		}
	}
	if rng.IntN(5) == 0 {
		p.ResetAfter = l.service/2 + time.Duration(rng.Int64N(int64(2*time.Second)))
	}
	if rng.IntN(8) == 0 {
		p.MaxAttempts = retry.Unlimited
	}
	if p.TTL == 0 && l.deadline == 0 && (p.ResetAfter > 0 || p.MaxAttempts == retry.Unlimited) {
		l.deadline = time.Minute + time.Duration(rng.IntN(1000))
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
		return retryplan.ErrRejected
	}
	timer := time.NewTimer(l.service)
	defer timer.Stop()
	select {
	case <-timer.C:
		if l.fails {
			return retryplan.ErrWorkFailed
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// The first three cases are logged, to be checked by hand.
func TestSimulateDoesWhatDoDoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	endings := map[retry.Reason]int{}
	attempts, hedges := 0, 0
	for i := range 3000 {
		l := randomLone(rng)
		if i%3 > 0 {
			l = anyLone(rng)
		}
		if l.policy.Validate() != nil {
			continue
		}
		want := l.simulated(t)
		if i < 3 {
			t.Logf("case %d: %+v\n%+v", i, l, want)
		}
		require.Equal(t, want, l.done(t, retryplan.Draws(l.seed, len(want.Sent)+1)), "case %d: %+v", i, l)
		endings[want.Reason]++
		attempts += len(want.Sent)
		hedges += want.Calls - len(want.Sent)
	}
	t.Log(endings, attempts, hedges)
	require.Greater(t, hedges, 100)
	for _, reason := range []retry.Reason{0, retry.TerminalError, retry.AttemptsExhausted, retry.BudgetExhausted, retry.TTLElapsed,
		retry.DeadlinePassed, retry.DeadlineTooNear, retry.RetriesDisabled} {
		require.Greater(t, endings[reason], 10, "%q", reason.Error())
	}
}
