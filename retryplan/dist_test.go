package retryplan_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryplan"
)

func parseDist(text string) (d retryplan.Dist, err error) {
	err = d.UnmarshalText([]byte(text))
	return d, err
}

func TestDistsReadAndWriteThemselves(t *testing.T) {
	for text, want := range map[string]retryplan.Dist{
		"0s":                       {},
		"10ms":                     retryplan.Constant(millis(10)),
		"exponential 10ms":         retryplan.Exponential(millis(10)),
		"uniform 5ms 20ms":         retryplan.Uniform(millis(5), millis(20)),
		"lognormal 20ms 200ms":     retryplan.LogNormal(millis(20), millis(200)),
		"2562047h47m16.854775807s": retryplan.Constant(math.MaxInt64),
	} {
		got, err := parseDist(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	var read struct{ D retryplan.Dist }
	require.NoError(t, json.Unmarshal([]byte(`{"D":" uniform  5ms 1s "}`), &read))
	require.Equal(t, retryplan.Uniform(millis(5), time.Second), read.D)
	require.Error(t, json.Unmarshal([]byte(`{"D":"10"}`), &read))
	require.Equal(t, retryplan.Uniform(millis(5), time.Second), read.D)
}

func TestBadDistsSayWhatIsWrong(t *testing.T) {
	for text, what := range map[string]string{
		"":                     `"" has 0 durations, not 1`,
		"fast":                 `has "fast", which is not a duration`,
		"-1ms":                 `has -1ms, which is negative`,
		"1ms 2ms":              `has 2 durations, not 1`,
		"uniform 1ms":          `has 1 duration, not 2`,
		"exponential 1ms 2":    `has "2", which is not a duration`,
		"uniform 5ms 4ms":      `has HI 4ms below LO 5ms`,
		"lognormal 0s 4ms":     `has a MEDIAN of 0`,
		"lognormal 5ms 4ms":    `has P99 4ms below MEDIAN 5ms`,
		"uniform 1ms 2ms 3ms4": `has "3ms4", which is not a duration`,
	} {
		_, err := parseDist(text)
		require.ErrorContains(t, err, what)
		require.ErrorContains(t, err, `the forms are "10ms", "exponential MEAN"`)
	}
}

func TestDistsOutOfRangeAreBroughtIntoIt(t *testing.T) {
	require.Equal(t, retryplan.Constant(0), retryplan.Constant(-1))
	require.Equal(t, retryplan.Exponential(0), retryplan.Exponential(-1))
	require.Equal(t, retryplan.Uniform(0, 0), retryplan.Uniform(-2, -1))
	require.Equal(t, retryplan.Uniform(5, 5), retryplan.Uniform(5, 4))
	require.Equal(t, retryplan.LogNormal(1, 1), retryplan.LogNormal(-1, 0))
}

func TestDistsHaveTheirPublishedQuantiles(t *testing.T) {
	const ln2, z99 = 0.6931471805599453, 2.3263478740408408
	for _, row := range []struct {
		dist retryplan.Dist
		u    float64
		want float64 // seconds
	}{
		{retryplan.Exponential(time.Second), 0.5, ln2},
		{retryplan.Exponential(time.Second), 0, 0},
		{retryplan.Uniform(time.Second, 2*time.Second), 0.25, 1.25},
		{retryplan.LogNormal(time.Second, 10*time.Second), 0.5, 1},
		{retryplan.LogNormal(time.Second, 10*time.Second), 0.99, 10},
	} {
		require.InDelta(t, row.want, row.dist.At(row.u).Seconds(), 1e-7, "%v at %v", row.dist, row.u)
	}
}

func FuzzDistsAgreeWithThemselves(f *testing.F) {
	f.Add(uint8(0), int64(1e7), int64(2e6), 0.5)
	f.Add(uint8(1), int64(math.MaxInt64), int64(0), 0.999)
	f.Add(uint8(2), int64(1e7), int64(1e8), 0.01)
	f.Add(uint8(2), int64(1e9), int64(1e3), 1-0x1p-53)
	f.Add(uint8(3), int64(0), int64(3), 0.34)
	f.Add(uint8(4), int64(1), int64(math.MaxInt64), 0.7)
	f.Add(uint8(2), int64(371), int64(10), 0.)
	f.Add(uint8(2), int64(350), int64(10), 1e-300)
	f.Fuzz(func(t *testing.T, kind uint8, a, b int64, u float64) {
		x, y := time.Duration(a), time.Duration(b)
		d := []retryplan.Dist{
			retryplan.Constant(x), retryplan.Exponential(x), retryplan.Uniform(x, y), retryplan.LogNormal(x, y),
		}[kind%4]
		read, err := parseDist(d.String())
		require.NoError(t, err)
		require.Equal(t, d, read)

		if !(u >= 0) {
			u = 0
		}
		u = min(u, 1-0x1p-53)
		at := d.At(u)
		require.True(t, at >= d.At(0) && at <= d.Max() && d.Mean() >= d.At(0) && d.Mean() <= d.Max(), "%v", at)
		require.GreaterOrEqual(t, float64(d.At(min(u+1e-9, 1))), float64(at)*(1-1e-12)-1)
		// Beyond 2^53 ns a float64 does not distinguish whole nanoseconds.
		if at < 1<<50 {
			require.GreaterOrEqual(t, d.CDF(at), u-1e-9, "%v at %v", d, u)
			require.LessOrEqual(t, d.CDF(at-1), u+1e-9, "%v at %v", d, u)
		}
		require.Equal(t, []float64{0, 1}, []float64{d.CDF(-1), d.CDF(d.Max())})
	})
}

func BenchmarkDistAt(b *testing.B) {
	for _, text := range []string{"10ms", "exponential 10ms", "uniform 5ms 20ms", "lognormal 20ms 200ms"} {
		d, err := parseDist(text)
		require.NoError(b, err)
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			u := 0.
			for b.Loop() {
				u += math.Phi - 1
				if u >= 1 {
					u--
				}
				drawn = d.At(u)
			}
		})
	}
}

var drawn time.Duration
