package retryplan

import (
	"time"

	"github.com/retrygo/retry"
)

// schedule fills in what is known of each attempt without probabilities.
func (pl *planner) schedule() {
	shortest, longest := pl.model.attempt(&pl.policy)
	var waits []Wait
	if pl.bins != nil {
		waits = pl.dependentWaits()
	}
	var earliest, latest time.Duration
	var never retry.Reason // since even the shortest wait after the earliest end is too long
	possible := true       // that the attempts before have failed
	for n := 1; n <= pl.attempts; n++ {
		a := PlannedAttempt{Number: n}
		if n > 1 {
			lo, hi := pl.lo[n-2], pl.hi[n-2]
			if waits != nil {
				a.Wait = waits[n-2]
			} else {
				a.Wait = evenWait(lo, hi)
			}
			earliest, latest = saturatingAdd(earliest, shortest), saturatingAdd(latest, longest)
			if never == 0 {
				never = pl.ending(n-1, earliest, lo)
			}
			earliest, latest = saturatingAdd(earliest, lo), saturatingAdd(latest, hi)
		}
		a.Earliest, a.Latest, a.Never = earliest, latest, never
		if never == 0 {
			if n > 1 && pl.startBy > 0 {
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
		possible = possible && (pl.model.failure(n) > 0 || pl.timeout() > 0)
		pl.out.Attempts = append(pl.out.Attempts, a)
	}
}

// timeout returns the probability that an attempt takes longer than AttemptTimeout.
func (pl *planner) timeout() float64 {
	if pl.policy.AttemptTimeout == 0 {
		return 0
	}
	return 1 - pl.model.Duration.CDF(pl.policy.AttemptTimeout)
}
