package retryplan

import (
	"math"
	"math/rand/v2"
)

// conditions are the state of a server for a while, as a trigger changes it.
type conditions struct {
	until   int64 // exclusive
	stalled bool
	outage  bool
	slow    float64 // how many times as long work takes
	share   float64 // of the workers that is there
	failing float64 // the probability that work fails, beside the server's own
	surge   float64 // how many times as often runs begin
}

// conditionsOver returns the conditions before, during and after a trigger. The last ones have no end.
func conditionsOver(t Trigger) (list []conditions) {
	usual := conditions{until: never, slow: 1, share: 1, surge: 1}
	if t.Kind == 0 || t.For == 0 {
		return []conditions{usual}
	}
	if t.From > 0 {
		before := usual
		before.until = int64(t.From)
		list = append(list, before)
	}
	during := usual
	during.until = t.end()
	switch t.Kind {
	case Stall:
		during.stalled = true
	case Outage:
		during.outage = true
	case Slowdown:
		during.slow = t.Factor
	case CapacityCut:
		during.share = t.Factor
	case Surge:
		during.surge = t.Factor
	case Failing:
		during.failing = t.Factor
	}
	return append(list, during, usual)
}

// part returns the part of n that is there, rounded up. A product of floats that is above a whole
// number by rounding alone counts as that number.
func (c *conditions) part(n int) int {
	if c.share == 1 {
		return n
	}
	return int(math.Ceil(float64(c.share*float64(n)) * (1 - 1e-12)))
}

// openLoop gives the times at which an open loop begins runs, a Poisson process whose rate a surge changes.
type openLoop struct {
	rng   *rand.Rand
	at    float64 // of the last one, in ns; float64 so that no part of a nanosecond is lost
	rate  float64 // per ns, without a surge
	parts []conditions
}

// next returns the time of the next run, at which the integral of the rate has grown by an exponential number of
// mean 1 (Çinlar, "Introduction to Stochastic Processes", 1975, chapter 4, inversion of the cumulative rate).
func (o *openLoop) next() int64 {
	need := unitExponential(o.rng)
	for len(o.parts) > 1 {
		until := float64(o.parts[0].until)
		here := float64(o.rate * o.parts[0].surge * (until - o.at))
		if need < here {
			break
		}
		need -= here
		o.at = until
		o.parts = o.parts[1:]
	}
	o.at += need / float64(o.rate*o.parts[0].surge)
	return nanoseconds(o.at)
}
