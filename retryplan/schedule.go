package retryplan

import (
	"math"
	"time"

	"github.com/retrygo/retry"
)

// schedule computes everything about the attempts that is not a probability.
func (pl *planner) schedule() {
	shortest, longest := pl.model.attempt(&pl.policy)
	often := []float64{1} // the probability of each bin of pl.fine
	var earliest, latest time.Duration
	var never retry.Reason // set if even the shortest wait after the earliest end is too long
	possible := true       // whether all attempts before can fail
	for n := 1; n <= pl.attempts; n++ {
		a := PlannedAttempt{Number: n}
		if n > 1 {
			lo, hi := pl.lo[n-2], pl.hi[n-2]
			a.Wait = evenWait(lo, hi)
			if pl.fine != nil {
				often = pl.fine.next(often)
				a.Wait = pl.fine.wait(a.Wait, often)
			}
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

// evenWait returns the wait that is even over [lo, hi).
func evenWait(lo, hi time.Duration) Wait {
	at := func(q float64) time.Duration { return lo + time.Duration(q*float64(hi-lo)) }
	return Wait{Lo: lo, Hi: hi, Mean: lo + (hi-lo)/2, P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}

// wait returns w with the mean and the quantiles that follow from the probability of each bin.
func (b *bins) wait(w Wait, often []float64) Wait {
	within := func(f float64) time.Duration { return min(max(whole(math.Round(f)), w.Lo), w.Hi) }
	at := func(q float64) time.Duration {
		for i, mass := range often {
			if q <= mass && mass > 0 {
				return within(b.edges[i] + (b.edges[i+1]-b.edges[i])*q/mass)
			}
			q -= mass
		}
		return w.Hi
	}
	var mean float64
	for i, mass := range often {
		mean += mass * (b.edges[i] + b.edges[i+1]) / 2
	}
	w.Mean, w.P50, w.P90, w.P99 = within(mean), at(0.5), at(0.9), at(0.99)
	return w
}
