package retrytemporal_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrytemporal"
)

func ownWait(int, error, time.Duration) time.Duration { return 0 }

func TestPolicyIs(t *testing.T) {
	for _, row := range []struct {
		name      string
		policy    retry.Policy
		want      temporal.RetryPolicy
		forErrors time.Duration // MaximumInterval
	}{
		{"the zero policy", retry.Policy{}, temporal.RetryPolicy{
			InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: time.Hour, MaximumAttempts: 8,
		}, time.Hour},
		{"a cap below MaxHint", retry.Policy{MaxAttempts: retry.Unlimited, MaxHint: time.Minute, Backoff: retry.Backoff{Base: time.Second, Factor: 1.5, Cap: 9 * time.Second}},
			temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1.5, MaximumInterval: 9 * time.Second}, time.Minute},
		{"a cap above MaxHint", retry.Policy{Backoff: retry.Backoff{Base: 2 * time.Hour}},
			temporal.RetryPolicy{InitialInterval: 2 * time.Hour, BackoffCoefficient: 2, MaximumInterval: 2 * time.Hour, MaximumAttempts: 8}, 2 * time.Hour},
		{"fixed", retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}},
			temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1, MaximumInterval: time.Second, MaximumAttempts: 8}, time.Hour},
		{"a list that falls", retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{3, 1, 2}}},
			temporal.RetryPolicy{InitialInterval: 3, BackoffCoefficient: 1, MaximumInterval: 3, MaximumAttempts: 4}, time.Hour},
		{"a list without a wait", retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{0}}},
			temporal.RetryPolicy{InitialInterval: 1, BackoffCoefficient: 1, MaximumInterval: 1, MaximumAttempts: 2}, time.Hour},
		{"a list of which one wait is used", retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Delays: []time.Duration{time.Second, time.Hour}}},
			temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1, MaximumInterval: time.Second, MaximumAttempts: 2}, time.Hour},
		{"linear without a limit grows to the cap", retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Mode: retry.Linear, Base: time.Second, Factor: 99}},
			temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 100, MaximumInterval: time.Hour}, time.Hour},
		{"a list whose jitter passes MaxHint", retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{time.Hour, time.Hour}, Jitter: retry.RatioJitter}},
			temporal.RetryPolicy{InitialInterval: time.Hour, BackoffCoefficient: 1, MaximumInterval: time.Hour, MaximumAttempts: 3}, 72 * time.Minute},
		{"a very long list", retry.Policy{Backoff: retry.Backoff{Delays: append(make([]time.Duration, 150), 3*time.Hour, time.Second)}}, temporal.RetryPolicy{
			InitialInterval: 1, BackoffCoefficient: 1.1470, MaximumInterval: 3 * time.Hour, MaximumAttempts: 153,
		}, 3 * time.Hour},
		{"own waits up to the cap", retry.Policy{Backoff: retry.Backoff{Cap: 9 * time.Hour}, Wait: ownWait}, temporal.RetryPolicy{
			InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: 9 * time.Hour, MaximumAttempts: 8,
		}, 9 * time.Hour},
		{"own waits without a cap", retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{time.Second}}, Wait: ownWait}, temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 1, MaximumInterval: time.Second, MaximumAttempts: 2,
		}, math.MaxInt64},
		{"more attempts than Temporal counts", retry.Policy{MaxAttempts: math.MaxInt}, temporal.RetryPolicy{
			InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: time.Hour, MaximumAttempts: math.MaxInt32,
		}, time.Hour},
		{"disabled without a limit", retry.Policy{Disabled: true, MaxAttempts: retry.Unlimited}, temporal.RetryPolicy{
			InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: time.Hour, MaximumAttempts: 1,
		}, time.Hour},
		{"disabled", retry.Policy{Disabled: true, MaxAttempts: 5}, temporal.RetryPolicy{
			InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: time.Hour, MaximumAttempts: 1,
		}, time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, _, err := retrytemporal.Policy(row.policy)
			require.NoError(t, err)
			if row.policy.Mode == retry.Linear || len(row.policy.Delays) > 100 {
				got.BackoffCoefficient = row.want.BackoffCoefficient // of no simple form
			}
			require.Equal(t, &row.want, got)
			got, _, err = retrytemporal.PolicyForErrors(row.policy)
			require.NoError(t, err)
			require.Equal(t, row.forErrors, got.MaximumInterval)
			require.Equal(t, row.want.MaximumAttempts, got.MaximumAttempts)
		})
	}
}

