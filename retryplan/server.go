package retryplan

import (
	"math"
	"math/rand/v2"
	"slices"
)

// server is the state of a backend. It is called by the simulation with the attempts' numbers.
type server struct {
	*backend
	conditions []conditions // the first are those of now
	service    sampler
	failures   *rand.Rand
	mayFail    bool     // whether any work may fail; then a number is drawn for each
	queue      []uint32 // attempts that wait for a worker
	busy       int
}

func newServer(s *scenario) server {
	v := server{backend: &s.Server, conditions: conditionsOver(s.Trigger)}
	v.service = newSampler(v.Service, newStream(s.Seed, serviceStream))
	v.failures = newStream(s.Seed, failureStream)
	v.mayFail = v.FailureRate > 0 || slices.ContainsFunc(v.conditions, func(c conditions) bool { return c.failing > 0 })
	return v
}

// arrive takes an attempt in.
func (s *simulation) arrive(a uint32) {
	attempt := s.attempts.At(a)
	v := &s.nodes[attempt.layer]
	switch {
	case v.conditions[0].outage:
		s.point.Rejected++
		s.answer(a, answerRejected)
	case v.Workers == 0, v.free():
		s.work(v, a)
	default:
		v.queue = append(v.queue, a)
	}
}

// free reports whether there is a worker for one more attempt.
func (v *server) free() bool {
	return !v.conditions[0].stalled && v.busy < v.conditions[0].part(v.Workers)
}

// work begins to work on an attempt.
func (s *simulation) work(v *node, a uint32) {
	v.busy++
	takes := v.service.draw()
	if slow := v.conditions[0].slow; slow != 1 {
		takes = nanoseconds(float64(takes) * slow)
	}
	s.events.Plan(v.workEnd(s.events.Now, takes), workEnds, a)
}

// times returns d·n, saturated. Neither is negative.
func times(d int64, n int) int64 {
	if d > 0 && int64(n) > math.MaxInt64/d {
		return math.MaxInt64
	}
	return d * int64(n)
}

// workEnd returns the time at which work that begins now ends. takes is its duration without stalls.
func (v *server) workEnd(now, takes int64) int64 {
	for i := range v.conditions {
		c, end := &v.conditions[i], later(now, takes)
		switch {
		case c.stalled:
		case end <= c.until:
			return end
		default:
			takes -= c.until - now
		}
		now = c.until
	}
	return never
}

// workEnded answers an attempt that was worked on, or begins the run that the node needs for it, and goes on with the
// next.
func (s *simulation) workEnded(a uint32) {
	attempt := *s.attempts.At(a)
	v := &s.nodes[attempt.layer]
	v.busy--
	if v.bottom && (attempt.giveUp < s.events.Now || attempt.giveUp > s.events.Now && s.stale(&attempt)) {
		s.result.Wasted++
	}
	fails := max(v.FailureRate, v.conditions[0].failing)
	switch below := attempt.layer + 1; {
	case v.mayFail && v.failures.Float64() < fails:
		s.answer(a, answerFailed)
	case v.bottom:
		s.answer(a, answerOK)
	case !s.passOn:
		s.begin(below, s.nodes[below].pick(), a, never)
	case s.events.Now < attempt.giveUp && !s.stale(&attempt):
		s.begin(below, s.nodes[below].pick(), a, attempt.giveUp)
	default:
		s.attempts.Release(a)
	}
	s.dispatch(v)
}

// dispatch gives waiting attempts to free workers.
func (s *simulation) dispatch(v *node) {
	for len(v.queue) > 0 && v.free() {
		next := v.queue[0]
		v.queue = v.queue[1:]
		s.work(v, next)
	}
}

// answer gives an answer to the client of an attempt, unless the client has gone.
func (s *simulation) answer(a uint32, kind answerKind) {
	attempt := s.attempts.At(a)
	attempt.answer = kind
	if s.events.Now >= attempt.giveUp { // at the same time the timeout, which was planned before, goes first
		s.attempts.Release(a)
		return
	}
	s.answered(a)
}
