package retryplan

import "math"

const (
	stepsPerTimeout = 200
	fewestSteps     = 20      // steps in a timeout, where the waits are so long that stepsPerTimeout would be too many
	longestRing     = 50_000  // steps that a wait may take
	maxFluidSteps   = 300_000 // of one computation
)

// fluid computes what becomes of a fleet when its runs flow: λ·dt of them begin in every step of dt, and those that are
// in the same step fare alike. The queue is in the order of arrival, so that an attempt's fate is known when it is sent: the
// work before it, over the capacity that there will be, is its wait.
type fluid struct {
	rate, capacity float64 // a second
	service        float64 // seconds for one attempt
	storm          *storm
	trouble        trouble
	purse          *purse
	gust           gust
	attempts       float64 // of a run while all fail and the budgets hold nothing: a storm feeds itself iff rate·attempts > capacity
}

// trouble is a trigger in the terms of the fluid. It begins at second 0.
type trouble struct {
	lasts   float64 // seconds
	arrive  float64 // factor of rate
	work    float64 // factor of capacity
	service float64 // factor of service
	// job is how long slow work takes in seconds, 0 where the trouble slows none. What begins in the trouble is slow to its
	// end, and the workers begin together when the queue forms, so that the trouble is felt for whole jobs.
	job float64
}

// ends returns the second from which the server works as ever.
func (t *trouble) ends() float64 {
	if t.job == 0 {
		return t.lasts
	}
	return t.job * math.Ceil(t.lasts/t.job)
}

// gust is a chance excess of arrivals: rate is multiplied by 1+size for some seconds.
type gust struct{ size, lasts float64 }

// flow is what the fluid comes to.
type flow struct {
	recovers bool
	decided  bool    // false where the steps did not suffice
	recovery float64 // seconds from the trouble's end until the last attempt that failed was sent
	longest  float64 // the longest time, in seconds, from the sending of an attempt to its end at the server
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
	r.slopes = make([][]float64, len(r.stages))
	r.failing = make([][]float64, len(r.stages))
	for i := range r.stages {
		r.slopes[i] = make([]float64, r.ring)
		r.failing[i] = make([]float64, r.ring)
	}
	r.levels = make([]float64, len(r.stages))
	r.successes = make([]float64, int(math.Ceil(timeout/dt))+2)
	r.whole = f.storm.feeds(math.Inf(1))
	r.forever = f.storm.feeds(f.capacity/f.rate) + 2*timeout
	if f.purse != nil {
		r.forever += 2 * f.purse.trickle
	}
	r.ends = f.rate*f.attempts < f.capacity
	return r.through()
}

// running is a fluid on its way.
type running struct {
	fluid
	dt        float64
	stages    []stage
	ring      int
	slopes    [][]float64 // by stage and step: the change of the rate at which retries arrive
	levels    []float64   // by stage: that rate, in attempts a step
	failing   [][]float64 // by stage and step: attempts whose client gives up
	successes []float64   // by step
	queue     float64     // attempts
	doomed    float64     // attempts that will be given up
	forever   float64     // a storm of so many seconds without one success cannot end by itself
	whole     float64     // seconds from the first attempt of a run to its last
	ends      bool        // no storm feeds itself
}

