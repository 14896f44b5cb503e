package retryplan

import (
	"math"

	"github.com/retrygo/retry/retryplan/internal/event"
)

// simServer is the state of a Server. It is called by the simulation with the attempts' numbers.
type simServer struct {
	*Server
	conditions []conditions // the first are those of now
	stalls     []interval   // the first is the next one, or that of now
	service    sampler
	hint       sampler
	typical    int64              // mean service
	queue      event.Ring[uint32] // attempts that wait for a worker
	busy       int
	window     int64 // number of the RateLimit's window of now
	accepted   int   // in that window
	version    int64 // of the row of Conflict
}

func newSimServer(s *Scenario) *simServer {
	v := &simServer{Server: &s.Server, conditions: conditionsOver(s.Triggers), window: -1}
	v.stalls = stallsIn(v.conditions)
	v.service = newSampler(s.Server.Service, newStream(s.Seed, serviceStream))
	v.hint = newSampler(s.Server.RetryAfter, newStream(s.Seed, hintStream))
	v.typical = int64(s.Server.Service.Mean())
	if v.RateLimit > 0 && v.RateWindow == 0 {
		v.RateWindow = defaultRateWindow
	}
	return v
}

// arrive takes an attempt in.
func (s *simulation) arrive(a uint32) {
	v := s.server
	s.point.Arrived++
	switch {
	case v.conditions[0].outage, !v.withinRate(s.events.Now):
		s.reject(a)
	case v.Workers == 0:
		s.work(a)
	case v.free():
		if v.sheds(s.attempts.At(a).giveUp, s.events.Now) {
			s.attempts.Release(a)
		} else {
			s.work(a)
		}
	case v.Queue == 0 || v.queue.Len() < v.Queue:
		v.queue.Push(a)
	default:
		s.reject(a)
	}
}

// withinRate counts an attempt that arrives now and reports whether the rate limit lets it in.
func (v *simServer) withinRate(now int64) bool {
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
func (v *simServer) free() bool {
	return !v.conditions[0].stalled && (v.Workers == 0 || v.busy < v.conditions[0].part(v.Workers))
}

// sheds reports whether an attempt whose client gives up at the given time is dropped when its turn comes.
func (v *simServer) sheds(giveUp, now int64) bool {
	switch v.Shed {
	case ShedExpired:
		return now >= giveUp
	case ShedHopeless:
		return later(now, v.typical) > giveUp
	default:
		return false
	}
}

// work begins to work on an attempt.
func (s *simulation) work(a uint32) {
	s.events.Plan(s.server.begin(s.events.Now), workEnds, a, 0)
}

// begin takes a worker, and returns when its work ends.
func (v *simServer) begin(now int64) int64 {
	v.busy++
	takes := later(v.service.draw(), times(int64(v.Crowding), v.busy))
	if slow := v.conditions[0].slow; slow != 1 {
		takes = nanoseconds(float64(takes) * slow)
	}
	return v.workEnd(now, takes)
}

// times returns d·n, saturated. Neither is negative.
func times(d int64, n int) int64 {
	if d > 0 && int64(n) > math.MaxInt64/d {
		return math.MaxInt64
	}
	return d * int64(n)
}

// workEnd returns when work ends that begins now and takes so long, not counting the stalls.
func (v *simServer) workEnd(now, takes int64) int64 {
	for len(v.stalls) > 0 && v.stalls[0].to <= now {
		v.stalls = v.stalls[1:]
	}
	for _, stall := range v.stalls {
		if end := later(now, takes); end <= stall.from {
			return end
		}
		takes -= max(stall.from-now, 0)
		now = stall.to
	}
	return later(now, takes)
}

// workEnded answers an attempt that was worked on, and goes on with the next.
func (s *simulation) workEnded(a uint32) {
	v := s.server
	v.busy--
	if s.attempts.At(a).giveUp < s.events.Now {
		s.result.Wasted++
	}
	fails := max(v.FailureRate, v.conditions[0].failing)
	if s.mayFail && s.failures.Float64() < fails {
		s.answer(a, answerFailed)
	} else {
		s.answer(a, answerOK)
	}
	s.dispatch()
}

// dispatch gives waiting attempts to free workers.
func (s *simulation) dispatch() {
	v := s.server
	for v.queue.Len() > 0 && v.free() {
		var a uint32
		if v.LIFO {
			a = v.queue.PopLast()
		} else {
			a = v.queue.Pop()
		}
		if v.sheds(s.attempts.At(a).giveUp, s.events.Now) {
			s.attempts.Release(a)
			continue
		}
		s.work(a)
	}
}

// changeConditions goes on to the conditions of now.
func (s *simulation) changeConditions() {
	s.server.turn(s.events.Now)
	s.dispatch()
}

func (v *simServer) turn(now int64) {
	for v.conditions[0].until <= now {
		v.conditions = v.conditions[1:]
	}
}

func (s *simulation) reject(a uint32) {
	s.result.Rejected++
	s.point.Rejected++
	s.attempts.At(a).note = s.server.hint.draw()
	s.answer(a, answerRejected)
}

// answer sends an answer to the client of an attempt, unless the client has gone.
func (s *simulation) answer(a uint32, kind answerKind) {
	at := later(s.events.Now, s.network.draw())
	attempt := s.attempts.At(a)
	if at >= attempt.giveUp { // at the same time the timeout, which was planned before, goes first
		s.attempts.Release(a)
		return
	}
	attempt.answer = kind
	s.events.Plan(at, answerArrives, a, 0)
}

// read notes the version of the row that an attempt sees.
func (s *simulation) read(a uint32) {
	s.attempts.At(a).note = s.server.version
	s.onward(a, readReturns)
}

// onward sends an attempt of Conflict over one more hop, unless its client will be gone by then.
func (s *simulation) onward(a uint32, kind event.Kind) {
	at := later(s.events.Now, s.network.draw())
	if at >= s.attempts.At(a).giveUp && kind == readReturns {
		s.attempts.Release(a)
		return
	}
	s.events.Plan(at, kind, a, 0)
}

// write writes the row, unless another attempt has written it since this one's read.
func (s *simulation) write(a uint32) {
	s.point.Arrived++
	attempt := s.attempts.At(a)
	if attempt.note != s.server.version {
		attempt.note = s.server.hint.draw()
		s.answer(a, answerConflict)
		return
	}
	s.server.version++
	s.answer(a, answerOK)
}
