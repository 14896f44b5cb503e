package retryplan

import (
	"cmp"
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
	share   float64 // of workers and rate limit that is there
	failing float64 // the probability that work fails, beside the server's own
}

// conditionsOver returns the conditions from time 0 on, in order. The last ones have no end. Of triggers that overlap
// slowdowns multiply, and of cuts and failures the worst counts.
func conditionsOver(triggers []Trigger) []conditions {
	var list []conditions
	edges := edgesOf(triggers)
	for i, from := range edges {
		c := conditions{until: never, slow: 1, share: 1}
		if i+1 < len(edges) {
			c.until = edges[i+1]
		}
		for _, t := range triggers {
			if !t.during(from) {
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
			case Failing:
				c.failing = max(c.failing, t.Factor)
			}
		}
		list = append(list, c)
	}
	return list
}

// edgesOf returns time 0 and the times at which a trigger begins or ends, in order.
func edgesOf(triggers []Trigger) []int64 {
	edges := []int64{0}
	for _, t := range triggers {
		if t.For > 0 {
			edges = append(edges, int64(t.From), t.end())
		}
	}
	slices.Sort(edges)
	return slices.Compact(edges)
}

func (t *Trigger) end() int64 { return later(int64(t.From), int64(t.For)) }

// during reports whether the trigger is on at the given time.
func (t *Trigger) during(at int64) bool { return at >= int64(t.From) && at < t.end() }

// share returns the part of n that is there, rounded up. What a product of floats is above a whole number by rounding
// does not count.
func (c *conditions) part(n int) int {
	if c.share == 1 {
		return n
	}
	return int(math.Ceil(float64(c.share*float64(n)) * (1 - 1e-12)))
}

// interval is a time from from on until before to.
type interval struct{ from, to int64 }

// stallsIn returns the times in which the server stalls, in order and apart from each other.
func stallsIn(list []conditions) []interval {
	var stalls []interval
	from := int64(0)
	for _, c := range list {
		if n := len(stalls); c.stalled && n > 0 && stalls[n-1].to == from {
			stalls[n-1].to = c.until
		} else if c.stalled {
			stalls = append(stalls, interval{from, c.until})
		}
		from = c.until
	}
	return stalls
}

// openLoop gives the times at which an open loop begins runs: a Poisson process whose rate changes with the surges.
type openLoop struct {
	rng   *rand.Rand
	at    float64 // of the last one, in ns; float64 so that no part of a nanosecond is lost
	parts []ratePart
}

// ratePart is a time with one rate.
type ratePart struct {
	until float64 // ns, exclusive
	rate  float64 // per ns
}

func newOpenLoop(rate float64, triggers []Trigger, rng *rand.Rand) *openLoop {
	return &openLoop{rng: rng, parts: rateParts(rate, triggers)}
}

// rateParts returns the rates from time 0 on. Surges that overlap multiply.
func rateParts(rate float64, triggers []Trigger) []ratePart {
	surges := slices.DeleteFunc(slices.Clone(triggers), func(t Trigger) bool { return t.Kind != Surge })
	edges := edgesOf(surges)
	parts := make([]ratePart, len(edges))
	for i, from := range edges {
		p := ratePart{until: math.Inf(1), rate: rate / 1e9}
		if i+1 < len(edges) {
			p.until = float64(edges[i+1])
		}
		for _, t := range surges {
			if t.during(from) {
				p.rate = float64(p.rate * t.Factor)
			}
		}
		parts[i] = p
	}
	return parts
}

// next returns the time of the next run: that at which the integral of the rate has grown by an exponential number of
// mean 1 (Çinlar, "Introduction to Stochastic Processes", 1975, chapter 4: inversion of the cumulative rate).
func (o *openLoop) next() int64 {
	need := unitExponential(o.rng)
	for len(o.parts) > 1 {
		here := float64(o.parts[0].rate * (o.parts[0].until - o.at))
		if need < here {
			break
		}
		need -= here
		o.at = o.parts[0].until
		o.parts = o.parts[1:]
	}
	o.at += need / o.parts[0].rate
	return nanoseconds(o.at)
}

// expectedRuns returns how many runs an open loop begins on average in d.
func expectedRuns(rate float64, triggers []Trigger, d time.Duration) float64 {
	sum, from := 0.0, 0.0
	for _, p := range rateParts(rate, triggers) {
		to := min(p.until, float64(d))
		if to <= from {
			break
		}
		sum += float64(p.rate * (to - from))
		from = to
	}
	return sum
}

// lastEnd returns when the last trigger ends, and false if there is none.
func lastEnd(triggers []Trigger) (int64, bool) {
	if len(triggers) == 0 {
		return 0, false
	}
	last := slices.MaxFunc(triggers, func(a, b Trigger) int { return cmp.Compare(a.end(), b.end()) })
	return last.end(), true
}
