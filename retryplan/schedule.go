package retryplan

import (
	"time"

	"github.com/retrygo/retry"
)

// schedule computes everything about the attempts that is not a probability.
func (pl *planner) schedule() {
	shortest, longest := pl.model.attempt(&pl.policy)
	var earliest, latest time.Duration
	var never retry.Reason // set if even the shortest wait after the earliest end is too long
	possible := true       // whether all attempts before can fail
	for n := 1; n <= pl.attempts; n++ {
		var a PlannedAttempt
		if n > 1 {
			lo, hi := pl.lo[n-2], pl.hi[n-2]
			a.Wait = even(lo, hi)
			earliest, latest = saturatingAdd(earliest, shortest), saturatingAdd(latest, longest)
			if never == 0 {
				never = pl.ending(n-1, earliest, lo)
			}
			earliest, latest = saturatingAdd(earliest, lo), saturatingAdd(latest, hi)
		}
		a.Earliest, a.Latest, a.Never = earliest, latest, never
		if never == 0 {
			if n > 1 && pl.startBy < maxDuration {
				a.Latest = min(latest, pl.startBy-1)
			}
			pl.out.CanStart = n
			if possible {
				pl.out.WorstCase = saturatingAdd(a.Latest, longest)
				if pl.model.Deadline > 0 {
					pl.out.WorstCase = min(pl.out.WorstCase, pl.model.Deadline)
				}
			}
		}
		possible = possible && (pl.model.failure(n) > 0 || pl.timeouts > 0)
		pl.out.Attempts = append(pl.out.Attempts, a)
	}
}

// even returns the distribution that is even over [lo, hi).
func even(lo, hi time.Duration) Distribution {
	width := hi - lo
	return Distribution{[]part{{lo + width/2, max(float64(width), 1), []float64{0, 1}}}, lo, hi, float64(width) / 2}
}
