package retryjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

// attempt is one attempt of a job, from its lease until the job is stored. A worker uses one for all that it makes.
type attempt struct {
	job    *job
	live   *live
	number int
	status Status  // of the job before the lease
	due    instant // and when it was due
	rec    Record  // the worker's own; the job's once it is stored
	next   Next    // what Step returned
	asked  *Job    // which Policies are asked about
}

// wait adds a turn.
func (e *Engine) wait(t turn, now instant) {
	l := t.job.route.Value().lane
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns[t.job.priority].add(t, now)
	e.drive(l, now)
}

// drive sees to it that what is due is started, now or when a worker is free, and that the timer is set for what is
// not. The lane is locked.
//
// None is started while one is coming for its next turn: that one takes the turn and sees to the next. So a burst of
// short jobs is worked on by as many goroutines as it keeps busy, not by as many as there is room for and that would
// wait for the lock.
func (e *Engine) drive(l *lane, now instant) {
	switch _, t := l.next(now); {
	case t == nil || l.stopping:
	case t.due > now:
		if l.armed != 0 && l.armed <= t.due {
			return
		}
		l.armed = t.due
		if d := time.Duration(t.due - now); l.timer == nil {
			l.timer = time.AfterFunc(d, func() { e.fire(l) })
		} else {
			l.timer.Reset(d)
		}
	case l.workers < l.concurrency && l.coming.Load() == 0:
		l.workers++
		l.coming.Add(1)
		e.working.Add(1)
		go e.work(l, attempt{asked: new(Job)})
	}
}

// fire does what the lane's timer was set for.
func (e *Engine) fire(l *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = 0
	e.drive(l, e.clock.now())
}

// work makes attempts until none is due. It begins by concluding a, if that has a job.
func (e *Engine) work(l *lane, a attempt) {
	leaves := false
	defer func() {
		if leaves {
			e.working.Done()
		} else { // runtime.Goexit in a handler or Observe ends this goroutine: another one takes its place
			l.coming.Add(1)
			go e.work(l, a)
		}
	}()
	for e.next(l, &a) {
		e.make(&a)
		if a.next.end != nil {
			e.settle(&a)
		}
		l.coming.Add(1)
	}
	leaves = true
}

// next concludes the attempt that was made, if there was one, and leases the next. It reports false, and a has no job,
// if the worker is to leave.
func (e *Engine) next(l *lane, a *attempt) bool {
	var again turn
	if a.job != nil {
		again = e.conclude(a)
	}
	for {
		t, now := e.take(l, again)
		if t.job == nil {
			return false
		}
		if e.lease(t, a, now) {
			return true
		}
		l.stale.Add(-1)
		l.coming.Add(1)
		again = turn{}
	}
}

// take adds a turn, if there is one, and removes the next one that is due. If none is, the worker has left.
func (e *Engine) take(l *lane, again turn) (t turn, now instant) {
	now = e.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.coming.Add(-1)
	if again.job != nil {
		l.turns[again.job.priority].add(again, now)
	}
	if a, first := l.next(now); first != nil && first.due <= now && !l.stopping {
		t = a.pop()
	} else {
		l.workers--
	}
	e.drive(l, now)
	return t, now
}

// lease begins an attempt, and reports false if the turn is out of date or the engine stops.
func (e *Engine) lease(t turn, a *attempt, now instant) bool {
	j := t.job
	l := &live{underWay: true, start: now}
	defer e.lock(j).mu.Unlock()
	if j.changed != t.changed || e.stopping.Load() {
		return false
	}
	if j.live != nil {
		l.watch = j.live.watch
	}
	a.job, a.live, a.number, a.status, a.due = j, l, int(j.attempts)+1, j.status, j.at
	j.live, j.at = l, now
	e.become(j, Leased)
	return true
}

