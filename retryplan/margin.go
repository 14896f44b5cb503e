package retryplan

import "math"

const (
	// The time, in seconds, for which random arrivals are watched: longer than most simulations of Fleet.Scenario.
	watched = 600
	// More expected excursions of the queue to the timeout than this, while it is watched and the trigger lasts, count as
	// a storm.
	tooMany = 1
	// No more than this in the longest trigger, and no length of it tips the fleet.
	seldom = 0.05
	// More than this, and a storm is not out of the question. Measured: of 10 seeds of each fleet near its backend's limit
	// (TestFleetsNearTheLimit) none is lost whose Margin is 0.05 or more.
	tooOften = 0.005
	// Without a trigger, a share of failing attempts above this can be seen by Result.Recovered: it is a tenth of what
	// healthyShare allows to be missing. Measured: without the rule 12 more fleets disagree.
	tooLong = 0.01
	// A share of attempts above this that come too late in a calm, and the fleet is Overloaded: it is all that
	// healthyShare allows to be missing.
	tooLate = 1 - healthyShare
	// Seconds of a storm that Result.Recovered does not see: a tenth of healthyWhile.
	tooShort = 2
)

// margin returns how far the fleet is from another stability.
func (c *certifier) margin(found finding) float64 {
	load, slow := c.load(c.fleet.Rate), c.service()/c.storm.timeout
	nearest := min(1-load, 1-slow)
	switch {
	case !found.decided || found.law == lawRandomArrivals:
		return 0
	case found.stability == Overloaded:
		return min(max(load, slow)-1, 1)
	case found.law == lawNoTimeout:
		return nearest
	}
	nearest = min(nearest, distances(found, c.find))
	if found.stability == Vulnerable {
		nearest = min(nearest, c.fleet.Rate/c.fleet.Capacity*c.attempts(1)-1) // to Safe
	}
	return nearest
}

// distance returns the smallest change, as a share of the boundary, after which a fleet or chain does not fare as found.
// It looks for the boundary up to twice the rate or the trigger if the fleet survives, and down to nothing if it does not.
func distance(found finding, find func(change) finding, of func(factor float64) change) float64 {
	worse := 1.0
	if !found.stability.Survives() {
		worse = -1
	}
	same := func(factor float64) bool {
		ch := of(factor)
		ch.blur = worse
		got := find(ch)
		return got.stability.Survives() == found.stability.Survives() && !got.chance && (found.stability != Safe || got.stability == Safe)
	}
	if !same(1) {
		return 0
	}
	near, far := 1.0, max(1+worse, 1e-3)
	if same(far) {
		return 1
	}
	near, _ = bisect(near, far, 6, same)
	return math.Abs(near-1) / max(near, 1)
}

// distances returns the smaller of the distances of rate and trigger.
func distances(found finding, find func(change) finding) float64 {
	nearest := distance(found, find, func(by float64) change { return change{rate: by, trigger: 1} })
	if found.stability != Safe {
		nearest = min(nearest, distance(found, find, func(by float64) change { return change{rate: 1, trigger: by} }))
	}
	return nearest
}

// blur returns by how much a longer trigger has a queue as long as random arrivals make in one of 160 cases: 2.5 standard
// deviations, √(λ·time), of the arrivals in the trigger and in the timeout after it. Measured: with 0 all of 879 agree,
// but of fleets of another seed only 869 of 872.
func (c *certifier) blur(lasts float64) float64 {
	t, rate, grows := &c.trouble, c.fleet.Rate*c.trouble.arrive, 1.0
	if load := c.loadIn(c.fleet.Rate); !t.answers() && load > 1 {
		grows = max(1-1/load, 0.2) // of the arrivals; once attempts time out it grows faster
	}
	return 2.5 * math.Sqrt(lasts*rate+c.storm.timeout*c.fleet.Rate) / (rate * grows)
}

// excursions returns how many times random arrivals alone make attempts wait for the timeout while they are watched, or for
// the delay of hedges that would then be too much for the backend.
func (c *certifier) excursions(rate float64) float64 {
	wait := c.storm.timeout
	if c.hedgesTip(rate) {
		wait = c.warm.Seconds()
	}
	return excursions(c.load(rate), c.fleet.Capacity, wait-c.service(), watched)
}

