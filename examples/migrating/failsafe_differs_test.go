package migrating_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// failsafeWith is a call with these policies.
func failsafeWith(policies ...failsafe.Policy[string]) call {
	return func(c client, ctx context.Context) (string, error) {
		return failsafe.With(policies...).WithContext(ctx).
			GetWithExecution(func(e failsafe.Execution[string]) (string, error) { return c.fetch(e.Context()) })
	}
}

// slowly is s with attempts that take a millisecond.
func slowly(s script) script {
	return func(n int) (string, error) {
		<-time.After(time.Millisecond)
		return s(n)
	}
}

func TestFailsafeMaxDurationShortensTheLastWait(t *testing.T) {
	do := failsafeWith(retrypolicy.NewBuilder[string]().
		WithMaxAttempts(-1).WithDelay(2 * time.Second).WithMaxDuration(3 * time.Second).Build())
	r := watch(t, do, slowly(always(errBusy)))
	require.Equal(t, ms(0, 2001, 3000), r.at)
	require.ErrorIs(t, r.err, retrypolicy.ErrExceeded)
	require.ErrorIs(t, r.err, errBusy)

	after := with(retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: 2 * time.Second}, TTL: 3 * time.Second})
	require.Equal(t, ms(0, 2001), watch(t, after, slowly(always(errBusy))).at)
}

// Another retry uses up the budget, so this one is refused: by theirs after the wait, by ours before it.
func TestFailsafeBudgetIsAskedAfterTheWait(t *testing.T) {
	small := budget.NewBuilder().WithMaxRate(0).WithMinConcurrency(0).Build()
	retries := retrypolicy.NewBuilder[string]().WithDelay(10 * time.Second).WithBudget(small).Build()
	r := watch(t, func(c client, ctx context.Context) (string, error) {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { // its retry runs from 10s on, for an hour
			attempts := 0
			_, _ = failsafe.With(retries).Get(func() (string, error) {
				if attempts++; attempts == 1 {
					return "", errBusy
				}
				<-time.After(time.Hour)
				return "page 1", nil
			})
		})
		<-time.After(15 * time.Second)
		start := time.Now()
		s, err := failsafeWith(retries)(c, ctx)
		require.Equal(t, 10*time.Second, time.Since(start))
		return s, err
	}, always(errBusy))
	require.Len(t, r.at, 1)
	require.ErrorIs(t, r.err, budget.ErrExceeded)
	require.NotErrorIs(t, r.err, errBusy)

	empty := retry.NewBudget(retry.BudgetConfig{Initial: -1})
	r = watch(t, with(retry.Policy{Backoff: retry.Backoff{Base: 10 * time.Second}, Budget: empty}), always(errBusy))
	require.Len(t, r.at, 1)
	require.Zero(t, r.took)
	require.ErrorIs(t, r.err, retry.BudgetExhausted)
	require.ErrorIs(t, r.err, errBusy)
}

// A result that is a failure has to be made an error.
func TestFailsafeHandleResult(t *testing.T) {
	pending := func(int) (string, error) { return "pending", nil }
	do := failsafeWith(retrypolicy.NewBuilder[string]().HandleResult("pending").Build())
	require.Len(t, watch(t, do, pending).at, 3)

	errPending := errors.New("pending")
	after := func(c client, ctx context.Context) (string, error) {
		return retry.DoValue(ctx, retry.Policy{MaxAttempts: 3}, func(ctx context.Context) (string, error) {
			s, err := c.fetch(ctx)
			if err == nil && s == "pending" {
				err = errPending
			}
			return s, err
		})
	}
	r := watch(t, after, pending)
	require.Len(t, r.at, 3)
	require.ErrorIs(t, r.err, errPending)
	require.Len(t, watch(t, with(retry.Policy{MaxAttempts: 3}), pending).at, 1)
}

// An attempt that ignores its context succeeds after 5s, with a limit of 2s.
func TestFailsafeTimeoutDropsALateSuccess(t *testing.T) {
	late := func(n int) (string, error) {
		<-time.After(5 * time.Second)
		return "page 1", nil
	}
	r := watch(t, failsafeWith(timeout.New[string](2*time.Second)), late)
	require.ErrorIs(t, r.err, timeout.ErrExceeded)
	require.Empty(t, r.value)
	require.Equal(t, 5*time.Second, r.took)

	r = watch(t, with(retry.Policy{AttemptTimeout: 2 * time.Second}), late)
	require.NoError(t, r.err)
	require.Equal(t, "page 1", r.value)
	require.Equal(t, 5*time.Second, r.took)
}

// A timeout inside the retries ends an attempt and is retried, before and after.
func TestFailsafeTimeoutOfAnAttempt(t *testing.T) {
	for _, do := range []func(context.Context, func(context.Context) error) error{
		func(ctx context.Context, fn func(context.Context) error) error {
			retries := retrypolicy.NewBuilder[any]().WithMaxAttempts(3).WithDelay(time.Second).Build()
			return failsafe.With(retries, timeout.New[any](2*time.Second)).WithContext(ctx).
				RunWithExecution(func(e failsafe.Execution[any]) error { return fn(e.Context()) })
		},
		func(ctx context.Context, fn func(context.Context) error) error {
			return retry.Do(ctx, retry.Policy{
				MaxAttempts:    3,
				Backoff:        retry.Backoff{Mode: retry.Fixed, Base: time.Second},
				AttemptTimeout: 2 * time.Second,
			}, fn)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, attempts := time.Now(), 0
			err := do(t.Context(), func(ctx context.Context) error {
				if attempts++; attempts < 3 {
					<-ctx.Done()
				}
				return ctx.Err()
			})
			require.NoError(t, err)
			require.Equal(t, 3, attempts)
			require.Equal(t, 6*time.Second, time.Since(start))
		})
	}
}

// A hedge is a second attempt while the first still runs, which retry never makes.
func TestFailsafeHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		hedge := hedgepolicy.NewWithDelay[string](time.Second)
		_, err := failsafe.With(hedge).WithContext(t.Context()).
			GetWithExecution(func(e failsafe.Execution[string]) (string, error) {
				if !e.IsHedge() {
					<-e.Canceled()
					return "", errBusy
				}
				return "page 1", nil
			})
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(start))
	})
}
