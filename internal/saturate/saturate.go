// Package saturate computes with durations that stop at a limit where they would overflow. Its results are the same on
// every platform.
package saturate

import (
	"math"
	"math/bits"
	"time"
)

// Max is the longest Duration.
const Max = time.Duration(math.MaxInt64)

const mostSteps = 1000 // see fractional

// Power returns min(base·factor^grown, limit) for a positive base, a factor of at least 1 and grown ≥ 0.
func Power(base time.Duration, factor float64, grown int, limit time.Duration) time.Duration {
	whole, ok := wholeNumber(factor)
	switch {
	case grown == 0 || whole == 1 && ok: // also for a base that is not a float64, or a factor that is not a uint64
		return min(base, limit)
	case !ok:
		return fractional(base, factor, grown, limit)
	}
	delay := min(base, limit)
	for ; grown > 0 && delay < limit; grown-- { // 63 times at most
		delay = Times(delay, whole, limit)
	}
	return delay
}

// Line returns min(base·(1+factor·grown), limit) for a positive base and factor and grown ≥ 0.
func Line(base time.Duration, factor float64, grown int, limit time.Duration) time.Duration {
	whole, ok := wholeNumber(factor)
	if grown == 0 {
		return min(base, limit)
	} else if !ok {
		// The result is base + (base·factor)·grown, in whole nanoseconds if base·factor is one. The conversions round
		// each step. Without them a compiler may fuse product and sum (Go specification, "Floating-point operators").
		step := float64(float64(base) * factor)
		return Truncated(float64(base)+float64(step*float64(grown)), limit)
	}
	high, steps := bits.Mul64(whole, uint64(grown))
	if high != 0 || steps == math.MaxUint64 {
		return limit
	}
	return Times(base, steps+1, limit)
}

// Times returns min(d·n, limit) for d ≥ 0.
func Times(d time.Duration, n uint64, limit time.Duration) time.Duration {
	high, low := bits.Mul64(uint64(d), n)
	if high != 0 || low > uint64(limit) {
		return limit
	}
	return time.Duration(low)
}

// fractional returns min(base·factor^grown, limit) by one rounded multiplication a step. There is no sum that a
// compiler could fuse. Past mostSteps the remaining power is taken by squaring, so that a factor a hair above 1 cannot
// make one delay cost a billion steps. By then any factor of 1.04 has brought 1ns to the largest Duration.
func fractional(base time.Duration, factor float64, grown int, limit time.Duration) time.Duration {
	delay := float64(base)
	steps := min(grown, mostSteps)
	for ; steps > 0 && delay <= float64(limit); steps-- {
		delay *= factor
	}
	for rest := grown - mostSteps; rest > 0 && delay <= float64(limit); rest >>= 1 {
		if rest&1 == 1 {
			delay *= factor
		}
		factor *= factor
	}
	return Truncated(delay, limit)
}

// Truncated returns min(f, limit) for f ≥ 0, NaN or +Inf. It compares first, because only a number that fits may be
// converted.
func Truncated(f float64, limit time.Duration) time.Duration {
	if !(f < 1<<63) {
		return limit
	}
	return min(time.Duration(f), limit)
}

// wholeNumber returns f as an integer, if it is one that fits.
func wholeNumber(f float64) (uint64, bool) {
	if !(f < 1<<63) {
		return 0, false
	}
	whole := uint64(f)
	return whole, float64(whole) == f
}

// Within returns the point u of a range of the given width ≥ 0, which is u·width, truncated. It is below width if width
// is above 0, because the largest u below 1 takes off at least as much as rounding width to a float64 can have added.
func Within(width time.Duration, u float64) time.Duration {
	if !(u > 0) { // NaN too
		return 0
	}
	return time.Duration(min(u, 1-0x1p-53) * float64(width))
}

// Sum returns x+y for x, y ≥ 0, and the largest Duration if that overflows.
func Sum(x, y time.Duration) time.Duration { return x + min(y, Max-x) }
