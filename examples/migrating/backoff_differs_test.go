package migrating_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	backoff4 "github.com/cenkalti/backoff/v4"
	backoff5 "github.com/cenkalti/backoff/v5"
	backoff6 "github.com/cenkalti/backoff/v6"
	backoff7 "github.com/cenkalti/backoff/v7"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// backoff4With is a call with this backoff, and the others are calls with these options.
func backoff4With(b backoff4.BackOff) call {
	return func(c client, ctx context.Context) (string, error) {
		return backoff4.RetryWithData(func() (string, error) { return c.fetch(ctx) }, b)
	}
}

func backoff5With(options ...backoff5.RetryOption) call {
	return func(c client, ctx context.Context) (string, error) {
		return backoff5.Retry(ctx, func() (string, error) { return c.fetch(ctx) }, options...)
	}
}

func backoff6With(options ...backoff6.RetryOption) call {
	return func(c client, ctx context.Context) (string, error) {
		return backoff6.Retry(ctx, func() (string, error) { return c.fetch(ctx) }, options...)
	}
}

func backoff7With(options ...backoff7.RetryOption) call {
	return func(c client, ctx context.Context) (string, error) {
		return backoff7.Retry(ctx, func() (string, error) { return c.fetch(ctx) }, options...)
	}
}

func TestBackoffJitterPassesMaxInterval(t *testing.T) {
	longest := func(do call) time.Duration {
		var longest time.Duration
		for range 20 { // about 10 waits of each at the cap
			longest = max(longest, slices.Max(watch(t, do, always(errBusy)).waits()))
		}
		return longest
	}
	for _, do := range []call{
		client.defaultBackoffV4, client.defaultBackoffV5, client.defaultBackoffV6, client.defaultBackoffV7,
	} {
		got := longest(do)
		require.Greater(t, got, time.Minute)
		require.LessOrEqual(t, got, 90*time.Second+1)
	}
	require.LessOrEqual(t, longest(client.afterDefaultBackoff), time.Minute)
}

// A retry exactly at the limit is made, by both; the next is not begun, by both.
func TestBackoffMaxElapsedTimeIsTTL(t *testing.T) {
	const limit = 3 * time.Second
	v4 := backoff4With(backoff4.NewExponentialBackOff(
		backoff4.WithInitialInterval(time.Second), backoff4.WithMultiplier(1),
		backoff4.WithRandomizationFactor(0), backoff4.WithMaxElapsedTime(limit)))
	v5 := backoff5With(backoff5.WithBackOff(backoff5.NewConstantBackOff(time.Second)), backoff5.WithMaxElapsedTime(limit))
	v6 := backoff6With(backoff6.WithBackOff(backoff6.NewConstantBackOff(time.Second)), backoff6.WithMaxElapsedTime(limit))
	v7 := backoff7With(backoff7.WithBackOff(backoff7.NewConstantBackOff(time.Second)), backoff7.WithMaxElapsedTime(limit))
	after := with(retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}, TTL: limit})
	errs := map[string]error{}
	for name, do := range map[string]call{"v4": v4, "v5": v5, "v6": v6, "v7": v7, "after": after} {
		r := watch(t, do, always(errBusy))
		require.Equal(t, ms(0, 1000, 2000, 3000), r.at, name)
		require.Equal(t, limit, r.took, name)
		require.ErrorIs(t, r.err, errBusy, name)
		errs[name] = r.err
	}
	require.Equal(t, errBusy, errs["v4"]) // and so nothing says why it ended
	require.Equal(t, errBusy, errs["v5"])
	require.ErrorIs(t, errs["v6"], backoff6.ErrMaxElapsedTime)
	require.ErrorIs(t, errs["v7"], backoff7.ErrMaxElapsedTime)
	require.ErrorIs(t, errs["after"], retry.TTLElapsed)
}

// Fifteen minutes are the limit also if the call-site names another backoff and a number of tries.
func TestBackoffsDefaultLimitOfFifteenMinutes(t *testing.T) {
	const wait = 10 * time.Minute
	for _, row := range []struct {
		do       call
		attempts int
	}{
		{backoff4With(backoff4.WithMaxRetries(backoff4.NewConstantBackOff(wait), 4)), 5}, // there it is the ExponentialBackOff's
		{backoff5With(backoff5.WithBackOff(backoff5.NewConstantBackOff(wait)), backoff5.WithMaxTries(5)), 2},
		{backoff6With(backoff6.WithBackOff(backoff6.NewConstantBackOff(wait)), backoff6.WithMaxTries(5)), 2},
		{backoff7With(backoff7.WithBackOff(backoff7.NewConstantBackOff(wait)), backoff7.WithMaxTries(5)), 2},
		{with(retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Mode: retry.Fixed, Base: wait}}), 5},
	} {
		require.Len(t, watch(t, row.do, always(errBusy)).at, row.attempts)
	}
}

func TestBackoffPermanentAtTheLastTry(t *testing.T) {
	s := failing(errBusy, errBusy, errBusy, errBusy, errNotFound)
	var permanent *backoff5.PermanentError
	require.ErrorAs(t, watch(t, client.backoffV5, s).err, &permanent) // its own type, only at the last try
	require.NotErrorAs(t, watch(t, client.backoffV5, always(errNotFound)).err, &permanent)
	require.Equal(t, errNotFound, watch(t, client.backoffV4, s).err)
	require.ErrorIs(t, watch(t, client.backoffV6, s).err, backoff6.ErrPermanent)
	require.ErrorIs(t, watch(t, client.backoffV7, s).err, backoff7.ErrPermanent)
	require.ErrorIs(t, watch(t, client.afterBackoff, s).err, retry.TerminalError)
}

// A Ticker is a loop of the caller's own; Schedule gives the same waits and leaves the timer to the caller.
func TestBackoffTicker(t *testing.T) {
	want := ms(0, 100, 300, 700)
	exponential := func() *backoff7.ExponentialBackOff {
		b := backoff7.NewExponentialBackOff()
		b.InitialInterval, b.Multiplier, b.RandomizationFactor = 100*time.Millisecond, 2, 0
		return b
	}
	synctest.Test(t, func(t *testing.T) {
		start, ticker := time.Now(), backoff7.NewTicker(exponential())
		var at []time.Duration
		for range ticker.C {
			if at = append(at, time.Since(start)); len(at) == 4 {
				break
			}
		}
		ticker.Stop()
		require.Equal(t, want, at)
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at := []time.Duration{0}
		for n, wait := range (retry.Policy{Backoff: retry.Backoff{Base: 100 * time.Millisecond}}).Schedule(nil) {
			<-time.After(wait)
			if at = append(at, time.Since(start)); n == 3 {
				break
			}
		}
		require.Equal(t, want, at)
	})
}

// How an error describes the end of the run: in v4 and v5 it does not.
func TestBackoffSaysWhyItEnded(t *testing.T) {
	require.Equal(t, errBusy, watch(t, client.backoffV4, always(errBusy)).err)
	require.Equal(t, errBusy, watch(t, client.backoffV5, always(errBusy)).err)
	require.ErrorIs(t, watch(t, client.backoffV6, always(errBusy)).err, backoff6.ErrExhausted)
	require.ErrorIs(t, watch(t, client.backoffV7, always(errBusy)).err, backoff7.ErrExhausted)
	var ended *retry.Error
	require.True(t, errors.As(watch(t, client.afterBackoff, always(errBusy)).err, &ended))
	require.Equal(t, retry.AttemptsExhausted, ended.Reason)
	require.Len(t, ended.History, 5)
}
