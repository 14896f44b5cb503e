package retryplan

import (
	"errors"
	"math"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan/internal/event"
)

// What simulated attempts fail with, beside retry.ErrAttemptTimeout. Policy.Classify is called with them; a rejection
// carries a hint (see retry.After) if Server.RetryAfter is set.
var (
	ErrWorkFailed = errors.New("retryplan: the attempt failed at the server")                       // Server.FailureRate, Failing
	ErrRejected   = errors.New("retryplan: the server rejected the attempt")                        // Server.Queue, RateLimit, Outage
	ErrConflict   = errors.New("retryplan: another attempt has written the row")                    // Server.Conflict
	ErrHeldBack   = errors.New("retryplan: the client's breaker or throttle held the attempt back") // Scenario.Breaker, Throttle
)

// simRun is a run that is under way.
type simRun struct {
	began   int64
	prev    int64 // Decision.Backoff of the last wait
	client  uint32
	gen     uint32 // of the attempt; changes when it ends
	serial  uint32 // of the run, among those that had its place
	breaker uint32 // the breaker's generation when the attempt was sent
	number  int32  // of the attempt that is under way or next
	sent    bool   // an attempt is under way
	paid    bool   // a token was taken for a retry that has not returned yet
	policy  uint8  // its place in clients.policies
}

// simReset is what Policy.ResetAfter needs of a run beside simRun.
type simReset struct {
	started int64 // when the last attempt began
	since   int   // Decision.Since of the last decision
}

// simAttempt is an attempt on its way to the server, there, or on its way back. It outlives its run if the server is
// slow.
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
	s.began()
	i := s.runs.Take()
	r := s.runs.At(i)
	*r = simRun{began: s.events.Now, client: client, gen: r.gen, serial: r.serial, number: 1}
	if len(s.Others) > 0 {
		r.policy = s.clients.choose()
		s.result.Populations[r.policy].Runs++
	}
	if s.Deadline > 0 {
		s.events.Plan(later(s.events.Now, int64(s.Deadline)), deadlinePasses, i, r.serial)
		s.sweep(deadlinePasses)
	}
	s.start(i)
}

// sweep removes the timeouts, or the deadlines, of what has ended, once these are most of them.
func (s *simulation) sweep(kind event.Kind) {
	if n := s.events.Len(kind); n < 4096 || n < 2*s.live {
		return
	}
	if kind == deadlinePasses {
		s.events.Sweep(kind, func(ref, gen uint32) bool { return s.runs.At(ref).serial == gen })
	} else {
		s.events.Sweep(kind, func(ref, gen uint32) bool { return s.runs.At(ref).gen == gen })
	}
}

// start sends the next attempt of a run, or holds it back. That it may start was decided before the wait for it, which
// took as long as it was to take.
func (s *simulation) start(i uint32) {
	r := s.runs.At(i)
	if s.resets != nil {
		s.resets[i] = simReset{s.events.Now, s.resets[i].since}
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
	case wait > 0:
		d := s.clients.policies[r.policy].Admit(s.progress(i, r.number-1), time.Duration(wait))
		if d.Status != retry.Waiting {
			s.end(i, d.Reason)
			return
		}
		s.wait(i, wait)
	default:
		if k.breaker != nil {
			r.breaker = k.breaker.send()
		}
		s.send(i)
	}
}

// progress returns what is known of a run after the given number of attempts.
func (s *simulation) progress(i uint32, attempts int32) retry.Progress {
	r, reset := s.runs.At(i), s.reset(i)
	return retry.Progress{
		Attempt:  int(attempts),
		Since:    reset.since,
		Elapsed:  time.Duration(s.events.Now - r.began),
		Lasted:   time.Duration(s.events.Now - reset.started),
		Prev:     time.Duration(r.prev),
		Deadline: s.Deadline,
	}
}

// reset returns what ResetAfter needs; without it nothing does.
func (s *simulation) reset(i uint32) (r simReset) {
	if s.resets != nil {
		r = s.resets[i]
	}
	return r
}