// excursionsIn returns how many times they do in a trigger of the given length, in which the backend works slower or has
// more to do. A trigger after whose arrivals on average attempts wait for the timeout is for the fluid.
func (c *certifier) excursionsIn(rate, lasts float64) float64 {
	t := &c.trouble
	wait := c.storm.timeout - c.service()*t.service
	if t.refuses || t.work == 0 || wait <= 0 {
		return 0
	}
	return excursions(c.loadIn(rate), c.fleet.Capacity*t.work, wait, lasts)
}

// stormsIn returns how many of the excursions in a trigger become a storm that lasts beyond it: those that have the time
// to make a queue which is long for the whole capacity, too.
func (c *certifier) stormsIn(rate, lasts float64) float64 {
	t, capacity := &c.trouble, c.fleet.Capacity
	if c.loadIn(rate) >= 1 {
		return 0 // the fluid knows
	}
	grows := max(rate*t.arrive*c.storm.attempts-capacity*t.work, 1e-9*capacity)
	return c.excursionsIn(rate, lasts-c.storm.timeout*(1+capacity*(1-t.work)/grows))
}

// excursions returns how many times random arrivals, whose work is the share load of a capacity, are expected to make an
// empty queue so long in so many seconds that attempts wait for the given time. The work that is waiting is taken for
// a Brownian motion with drift −m = load − 1 and variance σ² = load/capacity, reflected at 0, which needs
// σ²/2m²·(exp(x) − 1 − x), x = θ·wait, on average (Karlin and Taylor, "A Second Course in Stochastic Processes", 1981,
// chapter 15); in a short time, and against the drift, it is there with probability exp(−z²/2) or less (Chernoff).
func excursions(load, capacity, wait, lasts float64) float64 {
	variance, drift := load/capacity, 1-load
	if lasts <= 0 || -drift*lasts >= wait {
		return 0
	}
	z := max(wait+min(drift, 0)*lasts, 0)
	soon := 2 * exp(-z*z/(2*variance*lasts))
	if drift <= 1e-6 {
		return soon
	}
	x := decay(load) * capacity * wait
	return min(lasts/(variance/(2*drift*drift)*(exp(min(x, 700))-1-x)), soon)
}

// tail returns the share of attempts that wait for the timeout without a trigger.
func (c *certifier) tail(rate float64) float64 {
	return waiting(c.load(rate), c.fleet.Capacity, c.fleet.workers(), max(c.storm.timeout-c.service(), 0))
}

// waiting returns the share of the attempts of a calm that wait for so many seconds. In the M/D/c queue it is about
// C·exp(−θt), with λ·(exp(θ/μ) − 1) = θ. C is the share that waits at all in the M/M/c queue, which is a little more than
// in that one: Erlang's formula, by the usual recursion over the workers.
func waiting(load, capacity float64, workers int, wait float64) float64 {
	if load >= 1 {
		return 1
	}
	workers = min(workers, 10_000) // more of them wait less
	lost := 1.0
	for k := range workers {
		busy := load * float64(workers) * lost
		lost = busy / (float64(k+1) + busy)
	}
	waits := lost / (1 - load*(1-lost))
	return waits * exp(-decay(load)*capacity*wait)
}

// decay returns θ/μ at a load below 1.
func decay(load float64) float64 {
	// load·(exp(x) − 1) − x is negative from 0 to the root
	root, _ := bisect(0, 700, 60, func(x float64) bool { return load*(exp(x)-1) < x })
	return max(root, 1e-15)
}

// load returns the share of the capacity that a rate takes in a calm.
func (c *certifier) load(rate float64) float64 {
	return rate * max(c.calm, 1) * (1 + c.hedged(rate)) / c.fleet.Capacity
}

// loadIn returns the share of the capacity that is left in the trigger that a rate takes there.
func (c *certifier) loadIn(rate float64) float64 {
	t, attempts := &c.trouble, max(c.calm, 1)*(1+c.hedged(rate))
	if t.fails > 0 {
		attempts = max(attempts, c.refused.attemptsAt(t.fails))
	}
	return rate * t.arrive * attempts / (c.fleet.Capacity * t.work)
}