func TestPolicyLoses(t *testing.T) {
	type policy = retry.Policy
	for _, row := range []struct {
		name      string
		set       func(*policy)
		want      []string
		forErrors []string
	}{
		{"a policy of the same form loses nothing", func(*policy) {}, nil, nil},
		{"the name, which Error keeps", func(p *policy) { p.Name = "orders" }, []string{`Policy.Name "orders": a temporal.RetryPolicy has no place for it`}, nil},
		{"attempts beyond 32 bits", func(p *policy) { p.MaxAttempts = 1 << 40 }, []string{"Policy.MaxAttempts 1099511627776: MaximumAttempts is 2147483647"},
			[]string{"Policy.MaxAttempts 1099511627776: MaximumAttempts is 2147483647"}},
		{"the largest number of attempts, which is a limit", func(p *policy) { p.MaxAttempts = math.MaxInt }, []string{"Policy.MaxAttempts 9223372036854775807: MaximumAttempts is 2147483647"},
			[]string{"Policy.MaxAttempts 9223372036854775807: MaximumAttempts is 2147483647"}},
		{"no limit of attempts is kept", func(p *policy) { p.MaxAttempts = retry.Unlimited }, nil, nil},
		{"a cap below MaxHint that is reached", func(p *policy) { p.Cap = 10 * time.Second }, nil,
			[]string{"Policy.MaxHint 1h: MaximumInterval is 1h so that nothing is cut, and after a timeout, a panic or the loss of a worker a wait grows beyond 10s"}},
		{"a cap below MaxHint that is not reached is kept", func(p *policy) { p.Cap, p.MaxAttempts = 10*time.Second, 5 }, nil, nil},
		{"linear growth", func(p *policy) { p.Mode, p.MaxAttempts = retry.Linear, 5 },
			[]string{"Policy.Mode linear: the waits are 1s 1.587s 2.52s 4s instead of 1s 2s 3s 4s"},
			[]string{
				"Policy.Mode linear: after a timeout, a panic or the loss of a worker the waits are 1s 1.587s 2.52s 4s instead of 1s 2s 3s 4s",
			}},
		{"a list that falls", func(p *policy) {
			p.Backoff = retry.Backoff{Delays: []time.Duration{time.Hour, time.Minute}}
		}, []string{"Policy.Delays of 2 entries: the waits are 1h 1h instead of 1h 1m"},
			[]string{"Policy.Delays of 2 entries: after a timeout, a panic or the loss of a worker the waits are 1h 1h instead of 1h 1m"}},
		{"a long list", func(p *policy) {
			p.Backoff, p.MaxAttempts = retry.Backoff{Delays: []time.Duration{time.Hour, 0}}, 20
		}, []string{"Policy.Delays of 2 entries: the waits are 1h 1h 1h 1h 1h 1h 1h 1h 1h 1h 1h 1h ... instead of 1h 0s 0s 0s 0s 0s 0s 0s 0s 0s 0s 0s ..."},
			[]string{"Policy.Delays of 2 entries: after a timeout, a panic or the loss of a worker the waits are 1h 1h 1h 1h 1h 1h 1h 1h 1h 1h 1h 1h ... instead of 1h 0s 0s 0s 0s 0s 0s 0s 0s 0s 0s 0s ..."}},
		{"the jitter", func(p *policy) { p.Jitter, p.MaxAttempts = retry.FullJitter, 4 },
			[]string{"Policy.Jitter full: there is none"},
			[]string{"Policy.Jitter full: after a timeout, a panic or the loss of a worker there is none"}},
		{"the timeout of an attempt", func(p *policy) { p.AttemptTimeout = time.Second },
			[]string{"Policy.AttemptTimeout 1s: ActivityOptions.StartToCloseTimeout takes its place"},
			[]string{"Policy.AttemptTimeout 1s: ActivityOptions.StartToCloseTimeout takes its place"}},
		{"the TTL", func(p *policy) { p.TTL = time.Minute },
			[]string{"Policy.TTL 1m: ActivityOptions.ScheduleToCloseTimeout can take its place, and ends an attempt under way, too"},
			[]string{"Policy.TTL 1m: it counts from the scheduling of the activity, and after a timeout, a panic or the loss of a worker it is not looked at"}},
		{"the longest hint, which Error keeps", func(p *policy) { p.MaxHint = time.Minute },
			[]string{"Policy.MaxHint 1m: an error's next delay is cut to MaximumInterval, 1h, and ends nothing"}, nil},
		{"a disabled policy loses its fields of retries", func(p *policy) { p.Disabled, p.TTL, p.Jitter = true, time.Minute, retry.FullJitter },
			[]string{"Policy.Disabled true: MaximumAttempts is 1, and a failure ends like one whose attempts are used up"},
			[]string{"Policy.Disabled true: MaximumAttempts is 1, and a failure ends like one whose attempts are used up"}},
		{"the classifier", func(p *policy) { p.Classify = retry.StopOn(context.Canceled) },
			[]string{"Policy.Classify is set: it is not asked, and only non-retryable application errors end a run"},
			[]string{"Policy.Classify is set: after a timeout, a panic or the loss of a worker it is not asked"}},
		{"a reset", func(p *policy) { p.ResetAfter = time.Hour },
			[]string{"Policy.ResetAfter 1h: a long attempt counts like any other"},
			[]string{"Policy.ResetAfter 1h: a long attempt counts like any other"}},
		{"own waits and an own currency, which Error asks", func(p *policy) {
			p.Wait = ownWait
			p.Pay = func(context.Context, retry.Decision) bool { return true }
		}, []string{"Policy.Wait is set: it is not asked", "Policy.Pay is set: it is not asked"},
			[]string{"Policy.Wait is set: after a timeout, a panic or the loss of a worker it is not asked"}},
		{"the budget", func(p *policy) { p.Budget = retry.NewBudget(retry.BudgetConfig{}) },
			[]string{"Policy.Budget is set: it is not asked, and retries are free"},
			[]string{"Policy.Budget is set: it is that of one worker process, and is not paid back if the retry does not come"}},
		{"the gate, the observer and the numbers", func(p *policy) {
			p.Gate = func(context.Context) time.Duration { return 0 }
			p.Observe = func(context.Context, retry.Event) {}
			p.Rand = func() float64 { return 0 }
			p.Jitter, p.MaxAttempts = retry.EqualJitter, 2
		}, []string{
			"Policy.Jitter equal: there is none",
			"Policy.Gate is set: it is not asked", "Policy.Observe is set: it is not called", "Policy.Rand is set: there is no jitter to draw",
		}, []string{
			"Policy.Jitter equal: after a timeout, a panic or the loss of a worker there is none",
			"Policy.Gate is set: it is not asked", "Policy.Observe is set: it is not called",
		}},
		{"the wait before, where a Rand draws it", func(p *policy) {
			p.Rand = func() float64 { return 0 }
			p.Jitter, p.MaxAttempts = retry.DecorrelatedJitter, 3
		}, []string{
			"Policy.Jitter decorrelated: there is none",
			"Policy.Rand is set: there is no jitter to draw",
		}, []string{
			"Policy.Jitter decorrelated: after a timeout, a panic or the loss of a worker there is none",
			"Policy.Rand is set: the wait before, which the next is drawn from, is drawn anew and is not the one that was waited",
		}},
		{"the wait before the first retry is kept", func(p *policy) {
			p.Rand = func() float64 { return 0 }
			p.Jitter, p.MaxAttempts = retry.DecorrelatedJitter, 2
		}, []string{"Policy.Jitter decorrelated: there is none", "Policy.Rand is set: there is no jitter to draw"}, []string{"Policy.Jitter decorrelated: after a timeout, a panic or the loss of a worker there is none"}},
		{"waits that lie too far back", func(p *policy) { p.Jitter, p.MaxAttempts = retry.DecorrelatedJitter, 1003 },
			[]string{"Policy.Jitter decorrelated: there is none"},
			[]string{"Policy.Jitter decorrelated: after a timeout, a panic or the loss of a worker there is none"}},
		{"waits that are just followed are kept", func(p *policy) { p.Jitter, p.MaxAttempts = retry.DecorrelatedJitter, 1002 },
			[]string{"Policy.Jitter decorrelated: there is none"},
			[]string{"Policy.Jitter decorrelated: after a timeout, a panic or the loss of a worker there is none"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := retry.Policy{Backoff: retry.Backoff{Base: time.Second}}
			row.set(&p)
			_, lost, err := retrytemporal.Policy(p)
			require.NoError(t, err)
			require.Equal(t, row.want, lost)
			_, lost, err = retrytemporal.PolicyForErrors(p)
			require.NoError(t, err)
			require.Equal(t, row.forErrors, lost)
		})
	}
}