// holdBack asks breaker and throttle how long an attempt has to wait, and whether it may be sent at all.
func (s *simulation) holdBack(k *simClient, r *simRun) (wait int64, ok bool) {
	now := s.events.Now
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

func (s *simulation) wait(i uint32, d int64) {
	s.waiting++
	s.events.Plan(later(s.events.Now, d), waitEnds, i, 0)
}

func (s *simulation) waitEnded(i uint32) {
	s.waiting--
	s.start(i)
}

// send sends an attempt.
func (s *simulation) send(i uint32) {
	now := s.events.Now
	s.result.Attempts++
	s.point.Attempts++
	r := s.runs.At(i)
	r.sent = true
	a := s.attempts.Take()
	giveUp := int64(never)
	if s.Deadline > 0 {
		giveUp = later(r.began, int64(s.Deadline))
	}
	if own := s.clients.policies[r.policy].AttemptTimeout; own > 0 {
		// If both come at the same time the deadline wins, as in Do.
		if timeout := later(now, int64(own)); timeout < giveUp {
			giveUp = timeout
			s.events.Plan(timeout, attemptTimesOut, i, r.gen)
			s.sweep(attemptTimesOut)
		}
	}
	*s.attempts.At(a) = simAttempt{giveUp: giveUp, run: i}
	kind := attemptArrives
	if s.Server.Conflict {
		kind = rowIsRead
	}
	s.events.Plan(later(now, s.network.draw()), kind, a, 0)
}

// answered gives a client the answer that it still waits for.
func (s *simulation) answered(a uint32) {
	attempt := *s.attempts.At(a)
	s.attempts.Release(a)
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

// timedOut ends an attempt that its client waits for in vain.
func (s *simulation) timedOut(i uint32) {
	s.point.TimedOut++
	s.attemptEnded(i, false)
	s.failed(i, retry.ErrAttemptTimeout)
}

// deadlinePassed ends an attempt that is under way at the deadline, and its run, whatever the attempt's error is.
func (s *simulation) deadlinePassed(i uint32) {
	s.point.TimedOut++
	s.attemptEnded(i, false)
	r := s.runs.At(i)
	s.end(i, s.clients.policies[r.policy].Admit(s.progress(i, r.number), 0).Reason)
}

// attemptEnded notes that an attempt that was sent has ended for its client.
func (s *simulation) attemptEnded(i uint32, ok bool) {
	r := s.runs.At(i)
	r.gen++
	r.sent, r.paid = false, false
	k := s.clients.of(r.client)
	if k == nil {
		return
	}
	now := s.events.Now
	if k.breaker != nil && k.breaker.ended(now, r.breaker, ok, &s.clients.breaker) {
		s.clients.openBreakers(now) // so that closings stays small
		s.clients.closings.Push(k.breaker.until)
	}
	if k.throttle != nil {
		k.throttle.Done(time.Duration(now), int(r.number), ok)
	}
}

func (s *simulation) succeeded(i uint32) {
	s.spend(s.runs.At(i), &retry.Decision{Status: retry.Succeeded})
	s.end(i, 0)
}

// failed decides what follows an attempt that ended with err, and pays for it.
func (s *simulation) failed(i uint32, err error) {
	r := s.runs.At(i)
	u := s.clients.draw(int(r.number), time.Duration(r.prev))
	d := s.clients.policies[r.policy].Decide(s.progress(i, r.number), err, u)
	if d.Status == retry.Waiting {
		s.spend(r, &d)
	}
	if d.Status != retry.Waiting {
		s.end(i, d.Reason)
		return
	}
	if s.resets != nil {
		s.resets[i] = simReset{since: d.Since}
	}
	r.prev = int64(d.Backoff)
	r.number = min(r.number, math.MaxInt32-1) + 1
	s.wait(i, int64(d.Delay))
}

// spend does the money of a decision: a retry is paid with the throttle, and last with the budget.
func (s *simulation) spend(r *simRun, d *retry.Decision) {
	now := time.Duration(s.events.Now)
	if d.Status == retry.Waiting && s.Throttle != nil && !s.clients.of(r.client).throttle.Retry(now, int(r.number)) {
		*d = retry.Decision{Status: retry.DeadLettered, Reason: retry.BudgetExhausted}
		return
	}
	if s.Budget == nil {
		return
	}
	budget := s.clients.budget(r.client)
	before := millionths(budget)
	*d = budget.Spend(*d, simulationStart.Add(now))
	s.clients.tokens += millionths(budget) - before
	r.paid = d.Status == retry.Waiting
}

// end ends a run, with success if there is no reason.
func (s *simulation) end(i uint32, reason retry.Reason) {
	r := s.runs.At(i)
	if r.paid { // for a retry that did not start
		budget := s.clients.budget(r.client)
		before := millionths(budget)
		budget.Refund()
		s.clients.tokens += millionths(budget) - before
	}
	if reason == 0 && len(s.Others) > 0 {
		s.result.Populations[r.policy].Succeeded++
	}
	s.over(r.began, reason)
	r.gen++
	r.serial++
	client := r.client
	s.runs.Release(i)
	delete(s.resets, i)
	if s.Arrivals.Closed {
		s.plansRun(client)
	}
}
