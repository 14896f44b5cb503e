package plots

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

func TestThinKeepsEveryPeak(t *testing.T) {
	points := make([]point, 100_003)
	for i := range points {
		points[i] = point{float64(i), float64(i % 10)}
	}
	points[777].y, points[50_000].y, points[100_002].y = 1e6, -1e6, 40
	kept := thin(points, 240)
	require.LessOrEqual(t, len(kept), 2*240)
	for _, i := range []int{777, 50_000, 100_002} {
		require.Contains(t, kept, points[i])
	}
	for i := 1; i < len(kept); i++ {
		require.Less(t, kept[i-1].x, kept[i].x, "in order, and none twice")
	}
	require.Equal(t, points[:480], thin(points[:480], 240), "few points are kept as they are")
}

func TestSeriesKeepsItsPeaks(t *testing.T) {
	r := retryplan.Result{Step: 2 * time.Second, Series: make([]retryplan.Point, 30_000)}
	for i := range r.Series {
		r.Series[i].Start = time.Duration(i) * r.Step
	}
	r.Series[12_345].Attempts = 500
	require.Contains(t, rates(r, attempts), point{2*12_345 + 1, 250}, "per second, in the middle of its interval")
}

func TestTicksAreRound(t *testing.T) {
	durations := func(most time.Duration) axis { return durationAxis("", most) }
	numbers := func(least, most float64, steps []float64) axis {
		return axis{min: least, max: most, steps: steps, text: say.Number}
	}
	for _, row := range []struct {
		name string
		axis axis
		want []string
	}{
		{"seconds", durations(42 * time.Second), []string{"0s", "5s", "10s", "15s", "20s", "25s", "30s", "35s", "40s"}},
		{"minutes", durations(4 * time.Minute), []string{"0s", "30s", "1m", "1m30s", "2m", "2m30s", "3m", "3m30s", "4m"}},
		{"hours", durations(3*time.Hour + 31*time.Minute), []string{"0s", "30m", "1h", "1h30m", "2h", "2h30m", "3h", "3h30m"}},
		{"days", durations(90 * time.Hour), []string{"0s", "24h", "48h", "72h"}},
		{"years", durations(math.MaxInt64), []string{"0s", "480000h", "960000h", "1440000h", "1920000h", "2400000h"}},
		{"counts", numbers(0, 103, decades(1, 0, 9)), []string{"0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100"}},
		{"parts", numbers(0, 0.315, decades(1, -9, 9)), []string{"0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3"}},
		{"a queue of one", numbers(0, 1.05, decades(1, 0, 9)), []string{"0", "1"}},
		{"a hundred attempts", numbers(1.4, 100.6, decades(1, 0, 9)), []string{"10", "20", "30", "40", "50", "60", "70", "80", "90", "100"}},
		{"one retry", numbers(1.4, 2.6, decades(1, 0, 9)), []string{"2"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, v := range slices.Sorted(slices.Values(row.axis.ticks(600, func(label string) float64 { return widthOf(label, tickSize) + 26 }))) {
				got = append(got, row.axis.text(v))
			}
			require.Equal(t, row.want, got)
		})
	}
}

func TestAValueBeyondAnAxisLiesOnItsEnd(t *testing.T) {
	for v, want := range map[float64]float64{math.Inf(-1): 0, -1: 0, 0: 0, 3: 1, 7: 1, math.Inf(1): 1} {
		require.InDelta(t, want, axis{max: 3}.norm(v), 1e-12)
	}
}
