package retryplan

import (
	"errors"
	"math"
	"time"

	"github.com/retrygo/retry"
)

// What simulated attempts fail with, beside retry.ErrAttemptTimeout. Policy.Classify is asked about them, the rejected ones with
// a hint (see retry.After) where Server.RetryAfter gives one.
var (
	ErrWorkFailed = errors.New("retryplan: the attempt failed at the server")                       // Server.FailureRate, Failing
	ErrRejected   = errors.New("retryplan: the server rejected the attempt")                        // Server.Queue, RateLimit, Outage
	ErrConflict   = errors.New("retryplan: another attempt has written the row")                    // Server.Conflict
	ErrHeldBack   = errors.New("retryplan: the client's breaker or throttle held the attempt back") // Scenario.Breaker, Throttle
)

// simRun is a run that is under way.
type simRun struct {
	began   int64
	prev    int64 // the backoff's last delay
	client  uint32
	gen     uint32 // of the attempt; changes when it ends
	serial  uint32 // of the run, among those that had its place
	breaker uint32 // the breaker's generation when the attempt was sent
	number  int32  // of the attempt that is under way or next
	sent    bool   // an attempt is under way
	paid    bool   // a token was taken for a retry that has not returned yet
}

// simAttempt is an attempt on its way to the server, there, or on its way back. It outlives its run where the server is slow.
type simAttempt struct {
	giveUp int64 // when its client stops to listen
	note   int64 // the hint of an answer; before that, with Conflict, the version that was read
	run    uint32
	answer answerKind
}

type answerKind uint8

const (
	answerOK answerKind = iota
	answerFailed
	answerRejected
	answerConflict
)

// begin begins a run of a client.
func (s *simulation) begin(client uint32) {
	s.result.Runs++
	s.point.Offered++
	s.recovery.began(s.events.now)
	i := s.runs.take()
	r := s.runs.at(i)
	*r = simRun{began: s.events.now, client: client, gen: r.gen, serial: r.serial, number: 1}
	s.live++
	if s.Deadline > 0 {
		s.events.plan(later(s.events.now, int64(s.Deadline)), deadlinePasses, i, r.serial)
		s.sweep(deadlinePasses)
	}
	s.admit(i)
}

// sweep forgets the timeouts, or the deadlines, of what has ended, where these have become most of them.
func (s *simulation) sweep(kind eventKind) {
	if n := s.events.lane[kind].n; n < 4096 || n < 2*s.live {
		return
	}
	if kind == deadlinePasses {
		s.events.sweep(kind, func(ref, gen uint32) bool { return s.runs.at(ref).serial == gen })
	} else {
		s.events.sweep(kind, func(ref, gen uint32) bool { return s.runs.at(ref).gen == gen })
	}
}

// admit sends the next attempt of a run, or makes it wait, or ends the run: what Do looks at before each attempt, in its order.
func (s *simulation) admit(i uint32) {
	r := s.runs.at(i)
	if reason := s.over(r, 0); reason != 0 {
		s.end(i, reason)
		return
	}
	k := s.clients.of(r.client)
	if k == nil {
		s.send(i)
		return
	}
	wait, ok := s.holdBack(k, r)
	switch {
	case !ok:
		r.paid = false
		s.failed(i, ErrHeldBack)
	case wait <= 0:
		if k.breaker != nil {
			r.breaker = k.breaker.send()
		}
		s.send(i)
	default:
		if reason := s.over(r, wait); reason != 0 {
			s.end(i, reason)
			return
		}
		s.wait(i, wait)
	}
}

// holdBack asks breaker and throttle how long an attempt has to wait, and whether it may be sent at all.
func (s *simulation) holdBack(k *simClient, r *simRun) (wait int64, ok bool) {
	now := s.events.now
	if k.breaker != nil {
		if wait = k.breaker.ask(now, &s.clients.breaker); wait > 0 {
			return wait, s.clients.breaker.Defer
		}
	}
	if k.throttle != nil {
		d, ok := k.throttle.Send(time.Duration(now), int(r.number))
		return int64(d), ok
	}
	return 0, true
}

// over returns what ends a run whose next attempt would start after a wait, 0 where nothing does.
func (s *simulation) over(r *simRun, wait int64) retry.Reason {
	elapsed := s.events.now - r.began
	switch {
	case s.Deadline > 0 && elapsed >= int64(s.Deadline):
		return retry.DeadlinePassed
	case s.Policy.TTL > 0 && wait > int64(s.Policy.TTL)-elapsed:
		return retry.TTLElapsed
	case wait > 0 && s.tooNear(r, wait):
		return retry.DeadlineTooNear
	default:
		return 0
	}
}

// tooNear reports whether a wait from now would end at or after the caller's deadline.
func (s *simulation) tooNear(r *simRun, wait int64) bool {
	return s.Deadline > 0 && wait >= int64(s.Deadline)-(s.events.now-r.began)
}

func (s *simulation) wait(i uint32, d int64) {
	s.waiting++
	s.events.plan(later(s.events.now, d), waitEnds, i, 0)
}

func (s *simulation) waitEnded(i uint32) {
	s.waiting--
	s.admit(i)
}

