package retryplan

import (
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// The waits of decorrelated jitter depend on those before them, so that runs are played through rather than computed. So
// many runs, or waits in all, take less than a tenth of a second.
const (
	sampledRuns  = 1 << 16
	sampledWaits = 1 << 20
)

// sample is totalWait and run by playing runs through. Each goes on after every attempt with the mass of those that fail,
// so that only its times are random, from a fixed seed.
func (pl *planner) sample() {
	var (
		out, deadline  = &pl.out, pl.model.Deadline
		rnd            = rand.New(rand.NewPCG(1, 2))
		runs           = min(sampledRuns, 1<<(bits.Len(uint(sampledWaits/len(pl.lo)))-1)) // a power of two, so that shares add up
		waits          = make([]histogram, len(pl.lo))
		total, elapsed histogram
		exact          = map[time.Duration]float64{}
	)
	// Histograms count from the least time, since their buckets are the wider the later they are.
	first := pl.endsFirst(pl.mayEnd())
	least, most := pl.policy.TotalWait()
	for k := range runs {
		var at, prev, waited time.Duration
		mass := 1 / float64(runs) // of the runs that make the next attempt
		end := func(n int, at time.Duration, mass float64) {
			if at == deadline || n == 1 && (pl.model.Duration.fixed() || at == pl.policy.AttemptTimeout) {
				exact[at] += mass // many runs at once
			} else {
				elapsed.add(at-first, mass)
			}
			if pl.firstEnd == 0 || n < pl.firstEnd {
				pl.firstEnd = n
			}
		}
		for n := 1; ; n++ {
			if mass > 0 {
				a := &out.Attempts[n-1]
				a.Starts += mass
				out.Load += mass
				took, succeeds := pl.model.Duration.At(rnd.Float64()), mass*(1-pl.model.failure(n))
				if own := pl.policy.AttemptTimeout; own > 0 && took > own {
					took, succeeds = own, 0
				}
				at = saturatingAdd(at, took)
				if deadline > 0 && at > deadline {
					at, succeeds = deadline, 0
				}
				if succeeds > 0 {
					a.Succeeds += succeeds
					out.Success += succeeds
					out.Endings[0] += succeeds
					end(n, at, succeeds)
				}
				mass -= succeeds
			}
			if n > len(pl.lo) {
				if mass > 0 {
					out.Endings[pl.ending(n, at, 0)] += mass
					end(n, at, mass)
				}
				break
			}
			u := rnd.Float64()
			switch n { // the first two are evenly spread over the square, which is more exact
			case 1:
				u = (float64(k) + u) / float64(runs)
			case 2:
				_, u = math.Modf(float64(k) * math.Phi)
			}
			prev = pl.policy.Jittered(n, prev, u)
			waited = saturatingAdd(waited, prev)
			waits[n-1].add(prev-pl.lo[n-1], 1)
			next := saturatingAdd(at, prev)
			if mass > 0 && (pl.startBy < maxDuration && next >= pl.startBy || deadline > 0 && at >= deadline) {
				pl.late[pl.ending(n, at, prev)] += mass
				end(n, at, mass)
				mass = 0
			}
			at = next
		}
		total.add(waited-least, 1)
	}
	for i := range waits {
		var d Distribution
		d.add(waits[i].measure().shifted(pl.lo[i]))
		d.finish(pl.lo[i], pl.hi[i])
		out.Attempts[i+1].Wait = d
	}
	out.TotalWait.add(total.measure().shifted(least))
	out.Elapsed.add(elapsed.measure().shifted(first))
	for _, at := range slices.Sorted(maps.Keys(exact)) {
		out.Elapsed.add(exactly(at, exact[at]))
	}
	out.TotalWait.finish(least, most)
}

// mayEnd returns the first attempt after which a run can end.
func (pl *planner) mayEnd() int {
	n := 1
	for ; n < pl.attempts && pl.model.failure(n) == 1; n++ {
		if next := pl.out.Attempts[n]; next.Never != 0 || next.Latest >= pl.startBy-1 {
			break
		}
	}
	return n
}
