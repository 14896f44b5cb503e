package migrating_test

import (
	"testing"
	"time"

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
