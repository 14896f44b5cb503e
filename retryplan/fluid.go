package retryplan

import (
	"math"
	"slices"
)

// What was measured is the agreement of TestCertificatesAgreeWithSimulations over its 1,000 random fleets: how many
// verdicts agree with the simulation, of those fleets that are judged since they are not within 5 % of a boundary. As
// things are all 835 do.
const (
	stepsPerTimeout = 200     // measured: with 50 all of 833 agree, with 20 all of 832
	fewestSteps     = 20      // steps in a timeout, if the waits are so long that stepsPerTimeout would be too many
	longestRing     = 50_000  // steps that a wait may take; bounds memory, to 30 MB
	maxFluidSteps   = 300_000 // of one computation; bounds time
	longestFailing  = 1000    // timeouts of failing that are distinguished: a queue that has not grown by then is near a boundary
	// allWork is how much all computations of a certificate may do, and oneWork each of them: in steps times the
	// attempts of a run that a step goes through. It is a second or so.
	allWork = 60_000_000
	oneWork = allWork / 5
)

// fluid computes what becomes of a fleet when its runs flow: λ·dt of them begin in every step of dt, and those that are
// in the same step fare alike. The queue is in the order of arrival, so that an attempt's fate is known when it is
// sent: the work before it, over the capacity that there will be, is its wait.
type fluid struct {
	rate, capacity float64 // a second
	service        float64 // seconds for one attempt
	fails          float64 // probability that an attempt fails that is worked on
	storm          *storm
	trouble        trouble
	purse          *purse
	stored         float64 // attempts that are paid for beside those of the storm, once some fail
	attempts       float64 // of a run while all fail and the budgets hold nothing: a storm feeds itself iff rate·attempts > capacity
	work           *int    // that is left
}

// trouble is a trigger in the terms of the fluid. It begins at second 0.
type trouble struct {
	lasts   float64 // seconds
	arrive  float64 // factor of rate
	work    float64 // factor of capacity
	service float64 // factor of service
	refuses bool    // every attempt is answered with an error at once
	fails   float64 // probability that an attempt fails that is worked on
	// job is how long slow work takes in seconds, or 0 if the trouble slows none. Work that begins in the trouble is
	// slow to its end, and the workers begin together when the queue forms, so that the trouble lasts for whole jobs.
	job float64
}

// ends returns the second from which the server works as ever.
func (t *trouble) ends() float64 {
	if t.job == 0 {
		return t.lasts
	}
	return t.job * math.Ceil(t.lasts/t.job)
}

// flow is what the fluid comes to.
type flow struct {
	recovers bool
	decided  bool    // false if the allowed number of steps did not suffice
	recovery float64 // seconds from the trouble's end until the last attempt that failed was sent
	failed   bool    // some attempt failed
}

// run computes the flow.
func (f fluid) run() flow {
	var longestWait float64
	for _, g := range f.storm.stages {
		if n := len(g.waits); n > 0 {
			longestWait = max(longestWait, g.waits[n-1].hi)
		}
	}
	timeout := f.storm.timeout
	dt := timeout / stepsPerTimeout
	if whole := timeout + longestWait; whole/dt > longestRing {
		dt = min(whole/longestRing, timeout/fewestSteps)
	}
	r := &running{fluid: f, dt: dt, stages: f.storm.stages}
	r.ring = 2 + int(math.Ceil(timeout/dt)) + int(min(math.Ceil(longestWait/dt), longestRing))
	r.slopes = make([]float64, r.ring*len(r.stages))
	r.failing = make([]float64, r.ring*len(r.stages))
	r.waits = r.onRing()
	r.levels = make([]float64, len(r.stages))
	r.successes = make([]float64, int(math.Ceil(timeout/dt))+2)
	r.whole = f.storm.feeds(math.Inf(1))
	r.forever = f.storm.feeds(f.capacity/f.rate) + 2*timeout
	if f.purse != nil {
		r.forever += 2 * f.purse.trickle
	}
	return r.through()
}

// running is a fluid on its way.
type running struct {
	fluid
	dt        float64
	stages    []stage
	ring      int
	slopes    []float64     // by step and stage: the change of the rate at which retries arrive
	levels    []float64     // by stage: that rate, in attempts a step
	waits     [][]ringPiece // by stage
	failing   []float64     // by step and stage: attempts whose client gives up or is answered with an error
	successes []float64     // by step
	queue     float64       // attempts
	forever   float64       // a storm of so many seconds without one success cannot end by itself
	whole     float64       // seconds from the first attempt of a run to its last
}

