package plots

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryplan"
)

func TestThinKeepsEveryPeak(t *testing.T) {
	points := make([]point, 100_003)
	for i := range points {
		points[i] = point{float64(i), float64(i % 10)}
	}
	points[0].y, points[777].y, points[50_000].y, points[100_002].y = 5, 1e6, -1e6, 4
	kept := thin(points, stretches)
	require.LessOrEqual(t, len(kept), 2*stretches+2)
	for _, i := range []int{0, 777, 50_000, 100_002} {
		require.Contains(t, kept, points[i])
	}
	for i := 1; i < len(kept); i++ {
		require.Less(t, kept[i-1].x, kept[i].x, "in order, and none twice")
	}
	require.Equal(t, points[:2*stretches], thin(points[:2*stretches], stretches), "few points are kept as they are")
}

func TestSeriesKeepsItsPeaks(t *testing.T) {
	r := retryplan.Result{Step: 2 * time.Second, Series: make([]retryplan.Point, 30_000)}
	for i := range r.Series {
		r.Series[i].Start = time.Duration(i) * r.Step
	}
	r.Series[12_345].Attempts = 500
	require.Contains(t, attempts.points(r), point{2*12_345 + 1, 250}, "per second, in the middle of its interval")
}

func TestDurationsAreWrittenShort(t *testing.T) {
	for _, row := range []struct {
		d    time.Duration
		want string
	}{
		{-1, "0"}, {0, "0"}, {1, "1ns"}, {999, "999ns"}, {1500, "1.5µs"},
		{999_600 * time.Nanosecond, "1ms"}, {1234567, "1.23ms"}, {500 * time.Millisecond, "500ms"}, {999_999_999, "1s"},
		{5 * time.Second, "5s"}, {1250 * time.Millisecond, "1.25s"}, {59_990 * time.Millisecond, "1m"},
		{90 * time.Second, "1m30s"}, {635 * time.Second, "10m35s"}, {time.Hour - 1, "1h"}, {3*time.Hour + 31*time.Minute, "3h31m"},
		{24*time.Hour - 1, "1d"}, {36 * time.Hour, "1d12h"}, {365 * 24 * time.Hour, "1y"}, {math.MaxInt64, "292y"},
	} {
		require.Equal(t, row.want, durationText(row.d), row.d)
	}
}

func TestCountsAreWrittenShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 20: "20", 1500: "1500", 15_000: "15k", 2.5e6: "2.5M", 3e9: "3G"} {
		require.Equal(t, want, countText(v))
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, row := range []struct {
		name string
		axis axis
		want []string
	}{
		{"seconds", linearDurations(0, 22, 6), []string{"0", "5s", "10s", "15s", "20s"}},
		{"minutes", linearDurations(0, 240, 10), []string{"0", "30s", "1m", "1m30s", "2m", "2m30s", "3m", "3m30s", "4m"}},
		{"hours", linearDurations(0, 12660, 8), []string{"0", "30m", "1h", "1h30m", "2h", "2h30m", "3h", "3h30m"}},
		{"far from 0", linearDurations(600, 900, 6), []string{"10m", "11m", "12m", "13m", "14m", "15m"}},
		{"too narrow to leave 0 out", linearDurations(599, 600, 6), []string{"0", "2m", "4m", "6m", "8m", "10m"}},
		{"nothing", linearDurations(0, 0, 4), []string{"0", "500ms", "1s"}},
		{"years", linearDurations(0, 9.2e9, 6), []string{"0", "50y", "100y", "150y", "200y", "250y"}},
		{"log", durationAxis(60, 10800, true, false, 9), []string{"1m", "2m", "5m", "10m", "20m", "30m", "1h", "2h"}},
		{"log from 0", durationAxis(0.05, 10, true, true, 6), []string{"0", "100ms", "1s", "10s"}},
		{"counts", countAxis(98, 5), []string{"0", "20", "40", "60", "80", "100"}},
		{"thousands", countAxis(32_000, 5), []string{"0", "10k", "20k", "30k"}},
		{"parts", countAxis(0.3, 5), []string{"0", "0.1", "0.2", "0.3"}},
		{"a hundred attempts", attemptAxis(2, 100, 10), []string{"10", "20", "30", "40", "50", "60", "70", "80", "90", "100"}},
		{"one retry", attemptAxis(2, 2, 10), []string{"2"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, tick := range row.axis.ticks {
				got = append(got, tick.label)
				place := row.axis.norm(tick.value)
				require.True(t, place >= 0 && place <= 1, "%s lies at %g", tick.label, place)
			}
			require.Equal(t, row.want, got)
		})
	}
}

