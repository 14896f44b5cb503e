package retryjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

// attempt is one attempt of a job, from its lease until the job is stored. A worker uses one for all that it makes.
type attempt struct {
	job   *job
	live  *live
	info  AttemptInfo
	rec   Record // the worker's own; the job's once it is stored
	next  Next   // what Step returned
	asked Job    // which Policies are asked about
}

// wait makes j, which is locked, wait in its lane.
func (e *Engine) wait(j *job, now instant) {
	l := j.route.Value().lane
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(j, now)
	e.drive(l, now)
}

// drive sees to it that what is due is started, now or when a worker is free, and that the timer is set for what is
// not. The lane is locked.
//
// None is started while one is coming for its next job: that one takes the job and sees to the next. So a burst of
// short jobs is worked on by as many goroutines as it keeps busy, not by as many as there is room for and that would
// wait for the lock.
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

// fire does what the lane's timer was set for.
func (e *Engine) fire(l *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = 0
	now := e.clock.now()
	l.advance(now)
	e.drive(l, now)
}

// work makes attempts until none is due. It begins by concluding a, if that has a job.
func (e *Engine) work(l *lane, a *attempt) {
	leaves := false
	defer func() {
		if leaves {
			e.working.Done()
		} else { // runtime.Goexit in a handler or Observe ends this goroutine: another one takes its place
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

// next concludes the attempt that was made, if there was one, and leases the next job. It reports false, and a has no
// job, if the worker is to leave.
func (e *Engine) next(l *lane, a *attempt) bool {
	now := e.clock.instant(a.rec.Ended)
	if a.job == nil || a.next.Status != Succeeded { // no code of the policy has run since
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

// take removes the job that comes next from the lane and returns it. If it returns nil, the worker has left.
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

// lease begins an attempt, and reports false if the job was canceled meanwhile or the engine stops.
func (e *Engine) lease(j *job, a *attempt, now instant) bool {
	defer e.lock(j).mu.Unlock()
	if !j.waits() {
		return false
	}
	if e.stopping.Load() { // Shutdown finds it in its lane
		e.wait(j, now)
		return false
	}
	a.job, a.next = j, Next{}
	clear(a.rec.History)
	a.rec.History = a.rec.History[:0]
	j.record(&a.rec, e.clock, false)
	a.rec.Status, a.rec.Due = j.status, e.clock.time(j.at)
	a.live = &live{
		clock: &e.clock, id: j.id, route: j.route, correlation: j.correlation, first: j.first, start: now,
		number: int32(j.attempts) + 1, replays: j.replays,
	}
	j.attempt, j.at = a.live, now
	e.become(j, Leased)
	return true
}

// conclude stores what came of an attempt that was made. It returns the job's place among the changes.
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
		j.note(&a.rec, e.clock) // canceled meanwhile: the attempt is recorded, and the status stays
	}
	return j.changed
}

// settle concludes an attempt with which its job has ended, and calls Observe.
func (e *Engine) settle(a *attempt) {
	j, live := a.job, a.live
	s := e.shard(j.place)
	changed := e.conclude(a, e.clock.now())
	defer func() {
		value := recover()
		live.end()
		if value == nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if h := &j.last; j.changed == changed {
			h.text = h.text[:h.code] + afterwards(h.text[h.code:], panicked(j.route.Value().policy, value))
		}
	}()
	a.next.Tell()
}

// make makes an attempt, so that a.rec says what came of it however the handler ends.
func (e *Engine) make(a *attempt) {
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
	a.asked = a.rec.Job()
	a.info = infoOf(&a.rec, int(a.live.number))
	st := step{Stepper: &e.stepper, rec: &a.rec, info: &a.info}
	st.policy, err = e.stepper.Policies.Of(&a.asked)
	if err = st.open(err); err == nil {
		a.next = st.step(a.live, e.clock.time(a.live.start), a.call)
	}
	returned = true
}

// call calls the handler.
func (a *attempt) call(ctx context.Context) error {
	r := a.job.route.Value()
	job := a.asked
	job.Queue, job.Priority, job.Tags = r.queue, r.priority, r.tagList()
	job.Payload = append(json.RawMessage(nil), a.job.payload...)
	return r.kind.handler(ctx, job)
}

// abandon records an attempt that was ended by something other than its handler: its policy is unknown, or code of the
// policy has panicked. If nothing was decided, trying again would come to the same.
func (a *attempt) abandon(err error, afterPanic bool) {
	switch n := len(a.rec.History); {
	case a.rec.Attempts < a.info.Number && !a.rec.Status.Final():
		now := time.Now()
		a.rec.note(Attempt{
			ID: a.rec.AttemptID(a.info.Number), Number: a.info.Number, Start: now, End: now,
			Status: DeadLettered, Reason: retry.TerminalError, Err: text(err),
		})
		a.rec.end(DeadLettered, retry.TerminalError, now)
	case afterPanic && n > 0 && a.rec.Attempts == a.info.Number:
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
