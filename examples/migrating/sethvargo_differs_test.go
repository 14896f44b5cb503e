package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	seth "github.com/sethvargo/go-retry"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// sethWith is a call with the backoff that b makes; every error is retried.
func sethWith(b func() seth.Backoff) call {
	return func(c client, ctx context.Context) (string, error) {
		return seth.DoValue(ctx, b(), func(ctx context.Context) (string, error) {
			s, err := c.fetch(ctx)
			return s, seth.RetryableError(err)
		})
	}
}

func TestSethvargoRetriesWhatIsMarkedOnly(t *testing.T) {
	unmarked := func(c client, ctx context.Context) (string, error) {
		return seth.DoValue(ctx, seth.WithMaxRetries(4, seth.NewConstant(time.Second)), c.fetch)
	}
	require.Len(t, watch(t, unmarked, always(errBusy)).at, 1)
	require.Len(t, watch(t, with(retry.Policy{MaxAttempts: 5}), always(errBusy)).at, 5)

	stopUnlessTold := retry.Policy{MaxAttempts: 5, Classify: retry.Otherwise(retry.Terminal)}
	require.Len(t, watch(t, with(stopUnlessTold), always(errBusy)).at, 1)
	require.Len(t, watch(t, with(stopUnlessTold), always(retry.Transient(errBusy))).at, 5)
}

func TestSethvargoCountsAllCallsOfABackoff(t *testing.T) {
	shared := seth.WithMaxRetries(2, seth.NewConstant(time.Second))
	do := sethWith(func() seth.Backoff { return shared })
	require.Len(t, watch(t, do, always(errBusy)).at, 3)
	require.Len(t, watch(t, do, always(errBusy)).at, 1)

	policy := retry.Policy{MaxAttempts: 3}
	require.Len(t, watch(t, with(policy), always(errBusy)).at, 3)
	require.Len(t, watch(t, with(policy), always(errBusy)).at, 3)
}

func TestSethvargoMaxDurationShortensTheLastWait(t *testing.T) {
	do := sethWith(func() seth.Backoff { return seth.WithMaxDuration(3*time.Second, seth.NewConstant(2*time.Second)) })
	require.Equal(t, ms(0, 2000, 3000), watch(t, do, always(errBusy)).at)

	r := watch(t, with(retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: 2 * time.Second}, TTL: 3 * time.Second}),
		always(errBusy))
	require.Equal(t, ms(0, 2000), r.at)
	require.Equal(t, 2*time.Second, r.took)
	require.ErrorIs(t, r.err, retry.TTLElapsed)
}

func TestSethvargoMaxDurationBeginsWithTheBackoff(t *testing.T) {
	late := func(c client, ctx context.Context) (string, error) {
		b := seth.WithMaxDuration(3*time.Second, seth.NewConstant(time.Second))
		<-time.After(3 * time.Second) // the work of the program in between
		return sethWith(func() seth.Backoff { return b })(c, ctx)
	}
	require.Len(t, watch(t, late, always(errBusy)).at, 1)
}

func TestSethvargoDropsWhatIsWrappedAroundTheMark(t *testing.T) {
	errLoad := errors.New("load")
	before := func(c client, ctx context.Context) (string, error) {
		return seth.DoValue(ctx, seth.WithMaxRetries(1, seth.NewConstant(time.Second)),
			func(ctx context.Context) (string, error) {
				s, err := c.fetch(ctx)
				return s, fmt.Errorf("%w: %w", errLoad, seth.RetryableError(err))
			})
	}
	err := watch(t, before, always(errBusy)).err
	require.Equal(t, errBusy, err)

	err = watch(t, with(retry.Policy{}), always(fmt.Errorf("%w: %w", errLoad, retry.Transient(errBusy)))).err
	require.ErrorIs(t, err, errLoad)
	require.ErrorContains(t, err, "(attempts_exhausted): load: busy")
}

func TestSethvargoFibonacciIsAList(t *testing.T) {
	fibonacci := sethWith(func() seth.Backoff { return seth.WithMaxRetries(5, seth.NewFibonacci(time.Second)) })
	list := with(retry.Policy{Backoff: retry.Backoff{Delays: ms(1000, 2000, 3000, 5000, 8000)}})
	for _, do := range []call{fibonacci, list} {
		require.Equal(t, ms(1000, 2000, 3000, 5000, 8000), watch(t, do, always(errBusy)).waits())
	}
}

func TestSethvargoNoWait(t *testing.T) {
	require.Panics(t, func() { seth.NewConstant(0) })
	noWait := with(retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Delays: []time.Duration{0}}})
	require.Equal(t, ms(0, 0, 0), watch(t, noWait, always(errBusy)).at)
	base0 := with(retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 0}})
	require.Equal(t, ms(0, 5000, 10000), watch(t, base0, always(errBusy)).at) // 0 is the default
}
