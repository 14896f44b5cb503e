package retryplan

import "math"

const (
	// Random arrivals are watched for so long, in seconds: longer than the simulations of Fleet.Scenario mostly are.
	watched = 600
	// More excursions of the queue to the timeout than this while it is watched are taken for a storm, and fewer than
	// tooFew for none. Chance decides from tooFew on. Measured as stepsPerTimeout: with a tooFew of 1 all of 836 agree.
	tooMany, tooFew = 1, 1e-3
	// A share of attempts above this that fail without a trigger is one that Result.Recovered can see: a tenth of what
	// healthyShare lets be missing.
	tooLong = 0.01
)

// margin returns how far the fleet is from another stability.
func (c *certifier) margin(found finding) float64 {
	f := &c.fleet
	load := f.Rate * c.calm / f.Capacity
	switch {
	case !found.decided || found.law == RandomArrivals:
		return 0
	case found.law == Overload:
		return min(load-1, 1)
	case found.law == SlowService:
		return min(c.service()/c.storm.timeout-1, 1)
	case found.law == NoTimeout:
		return 1 - load
	}
	nearest := min(1-load, max(1-c.service()/c.storm.timeout, 0), c.distance(found, func(by float64) change { return change{by, 1} }))
	if found.stability != Safe {
		nearest = min(nearest, c.distance(found, func(by float64) change { return change{1, by} }))
	}
	if found.stability == Vulnerable {
		nearest = min(nearest, f.Rate/f.Capacity*c.attempts(1)-1) // to Safe
	}
	return nearest
}

// distance returns the smallest change, as a share of the boundary, that gives a fleet which does not fare as found: up
// to twice as much of something if it survives, otherwise down to nothing.
func (c *certifier) distance(found finding, of func(factor float64) change) float64 {
	worse := 1.0
	if !found.stability.Survives() {
		worse = -1
	}
	same := func(factor float64) bool {
		ch := of(factor)
		if lasts := c.fleet.trouble().lasts * ch.trigger; lasts > 0 {
			ch.trigger *= max(1+worse*c.blur(lasts)/lasts, 0)
		}
		if c.work <= 0 || c.chancy(found, ch.rate) {
			return false
		}
		got := c.find(ch)
		return got.stability.Survives() == found.stability.Survives() && (found.stability != Safe || got.stability == Safe)
	}
	if !same(1) {
		return 0
	}
	near, far := 1.0, max(1+worse, 1e-3)
	if same(far) {
		return 1
	}
	near, _ = bisect(near, far, 6, same)
	if c.work <= 0 {
		return 0
	}
	return math.Abs(near-1) / max(near, 1)
}

// blur returns how much longer a trigger would have to be to have as many arrivals as random ones have once in 160 cases:
// 2.5 standard deviations, which are √(λ·time), of those in the trigger and the timeout after it. Measured as
// stepsPerTimeout: with 0 all of 879 agree, but of fleets of another seed only 869 of 872.
func (c *certifier) blur(lasts float64) float64 {
	return 2.5 * math.Sqrt((lasts+c.storm.timeout)/c.fleet.Rate)
}

// chancy reports whether chance decides how a fleet that survives its trigger fares with the rate multiplied by a
// factor: by tipping it without a trigger or, if nothing can, by failing attempts all the time.
func (c *certifier) chancy(found finding, factor float64) bool {
	rate := c.fleet.Rate * factor
	switch found.stability {
	case Vulnerable:
		return c.excursions(rate) > tooFew
	case Safe:
		return c.tail(rate) > tooLong
	default:
		return false
	}
}

// excursions returns how many times random arrivals alone make attempts wait for the timeout while they are watched. A
// queue forgets within 1/(μ·(1−ρ)²), ρ = λ/μ.
func (c *certifier) excursions(rate float64) float64 {
	idle := 1 - c.load(rate)
	if idle <= 0 {
		return math.Inf(1)
	}
	return watched * c.fleet.Capacity * idle * idle * c.tail(rate)
}

// tail returns the share of attempts that wait for the timeout though there is no trigger. It is about exp(−θt) in the
// M/D/c queue, with λ·(exp(θ/μ) − 1) = θ.
func (c *certifier) tail(rate float64) float64 {
	if c.load(rate) >= 1 {
		return 1
	}
	wait := max(c.storm.timeout-c.service(), 0)
	return exp(-c.decay(rate) * wait)
}

// quiet returns how many seconds attempts may wait, at a rate below Capacity, without random arrivals alone making them
// wait for longer more often than tooFew times while they are watched.
func (c *certifier) quiet(rate float64) float64 {
	idle := 1 - c.load(rate)
	return max(math.Log(watched*c.fleet.Capacity*idle*idle/tooFew), 0) / c.decay(rate)
}

// decay returns θ at a rate below Capacity.
func (c *certifier) decay(rate float64) float64 {
	load := c.load(rate)
	// load·(exp(x) − 1) − x is negative from 0 to the root
	root, _ := bisect(0, 700, 60, func(x float64) bool { return load*(exp(x)-1) < x })
	return max(root, 1e-15) * c.fleet.Capacity
}

// load returns the share of the capacity that a rate takes in a calm.
func (c *certifier) load(rate float64) float64 { return rate * max(c.calm, 1) / c.fleet.Capacity }