func (r *running) through() flow {
	var out flow
	lastFailure, lastSuccess, looked := math.Inf(-1), 0.0, math.Inf(-1)
	for step := 0; step < maxFluidSteps; step++ {
		now := float64(step) * r.dt
		r.shorten(now, lastSuccess)
		r.purse.at(now)
		arriving := r.arrivals(step, now)
		latency, sent := r.latency(now, arriving), false
		for i, mass := range r.levels {
			if mass <= 0 {
				continue
			}
			out.longest = max(out.longest, latency)
			if latency <= r.stages[i].timeout {
				r.successes[(step+int(latency/r.dt))%len(r.successes)] += mass
				sent = true
				continue
			}
			out.failed = true
			lastFailure = now
			r.failing[i][(step+max(int(r.stages[i].timeout/r.dt), 1))%r.ring] += mass
			r.doomed += mass
		}
		if sent {
			lastSuccess = now
		}
		r.giveUp(step)
		at := step % len(r.successes)
		r.purse.deposit(r.successes[at])
		r.successes[at] = 0
		r.queue = max(r.queue+arriving-float64(r.capacityAt(now)*r.dt), 0)

		calm := now >= r.trouble.ends() && now >= r.gust.lasts
		if calm && r.doomed < 1e-6*r.rate*r.dt && (looked < lastFailure || now-looked > r.storm.timeout) {
			looked = now
			if r.settled(step) {
				out.recovers, out.decided = true, true
				if out.failed {
					out.recovery = max(lastFailure+r.dt-r.trouble.lasts, 0)
				}
				return out
			}
		}
		if calm && now-max(lastSuccess, r.trouble.ends()) > r.forever {
			out.decided = true
			if !r.ends {
				return out
			}
			if load := r.rate * r.attempts; r.steady(now - lastSuccess) {
				// All fail at a steady rate: the rest of the queue drains in a straight line.
				out.recovers = true
				out.recovery = now - r.trouble.lasts + max(latency-r.storm.timeout, 0)*r.capacity/(r.capacity-load)
				return out
			}
		}
	}
	// The steps did not suffice. What is left is told by law: the queue drains in a straight line once the tokens are spent.
	now := float64(maxFluidSteps) * r.dt
	out.recovers = r.ends || r.queue < r.storm.timeout*r.capacity
	if load := r.rate * r.attempts; r.ends {
		if r.purse != nil {
			r.queue += r.purse.stored()
		}
		left := max(r.trouble.lasts-now, 0)
		growth := float64(r.rate*r.trouble.arrive*r.attempts) - float64(r.capacity*r.trouble.work)
		r.queue += max(growth, 0) * left
		out.recovery = max(now+left-r.trouble.lasts, 0) + max(r.queue-r.storm.timeout*r.capacity, 0)/(r.capacity-load)
	}
	return out
}

// shorten takes the part of a long trouble out in which nothing happens but that the queue grows.
func (r *running) shorten(now, lastSuccess float64) {
	excess := r.trouble.lasts - now - 2*r.storm.timeout
	if excess < 10*r.storm.timeout || now < r.gust.lasts || !r.steady(now-lastSuccess) {
		return
	}
	growth := float64(r.rate*r.trouble.arrive*r.attempts) - float64(r.capacity*r.trouble.work)
	r.queue += max(growth, 0) * excess
	r.trouble.lasts -= excess
}

// arrivals returns how many attempts arrive in a step.
func (r *running) arrivals(step int, now float64) float64 {
	factor := 1.0
	if now < r.trouble.lasts {
		factor = r.trouble.arrive
	}
	if now < r.gust.lasts {
		factor *= 1 + r.gust.size
	}
	r.levels[0] = r.rate * r.dt * factor
	all := r.levels[0]
	at := step % r.ring
	for i := 1; i < len(r.levels); i++ {
		r.levels[i] += r.slopes[i][at]
		r.slopes[i][at] = 0
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

// giveUp lets the clients whose timeout is over ask for a retry.
func (r *running) giveUp(step int) {
	at := step % r.ring
	wanted := 0.0
	for i := range r.stages {
		if mass := r.failing[i][at]; mass > 0 {
			r.doomed -= mass
			wanted += mass * r.stages[i].goes
		}
	}
	if wanted == 0 {
		for i := range r.stages {
			r.failing[i][at] = 0
		}
		return
	}
	share := r.purse.withdraw(wanted) / wanted
	for i, g := range r.stages {
		mass := r.failing[i][at] * g.goes * share
		r.failing[i][at] = 0
		if mass == 0 {
			continue
		}
		to := min(i+1, len(r.stages)-1)
		for _, w := range g.waits {
			from := 1 + int(w.lo/r.dt)
			until := max(1+int(w.hi/r.dt), from+1)
			from, until = min(from, r.ring-2), min(until, r.ring-1)
			slope := mass * w.share / float64(until-from)
			r.slopes[to][(step+from)%r.ring] += slope
			r.slopes[to][(step+until)%r.ring] -= slope
		}
	}
}

// settled reports whether none of the retries to come will fail: nothing does until they make a queue that is too long.
func (r *running) settled(step int) bool {
	shortest := math.Inf(1)
	for _, g := range r.stages {
		shortest = min(shortest, g.timeout)
	}
	queue, coming := r.queue, 0.0
	for _, level := range r.levels {
		coming += level
	}
	for ahead := 1; ahead < r.ring; ahead++ {
		at := (step + ahead) % r.ring
		for i := 1; i < len(r.slopes); i++ {
			coming += r.slopes[i][at]
		}
		queue = max(queue+coming-float64(r.capacity*r.dt), 0)
		if (queue+coming)/r.capacity+r.service > shortest {
			return false
		}
	}
	return true
}

// steady reports whether all attempts have failed for so long that their number no longer changes, and the budgets hold nothing
// but what Trickle grants.
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
