package retryjob

import (
	"context"
	"encoding/json"
	"time"

	"github.com/retrygo/retry"
)

// attempt is one attempt of a job, from the lease until the result is stored. A worker uses the same attempt for all of
// its jobs.
type attempt struct {
	job   *job
	live  *live
	rec   Record // a copy; conclude stores it in the job
	next  Next   // what Step returned
	asked Job    // the argument of Policies
}

// wait puts j, whose shard is locked, into its lane.
func (e *Engine) wait(j *job, now instant) {
	l := j.route.Value().lane
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(j, now)
	e.drive(l, now)
}

// drive starts a worker for due jobs if one is needed, and otherwise sets the timer for later jobs. The lane is locked.
//
// It starts no worker while another one is about to ask for its next job: that worker takes the due job and calls drive
// again. So a burst of short jobs has as many goroutines as it keeps busy. More of them would only wait for the lock.
func (e *Engine) drive(l *lane, now instant) {
	switch {
	case e.stopping.Load():
	case l.isDue():
		if l.workers < l.concurrency && l.coming.Load() == 0 {
			l.workers++
			l.coming.Add(1)
			e.working.Add(1)
			go e.work(l, new(attempt))
		}
	case len(l.later) > 0 && (l.armed == 0 || l.armed > l.later[0].due):
		l.armed = l.later[0].due
		if d := time.Duration(l.armed - now); l.timer == nil {
			l.timer = time.AfterFunc(d, func() { e.fire(l) })
		} else {
			l.timer.Reset(d)
		}
	}
}

// fire is called by the timer of the lane.
func (e *Engine) fire(l *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = 0
	now := e.clock.now()
	l.advance(now)
	e.drive(l, now)
}

// work makes attempts until none is due. If a has a job, work concludes that attempt first.
func (e *Engine) work(l *lane, a *attempt) {
	leaves := false
	defer func() {
		if leaves {
			e.working.Done()
		} else { // runtime.Goexit in a handler or Observe ends this goroutine, so start another one
			l.coming.Add(1)
			go e.work(l, a)
		}
	}()
	for e.next(l, a) {
		e.make(a)
		if a.next.end != nil {
			e.settle(a)
		}
		l.coming.Add(1)
	}
	leaves = true
}

// next concludes the attempt of a, if a has a job, and leases the next job. It reports false if there is none, so that
// the worker must leave.
func (e *Engine) next(l *lane, a *attempt) bool {
	now := e.clock.instant(a.rec.Ended)
	if a.job == nil || a.next.Status != Succeeded { // after a success, no function of the policy has run since
		now = e.clock.now()
	}
	if a.job != nil {
		e.conclude(a, now)
	}
	for j := e.take(l, now); j != nil; j = e.take(l, now) {
		if e.lease(j, a, now) {
			return true
		}
		l.coming.Add(1)
	}
	return false
}

// take removes the next job from the lane and returns it. If it returns nil, the worker no longer counts.
func (e *Engine) take(l *lane, now instant) (j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.coming.Add(-1)
	l.advance(now)
	if !e.stopping.Load() {
		j = l.next()
	}
	if j == nil {
		l.workers--
	}
	e.drive(l, now)
	return j
}

// lease begins an attempt. It reports false if the job was canceled meanwhile or the engine is stopping.
func (e *Engine) lease(j *job, a *attempt, now instant) bool {
	defer e.lock(j).mu.Unlock()
	if !j.waits() {
		return false
	}
	if e.stopping.Load() { // so that Shutdown finds it in its lane
		l := j.route.Value().lane
		l.mu.Lock()
		defer l.mu.Unlock()
		l.add(j, now)
		return false
	}
	now = max(now, j.at) // now may be a moment old, but no attempt starts before its job is due
	a.job, a.next = j, Next{}
	clear(a.rec.History)
	a.rec.History = a.rec.History[:0]
	j.record(&a.rec, e.clock, false)
	a.rec.Status, a.rec.Due = j.status, e.clock.time(j.at)
	a.live = &live{start: now, info: infoOf(&a.rec, int(j.attempts)+1)}
	a.live.Context, a.live.cancel = context.WithCancelCause(context.Background())
	j.attempt, j.at = a.live, now
	e.become(j, Leased)
	return true
}

// conclude stores the result of an attempt that was made. It returns job.changed.
func (e *Engine) conclude(a *attempt, now instant) uint64 {
	j := a.job
	a.job = nil
	defer e.lock(j).mu.Unlock()
	j.attempt = nil
	switch j.status {
	case Leased:
		j.keep(&a.rec, e.clock)
		e.store(j, a.rec.Status, now)
	case 0: // removed meanwhile
		e.drop(j)
	default:
		j.note(&a.rec, e.clock) // canceled meanwhile: record the attempt and keep the status
	}
	return j.changed
}

// settle concludes an attempt that ended its job, and calls Observe.
func (e *Engine) settle(a *attempt) {
	j, live := a.job, a.live
	s := e.shard(j.place)
	changed := e.conclude(a, e.clock.now())
	defer func() {
		value := recover()
		live.cancel(nil)
		if value == nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
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
	a.asked = a.rec.Job()
	st := step{Stepper: &e.stepper, rec: &a.rec, info: &a.live.info}
	var err error
	if st.policy, err = e.policy(&a.asked); st.open(err) != nil {
		a.next = st.postpone(e.stepper.now().Add(PutOff))
		return
	}
	a.next = st.step(a.live, e.clock.time(a.live.start), a.call)
}

// policy is Policies.Of, with an error for a panic.
func (e *Engine) policy(j *Job) (p retry.Policy, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(j.Policy, value)
		}
	}()
	return e.stepper.Policies.Of(j)
}

// call calls the handler.
func (a *attempt) call(ctx context.Context) error {
	r := a.job.route.Value()
	job := a.asked
	job.Queue, job.Priority, job.Tags = r.queue, r.priority, r.tagList()
	job.Payload = append(json.RawMessage(nil), a.job.payload...)
	return r.kind.handler(ctx, job)
}
