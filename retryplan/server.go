package retryplan

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// server is the state of a Server. It is called by the simulation with the attempts' numbers.
type server struct {
	*Server
	conditions []conditions // the first are those of now
	service    sampler
	hint       sampler
	failures   *rand.Rand
	mayFail    bool     // whether any work may fail; then a number is drawn for each
	queue      []uint32 // attempts that wait for a worker
	busy       int
	window     int64 // number of the RateLimit's window of now
	accepted   int   // in that window
}

func newServer(s *Scenario) server {
	v := server{Server: &s.Server, conditions: conditionsOver(s.Triggers), window: -1}
	v.service = newSampler(v.Service, newStream(s.Seed, serviceStream))
	v.hint = newSampler(v.RetryAfter, newStream(s.Seed, hintStream))
	v.failures = newStream(s.Seed, failureStream)
	v.mayFail = v.FailureRate > 0 || slices.ContainsFunc(v.conditions, func(c conditions) bool { return c.failing > 0 })
	v.RateWindow = cmp.Or(v.RateWindow, defaultRateWindow)
	return v
}

// arrive takes an attempt in.
func (s *simulation) arrive(a uint32) {
	attempt := s.attempts.At(a)
	v := &s.nodes[attempt.layer]
	switch {
	case v.conditions[0].outage, !v.withinRate(s.events.Now):
		s.reject(a)
	case v.Workers == 0, v.free():
		s.work(v, a)
	case v.Queue == 0 || len(v.queue) < v.Queue:
		v.queue = append(v.queue, a)
	default:
		s.reject(a)
	}
}

// withinRate counts an attempt that arrives now and reports whether the rate limit lets it in.
func (v *server) withinRate(now int64) bool {
	if v.RateLimit == 0 {
		return true
	}
	if window := now / int64(v.RateWindow); window != v.window {
		v.window, v.accepted = window, 0
	}
	if v.accepted >= v.conditions[0].part(v.RateLimit) {
		return false
	}
	v.accepted++
	return true
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

// workEnd returns when work ends that begins now and takes so long, not counting the stalls.
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

func (s *simulation) reject(a uint32) {
	s.point.Rejected++
	attempt := s.attempts.At(a)
	attempt.hint = s.nodes[attempt.layer].hint.draw()
	s.answer(a, answerRejected)
}

// answer sends an answer to the client of an attempt, unless the client will have gone.
func (s *simulation) answer(a uint32, kind answerKind) {
	attempt := s.attempts.At(a)
	attempt.answer = kind
	at := later(s.events.Now, s.nodes[attempt.layer].network.draw())
	if at >= attempt.giveUp { // at the same time the timeout, which was planned before, goes first
		s.attempts.Release(a)
		return
	}
	s.events.Plan(at, answerArrives, a)
}
