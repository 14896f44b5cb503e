package retryplan

import (
	"math"
	"time"
)

// evenWait returns the wait that is even over [lo, hi).
func evenWait(lo, hi time.Duration) Wait {
	at := func(q float64) time.Duration { return lo + time.Duration(q*float64(hi-lo)) }
	return Wait{Lo: lo, Hi: hi, Mean: lo + (hi-lo)/2, P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}

// dependentWaits returns the waits of decorrelated jitter, by finer bins than those of the joint distribution.
func (pl *planner) dependentWaits() []Wait {
	b := newBins(time.Duration(pl.bins.base), time.Duration(pl.bins.limit), len(pl.lo), 10*pl.bins.perTriple)
	waits := make([]Wait, len(pl.lo))
	for i, masses := range b.marginals(len(pl.lo)) {
		w := Wait{Lo: pl.lo[i], Hi: pl.hi[i]}
		var mean float64
		for m, mass := range masses {
			mean += mass * b.middle(m)
		}
		at := func(q float64) time.Duration {
			for m, mass := range masses {
				if q <= mass && mass > 0 {
					return clamped(b.edges[m]+b.width(m)*q/mass, w)
				}
				q -= mass
			}
			return w.Hi
		}
		w.Mean, w.P50, w.P90, w.P99 = clamped(mean, w), at(0.5), at(0.9), at(0.99)
		waits[i] = w
	}
	return waits
}

// clamped returns f nanoseconds within the bounds of w.
func clamped(f float64, w Wait) time.Duration { return min(max(whole(math.Round(f)), w.Lo), w.Hi) }

// evenSoon returns the probability that a wait is below left if it is even over the whole numbers of [lo, hi), or is lo
// if they are equal.
func evenSoon(left float64, lo, hi time.Duration) float64 {
	if hi <= lo {
		if left > float64(lo) {
			return 1
		}
		return 0
	}
	return min(max((left-float64(lo))/float64(hi-lo), 0), 1)
}