func TestPolicyRefuses(t *testing.T) {
	for _, export := range []func(retry.Policy) (*temporal.RetryPolicy, []string, error){retrytemporal.Policy, retrytemporal.PolicyForErrors} {
		rp, lost, err := export(retry.Policy{TTL: -1})
		require.Nil(t, rp)
		require.Empty(t, lost)
		require.EqualError(t, err, "retry: Policy.TTL -1ns is negative")
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add(0, uint8(0), int64(0), 0.0, int64(0), int64(0), int64(0), uint8(0), int64(0))
	f.Add(-1, uint8(1), int64(math.MaxInt64), math.MaxFloat64, int64(math.MaxInt64), int64(1), int64(1), uint8(3), int64(1))
	f.Add(3, uint8(4), int64(0), 0.0, int64(5), int64(math.MaxInt64), int64(0), uint8(2), int64(math.MaxInt64))
	f.Add(math.MaxInt, uint8(2), int64(1), 1e-300, int64(0), int64(0), int64(0), uint8(4), int64(0))
	f.Fuzz(func(t *testing.T, attempts int, mode uint8, base int64, factor float64, limit, first, second int64, jitter uint8, hint int64) {
		p := retry.Policy{MaxAttempts: attempts, MaxHint: time.Duration(hint), Backoff: retry.Backoff{
			Mode: retry.Mode(mode % 5), Base: time.Duration(base), Factor: factor, Cap: time.Duration(limit), Jitter: retry.JitterMode(jitter % 5),
		}}
		if p.Mode == retry.List || p.Mode == 0 && first != 0 {
			p.Mode, p.Base, p.Factor = 0, 0, 0
			p.Delays = []time.Duration{time.Duration(first), time.Duration(second), time.Duration(base)}
		}
		for _, export := range []func(retry.Policy) (*temporal.RetryPolicy, []string, error){retrytemporal.Policy, retrytemporal.PolicyForErrors} {
			rp, lost, err := export(p)
			if err != nil {
				require.Nil(t, rp)
				return
			}
			// The rules of the server's validation.
			require.Positive(t, rp.InitialInterval)
			require.GreaterOrEqual(t, rp.MaximumInterval, rp.InitialInterval)
			require.GreaterOrEqual(t, rp.BackoffCoefficient, 1.0)
			require.LessOrEqual(t, rp.BackoffCoefficient, math.MaxFloat64)
			require.GreaterOrEqual(t, rp.MaximumAttempts, int32(0))
			for _, line := range lost {
				require.Regexp(t, `^Policy\.[A-Za-z]+( .*)?: \S.*\S$`, line)
			}
		}
		rp, _, err := retrytemporal.PolicyForErrors(p)
		require.NoError(t, err)
		for _, attempt := range []int{1, 2, 3, 1000} {
			d := p.Decide(retry.Progress{Attempt: attempt}, retry.After(time.Duration(first), errDown), 0.999)
			require.LessOrEqual(t, d.Delay, rp.MaximumInterval) // so that the server cuts nothing
		}
	})
}