func TestNormAndAtUndoEachOther(t *testing.T) {
	for _, a := range []axis{{min: 1, max: 3}, {min: 0.001, max: 9e9, log: true}} {
		for _, share := range []float64{0, 0.25, 1} {
			require.InDelta(t, share, a.norm(a.at(share)), 1e-12)
		}
	}
	require.Zero(t, axis{min: 1, max: 3, log: true}.norm(0), "what is below a log scale lies on its end")
}

// coin is 1s or 3s, with the probability half each.
type coin struct{}

func (coin) CDF(x time.Duration) float64 {
	switch {
	case x < time.Second:
		return 0
	case x < 3*time.Second:
		return 0.5
	}
	return 1
}

func (coin) Quantile(q float64) time.Duration {
	if q <= 0.5 {
		return time.Second
	}
	return 3 * time.Second
}

func (coin) Min() time.Duration { return time.Second }
func (coin) Max() time.Duration { return 3 * time.Second }

func TestCurveRisesInSteps(t *testing.T) {
	curve := cdfCurve(coin{}, axis{max: 4})
	require.Equal(t, point{0, 0}, curve[0])
	require.Equal(t, point{4, 1}, curve[len(curve)-1])
	for i := 1; i < len(curve); i++ {
		require.GreaterOrEqual(t, curve[i].x, curve[i-1].x)
		require.GreaterOrEqual(t, curve[i].y, curve[i-1].y)
		if curve[i].x != curve[i-1].x && curve[i].x != 4 {
			require.InDelta(t, curve[i-1].y, curve[i].y, 0.011, "level but for the steps, which are upright")
		}
	}
}

func TestLooksDifferWithoutColor(t *testing.T) {
	for i, a := range looks {
		for _, b := range looks[:i] {
			require.NotEqual(t, a.dash, b.dash)
			require.False(t, a.hollow == b.hollow && a.glyph(9, 9, 3) == b.glyph(9, 9, 3), "the same marker")
			require.NotEqual(t, a.class, b.class)
		}
	}
}

func TestNamesOfTriggersDoNotRunIntoEachOther(t *testing.T) {
	at := func(s int) retryplan.Trigger {
		return retryplan.Trigger{Kind: retryplan.Stall, From: time.Duration(s) * time.Second, For: time.Second}
	}
	runs := []Run{{Triggers: []retryplan.Trigger{at(10), at(100), at(12)}}, {Triggers: []retryplan.Trigger{at(10), at(500)}}}
	type place struct {
		from time.Duration
		row  int
	}
	var got []place
	for _, n := range nameTriggers(runs, axis{max: 240}, 600) {
		got = append(got, place{n.From, n.row})
	}
	require.Equal(t, []place{{10 * time.Second, 0}, {12 * time.Second, 1}, {100 * time.Second, 0}}, got,
		"each once, by time, without those after the end")
}

func TestTriggersAreNamed(t *testing.T) {
	for _, row := range []struct {
		t    retryplan.Trigger
		want string
	}{
		{retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}, "stall 10s"},
		{retryplan.Trigger{Kind: retryplan.Outage, For: time.Minute}, "outage 1m"},
		{retryplan.Trigger{Kind: retryplan.Slowdown, Factor: 3, For: time.Minute}, "slowdown ×3 1m"},
		{retryplan.Trigger{Kind: retryplan.CapacityCut, Factor: 0.2, For: time.Minute}, "capacity cut to 20 % 1m"},
		{retryplan.Trigger{Kind: retryplan.Surge, Factor: 1.5, For: time.Minute}, "surge ×1.5 1m"},
		{retryplan.Trigger{Kind: retryplan.Failing, Factor: 0.5, For: time.Minute}, "50 % failing 1m"},
	} {
		require.Equal(t, row.want, triggerName(row.t))
	}
}

// rough is a coin whose CDF was rounded down.
type rough struct{ coin }

func (r rough) CDF(x time.Duration) float64 { return r.coin.CDF(x) * 0.9 }

func TestCurveNeverFalls(t *testing.T) {
	curve := cdfCurve(rough{}, axis{max: 4})
	for i := 1; i < len(curve); i++ {
		require.GreaterOrEqual(t, curve[i].y, curve[i-1].y)
	}
}
