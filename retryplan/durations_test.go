package retryplan_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
	"github.com/stretchr/testify/require"
)

// listed is a Throttle that holds the first attempt of each run back for the next of a list of waits.
type listed struct{ waits []time.Duration }

func (l *listed) Send(time.Duration, int) (wait time.Duration, ok bool) {
	if len(l.waits) == 0 {
		return 0, true
	}
	wait, l.waits = l.waits[0], l.waits[1:]
	return wait, true
}
func (l *listed) Done(time.Duration, time.Duration, int, bool) {}
func (l *listed) Retry(now time.Duration, _ int) bool          { return true }

// durationsOf returns a Durations of the given ones, as latencies of runs that waited so long before they succeeded.
func durationsOf(t *testing.T, all []time.Duration) retryplan.Durations {
	each := &listed{waits: all}
	s := retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: 1},
		Clients:  len(all),
		Arrivals: retryplan.Arrivals{AtOnce: true},
		Shared:   true,
		Duration: math.MaxInt64,
		Step:     math.MaxInt64 / 1000,
	}
	retryplan.SetThrottle(&s, func() retryplan.Throttle { return each })
	r, err := retryplan.Simulate(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, len(all), r.Latency.Count())
	return r.Latency
}

func TestDurationsOfNothing(t *testing.T) {
	var d retryplan.Durations
	require.Zero(t, d.Count())
	require.Zero(t, d.Mean())
	for _, q := range []float64{0, 0.5, 1, math.NaN()} {
		require.Zero(t, d.Quantile(q))
	}
}

func TestDurationsAreExactToATenthOfAPercent(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 3, 10, 1000} {
		for range 20 {
			all := make([]time.Duration, n)
			spread := rng.Float64() * 62
			for i := range all {
				all[i] = time.Duration(math.Exp2(spread * rng.Float64()))
			}
			d := durationsOf(t, all)
			slices.Sort(all)
			sum := 0.0
			for i, want := range all {
				got := d.Quantile(float64(i+1) / float64(n))
				require.InDelta(t, float64(want), float64(got), 0.001*float64(want), "quantile %d of %d", i+1, n)
				sum += float64(want)
			}
			require.Equal(t, all[0], d.Quantile(0))
			require.Equal(t, all[0], d.Quantile(math.NaN()))
			require.Equal(t, all[n-1], d.Quantile(1))
			require.Equal(t, all[n-1], d.Quantile(2))
			require.InDelta(t, sum/float64(n), float64(d.Mean()), 1e-12*sum+1)
		}
	}
}