// conclude stores what came of an attempt that was made, and returns the job's turn if it waits again.
func (e *Engine) conclude(a *attempt) (t turn) {
	j, l := a.job, a.live
	a.job = nil
	s := e.lock(j)
	defer s.mu.Unlock()
	j.live, l.underWay = nil, false
	if l.watch != nil {
		j.live = &live{watch: l.watch}
		l.watch = nil // a handler may have kept its context
	}
	switch j.status {
	case Leased:
		j.keep(&a.rec, e.clock)
		t = e.store(j, a.rec.Status)
	case 0: // removed meanwhile
		s.drop(j)
	default:
		j.note(&a.rec, e.clock) // canceled meanwhile: the attempt is recorded, and the status stays
	}
	return t
}

// settle concludes an attempt with which its job has ended, and calls Observe.
func (e *Engine) settle(a *attempt) {
	j, number, live, replays := a.job, a.number, a.live, a.rec.Replays
	e.conclude(a)
	defer func() {
		value := recover()
		live.end()
		if value == nil {
			return
		}
		defer e.lock(j).mu.Unlock()
		if h := &j.last; int(j.replays) == replays && int(h.number) == number {
			h.text = h.text[:h.code] + afterwards(h.text[h.code:], panicked(j.route.Value().policy, value))
		}
	}()
	a.next.Tell()
}

// make makes an attempt, so that a.rec says what came of it however the handler ends.
func (e *Engine) make(a *attempt) {
	clear(a.rec.History)
	a.rec.History = a.rec.History[:0]
	a.job.record(&a.rec, e.clock, false)
	a.rec.Status, a.rec.Due = a.status, e.clock.time(a.due)
	a.next = Next{}
	returned := false
	var err error
	defer func() {
		value := recover()
		switch {
		case value != nil:
			err = panicked(a.rec.Policy, value)
		case !returned && !errors.Is(context.Cause(a.live), ErrShutdown): // with it the attempt counts as not made, as Step has seen to
			err = fmt.Errorf("retryjob: a function of policy %q ended its goroutine", a.rec.Policy)
		}
		if err != nil {
			a.abandon(err, value != nil)
		}
		if a.next.end == nil {
			a.live.end()
		}
	}()
	*a.asked = a.job.job(e.clock)
	a.live.info = infoOf(&a.rec, a.number)
	st := step{Stepper: &e.stepper, rec: &a.rec, info: &a.live.info}
	if err = st.open(e.stepper.Policies.Of(a.asked)); err == nil {
		a.next = st.step(a.live, e.clock.time(a.live.start), a.call)
	}
	returned = true
}

// call calls the handler.
func (a *attempt) call(ctx context.Context) error {
	job := *a.asked
	job.Payload = a.job.payloadCopy()
	return a.job.route.Value().kind.handler(ctx, job)
}

// abandon records an attempt that was ended by something other than its handler: its policy is unknown, or code of the
// policy has panicked. If nothing was decided, trying again would come to the same.
func (a *attempt) abandon(err error, afterPanic bool) {
	switch n := len(a.rec.History); {
	case a.rec.Attempts < a.number && !a.rec.Status.Final():
		now := time.Now()
		a.rec.note(Attempt{
			ID: a.rec.AttemptID(a.number), Number: a.number, Start: now, End: now,
			Status: DeadLettered, Reason: retry.TerminalError, Err: text(err),
		})
		a.rec.end(DeadLettered, retry.TerminalError, now)
	case afterPanic && n > 0 && a.rec.Attempts == a.number:
		a.rec.History[n-1].Err = afterwards(a.rec.History[n-1].Err, err)
	}
}

func panicked(policy string, value any) error {
	return fmt.Errorf("retryjob: a function of policy %q panicked: %v", policy, value)
}

// afterwards adds to the text of an attempt what came after it was decided about.
func afterwards(attempt string, err error) string {
	if attempt != "" {
		attempt += "; "
	}
	return text(recorded(fmt.Sprintf("%safter it was decided: %v", attempt, err)))
}