func (r *running) through() flow {
	var out flow
	now, lastFailure, lastSuccess, looked := 0.0, math.Inf(-1), 0.0, math.Inf(-1)
	often := max(r.storm.timeout, float64(r.ring)*r.dt/4) // to look ahead costs as much as the ring is long
	ends, steady := r.rate*r.attempts < r.capacity, false // no storm feeds itself; all fail and the tokens are spent
	cost, least := r.perStep(), max(*r.work-oneWork, 0)
	*r.work -= r.ring * len(r.stages) / 4 // to make and to clear all this
	for step := 0; step < maxFluidSteps && *r.work > least; step++ {
		*r.work -= cost
		now = float64(step) * r.dt
		r.shorten(now, lastSuccess)
		r.purse.at(now)
		arriving := r.arrivals(step, now)
		latency, sent := r.latency(now, arriving), false
		refused := r.trouble.refuses && now < r.trouble.lasts
		fails := r.failsAt(now + latency)
		for i, mass := range r.levels {
			after := int(latency / r.dt)
			switch {
			case mass <= 0:
			case refused:
				r.failing[step%r.ring*len(r.stages)+i] += mass
			case latency <= r.stages[i].timeout:
				r.failing[(step+after)%r.ring*len(r.stages)+i] += mass * fails
				r.successes[(step+after)%len(r.successes)] += mass * (1 - fails)
				sent = sent || fails < 1
			default:
				paid := min(r.stored, mass)
				r.stored -= paid
				arriving += paid
				out.failed = true
				lastFailure = now
				r.failing[(step+max(int(r.stages[i].timeout/r.dt), 1))%r.ring*len(r.stages)+i] += mass
			}
		}
		if sent {
			lastSuccess = now
		}
		r.giveUp(step)
		at := step % len(r.successes)
		r.purse.deposit(r.successes[at])
		r.successes[at] = 0
		if refused {
			arriving = 0
		}
		r.queue = max(r.queue+arriving-float64(r.capacityAt(now)*r.dt), 0)

		if now < r.trouble.ends() {
			continue
		}
		if now-lastFailure >= r.storm.timeout && now-looked > often {
			looked = now
			if r.calmAhead(step) {
				out.recovers, out.decided = true, true
				break
			}
		}
		if now-max(lastSuccess, r.trouble.ends()) > r.forever {
			out.decided = true
			if !ends {
				return out
			}
			if steady = r.steady(now - lastSuccess); steady {
				break
			}
		}
	}
	left := max(r.trouble.lasts-now, 0)
	if left == 0 && now-lastFailure >= r.storm.timeout { // nothing fails now, and perhaps nothing will
		out.recovers = true
		if out.failed {
			out.recovery = max(lastFailure+r.dt-r.trouble.lasts, 0)
		}
		return out
	}
	// All fail, and the rest follows by law: the queue drains in a straight line once the tokens are spent.
	queue := r.queue + r.growth()*left
	out.recovers = ends || queue < r.storm.timeout*r.capacity
	if ends {
		if r.purse != nil && !steady {
			queue += r.purse.stored()
		}
		wait := max(queue/r.capacity+r.service-r.storm.timeout, 0)
		out.recovery = now + left - r.trouble.lasts + wait*r.capacity/(r.capacity-r.rate*r.attempts)
	}
	return out
}

func (r *running) perStep() int {
	each := len(r.stages) + 2
	for _, pieces := range r.waits {
		each += len(pieces) / 4
	}
	return each
}

// shorten takes the part of a long trouble out in which nothing happens but that the queue grows.
func (r *running) shorten(now, lastSuccess float64) {
	excess := r.trouble.lasts - now - 2*r.storm.timeout
	if excess < 10*r.storm.timeout || r.trouble.refuses || r.trouble.fails > 0 || !r.steady(now-lastSuccess) {
		return
	}
	r.queue += r.growth() * excess
	r.trouble.lasts -= excess
}

// growth returns by how many attempts a second the queue grows while all fail in the trouble.
func (r *running) growth() float64 {
	return max(float64(r.rate*r.trouble.arrive*r.attempts)-float64(r.capacity*r.trouble.work), 0)
}

// arrivals returns how many attempts arrive in a step.
func (r *running) arrivals(step int, now float64) float64 {
	factor := 1.0
	if now < r.trouble.lasts {
		factor = r.trouble.arrive
	}
	r.levels[0] = r.rate * r.dt * factor
	all := r.levels[0]
	at := step % r.ring * len(r.stages)
	for i := 1; i < len(r.levels); i++ {
		r.levels[i] += r.slopes[at+i]
		r.slopes[at+i] = 0
		if r.levels[i] < 1e-12*r.levels[0] { // what rounding has left
			r.levels[i] = 0
		}
		all += r.levels[i]
	}
	return all
}

