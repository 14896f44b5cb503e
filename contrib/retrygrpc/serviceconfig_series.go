package retrygrpc

import (
	"math"
	"time"

	"github.com/retrygo/retry"
)

// series are the waits of a retryPolicy before jitter: min(first·factor^(n−1), top) after attempt n.
type series struct {
	first, top time.Duration
	factor     float64
}

// seriesOf returns the series for the given number of waits, at least 1, and whether it equals the waits of b, to
// within a nanosecond and a billionth. The defaults of b are written out.
func seriesOf(b *retry.Backoff, waits int) (s series, exact bool) {
	first, last, top := max(b.Delay(1), 1), max(b.Delay(waits), 1), time.Duration(1)
	for n := 1; n <= waits; n++ {
		top = max(top, b.Delay(n))
	}
	switch b.Mode {
	case retry.Exponential:
		return bounded(b, series{first, b.Cap, b.Factor}, waits)
	case retry.Fixed:
		return bounded(b, series{first, top, 1}, waits)
	}
	if waits > 1 {
		// A list can be an exponential that has reached its cap.
		if s, exact = bounded(b, series{first, top, quotient(b.Delay(2), first)}, waits); exact {
			return s, true
		}
		return bounded(b, series{first, top, math.Pow(quotient(last, first), 1/float64(waits-1))}, waits)
	}
	return bounded(b, series{first, top, 1}, waits)
}

// bounded returns s within grpc-go's bounds, and whether it gives the waits of b.
func bounded(b *retry.Backoff, s series, waits int) (series, bool) {
	s.top = min(s.top, longestBackoff)
	s.first = min(s.first, s.top)
	for n := 1; n <= waits; n++ {
		if !same(s.wait(n), b.Delay(n)) {
			return s, false
		}
	}
	return s, true
}

// wait returns the wait after attempt n, computed as grpc-go does.
func (s series) wait(n int) time.Duration {
	return time.Duration(min(float64(s.first)*math.Pow(s.factor, float64(n-1)), float64(s.top)))
}

// window returns the range of the wait after attempt n with gRPC's jitter.
func (s series) window(n int) (lo, hi time.Duration) {
	d := float64(s.wait(n))
	return time.Duration(d * (1 - jitterRatio)), time.Duration(d * (1 + jitterRatio))
}

func quotient(x, y time.Duration) float64 { return float64(max(x, 1)) / float64(y) }

// same reports whether x equals y, to within a nanosecond and a billionth.
func same(x, y time.Duration) bool {
	return math.Abs(float64(x)-float64(y)) <= 1+float64(y)*1e-9
}
