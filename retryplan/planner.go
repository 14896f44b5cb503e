package retryplan

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

// errPlanned is the failure of every planned attempt.
var errPlanned = errors.New("planned failure")

// planner takes one run through its attempts, all histories at once.
type planner struct {
	policy   retry.Policy
	model    Model
	attempts int
	lo, hi   []time.Duration // of the wait after attempt i+1
	bins     *bins           // of waits that depend on the one before; else nil
	sums     []measure       // of the first waits, one, two, ...; where they depend on each other
	startBy  time.Duration   // retries start before this time; 0 means at any time
	early    bool            // whether only what is before startBy is asked for
	firstEnd int             // the first attempt after which a run ended
	out      Plan
}

func newPlanner(p retry.Policy, m Model) *planner {
	pl := &planner{policy: p, model: m}
	horizon := m.Horizon
	if horizon == 0 {
		horizon = defaultHorizon
	}
	// What the policy would do without time running out.
	asked := p
	asked.Disabled, asked.TTL, asked.Classify = false, 0, nil
	allows := func(attempt int) bool {
		return asked.Decide(retry.Progress{Attempt: attempt}, errPlanned, 0).Status == retry.Waiting
	}
	pl.attempts = 1
	for pl.attempts < horizon && allows(pl.attempts) {
		lo, hi := p.Bounds(pl.attempts)
		pl.lo, pl.hi = append(pl.lo, lo), append(pl.hi, hi)
		pl.attempts++
	}
	pl.out.Truncated = !p.Disabled && allows(pl.attempts)
	pl.out.Endings = make(map[retry.Reason]float64)
	if p.Jitter == retry.DecorrelatedJitter {
		base, _ := p.Bounds(1)
		_, limit := p.Bounds(math.MaxInt)
		if base < limit && pl.attempts > 1 {
			pl.bins = newBins(base, limit, pl.attempts-1, pl.perTriple())
		}
	}
	if p.TTL > 0 {
		pl.startBy = saturatingAdd(p.TTL, 1)
	}
	if m.Deadline > 0 && (pl.startBy == 0 || m.Deadline < pl.startBy) {
		pl.startBy = m.Deadline
	}
	return pl
}

// perTriple returns how fine the bins of decorrelated jitter are. Long runs are smooth, and are told with fewer.
func (pl *planner) perTriple() int {
	if pl.attempts > 40 {
		return 20
	}
	return 30
}

// The numbers of cells: of plain sums of waits, of sums with random durations and of a row of a chain.
const (
	waitCells     = 4096
	durationCells = 4096
	chainCells    = 1024
	lateCells     = 1024 // of the parts of Elapsed, in plans of many attempts
	manyAttempts  = 40
)

// rounding is more than what is left over where probabilities that should be equal are subtracted.
const rounding = 1e-12

func (pl *planner) plan() *Plan {
	pl.schedule()
	pl.totalWait()
	pl.run()
	pl.out.InTime = pl.out.Success
	pl.out.Elapsed.finish(pl.shortest(), pl.out.WorstCase)
	pl.refine()
	for _, limit := range []retry.Reason{retry.TTLElapsed, retry.DeadlineTooNear, retry.DeadlinePassed} {
		if pl.out.Endings[limit] < rounding {
			delete(pl.out.Endings, limit)
		}
	}
	return &pl.out
}

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

// totalWait computes Plan.TotalWait.
func (pl *planner) totalWait() {
	if pl.policy.Disabled {
		return
	}
	total := atomAt(0, 1)
	var lo, hi time.Duration
	for i := range pl.lo {
		lo, hi = saturatingAdd(lo, pl.lo[i]), saturatingAdd(hi, pl.hi[i])
		if pl.bins == nil {
			total = total.waited(pl.lo[i], pl.hi[i], waitCells)
		}
	}
	if pl.bins != nil {
		total = pl.dependentTotal(maxDuration)
	}
	pl.out.TotalWait.add(total)
	pl.out.TotalWait.finish(lo, hi)
	if pl.bins == nil {
		return
	}
	for _, below := range pl.out.TotalWait.refinements() {
		var parts Distribution
		parts.add(pl.dependentTotal(below))
		pl.out.TotalWait.refine(below, parts)
	}
}

