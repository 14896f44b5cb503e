package retryplan

import "math"

const (
	// The time, in seconds, for which random arrivals are watched: longer than most simulations of Fleet.Scenario.
	watched = 600
	// More excursions of the queue to the timeout than this, while it is watched, count as a storm.
	tooMany = 1
	// Without a trigger, a share of failing attempts above this can be seen by Result.Recovered: it is a tenth of what
	// healthyShare allows to be missing. Measured: without the rule 12 more fleets disagree.
	tooLong = 0.01
)

// margin returns how far the fleet is from another stability.
func (c *certifier) margin(found finding) float64 {
	load, slow := c.load(c.fleet.Rate), c.service()/c.storm.timeout
	nearest := min(1-load, 1-slow)
	switch {
	case !found.decided || found.law == RandomArrivals:
		return 0
	case found.stability == Overloaded:
		return min(max(load, slow)-1, 1)
	case found.law == NoTimeout:
		return nearest
	}
	nearest = min(nearest, c.distance(found, func(by float64) change { return change{by, 1} }))
	if found.stability != Safe {
		nearest = min(nearest, c.distance(found, func(by float64) change { return change{1, by} }))
	}
	if found.stability == Vulnerable {
		nearest = min(nearest, c.fleet.Rate/c.fleet.Capacity*c.attempts(1)-1) // to Safe
	}
	return nearest
}

// distance returns the smallest change, as a share of the boundary, after which the fleet does not fare as found. It
// looks for the boundary up to twice the rate or the trigger if the fleet survives, and down to nothing if it does not.
func (c *certifier) distance(found finding, of func(factor float64) change) float64 {
	worse := 1.0
	if !found.stability.Survives() {
		worse = -1
	}
	same := func(factor float64) bool {
		ch := of(factor)
		if lasts := c.trouble.lasts * ch.trigger; lasts > 0 {
			ch.trigger *= max(1+worse*c.blur(lasts)/lasts, 0)
		}
		if found.stability == Safe && c.tail(c.fleet.Rate*ch.rate) > tooLong {
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
	return math.Abs(near-1) / max(near, 1)
}

// blur returns by how much a longer trigger has as many arrivals as random ones have in one of 160 cases: 2.5 standard
// deviations, √(λ·time), of the arrivals in the trigger and in the timeout after it. Measured: with 0 all of 879 agree,
// but of fleets of another seed only 869 of 872.
func (c *certifier) blur(lasts float64) float64 {
	return 2.5 * math.Sqrt((lasts+c.storm.timeout)/c.fleet.Rate)
}

// excursions returns how many times random arrivals alone make attempts wait for the timeout while they are watched. The
// states of a queue are independent after 1/(μ·(1−ρ)²), ρ = λ/μ.
func (c *certifier) excursions(rate float64) float64 {
	idle := 1 - c.load(rate)
	if idle <= 0 {
		return math.Inf(1)
	}
	return watched * c.fleet.Capacity * idle * idle * c.tail(rate)
}

// tail returns the share of attempts that wait for the timeout without a trigger. In the M/D/c queue it is about
// exp(−θt), with λ·(exp(θ/μ) − 1) = θ.
func (c *certifier) tail(rate float64) float64 {
	if c.load(rate) >= 1 {
		return 1
	}
	wait := max(c.storm.timeout-c.service(), 0)
	return exp(-c.decay(rate) * wait)
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
