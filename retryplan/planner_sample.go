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

// runSampler plays runs through in place of totalWait and run. Each run goes on after every attempt with the mass of those
// that fail, so that only its times are random, from a fixed seed.
type runSampler struct {
	*planner
	rnd     *rand.Rand
	runs    int
	first   time.Duration // the least time of an end; histograms count from it, since their buckets widen with the time
	elapsed histogram
	exact   map[time.Duration]float64 // ends of many runs at once
	waits   []histogram               // before attempt i+2, from its shortest wait on
	total   histogram                 // of all waits, from the shortest total on
}

// sampledRun is a run that is played through.
type sampledRun struct {
	number int
	at     time.Duration // the start or the end of an attempt
	prev   time.Duration // the last wait
	waited time.Duration // all waits
	mass   float64       // of the runs that make the next attempt
}

// sample is totalWait and run by playing runs through.
func (pl *planner) sample() {
	s := &runSampler{planner: pl, rnd: rand.New(rand.NewPCG(1, 2)), exact: map[time.Duration]float64{}, waits: make([]histogram, len(pl.lo))}
	s.runs = min(sampledRuns, 1<<(bits.Len(uint(sampledWaits/len(pl.lo)))-1)) // a power of two, so that shares add up
	s.first = pl.endsFirst(pl.mayEnd())
	least, most := pl.policy.TotalWait()
	for k := range s.runs {
		r := sampledRun{number: k, mass: 1 / float64(s.runs)}
		for n := 1; n <= len(pl.lo); n++ {
			s.attempt(&r, n)
			s.wait(&r, n)
		}
		s.last(&r, len(pl.lo)+1)
		s.total.add(r.waited-least, 1)
	}
	for i := range s.waits {
		var d Distribution
		d.add(s.waits[i].measure().shifted(pl.lo[i]))
		d.finish(pl.lo[i], pl.hi[i])
		pl.out.Attempts[i+1].Wait = d
	}
	pl.out.TotalWait.add(s.total.measure().shifted(least))
	pl.out.TotalWait.finish(least, most)
	pl.out.Elapsed.add(s.elapsed.measure().shifted(s.first))
	for _, at := range slices.Sorted(maps.Keys(s.exact)) {
		pl.out.Elapsed.add(exactly(at, s.exact[at]))
	}
}

// attempt plays attempt n, after which the mass of r is that of the runs that fail.
func (s *runSampler) attempt(r *sampledRun, n int) {
	if r.mass == 0 {
		return
	}
	a := &s.out.Attempts[n-1]
	a.Starts += r.mass
	s.out.Load += r.mass
	took, succeeds := s.model.Duration.At(s.rnd.Float64()), r.mass*(1-s.model.failure(n))
	if own := s.policy.AttemptTimeout; own > 0 && took > own {
		took, succeeds = own, 0
	}
	r.at = saturatingAdd(r.at, took)
	if deadline := s.model.Deadline; deadline > 0 && r.at > deadline {
		r.at, succeeds = deadline, 0
	}
	if succeeds > 0 {
		a.Succeeds += succeeds
		s.out.Success += succeeds
		s.out.Endings[0] += succeeds
		s.ended(n, r.at, succeeds)
	}
	r.mass -= succeeds
}

// wait plays the wait after attempt n. It ends the runs for which the next attempt would be too late.
func (s *runSampler) wait(r *sampledRun, n int) {
	u := s.rnd.Float64()
	switch n { // the first two are evenly spread over the square, which is more exact
	case 1:
		u = (float64(r.number) + u) / float64(s.runs)
	case 2:
		_, u = math.Modf(float64(r.number) * math.Phi)
	}
	r.prev = s.policy.Jittered(n, r.prev, u)
	r.waited = saturatingAdd(r.waited, r.prev)
	s.waits[n-1].add(r.prev-s.lo[n-1], 1)
	next, deadline := saturatingAdd(r.at, r.prev), s.model.Deadline
	late := s.startBy < maxDuration && next >= s.startBy || deadline > 0 && r.at >= deadline
	if late && r.mass > 0 {
		s.late[s.ending(n, r.at, r.prev)] += r.mass
		s.ended(n, r.at, r.mass)
		r.mass = 0
	}
	r.at = next
}

// last plays attempt n, which no wait follows.
func (s *runSampler) last(r *sampledRun, n int) {
	s.attempt(r, n)
	if r.mass > 0 {
		s.out.Endings[s.ending(n, r.at, 0)] += r.mass
		s.ended(n, r.at, r.mass)
	}
}

// ended counts runs that end at a time, after attempt n.
func (s *runSampler) ended(n int, at time.Duration, mass float64) {
	if at == s.model.Deadline || n == 1 && (s.model.Duration.fixed() || at == s.policy.AttemptTimeout) {
		s.exact[at] += mass
	} else {
		s.elapsed.add(at-s.first, mass)
	}
	if s.firstEnd == 0 || n < s.firstEnd {
		s.firstEnd = n
	}
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