// dependentTotal returns the distribution of those sums of all waits that are before limit.
func (pl *planner) dependentTotal(limit time.Duration) measure {
	c := newChain(pl.bins, limit, chainCells)
	for range pl.lo {
		c.next()
		if limit == maxDuration {
			pl.sums = append(pl.sums, c.sums())
		}
	}
	return c.sums()
}

// refine computes the early part of Plan.Elapsed anew, with finer grids: times only grow, so that it depends on nothing later.
func (pl *planner) refine() {
	if pl.bins == nil || pl.startBy != 0 || pl.policy.Disabled {
		return
	}
	for _, below := range pl.out.Elapsed.refinements() {
		early := *pl
		early.startBy, early.early = below, true
		early.out = Plan{Attempts: slices.Clone(pl.out.Attempts), Endings: make(map[retry.Reason]float64)}
		early.run()
		pl.out.Elapsed.refine(below, early.out.Elapsed)
	}
}

// run computes the probabilities of the plan: attempt by attempt, the distribution of its start in those runs that make it,
// of its end, and of the start of the next.
func (pl *planner) run() {
	deadline, out := pl.model.Deadline, &pl.out
	start := atomAt(0, 1)
	// With waits that depend on each other, the sum of the waits is kept apart from that of the durations.
	var c *chain
	durations := atomAt(0, 1)
	if pl.bins != nil && !pl.policy.Disabled {
		limit := maxDuration
		if pl.startBy > 0 {
			limit = pl.startBy
		}
		c = newChain(pl.bins, limit, chainCells)
		c.keep = pl.startBy > 0 && !pl.early
	}
	for n := 1; n <= pl.attempts; n++ {
		a := &out.Attempts[n-1]
		if a.Never != 0 {
			break
		}
		a.Starts = start.mass()
		out.Load += a.Starts
		done, failed := pl.attempt(start, n)
		if deadline > 0 {
			done, failed = done.before(saturatingAdd(deadline, 1)), failed.before(deadline)
		}
		a.Succeeds = done.mass()
		out.Success += a.Succeeds
		pl.end(0, done, a.Succeeds)
		going := failed.mass()
		if passed := a.Starts - a.Succeeds - going; deadline > 0 && passed > 0 {
			pl.end(retry.DeadlinePassed, atomAt(deadline, passed), passed)
		}
		if len(out.Endings) > 0 && pl.firstEnd == 0 {
			pl.firstEnd = n
		}
		if going <= 0 {
			break
		}
		if pl.policy.Disabled {
			pl.end(retry.RetriesDisabled, failed, going)
			break
		}
		if n == pl.attempts {
			pl.end(retry.AttemptsExhausted, failed, going)
			break
		}
		var soon func(limit time.Duration) func(ended float64) float64
		if c == nil {
			lo, hi := pl.lo[n-1], pl.hi[n-1]
			start = failed.waited(lo, hi, waitCells)
			soon = func(limit time.Duration) func(float64) float64 {
				return func(ended float64) float64 { return evenSoon(float64(limit)-ended, float64(lo), float64(hi)) }
			}
		} else {
			_, durations = pl.attempt(durations, n)
			var waited measure
			if pl.startBy == 0 {
				waited = pl.sums[n-1]
			} else {
				c.next()
				waited = c.sums()
			}
			start = waited.convolved(durations, durationCells)
			mean := durations.meanTime()
			soon = func(limit time.Duration) func(float64) float64 {
				soon := c.soon(float64(limit) - mean)
				return func(ended float64) float64 { return soon(ended - mean) }
			}
		}
		pl.split(failed, &start, going, n, soon)
		if len(out.Endings) > 0 && pl.firstEnd == 0 {
			pl.firstEnd = n
		}
	}
	if pl.firstEnd == 0 { // with the last
		pl.firstEnd = pl.attempts
	}
}

