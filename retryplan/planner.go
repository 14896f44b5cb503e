package retryplan

import (
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

// planner takes one run through its attempts, all histories at once.
type planner struct {
	policy   retry.Policy
	model    Model
	attempts int
	lo, hi   []time.Duration // of the wait after attempt i+1
	bins     *bins           // of waits that depend on the one before; else nil
	// If waits depend on each other: the sums of the first one, two, ... waits that are before a limit, and the sums of
	// the durations of the first attempts. They are computed once.
	sums     map[time.Duration][]measure
	taken    []measure
	startBy  time.Duration            // retries start before this time; 0 means that none can be too late
	later    time.Duration            // the second limit, if an attempt that would start even later can end for another reason; 0 means none
	below    time.Duration            // only what is before this time is asked for; 0 means all
	stopped  []bool                   // whether runs ended after attempt i+1 since the next would not start by startBy
	firstEnd int                      // the first attempt after which a run ended
	late     map[retry.Reason]float64 // endings for lack of time
	out      Plan
}

func newPlanner(p retry.Policy, m Model) *planner {
	pl := &planner{policy: p, model: m}
	horizon := m.Horizon
	if horizon == 0 {
		horizon = defaultHorizon
	}
	allowed := p.Effective().MaxAttempts
	pl.attempts = horizon
	if allowed != retry.Unlimited {
		pl.attempts = min(allowed, horizon)
	}
	for n := 1; n < pl.attempts; n++ {
		lo, hi := p.Bounds(n)
		pl.lo, pl.hi = append(pl.lo, lo), append(pl.hi, hi)
	}
	pl.out.Truncated = !p.Disabled && allowed != pl.attempts
	pl.policy.MaxAttempts = pl.attempts // a run is given up after the last attempt looked at
	pl.out.Endings, pl.late = map[retry.Reason]float64{}, map[retry.Reason]float64{}
	if p.Jitter == retry.DecorrelatedJitter {
		base, _ := p.Bounds(1)
		_, limit := p.Bounds(math.MaxInt)
		pl.sums = make(map[time.Duration][]measure)
		if base < limit && pl.attempts > 1 {
			pl.bins = newBins(base, limit, pl.attempts-1, pl.perTriple())
		}
	}
	if p.TTL > 0 && p.TTL < maxDuration {
		pl.startBy = p.TTL + 1
	}
	if m.Deadline > 0 {
		pl.startBy, pl.later = m.Deadline, pl.startBy
		if pl.later > 0 && pl.later < pl.startBy {
			pl.startBy, pl.later = pl.later, pl.startBy
		}
	}
	if latest := pl.latestStart(); latest < maxDuration && latest < pl.startBy {
		pl.startBy = 0
	}
	pl.stopped = make([]bool, pl.attempts)
	return pl
}

// latestStart returns a bound for the start of the last attempt, TTL and deadline left out.
func (pl *planner) latestStart() (latest time.Duration) {
	_, longest := pl.model.attempt(&pl.policy)
	for _, hi := range pl.hi {
		latest = saturatingAdd(saturatingAdd(latest, longest), hi)
	}
	return latest
}

// perTriple returns how fine the bins of decorrelated jitter are. Long runs are smooth, and need fewer.
func (pl *planner) perTriple() int {
	if pl.attempts > manyAttempts {
		return 20
	}
	return 24
}

// The numbers of cells: of plain sums of waits, of sums with random durations and of a row of a chain.
const (
	waitCells     = 4096
	durationCells = 4096
	firstCells    = 8192 // of the same if there is nothing to convolve with
	dependCells   = 2048 // of the same if rows of a chain are among them
	chainCells    = 768
	lateCells     = 1024 // of the parts of Elapsed, in plans of many attempts
	manyAttempts  = 40
)

// rounding is more than the difference of probabilities that should be equal. If at most the share unlikely of the
// retries would be too late, none is taken to be.
const (
	rounding = 1e-12
	unlikely = 1e-9
	smooth   = 2e-5 // the roughness that a CDF may have
	unseen   = 1e-7 // what adds less to a CDF is left out when it is computed again
)

func (pl *planner) plan() *Plan {
	pl.schedule()
	pl.totalWait()
	pl.run()
	pl.out.InTime = pl.out.Success
	pl.out.Elapsed.finish(pl.shortest(), pl.out.WorstCase)
	pl.refine()
	for reason, mass := range pl.late {
		if mass >= rounding {
			pl.out.Endings[reason] = mass
		}
	}
	return &pl.out
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
	var sums []measure
	for range pl.lo {
		c.next()
		sums = append(sums, c.sums())
	}
	pl.sums[limit] = sums
	return c.sums()
}

// limit returns the time that the starts in question are before.
func (pl *planner) limit() time.Duration {
	limit := maxDuration
	if pl.startBy > 0 {
		limit = pl.startBy
	}
	if pl.below > 0 {
		limit = min(limit, pl.below)
	}
	return limit
}

// refine computes the early part of Plan.Elapsed again, with finer grids: times only grow, so that it depends on
// nothing later.
func (pl *planner) refine() {
	if pl.bins == nil || pl.policy.Disabled {
		return
	}
	for _, below := range pl.out.Elapsed.refinements() {
		if pl.out.Elapsed.roughness(below) < smooth {
			continue
		}
		for limit := range pl.sums { // those that are there already serve as well
			if limit < maxDuration && float64(limit) < 2.4*float64(below) && float64(below) < 2.4*float64(limit) {
				below = limit
			}
		}
		early := *pl
		early.below = below
		early.out = Plan{Attempts: slices.Clone(pl.out.Attempts), Endings: map[retry.Reason]float64{}}
		early.late = map[retry.Reason]float64{}
		early.run()
		pl.out.Elapsed.refine(below, early.out.Elapsed)
	}
}

// run computes the probabilities of the plan: attempt by attempt, the distribution of its start in those runs that make
// it, of its end, and of the start of the next.
func (pl *planner) run() {
	deadline, out := pl.model.Deadline, &pl.out
	start := atomAt(0, 1)
	// With waits that depend on each other, the sum of the waits is kept apart from that of the durations.
	var c *chain
	var sums []measure
	durations := atomAt(0, 1)
	if pl.bins != nil && !pl.policy.Disabled {
		c = newChain(pl.bins, pl.limit(), chainCells)
		if !slices.Contains(pl.stopped, true) && (pl.startBy == 0 || pl.below > 0) { // and no wait has to be distinguished
			sums = pl.sums[c.limit]
		}
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
		pl.end(out.Endings, 0, done, a.Succeeds)
		going := failed.mass()
		if passed := a.Starts - a.Succeeds - going; deadline > 0 && passed > 0 {
			pl.end(pl.late, pl.ending(n, deadline, 0), atomAt(deadline, passed), passed)
		}
		pl.noteEnd(n)
		if going <= 0 || pl.below > 0 && going < unseen {
			break
		}
		if pl.policy.Disabled || n == pl.attempts {
			pl.end(out.Endings, pl.ending(n, pl.endsFirst(n), 0), failed, going)
			break
		}
		var soon func(limit time.Duration) func(ended time.Duration) float64
		if c == nil {
			lo, hi := pl.lo[n-1], pl.hi[n-1]
			start = failed.waited(lo, hi, waitCells)
			soon = func(limit time.Duration) func(time.Duration) float64 {
				return func(ended time.Duration) float64 { return evenSoon(nanos(limit, ended), lo, hi) }
			}
		} else {
			if len(pl.taken) < n {
				_, durations = pl.attempt(durations, n)
				pl.taken = append(pl.taken, durations)
			}
			durations = pl.taken[n-1]
			var waited measure
			if sums != nil {
				waited = sums[n-1]
			} else {
				c.keep = pl.startBy > 0 && (pl.below == 0 || pl.stopped[n-1])
				c.next()
				waited = c.sums()
			}
			start = waited.convolved(durations, dependCells)
			soon = func(limit time.Duration) func(time.Duration) float64 { return c.soon(limit, durations) }
		}
		pl.split(failed, &start, going, n, soon)
		pl.noteEnd(n)
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
	d, _ := pl.model.attempt(&pl.policy)
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
	if deadline := pl.model.Deadline; deadline > 0 {
		limit = min(limit, saturatingAdd(deadline, 1)) // what takes longer passes it, and is what is missing
	}
	cells := durationCells
	switch {
	case start.cells == nil:
		cells = firstCells
	case pl.bins != nil:
		cells = dependCells
	}
	ended := start.taking(d, limit, cells)
	done, failed = ended.scaled(1-f), ended.scaled(f)
	if late := pl.timeout(); late > 0 {
		failed = failed.plus(start.shifted(timeout).scaled(late), durationCells)
	}
	return done, failed
}

// split ends the runs whose failed attempt, the n-th, is not followed by another, and leaves the others in start. soon
// returns the probability of a start before limit after an attempt that ended at the given time.
func (pl *planner) split(failed measure, start *measure, going float64, n int, soon func(limit time.Duration) func(ended time.Duration) float64) {
	if limit := pl.limit(); limit < maxDuration {
		*start = start.before(limit)
	}
	if pl.startBy > 0 && pl.out.Attempts[n].Never != 0 {
		*start = measure{}
	}
	mass := start.mass()
	if pl.below > 0 {
		if mass > going { // by rounding
			*start = start.scaled(going / mass)
		}
		if pl.stopped[n-1] {
			inTime := soon(pl.startBy)
			pl.out.Elapsed.addPart(failed.weighted(func(at time.Duration) float64 { return 1 - inTime(at) }), pl.attempts)
		}
		return
	}
	ended := going - mass
	if mass > 0 && (pl.startBy == 0 || ended <= unlikely*going) {
		*start = start.scaled(going / mass)
		return
	}
	pl.stopped[n-1] = true
	inTime := soon(pl.startBy)
	stayed := failed.weighted(func(at time.Duration) float64 { return 1 - inTime(at) })
	if mass := stayed.mass(); mass > 0 {
		stayed = stayed.scaled(ended / mass)
	} else {
		stayed = failed.scaled(ended / going)
	}
	pl.out.Elapsed.addPart(stayed, pl.attempts)
	// Those that would start soonest after the limit, and those that would start latest of all.
	ends := pl.endsFirst(n)
	first := pl.out.Attempts[n].Never
	if first == 0 {
		first = pl.ending(n, ends, pl.startBy-ends)
	}
	last := pl.ending(n, ends, maxDuration)
	if first != last {
		within := failed.weighted(soon(pl.later))
		mass := min(max(within.mass()-start.mass(), 0), ended)
		pl.late[first] += mass
		ended -= mass
	}
	pl.late[last] += ended
}

// ending returns how a run ends whose attempt n failed at the given time, if the next would start a wait later.
func (pl *planner) ending(n int, at, wait time.Duration) retry.Reason {
	return pl.policy.Admit(retry.Progress{Attempt: n, Elapsed: at, Deadline: pl.model.Deadline}, wait).Reason
}

// endsFirst returns when attempt n ends in the shortest run that makes it.
func (pl *planner) endsFirst(n int) time.Duration {
	shortest, _ := pl.model.attempt(&pl.policy)
	return saturatingAdd(pl.out.Attempts[n-1].Earliest, shortest)
}

// end notes runs that ended for the given reason.
func (pl *planner) end(endings map[retry.Reason]float64, r retry.Reason, m measure, mass float64) {
	if mass <= 0 {
		return
	}
	endings[r] += mass
	pl.out.Elapsed.addPart(m, pl.attempts)
}

// noteEnd notes that runs ended after attempt n, if any did.
func (pl *planner) noteEnd(n int) {
	if pl.firstEnd == 0 && len(pl.out.Endings)+len(pl.late) > 0 {
		pl.firstEnd = n
	}
}
