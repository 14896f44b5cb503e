package migrating_test

import (
	"context"
	"slices"
	"testing"
	"time"

	avast4 "github.com/avast/retry-go/v4"
	avast5 "github.com/avast/retry-go/v5"
	backoff7 "github.com/cenkalti/backoff/v7"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/hashicorp/go-retryablehttp"
	seth "github.com/sethvargo/go-retry"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// Each pair of the tables draws from the same window; theirs can include its end.
func TestJitters(t *testing.T) {
	within := func(t *testing.T, b retry.Backoff, attempt int, wait time.Duration) {
		t.Helper()
		lo, hi := b.Bounds(attempt)
		require.GreaterOrEqual(t, wait, lo)
		require.LessOrEqual(t, wait, hi)
	}
	t.Run("LinearJitterBackoff of 800ms and 1200ms", func(t *testing.T) {
		b := retry.Backoff{Mode: retry.Linear, Base: time.Second, Jitter: retry.RatioJitter, JitterRatio: 0.2}
		lo, hi := b.Bounds(3)
		require.Equal(t, ms(2400, 3600), []time.Duration{lo, hi})
		for n := range 100 {
			wait := retryablehttp.LinearJitterBackoff(800*time.Millisecond, 1200*time.Millisecond, n, nil)
			within(t, b, n+1, wait)
		}
	})
	t.Run("WithRandomDelay of 1s to 3s", func(t *testing.T) {
		b := retry.Backoff{Mode: retry.Fixed, Base: 2 * time.Second, Jitter: retry.RatioJitter, JitterRatio: 0.5}
		lo, hi := b.Bounds(1)
		require.Equal(t, ms(1000, 3000), []time.Duration{lo, hi})
		do := failsafeWith(retrypolicy.NewBuilder[string]().
			WithMaxAttempts(101).WithRandomDelay(time.Second, 3*time.Second).Build())
		for _, wait := range watch(t, do, always(errBusy)).waits() {
			within(t, b, 1, wait)
		}
	})
	t.Run("WithJitterPercent of 50", func(t *testing.T) {
		b := retry.Backoff{Mode: retry.Fixed, Base: time.Second, Jitter: retry.RatioJitter, JitterRatio: 0.5}
		do := sethWith(func() seth.Backoff {
			return seth.WithMaxRetries(100, seth.WithJitterPercent(50, seth.NewConstant(time.Second)))
		})
		for _, wait := range watch(t, do, always(errBusy)).waits() {
			within(t, b, 1, wait)
		}
	})
	t.Run("WithFullJitter", func(t *testing.T) {
		b := retry.Backoff{Mode: retry.Fixed, Base: time.Second, Jitter: retry.FullJitter}
		do := sethWith(func() seth.Backoff {
			return seth.WithMaxRetries(100, seth.WithFullJitter(seth.NewConstant(time.Second)))
		})
		for _, wait := range watch(t, do, always(errBusy)).waits() {
			within(t, b, 1, wait)
		}
	})
}

// What each library waits when its delays have reached the cap of 1s: with full jitter, or the jitter that it has.
func TestWaitsAtTheCap(t *testing.T) {
	b7 := backoff7.NewExponentialBackOff()
	b7.InitialInterval, b7.MaxInterval = time.Second, time.Second
	v5 := func(kind avast5.DelayTypeFunc) call {
		return avast5With(avast5.Attempts(101), avast5.Delay(time.Second), avast5.MaxDelay(time.Second), avast5.DelayType(kind))
	}
	seths := func(wrap func(seth.Backoff) seth.Backoff) call {
		return sethWith(func() seth.Backoff { return seth.WithMaxRetries(100, wrap(seth.NewExponential(time.Second))) })
	}
	for _, row := range []struct {
		name           string
		do             call
		spread, within bool
	}{
		{"retry", with(retry.Policy{MaxAttempts: 101, Backoff: retry.Backoff{
			Base: time.Second, Cap: time.Second, Jitter: retry.FullJitter,
		}}), true, true},
		{"backoff", backoff7With(backoff7.WithBackOff(b7), backoff7.WithMaxTries(101)), true, false},
		{"retry-go v4, by default", avast4With(avast4.Attempts(101), avast4.Delay(time.Second), avast4.MaxDelay(time.Second)), false, true},
		{"retry-go, by default", v5(avast5.CombineDelay(avast5.BackOffDelay, avast5.RandomDelay)), false, true},
		{"retry-go, FullJitterBackoffDelay", v5(avast5.FullJitterBackoffDelay), true, true},
		{"go-retry, the cap inside", seths(func(b seth.Backoff) seth.Backoff {
			return seth.WithJitterPercent(50, seth.WithCappedDuration(time.Second, b))
		}), true, false},
		{"go-retry, the cap outside", seths(func(b seth.Backoff) seth.Backoff {
			return seth.WithCappedDuration(time.Second, seth.WithJitterPercent(50, b))
		}), false, true},
		{"failsafe-go", failsafeWith(retrypolicy.NewBuilder[string]().WithMaxAttempts(101).
			WithBackoff(time.Second-1, time.Second).WithJitterFactor(0.5).Build()), true, false},
		{"go-retryablehttp", func(c client, ctx context.Context) (string, error) {
			for n := range 101 {
				if _, err := c.fetch(ctx); err == nil {
					break
				}
				time.Sleep(retryablehttp.DefaultBackoff(time.Second, time.Second, n, nil))
			}
			return "", errBusy
		}, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			waits := watch(t, row.do, always(errBusy)).waits()[20:] // go-retry's own jitter is past the cap by then
			longest := slices.Max(waits)
			slices.Sort(waits)
			// go-retry draws whole percents: 80 waits have 55 different ones in the mean, and 30 or fewer in no run.
			require.Equal(t, row.spread, len(slices.Compact(waits)) > 30, "spread")
			require.Equal(t, row.within, longest <= time.Second, "within: %v", longest)
		})
	}
}
