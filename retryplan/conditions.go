package retryplan

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// conditions are what triggers make of a server for a while.
type conditions struct {
	until   int64 // exclusive
	stalled bool
	outage  bool
	slow    float64 // how many times as long work takes
	share   float64 // of the workers that is there
	failing float64 // the probability that work fails, beside the server's own
	surge   float64 // how many times as often runs begin
}

// conditionsOver returns the conditions from time 0 on, in order. The last ones have no end. Of triggers that overlap
// slowdowns and surges multiply, and of cuts and failures the worst counts.
func conditionsOver(triggers []Trigger) []conditions {
	edges := []int64{0, never}
	for _, t := range triggers {
		edges = append(edges, int64(t.From), t.end())
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	var list []conditions
	for i, until := range edges[1:] {
		c := conditions{until: until, slow: 1, share: 1, surge: 1}
		for _, t := range triggers {
			if from := edges[i]; from < int64(t.From) || from >= t.end() {
				continue
			}
			switch t.Kind {
			case Stall:
				c.stalled = true
			case Outage:
				c.outage = true
			case Slowdown:
				c.slow = float64(c.slow * t.Factor)
			case CapacityCut:
				c.share = min(c.share, t.Factor)
			case Surge:
				c.surge = float64(c.surge * t.Factor)
			case Failing:
				c.failing = max(c.failing, t.Factor)
			}
		}
		list = append(list, c)
	}
	return list
}

// part returns the part of n that is there, rounded up. What a product of floats is above a whole number by rounding
// does not count.
func (c *conditions) part(n int) int {
	if c.share == 1 {
		return n
	}
	return int(math.Ceil(float64(c.share*float64(n)) * (1 - 1e-12)))
}

// openLoop gives the times at which an open loop begins runs: a Poisson process whose rate changes with the surges.
type openLoop struct {
	rng   *rand.Rand
	at    float64 // of the last one, in ns; float64 so that no part of a nanosecond is lost
	rate  float64 // per ns, without surges
	parts []conditions
}

// next returns the time of the next run: that at which the integral of the rate has grown by an exponential number of
// mean 1 (Çinlar, "Introduction to Stochastic Processes", 1975, chapter 4: inversion of the cumulative rate).
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

// expectedRuns returns the average number of runs that an open loop begins in d.
func expectedRuns(rate float64, triggers []Trigger, d time.Duration) float64 {
	sum, from := 0.0, 0.0
	for _, c := range conditionsOver(triggers) {
		to := min(float64(c.until), float64(d))
		if to <= from {
			break
		}
		sum += float64(rate / 1e9 * c.surge * (to - from))
		from = to
	}
	return sum
}

// lastEnd returns the time at which the last trigger ends, and false if there is none.
func lastEnd(triggers []Trigger) (last int64, ok bool) {
	for _, t := range triggers {
		last = max(last, t.end())
	}
	return last, len(triggers) > 0
}
