package retryjob

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/retrygo/retry/retryshell"
)

// attempt is one attempt of a job, from the lease until the result is stored. A worker uses the same attempt for all of
// its jobs.
type attempt struct {
	job  *job
	live *live
	rec  Record // a copy; conclude stores it in the job
	next Next   // the result of Step
	idle bool   // its worker has no more jobs
}

// live is the context of an attempt. Each attempt has its own, since a handler may keep it.
type live struct {
	context.Context
	cancel context.CancelCauseFunc
	start  instant
	info   AttemptInfo
}

func (l *live) Value(key any) any {
	if key == (retryshell.HandledJob{}) {
		return &l.info
	}
	return l.Context.Value(key)
}

// work makes attempts until none is due. If a has a job, work concludes that attempt first.
func (e *Engine) work(l *lane, a *attempt) {
	defer e.leave(l, a)
	for e.next(l, a) {
		e.make(a)
		if a.next.end != nil {
			e.settle(a)
		}
		l.coming.Add(1)
	}
}

// leave ends the goroutine of a worker. If the worker has jobs, runtime.Goexit in a handler or Observe ends it, and the
// worker goes on in another goroutine.
func (e *Engine) leave(l *lane, a *attempt) {
	if a.idle {
		return
	}
	l.coming.Add(1)
	go e.work(l, a)
}

// next concludes the attempt of a, if a has a job, and leases the next job. It reports false if there is none, so that
// the worker must leave.
func (e *Engine) next(l *lane, a *attempt) bool {
	now := e.clock.instant(a.rec.Ended)
	if a.job == nil || a.next.Status != Succeeded { // after a success, no function of the policy has run since
		now = e.clock.now()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.job != nil {
		e.conclude(a, now)
	}
	l.coming.Add(-1)
	var j *job
	if !e.stopping {
		j = l.next(now)
	}
	if j != nil {
		e.lease(j, a, max(now, j.at)) // now may be a moment old, but no attempt starts before its job is due
	} else {
		a.idle = true
		l.workers--
		e.stop()
	}
	e.drive(l, now)
	return j != nil
}

// lease begins an attempt.
func (e *Engine) lease(j *job, a *attempt, now instant) {
	a.job, a.next = j, Next{}
	clear(a.rec.History)
	a.rec.History = a.rec.History[:0]
	j.record(&a.rec, e.clock)
	a.rec.Status, a.rec.Due = j.status, e.clock.time(j.at)
	a.live = &live{start: now, info: infoOf(&a.rec, int(j.attempts)+1)}
	a.live.Context, a.live.cancel = context.WithCancelCause(context.Background())
	j.attempt, j.at = a.live, now
	e.become(j, Leased)
}

// conclude stores the result of an attempt that was made. It returns job.changed.
func (e *Engine) conclude(a *attempt, now instant) uint64 {
	j := a.job
	a.job, j.attempt = nil, nil
	switch j.status {
	case Leased:
		j.keep(&a.rec, e.clock)
		e.store(j, a.rec.Status, now)
	case 0: // removed meanwhile
		delete(e.jobs, j.id)
	default:
		j.note(&a.rec, e.clock) // canceled meanwhile: record the attempt and keep the status
	}
	return j.changed
}

// settle concludes an attempt that ended its job, and calls Observe.
func (e *Engine) settle(a *attempt) {
	j, live := a.job, a.live
	e.mu.Lock()
	changed := e.conclude(a, e.clock.now())
	e.mu.Unlock()
	defer func() {
		value := recover()
		live.cancel(nil)
		if value == nil {
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if j.changed == changed {
			code, err := j.last.split()
			j.last.text = code + afterwards(err, panicked(j.route.Value().policy, value))
		}
	}()
	a.next.Tell()
}

// make makes an attempt. a.rec has its result, even if the handler ends its goroutine.
func (e *Engine) make(a *attempt) {
	defer func() {
		if a.next.end == nil {
			a.live.cancel(nil)
		}
	}()
	st := step{Stepper: &e.stepper, rec: &a.rec, info: &a.live.info}
	if err := st.find(); err != nil {
		a.next = st.postpone(e.stepper.now().Add(PutOff))
		return
	}
	a.next = st.step(a.live, e.clock.time(a.live.start), a.call)
}

// call calls the handler.
func (a *attempt) call(ctx context.Context) error {
	r, job := a.job.route.Value(), a.rec.Job()
	job.Queue = r.queue
	job.Priority = r.priority
	job.Tags = r.tagList()
	job.Payload = append(json.RawMessage(nil), a.job.payload...)
	return r.kind.handler(ctx, job)
}

// Shutdown implements Queue. It returns the jobs of a queue in the order in which they were to start, for the caller to
// persist or discard. Wait returns ErrShutdown for each of them. A second Shutdown waits for the first, ends attempts
// when its own ctx ends, and returns the same slice. Only calls of the other methods remove jobs from then on.
func (e *Engine) Shutdown(ctx context.Context) (left []Info, err error) {
	if ctx == nil {
		return nil, errNoContext
	}
	e.mu.Lock()
	if !e.stopping {
		e.stopping = true // workers leave from now on
		if e.timer != nil {
			e.timer.Stop()
		}
		if e.endRecurring != nil {
			e.endRecurring()
		}
		for j := range e.watches { // a handler that Shutdown waits for may wait for another job
			if j.waits() {
				e.release(j, ErrShutdown)
			}
		}
		e.stop()
	}
	e.mu.Unlock()
	select {
	case <-e.stopped:
	case <-ctx.Done():
		e.mu.Lock()
		for _, at := range e.logs[Leased].spots {
			if !at.stale() {
				e.cut = cmp.Or(e.cut, ctx.Err())
				at.job.attempt.cancel(ErrShutdown)
			}
		}
		e.mu.Unlock()
		<-e.stopped
	}
	return e.left, e.cut
}

// stop ends Shutdown once no worker is left.
func (e *Engine) stop() {
	for _, l := range e.lanes {
		if !e.stopping || l.workers > 0 {
			return
		}
	}
	for _, l := range e.lanes {
		for now := e.clock.now(); ; now = l.later[0].due {
			for j := l.next(now); j != nil; j = l.next(now) {
				var i Info
				j.info(&i, e.clock)
				e.left = append(e.left, i)
			}
			if len(l.later) == 0 {
				break
			}
		}
	}
	close(e.stopped)
}