// latency returns how long an attempt that is sent now takes until it has been worked on, in seconds.
func (r *running) latency(now, arriving float64) float64 {
	work := r.queue + arriving/2
	left := r.trouble.ends() - now
	if left <= 0 {
		return work/r.capacity + r.service
	}
	slow := r.capacity * r.trouble.work
	if slow > 0 && work <= left*slow {
		wait, service := work/slow, r.service
		if now+wait < r.trouble.lasts {
			service *= r.trouble.service
		}
		return wait + service
	}
	return left + max(work-float64(left*slow), 0)/r.capacity + r.service
}

func (r *running) capacityAt(now float64) float64 {
	if now < r.trouble.ends() {
		return r.capacity * r.trouble.work
	}
	return r.capacity
}

// failsAt returns the probability that an attempt fails whose work ends at the given time.
func (r *running) failsAt(end float64) float64 {
	if end < r.trouble.lasts {
		return max(r.fails, r.trouble.fails)
	}
	return r.fails
}

// giveUp lets the clients whose timeout is over, or who are answered with an error, ask for a retry.
func (r *running) giveUp(step int) {
	at := step % r.ring * len(r.stages)
	wanted := 0.0
	for i := range r.stages {
		wanted += r.failing[at+i] * r.stages[i].goes
	}
	if wanted == 0 {
		for i := range r.stages {
			r.failing[at+i] = 0
		}
		return
	}
	share := r.purse.withdraw(wanted) / wanted
	for i, g := range r.stages {
		mass := r.failing[at+i] * g.goes * share
		r.failing[at+i] = 0
		if mass == 0 {
			continue
		}
		to := min(i+1, len(r.stages)-1)
		for _, w := range r.waits[i] {
			from, until := at+w.from, at+w.until
			if from >= len(r.slopes) {
				from -= len(r.slopes)
			}
			if until >= len(r.slopes) {
				until -= len(r.slopes)
			}
			slope := mass * w.slope
			r.slopes[from+to] += slope
			r.slopes[until+to] -= slope
		}
	}
}

// ringPiece is a piece of a wait as the ring has it: places from now on, and what a mass of 1 makes retries rise by
// there.
type ringPiece struct {
	from, until int
	slope       float64
}

// onRing returns the waits after each stage. What is beyond the ring is taken for its end.
func (r *running) onRing() [][]ringPiece {
	all := make([][]ringPiece, len(r.stages))
	for i, g := range r.stages {
		for _, w := range g.waits {
			from, until := min(w.lo/r.dt, float64(r.ring-3)), min(w.hi/r.dt, float64(r.ring-2))
			p := ringPiece{from: 1 + int(from), until: 1 + int(until)}
			p.until = max(p.until, p.from+1)
			p.slope = w.share / float64(p.until-p.from)
			p.from, p.until = p.from*len(r.stages), p.until*len(r.stages)
			if last := len(all[i]) - 1; last >= 0 && all[i][last].from == p.from && all[i][last].until == p.until {
				all[i][last].slope += p.slope
				continue
			}
			all[i] = append(all[i], p)
		}
	}
	return all
}

// calmAhead reports whether none of the retries to come will fail: nothing does until they make a queue that is too
// long, and what rounding has left of a stage is none. (A deadline may leave a late attempt less time than the backend
// takes, and the storm would never be over.)
func (r *running) calmAhead(step int) bool {
	queue, levels := r.queue, slices.Clone(r.levels)
	for ahead := 1; ahead < r.ring; ahead++ {
		at, coming := (step+ahead)%r.ring*len(r.stages), 0.0
		for i := range levels {
			levels[i] += r.slopes[at+i]
			coming += levels[i]
		}
		queue = max(queue+coming-float64(r.capacity*r.dt), 0)
		latency := (queue+coming)/r.capacity + r.service
		for i, level := range levels {
			if level > 1e-12*levels[0] && latency > r.stages[i].timeout {
				return false
			}
		}
	}
	return true
}

// steady reports whether all attempts have failed for so long that their number no longer changes, and the budgets hold
// nothing but what Trickle grants.
func (r *running) steady(failing float64) bool {
	b := r.purse
	if b == nil {
		return failing > r.whole
	}
	if b.trickle > 0 {
		return failing > r.whole+3*b.trickle && b.stored() <= 1.001*b.clients
	}
	retries := 0.0
	for _, level := range r.levels[1:] {
		retries += level
	}
	return failing > 2*r.storm.timeout && retries < 1e-3*r.levels[0] && b.stored() < 1e-3*b.clients
}
