package retryplan

import (
	"time"

	"github.com/retrygo/retry"
)

// planner computes the plan of a run attempt by attempt, for all histories at once.
type planner struct {
	policy   retry.Policy
	model    Model
	attempts int
	lo, hi   []time.Duration          // of the wait after attempt i+1
	took     measure                  // the durations that neither AttemptTimeout nor Deadline cuts short
	timeouts float64                  // the probability that an attempt takes longer than AttemptTimeout
	startBy  time.Duration            // retries start before this time; the largest Duration if none can be too late
	later    time.Duration            // the later of TTL and deadline, from which on a run ends for another reason
	firstEnd int                      // the first attempt after which a run ended
	late     map[retry.Reason]float64 // endings for lack of time
	out      Plan
}

// Probabilities that should be equal differ by less than rounding. If a share of the retries up to unlikely would be too
// late, none counts as too late.
const (
	rounding = 1e-12
	unlikely = 1e-9
)

func newPlanner(p retry.Policy, m Model) *planner {
	pl := &planner{policy: p, model: m, startBy: maxDuration, later: maxDuration}
	pl.attempts = horizon
	allowed := p.Effective().MaxAttempts
	if allowed != retry.Unlimited {
		pl.attempts = min(allowed, pl.attempts)
	}
	for n := 1; n < pl.attempts; n++ {
		lo, hi := p.Bounds(n)
		pl.lo, pl.hi = append(pl.lo, lo), append(pl.hi, hi)
	}
	pl.out.Truncated = !p.Disabled && allowed != pl.attempts
	pl.policy.MaxAttempts = pl.attempts // where the run of a longer policy ends
	limit := maxDuration                // of durations
	if p.AttemptTimeout > 0 {
		limit = saturatingAdd(p.AttemptTimeout, 1)
		pl.timeouts = 1 - m.Duration.CDF(p.AttemptTimeout)
	}
	if m.Deadline > 0 {
		limit = min(limit, saturatingAdd(m.Deadline, 1)) // the mass that is missing passes the deadline
	}
	pl.took = m.Duration.before(limit)
	pl.limitStarts()
	return pl
}

// limitStarts computes startBy and later.
func (pl *planner) limitStarts() {
	_, longest := pl.model.attempt(&pl.policy)
	var latest time.Duration // start of the last attempt without TTL and deadline
	for _, hi := range pl.hi {
		latest = saturatingAdd(saturatingAdd(latest, longest), hi)
	}
	if pl.policy.TTL > 0 {
		pl.startBy = saturatingAdd(pl.policy.TTL, 1)
	}
	if deadline := pl.model.Deadline; deadline > 0 {
		pl.startBy, pl.later = min(pl.startBy, deadline), max(pl.startBy, deadline)
	}
	if latest < pl.startBy {
		pl.startBy = maxDuration
	}
}

func (pl *planner) plan() *Plan {
	out := &pl.out
	pl.schedule()
	if pl.policy.Disabled {
		pl.lo, pl.hi = nil, nil
	}
	out.Endings, pl.late = map[retry.Reason]float64{}, map[retry.Reason]float64{}
	if pl.policy.Jitter == retry.DecorrelatedJitter && len(pl.lo) > 0 {
		pl.sample()
	} else {
		pl.totalWait()
		pl.run()
	}
	out.Elapsed.finish(pl.shortest(), out.WorstCase)
	for reason, mass := range pl.late {
		if mass >= rounding {
			out.Endings[reason] += mass
		}
	}
	return out
}

// totalWait computes Plan.TotalWait.
func (pl *planner) totalWait() {
	total := exactly(0, 1)
	for i := range pl.lo {
		total = total.waited(pl.lo[i], pl.hi[i])
	}
	pl.out.TotalWait.add(total)
	pl.out.TotalWait.finish(pl.policy.TotalWait())
}