// shortest returns a bound for the shortest run: one that ends with the first attempt with which any does.
func (pl *planner) shortest() time.Duration {
	first := pl.out.Attempts[0]
	for i, a := range pl.out.Attempts {
		if i > 0 && a.Starts > 0 && pl.firstEnd > i {
			first = a
		}
	}
	d := pl.model.Duration.Min()
	if pl.policy.AttemptTimeout > 0 {
		d = min(d, pl.policy.AttemptTimeout)
	}
	d = saturatingAdd(first.Earliest, d)
	if pl.model.Deadline > 0 {
		d = min(d, pl.model.Deadline)
	}
	return d
}

// attempt returns the distributions of the end of attempt n, which begins as start says, for success and for failure.
func (pl *planner) attempt(start measure, n int) (done, failed measure) {
	f, d, timeout := pl.model.failure(n), pl.model.Duration, pl.policy.AttemptTimeout
	if d.fixed() {
		if timeout > 0 && d.a > timeout {
			return measure{}, start.shifted(timeout)
		}
		ended := start.shifted(d.a)
		return ended.scaled(1 - f), ended.scaled(f)
	}
	limit := maxDuration
	if timeout > 0 {
		limit = saturatingAdd(timeout, 1)
	}
	ended := start.taking(d, limit, durationCells)
	done, failed = ended.scaled(1-f), ended.scaled(f)
	if late := pl.timeout(); late > 0 {
		failed = failed.plus(start.shifted(timeout).scaled(late), durationCells)
	}
	return done, failed
}

// split ends the runs whose failed attempt, the n-th, is not followed by another, and leaves the others in start. soon returns
// the probability of a start before limit after an attempt that ended at the given time.
func (pl *planner) split(failed measure, start *measure, going float64, n int, soon func(limit time.Duration) func(ended float64) float64) {
	if pl.startBy == 0 {
		if mass := start.mass(); mass > 0 {
			*start = start.scaled(going / mass)
		}
		return
	}
	*start = start.before(pl.startBy)
	if pl.out.Attempts[n].Never != 0 {
		*start = measure{}
	}
	if mass := start.mass(); mass > going { // by rounding
		*start = start.scaled(going / mass)
	}
	ended := going - start.mass()
	if ended <= 0 || pl.early {
		return
	}
	inTime := soon(pl.startBy)
	stayed := failed.weighted(func(at float64) float64 { return 1 - inTime(at) })
	if mass := stayed.mass(); mass > 0 {
		stayed = stayed.scaled(ended / mass)
	} else {
		stayed = failed.scaled(ended / going)
	}
	pl.out.Elapsed.addPart(stayed, pl.attempts)
	deadline, ttl := pl.model.Deadline, pl.policy.TTL
	tooNear := 0.
	switch {
	case ttl == 0:
		tooNear = ended
	case deadline > 0 && deadline <= ttl:
		within := failed.weighted(soon(saturatingAdd(ttl, 1)))
		tooNear = min(max(within.mass()-start.mass(), 0), ended)
		if pl.out.Attempts[n].Never == retry.TTLElapsed {
			tooNear = 0
		}
	}
	if tooNear > 0 {
		pl.out.Endings[retry.DeadlineTooNear] += tooNear
	}
	if rest := ended - tooNear; rest > 0 {
		pl.out.Endings[retry.TTLElapsed] += rest
	}
}

// evenSoon returns the probability that a wait that is even over the whole numbers of [lo, hi), or lo where they are equal, is
// below left.
func evenSoon(left, lo, hi float64) float64 {
	if hi <= lo {
		if left > lo {
			return 1
		}
		return 0
	}
	return min(max((left-lo)/(hi-lo), 0), 1)
}

// end notes runs that ended for the given reason.
func (pl *planner) end(r retry.Reason, m measure, mass float64) {
	if mass <= 0 {
		return
	}
	pl.out.Endings[r] += mass
	pl.out.Elapsed.addPart(m, pl.attempts)
}
