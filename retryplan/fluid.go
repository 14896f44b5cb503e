package retryplan

import (
	"math"
	"time"
)

// The measurements are results of TestCertificatesAgreeWithSimulations with its 1,000 random fleets: how many verdicts
// agree with the simulation, of the fleets that are not within 5 % of a boundary. With the values below all of 795 do.
const (
	stepsPerTimeout = 200     // measured: with 50 all of 833 agree, with 20 all of 832
	fewestSteps     = 20      // steps in a timeout, if the waits are so long that stepsPerTimeout would be too many
	longestRing     = 50_000  // steps that a wait may take; bounds memory, to 30 MB
	maxFluidSteps   = 300_000 // of one computation; bounds time
	longestTrigger  = 5000    // timeouts of a trigger among which Certificate.Tipping is looked for
	longestFailing  = 1000    // timeouts of failing that are distinguished: a queue that has not grown by then is near a boundary
)

// fluid computes the fate of a fleet whose runs flow: λ·dt of them begin in every step of dt, and all in one step fare
// alike. The queue is in the order of arrival, so that the fate of an attempt is known when it is sent: it waits for the
// work before it, over the capacity that there will be.
type fluid struct {
	rate, capacity float64 // a second
	service        float64 // seconds for one attempt
	fails          float64 // probability that an attempt fails that is worked on
	storm          *storm
	trouble        trouble
	purse          *purse
	stored         float64 // attempts that stored tokens pay for beside those of the storm, once some fail
	hedge          Hedge
	warm           time.Duration // the delay of hedges in the calm
	follows        float64       // attempts until trackers follow
	attempts       float64       // of a run while all fail and the budgets hold nothing: a storm feeds itself iff rate·attempts > capacity
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
	// Measured: without it 1 of 837 disagrees.
	job float64
}

// answers reports whether attempts are answered with an error.
func (t *trouble) answers() bool { return t.refuses || t.fails > 0 }

// ends returns the second from which the server works as usual.
func (t *trouble) ends() float64 {
	if t.job == 0 {
		return t.lasts
	}
	return t.job * math.Ceil(t.lasts/t.job)
}

// flow is the result of a fluid.
type flow struct {
	recovers bool
	decided  bool    // false if maxFluidSteps did not suffice
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
	r.echo = float64(r.ring) * dt
	r.whole = f.storm.feeds(math.Inf(1))
	r.forever = f.storm.feeds(f.capacity/f.rate) + 2*timeout
	if f.purse != nil {
		r.forever += 2 * f.purse.trickle
	}
	return r.through()
}

// running is the state of a fluid.
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
	echo      float64       // seconds from an attempt to the retry that follows it, at most
	forever   float64       // seconds without a success after which a storm cannot end by itself
	whole     float64       // seconds from the first attempt of a run to its last
}

func (r *running) through() flow {
	var out flow
	now, lastFailure, lastSuccess := 0.0, math.Inf(-1), 0.0
	ends, steady := r.rate*r.attempts < r.capacity, false // no storm feeds itself; all fail and no tokens are left
	for step := range maxFluidSteps {
		now = float64(step) * r.dt
		r.purse.at(now)
		arriving := r.arrivals(step, now)
		latency, sent := r.latency(now, arriving), false
		arriving += r.hedges(arriving, latency)
		refused := r.trouble.refuses && now < r.trouble.lasts
		fails := r.fails
		if now+latency < r.trouble.lasts {
			fails = max(fails, r.trouble.fails)
		}
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
		capacity := r.capacity
		if now < r.trouble.ends() {
			capacity *= r.trouble.work
		}
		r.queue = max(r.queue+arriving-float64(capacity*r.dt), 0)
		if now < r.trouble.ends() {
			if !r.trouble.answers() && now+10*r.storm.timeout < r.trouble.lasts && r.steady(now-lastSuccess) {
				out.decided, steady = true, true
				break // until its end the queue only grows
			}
			continue
		}
		if now-max(lastFailure, r.trouble.ends()) > r.echo {
			out.recovers, out.decided = true, true
			break
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
	left := max(r.trouble.ends()-now, 0)
	if left == 0 && now-lastFailure >= r.storm.timeout { // nothing fails now
		out.recovers = true
		if out.failed {
			out.recovery = max(lastFailure+r.dt-r.trouble.lasts, 0)
		}
		return out
	}
	// All attempts fail, and the rest follows by law: once the tokens are spent, the queue drains in a straight line.
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

// growth returns the growth of the queue, in attempts a second, while all attempts fail in the trouble.
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
		if r.levels[i] < 1e-12*r.levels[0] { // a rounding error
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

// giveUp makes the clients whose attempts time out, or are answered with an error, ask for a retry.
func (r *running) giveUp(step int) {
	at := step % r.ring * len(r.stages)
	wanted := 0.0
	for i := range r.stages {
		wanted += r.failing[at+i] * r.stages[i].goes
	}
	share := 1.0
	if wanted > 0 {
		share = r.purse.withdraw(wanted) / wanted
	}
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

// ringPiece is a piece of a wait on the ring: places counted from now, between which a mass of 1 makes the arrivals of
// retries rise by slope.
type ringPiece struct {
	from, until int
	slope       float64
}

// onRing returns the waits after each stage. A wait beyond the ring counts as one to its end.
func (r *running) onRing() [][]ringPiece {
	all := make([][]ringPiece, len(r.stages))
	for i, g := range r.stages {
		for _, w := range g.waits {
			from, until := min(w.lo/r.dt, float64(r.ring-3)), min(w.hi/r.dt, float64(r.ring-2))
			p := ringPiece{from: 1 + int(from), until: 1 + int(until)}
			p.until = max(p.until, p.from+1)
			p.slope = w.share / float64(p.until-p.from)
			p.from, p.until = p.from*len(r.stages), p.until*len(r.stages)
			all[i] = append(all[i], p)
		}
	}
	return all
}

// steady reports whether all attempts have failed for so long that their number no longer changes, and the budgets hold
// nothing but what Trickle grants.
func (r *running) steady(failing float64) bool {
	b := r.purse
	if b == nil {
		return failing > r.whole
	}
	left := 1e-3 * b.clients
	if b.trickle > 0 {
		left += b.clients
	}
	return failing > r.whole+3*b.trickle && b.stored() <= left
}