// send sends an attempt.
func (s *simulation) send(i uint32) {
	now := s.events.now
	s.result.Attempts++
	s.point.Attempts++
	r := s.runs.at(i)
	r.sent = true
	a := s.attempts.take()
	giveUp := int64(never)
	if s.Deadline > 0 {
		giveUp = later(r.began, int64(s.Deadline))
	}
	if s.Policy.AttemptTimeout > 0 {
		// Where both come at the same time the deadline does, as in Do.
		if timeout := later(now, int64(s.Policy.AttemptTimeout)); timeout < giveUp {
			giveUp = timeout
			s.events.plan(timeout, attemptTimesOut, i, r.gen)
			s.sweep(attemptTimesOut)
		}
	}
	*s.attempts.at(a) = simAttempt{giveUp: giveUp, run: i}
	kind := attemptArrives
	if s.Server.Conflict {
		kind = rowIsRead
	}
	s.events.plan(later(now, s.network.draw()), kind, a, 0)
}

// answered gives a client the answer that it still waits for.
func (s *simulation) answered(a uint32) {
	attempt := *s.attempts.at(a)
	s.attempts.release(a)
	i := attempt.run
	s.attemptEnded(i, attempt.answer == answerOK)
	var err error
	switch attempt.answer {
	case answerOK:
		s.succeeded(i)
		return
	case answerRejected:
		err = retry.After(time.Duration(attempt.note), ErrRejected)
	case answerConflict:
		err = retry.After(time.Duration(attempt.note), ErrConflict)
	default:
		err = ErrWorkFailed
	}
	s.failed(i, err)
}

// timedOut ends an attempt, or with the deadline its run, that its client waits for in vain.
func (s *simulation) timedOut(i uint32) {
	s.point.TimedOut++
	s.attemptEnded(i, false)
	s.failed(i, retry.ErrAttemptTimeout)
}

// attemptEnded notes that an attempt that was sent has ended for its client.
func (s *simulation) attemptEnded(i uint32, ok bool) {
	r := s.runs.at(i)
	r.gen++
	r.sent, r.paid = false, false
	k := s.clients.of(r.client)
	if k == nil {
		return
	}
	now := s.events.now
	if k.breaker != nil && k.breaker.ended(now, r.breaker, ok, &s.clients.breaker) {
		s.clients.openBreakers(now) // so that closings stays small
		s.clients.closings.push(k.breaker.until)
	}
	if k.throttle != nil {
		k.throttle.Done(time.Duration(now), int(r.number), ok)
	}
}

func (s *simulation) succeeded(i uint32) {
	r := s.runs.at(i)
	if k := s.clients.of(r.client); k != nil && k.budget != nil {
		before := millionths(k.budget)
		k.budget.Deposit()
		s.clients.tokens += millionths(k.budget) - before
	}
	s.end(i, 0)
}

// failed decides what follows a failed attempt, in the order of Do: the deadline, Decide, the deadline again, and what has to be
// paid at last.
func (s *simulation) failed(i uint32, err error) {
	r := s.runs.at(i)
	if s.Deadline > 0 && s.tooNear(r, 0) {
		s.end(i, retry.DeadlinePassed)
		return
	}
	d := s.clients.decide(r, time.Duration(s.events.now-r.began), err)
	switch {
	case d.Status != retry.Waiting:
		s.end(i, d.Reason)
	case s.tooNear(r, int64(d.Delay)):
		s.end(i, retry.DeadlineTooNear)
	case !s.pays(r):
		s.end(i, retry.BudgetExhausted)
	default:
		r.number = min(r.number, math.MaxInt32-1) + 1
		s.wait(i, int64(d.Delay))
	}
}

// pays asks throttle and budget for the retry of a run.
func (s *simulation) pays(r *simRun) bool {
	k := s.clients.of(r.client)
	if k == nil {
		return true
	}
	now := time.Duration(s.events.now)
	if k.throttle != nil && !k.throttle.Retry(now, int(r.number)) {
		return false
	}
	if k.budget == nil {
		return true
	}
	before := millionths(k.budget)
	r.paid = k.budget.Withdraw(simulationStart.Add(now))
	s.clients.tokens += millionths(k.budget) - before
	return r.paid
}

// end ends a run, with success where there is no reason.
func (s *simulation) end(i uint32, reason retry.Reason) {
	r := s.runs.at(i)
	now := s.events.now
	if r.paid { // for a retry that did not start
		before := millionths(s.clients.of(r.client).budget)
		s.clients.of(r.client).budget.Refund()
		s.clients.tokens += millionths(s.clients.of(r.client).budget) - before
	}
	s.endings[reason]++
	s.recovery.ended(r.began, now, reason == 0)
	if reason == 0 {
		s.point.Goodput++
		s.result.Latency.add(time.Duration(now - r.began))
		s.result.Finished.add(time.Duration(now))
	} else {
		s.point.Failed++
	}
	s.ended = now
	s.live--
	r.gen++
	r.serial++
	client := r.client
	s.runs.release(i)
	if s.Arrivals.Closed {
		s.plansRun(client)
	}
}
