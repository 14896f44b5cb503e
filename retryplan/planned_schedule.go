package retryplan

import (
	"time"

	"github.com/retrygo/retry"
)

// schedule fills in what is known of each attempt without probabilities.
func (pl *planner) schedule() {
	p, d := &pl.policy, pl.model.Duration
	shortest, longest := d.Min(), d.Max()
	if p.AttemptTimeout > 0 {
		shortest, longest = min(shortest, p.AttemptTimeout), min(longest, p.AttemptTimeout)
	}
	var waits []Wait
	if pl.bins != nil {
		waits = pl.dependentWaits()
	}
	var earliest, latest time.Duration
	var never retry.Reason
	possible := true // that the attempts before have failed
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
				never = pl.never(earliest, lo)
			}
			earliest, latest = saturatingAdd(earliest, lo), saturatingAdd(latest, hi)
		}
		a.Earliest, a.Latest, a.Never = earliest, latest, never
		if never == 0 {
			if n > 1 && pl.startBy > 0 {
				a.Latest = min(latest, pl.startBy-1)
			}
			pl.out.Effective = n
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

// never returns why no retry can follow an attempt that ended as early as it can and the shortest wait: in the order in which
// endings go before each other.
func (pl *planner) never(ended, wait time.Duration) retry.Reason {
	deadline := pl.model.Deadline
	switch {
	case deadline > 0 && ended >= deadline:
		return retry.DeadlinePassed
	case pl.policy.Disabled:
		return retry.RetriesDisabled
	case pl.policy.TTL > 0 && wait > pl.policy.TTL-ended:
		return retry.TTLElapsed
	case deadline > 0 && wait >= deadline-ended:
		return retry.DeadlineTooNear
	default:
		return 0
	}
}

// timeout returns the probability that an attempt takes longer than AttemptTimeout.
func (pl *planner) timeout() float64 {
	if pl.policy.AttemptTimeout == 0 {
		return 0
	}
	return 1 - pl.model.Duration.CDF(pl.policy.AttemptTimeout)
}
