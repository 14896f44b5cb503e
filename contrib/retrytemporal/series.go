package retrytemporal

import (
	"math"
	"time"

	"github.com/retrygo/retry"
)

// looked is how many waits of a formula are compared: with any relevant factor, the rest are equal to the cap.
const looked = 100

// compared returns how many of the waits are compared: all entries of a list, and at least one.
func compared(b *retry.Backoff, waits int) int { return max(min(waits, max(looked, len(b.Delays))), 1) }

// series are Temporal's waits: min(first·factor^(n−1), top) after attempt n.
type series struct {
	first, top time.Duration
	factor     float64
}

// seriesOf returns the series for the given number of waits, and whether it gives the waits of b, but for a nanosecond
// and a billionth. The defaults of b are written out. Temporal refuses a factor below 1.
func seriesOf(b *retry.Backoff, waits int) (s series, exact bool) {
	near := compared(b, waits)
	first, last, top := max(b.Delay(1), 1), max(b.Delay(near), 1), max(b.Delay(waits), 1)
	for n := 1; n <= near; n++ {
		top = max(top, b.Delay(n))
	}
	switch b.Mode {
	case retry.Exponential:
		return agrees(b, series{first, b.Cap, b.Factor}, near)
	case retry.Fixed:
		return agrees(b, series{first, first, 1}, near)
	}
	if near > 1 {
		// A list can be an exponential that has reached its cap.
		if s, exact = agrees(b, series{first, top, quotient(b.Delay(2), first)}, near); exact {
			return s, true
		}
		return agrees(b, series{first, top, math.Pow(quotient(last, first), 1/float64(near-1))}, near)
	}
	return agrees(b, series{first, top, 1}, near)
}

// agrees returns s with a factor that Temporal accepts, and whether it gives the waits of b.
func agrees(b *retry.Backoff, s series, waits int) (series, bool) {
	s.factor = max(s.factor, 1)
	for n := 1; n <= waits; n++ {
		if math.Abs(float64(s.wait(n))-float64(b.Delay(n))) > 1+float64(b.Delay(n))*1e-9 {
			return s, false
		}
	}
	return s, true
}

// wait returns the wait after attempt n.
func (s series) wait(n int) time.Duration {
	// Compared before the conversion, which Temporal does after it: beyond the largest Duration it also waits for top.
	if d := float64(s.first) * math.Pow(s.factor, float64(n-1)); d < float64(s.top) {
		return time.Duration(d)
	}
	return s.top
}

func quotient(x, y time.Duration) float64 { return float64(max(x, 1)) / float64(y) }
