package retryjob

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/retrygo/retry"
)

// attempt is one attempt of a job, from its lease until the job is stored. A worker uses one for all that it makes.
type attempt struct {
	live
	job    *job
	number int
	status Status  // of the job before the lease
	due    instant // and when it was due
	ctx    context.Context
	rec    Record // the worker's own; the job's once it is stored
	next   Next   // what Step returned
}

// drive sees to it that what is due is started, now or when a worker is free, and that the timer is set for what is not.
//
// None is started while one is coming for its next attempt: that one takes the job and sees to the next. So a burst of short
// jobs is worked on by as many goroutines as it keeps busy, not by as many as there is room for and that would wait for the
// lock.
func (e *Engine) drive(now instant) {
	if e.stopping {
		return
	}
	if e.workers < e.concurrency && e.coming.Load() == 0 {
		if j := e.agenda.next(); j != nil && j.at <= now {
			e.workers++
			e.coming.Add(1)
			go e.work(&attempt{})
		}
	}
	e.arm(now)
}

// work makes attempts until none is due. It begins by concluding a, if that has a job.
func (e *Engine) work(a *attempt) {
	leaves := false
	defer func() {
		if !leaves { // runtime.Goexit in a handler or Observe ends this goroutine: another one takes its place
			e.coming.Add(1)
			go e.work(a)
		}
	}()
	for e.next(a) {
		e.make(a)
		if a.next.end != nil {
			e.settle(a)
		}
		e.coming.Add(1)
	}
	leaves = true
}

// next concludes the attempt that was made, if there was one, and leases the next. It reports false, and a has no job, if
// the worker is to leave.
func (e *Engine) next(a *attempt) bool {
	ctx, cancel := context.WithCancelCause(context.Background()) // here, since the lock is what all wait for
	e.lock()
	defer e.mu.Unlock()
	e.coming.Add(-1)
	if a.job != nil {
		e.conclude(a)
	}
	now := e.clock.now()
	j := e.agenda.next()
	if e.stopping || j == nil || j.at > now {
		cancel(nil)
		e.workers--
		if e.stopping && e.workers == 0 {
			e.stop()
		}
		e.drive(now)
		return false
	}
	a.ctx, a.cancel = ctx, cancel
	e.lease(j, a, now)
	e.drive(now)
	return true
}

// settle concludes an attempt with which its job has ended, and calls Observe.
func (e *Engine) settle(a *attempt) {
	j, number, cancel := a.job, a.number, a.cancel
	e.lock()
	replays := j.replays
	e.conclude(a)
	e.mu.Unlock()
	defer func() {
		value := recover()
		cancel(nil)
		if value == nil {
			return
		}
		e.lock()
		defer e.mu.Unlock()
		if n := len(j.history) - 1; n >= 0 && j.replays == replays && int(j.history[n].number) == number {
			j.history[n].err = afterwards(j.history[n].err, panicked(j.route.Value().policy, value))
		}
	}()
	a.next.Tell()
}

// lease begins an attempt of j, which is the next to start.
func (e *Engine) lease(j *job, a *attempt, now instant) {
	e.agenda.take(j)
	a.job, a.number, a.status, a.due, a.start, a.watch = j, int(j.attempts)+1, j.status, j.at, now, nil
	if j.live != nil {
		a.watch = j.live.watch
	}
	j.live = &a.live
	j.at = now
	e.become(j, Leased)
}

// conclude stores what came of an attempt that was made.
func (e *Engine) conclude(a *attempt) {
	j := a.job
	a.job, j.live = nil, nil
	if a.watch != nil {
		j.live = &live{watch: a.watch} // the attempt is needed for the next job
	}
	switch {
	case j.status == Leased:
		e.store(j, &a.rec)
	case a.removed:
		a.removed = false
		delete(e.jobs, j.id)
	default:
		j.note(&a.rec, e.clock) // canceled meanwhile: the attempt is recorded, and the status stays
	}
}

// make makes an attempt, so that a.rec says what came of it however the handler ends.
func (e *Engine) make(a *attempt) {
	clear(a.rec.History)
	a.rec = a.job.record(e.clock, a.rec.History[:0])
	a.rec.Status, a.rec.Due = a.status, e.clock.time(a.due)
	a.next = Next{}
	returned := false
	var err error
	defer func() {
		value := recover()
		switch {
		case value != nil:
			err = panicked(a.rec.Policy, value)
		case !returned && !errors.Is(context.Cause(a.ctx), ErrShutdown): // with it the attempt counts as not made, as Step has seen to
			err = fmt.Errorf("retryjob: a function of policy %q ended its goroutine", a.rec.Policy)
		}
		if err != nil {
			a.abandon(err, value != nil)
		}
		if a.next.end == nil {
			a.cancel(nil)
		}
	}()
	handler, job := e.handlers[a.job.route.Value().kind], a.job.job(e.clock)
	a.next, err = e.stepper.Step(a.ctx, &a.rec, a.number, func(ctx context.Context) error { return handler(ctx, job) })
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

// lock locks the engine for producers and workers. It is held for about a microsecond, and to be put to sleep and woken takes
// several, so a goroutine that finds it locked yields and tries again, and sleeps if that does not help.
func (e *Engine) lock() {
	for range 30 { // found by measuring
		if e.mu.TryLock() {
			return
		}
		runtime.Gosched()
	}
	e.mu.Lock()
}
