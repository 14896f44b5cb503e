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
}

// wait adds turns.
func (e *Engine) wait(now instant, turns ...turn) {
	e.agenda.mu.Lock()
	defer e.agenda.mu.Unlock()
	for _, t := range turns {
		e.agenda.add(t, now)
	}
	e.drive(now)
}

// drive sees to it that what is due is started, now or when a worker is free, and that the timer is set for what is not. The
// agenda is locked.
//
// None is started while one is coming for its next turn: that one takes the turn and sees to the next. So a burst of short
// jobs is worked on by as many goroutines as it keeps busy, not by as many as there is room for and that would wait for the
// lock.
func (e *Engine) drive(now instant) {
	a := &e.agenda
	switch t := a.first(); {
	case t == nil || a.stopping:
	case t.due > now:
		if a.armed != 0 && a.armed <= t.due {
			return
		}
		a.armed = t.due
		if d := time.Duration(t.due - now); a.timer == nil {
			a.timer = time.AfterFunc(d, e.fire)
		} else {
			a.timer.Reset(d)
		}
	case a.workers < e.concurrency && a.coming.Load() == 0:
		a.workers++
		a.coming.Add(1)
		go e.work(&attempt{})
	}
}

// fire does what the agenda's timer was set for.
func (e *Engine) fire() {
	e.agenda.mu.Lock()
	defer e.agenda.mu.Unlock()
	e.agenda.armed = 0
	e.drive(e.clock.now())
}

// work makes attempts until none is due. It begins by concluding a, if that has a job.
func (e *Engine) work(a *attempt) {
	leaves := false
	defer func() {
		if !leaves { // runtime.Goexit in a handler or Observe ends this goroutine: another one takes its place
			e.agenda.coming.Add(1)
			go e.work(a)
		}
	}()
	for e.next(a) {
		e.make(a)
		if a.next.end != nil {
			e.settle(a)
		}
		e.agenda.coming.Add(1)
	}
	leaves = true
}

// next concludes the attempt that was made, if there was one, and leases the next. It reports false, and a has no job, if
// the worker is to leave.
func (e *Engine) next(a *attempt) bool {
	var again turn
	if a.job != nil {
		again = e.conclude(a)
	}
	for {
		t, now := e.take(again)
		if t.job == nil {
			return false
		}
		if e.lease(t, a, now) {
			return true
		}
		e.agenda.coming.Add(1)
		again = turn{}
	}
}

// take adds a turn, if there is one, and removes the first one that is due. If none is, the worker has left.
func (e *Engine) take(again turn) (t turn, now instant) {
	a := &e.agenda
	now = e.clock.now()
	a.mu.Lock()
	a.coming.Add(-1)
	if again.job != nil {
		a.add(again, now)
	}
	if first := a.first(); first != nil && first.due <= now && !a.stopping {
		t = a.pop()
	} else {
		a.workers--
	}
	e.drive(now)
	last := t.job == nil && a.stopping && a.workers == 0
	a.mu.Unlock()
	if last {
		e.stop()
	}
	return t, now
}

// lease begins an attempt, and reports false if the turn is out of date or the engine stops.
func (e *Engine) lease(t turn, a *attempt, now instant) bool {
	j := t.job
	l := &live{underWay: true, start: now}
	defer e.lock(j).mu.Unlock()
	if j.changed != t.changed {
		e.agenda.stale.Add(-1)
		return false
	}
	if e.stopping.Load() {
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
	j.live, l.underWay = nil, false
	if l.watch != nil {
		j.live = &live{watch: l.watch}
		l.watch = nil // a handler may have kept its context
	}
	current := j.status == Leased
	switch {
	case current:
		j.keep(&a.rec, e.clock)
		t = e.store(j, a.rec.Status)
	case l.removed:
		s.remove(j)
	default:
		j.note(&a.rec, e.clock) // canceled meanwhile: the attempt is recorded, and the status stays
	}
	s.mu.Unlock()
	if current && a.rec.Status.Final() {
		e.done(j, a.rec.Status)
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
		if n := len(j.history) - 1; n >= 0 && int(j.replays) == replays && int(j.history[n].number) == number {
			h := &j.history[n]
			h.text = h.text[:h.code] + afterwards(h.text[h.code:], panicked(j.route.Value().policy, value))
		}
	}()
	a.next.Tell()
}

// make makes an attempt, so that a.rec says what came of it however the handler ends.
func (e *Engine) make(a *attempt) {
	clear(a.rec.History)
	a.rec = a.job.record(e.clock, false, a.rec.History[:0])
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
	handler, job := e.handlers[a.job.route.Value().kind], a.job.job(e.clock)
	a.live.info = infoOf(&a.rec, a.number)
	a.next, err = e.stepper.step(a.live, &a.live.info, &a.rec, func(ctx context.Context) error { return handler(ctx, job) })
	returned = true
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
