package retryplan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAHistogramIsExactToAFifthOfAPercent(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 3, 10, 1000} {
		for range 20 {
			var h histogram
			all, sum, spread := make([]time.Duration, n), 0.0, rng.Float64()*62
			for i := range all {
				all[i] = time.Duration(math.Exp2(spread * rng.Float64()))
				h.add(all[i], 1)
				sum += float64(all[i])
			}
			d := h.distribution()
			slices.Sort(all)
			for i, want := range all {
				got := d.Quantile((float64(i) + 0.5) / float64(n))
				require.InDelta(t, float64(want), float64(got), 0.002*float64(want)+1, "quantile %d of %d", i+1, n)
			}
			for _, q := range []float64{0, -1, math.NaN()} {
				require.Equal(t, all[0], d.Quantile(q))
			}
			require.Equal(t, all[n-1], d.Quantile(1))
			require.InDelta(t, sum/float64(n), float64(d.Mean()), 0.001*sum/float64(n)+1)
		}
	}
}

func TestAHistogramOfNothingIsZero(t *testing.T) {
	d := new(histogram).distribution()
	for _, q := range []float64{0, 0.5, 1, math.NaN()} {
		require.Zero(t, d.Quantile(q))
	}
	require.Zero(t, d.Mean())
}