// run computes the probabilities of the plan, for each attempt the distribution of its start in the runs that make it,
// of its end, and of the start of the next.
func (pl *planner) run() {
	deadline, out := pl.model.Deadline, &pl.out
	start := exactly(0, 1)
	for n := 1; start != nil; n++ {
		a := &out.Attempts[n-1]
		a.Starts = start.mass()
		out.Load += a.Starts
		done, failed := pl.attempt(start, n)
		if deadline > 0 {
			done, failed = done.before(saturatingAdd(deadline, 1)), failed.before(deadline)
		}
		a.Succeeds = done.mass()
		out.Success += a.Succeeds
		pl.end(out.Endings, 0, n, done, a.Succeeds)
		mass := failed.mass()
		if passed := a.Starts - a.Succeeds - mass; deadline > 0 && passed > 0 {
			pl.end(pl.late, pl.ending(n, deadline, 0), n, exactly(deadline, passed), passed)
		}
		if mass == 0 {
			break
		}
		if pl.policy.Disabled || n == pl.attempts {
			pl.end(out.Endings, pl.ending(n, pl.endsFirst(n), 0), n, failed, mass)
			break
		}
		start = pl.split(failed.waited(pl.lo[n-1], pl.hi[n-1]).before(pl.startBy), mass, n, failed)
	}
}

// stopped returns the part of m whose next wait does not end before startBy. The wait is even over the whole nanoseconds
// of [lo, hi), or lo if they are equal.
func (m measure) stopped(startBy, lo, hi time.Duration) measure {
	width := max(float64(hi-lo), 1)
	return m.weighted(func(at time.Duration) float64 {
		return min(max(float64(lo)+width-float64(startBy-at), 0)/width, 1)
	})
}

// attempt returns the distribution of the end of attempt n, which begins at start, if it succeeds and if it fails.
func (pl *planner) attempt(start measure, n int) (done, failed measure) {
	f := pl.model.failure(n)
	ended := start.convolved(pl.took)
	done, failed = ended.scaled(1-f), ended.scaled(f)
	if pl.timeouts > 0 {
		failed = failed.plus(start.shifted(pl.policy.AttemptTimeout).scaled(pl.timeouts))
	}
	return done, failed
}

// split ends the runs that make no attempt after n, and returns the start of the next attempt in the others. going is the
// mass of failed.
func (pl *planner) split(start measure, going float64, n int, failed measure) measure {
	next := &pl.out.Attempts[n]
	if next.Never != 0 {
		start = nil
	}
	mass := start.mass()
	ended := going - mass
	if mass > 0 && (pl.startBy == maxDuration || ended <= unlikely*going) {
		return start.scaled(going / mass)
	}
	stopped := func(startBy time.Duration) measure { return failed.stopped(startBy, pl.lo[n-1], pl.hi[n-1]) }
	stays := stopped(pl.startBy)
	if stays.mass() == 0 {
		stays = failed
	}
	stays = stays.scaled(ended / stays.mass())
	// The reason depends on when the next attempt would start, soon after the limit, or as late as can be.
	ends := pl.endsFirst(n)
	first, last := next.Never, pl.ending(n, ends, maxDuration)
	if first == 0 {
		first = pl.ending(n, ends, pl.startBy-ends)
	}
	if first != last {
		soonest := max(ended-stopped(pl.later).mass(), 0)
		pl.late[first] += soonest
		pl.late[last] -= soonest
	}
	pl.end(pl.late, last, n, stays, ended)
	return start
}

// ending returns the reason for which a run ends if attempt n failed at a time and the next would start a wait later.
func (pl *planner) ending(n int, at, wait time.Duration) retry.Reason {
	return pl.policy.Admit(retry.Progress{Attempt: n, Elapsed: at, Deadline: pl.model.Deadline}, wait).Reason
}

// endsFirst returns the earliest end of attempt n.
func (pl *planner) endsFirst(n int) time.Duration {
	shortest, _ := pl.model.attempt(&pl.policy)
	return saturatingAdd(pl.out.Attempts[n-1].Earliest, shortest)
}

// end adds runs that end after attempt n for a reason, at the times of m.
func (pl *planner) end(endings map[retry.Reason]float64, r retry.Reason, n int, m measure, mass float64) {
	if mass <= 0 {
		return
	}
	endings[r] += mass
	pl.out.Elapsed.add(m)
	if pl.firstEnd == 0 {
		pl.firstEnd = n
	}
}

// shortest returns a lower bound of Elapsed, the earliest end of the first attempt after which any run ends.
func (pl *planner) shortest() time.Duration {
	first := pl.endsFirst(max(pl.firstEnd, 1))
	if pl.model.Deadline > 0 {
		first = min(first, pl.model.Deadline)
	}
	return first
}

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
