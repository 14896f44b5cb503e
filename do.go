package retry

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/retrygo/retry/internal/attempt"
)

// epoch is a fixed instant. time.Since of it reads only the monotonic clock, which is cheaper than time.Now.
var epoch = time.Now()

// maxFailed is the number of failed attempts that a run keeps, the first and the newest 63.
const maxFailed = 64

// Do calls fn until it returns nil, p ends the run or ctx is done. It returns nil if and only if fn returned nil.
// Otherwise it returns an *Error with the Outcome, the last error and the cause. Do refuses a policy that does not
// validate, a nil fn and a nil ctx before any attempt, with FieldErrors.
//
// fn runs in the caller's goroutine. Its context ends with the attempt if AttemptTimeout is set, and at the latest with
// ctx. Timeouts are cooperative, so Do waits for an fn that ignores its context. A result that comes late is a result.
// A panic and runtime.Goexit in fn pass through.
//
// Do waits in the caller's goroutine and starts none. It does not wait if the wait would end at or after ctx's deadline
// or after the TTL. When ctx is canceled during a wait, Do returns at once.
func Do(ctx context.Context, p Policy, fn func(context.Context) error) error {
	if ctx == nil || fn == nil || !p.plain() {
		if err := refused(ctx, &p, fn); err != nil {
			return err
		}
	}
	began := time.Since(epoch)
	if p.Gate != nil || ctx.Err() != nil || attempt.Number(ctx) != 0 { // a context of OneAttempt has a number too
		return newRun(ctx, began).loop(ctx, &p, fn, nil)
	}
	// The first attempt needs no state, so a call that succeeds at once does not allocate, unless it is the only
	// attempt.
	first := ctx
	if p.Disabled || p.MaxAttempts == 1 {
		first = attempt.Mark(ctx, 1, true)
	}
	var err error
	if p.AttemptTimeout == 0 {
		err = fn(first)
	} else {
		err = limited(first, p.AttemptTimeout, fn)
	}
	if err != nil {
		return newRun(ctx, began).loop(ctx, &p, fn, err)
	}
	p.Budget.fund()
	if p.Observe != nil {
		observeSuccess(ctx, &p, &Outcome{Attempts: 1, Elapsed: time.Since(epoch) - began})
	}
	return nil
}

// Continue is the rest of a run whose first attempt the caller has made. That attempt began the given time ago and has
// just failed with err. It returns the result of Do. It is for shells that make the first attempt without
// the overhead of a run, such as package retryhttp. Neither the Gate nor AttemptTimeout applies to that attempt. It
// refuses a nil err and everything that Do refuses.
func (p Policy) Continue(ctx context.Context, took time.Duration, err error, fn func(context.Context) error) error {
	if bad := refused(ctx, &p, fn); bad != nil {
		return bad
	}
	if err == nil {
		return FieldErrors{&FieldError{Field: "Continue.err", Value: "<nil>", Rule: "is not an error"}}
	}
	return newRun(ctx, time.Since(epoch)-max(took, 0)).loop(ctx, &p, fn, err)
}

// Draw returns the u that Decide needs, a number in [0,1) from Rand, or from math/rand/v2 if that is nil. It returns 0
// without a call if the policy has no jitter.
func (p Policy) Draw() float64 {
	if p.jitter() == NoJitter {
		return 0
	}
	return p.draw()
}

func (p *Policy) draw() float64 {
	if p.Rand == nil {
		return rand.Float64()
	}
	return p.Rand()
}

// limited calls fn with a context that ends with the attempt, and after timeout at the latest. 0 means no timeout.
func limited(ctx context.Context, timeout time.Duration, fn func(context.Context) error) error {
	if timeout == 0 {
		return fn(ctx)
	}
	deadline := time.Now().Add(timeout)
	if callers, ok := ctx.Deadline(); ok && !deadline.Before(callers) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return fn(ctx)
	}
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, ErrAttemptTimeout)
	defer cancel()
	err := fn(ctx)
	if context.Cause(ctx) == ErrAttemptTimeout && !time.Now().Before(deadline) { // not the caller's alone
		err = attempt.MarkTimeout(err)
	}
	return err
}

// run is the state of a run, all but the context and the policy, which do not change.
type run struct {
	Progress             // as of the last look
	start    time.Time   // of the run, from the clock read in newRun, since the wall clock may have been set after epoch
	decision Decision    // in force, another attempt or the end
	paid     bool        // Budget has paid for a retry that has not returned yet
	byGate   bool        // the end is due to the gate's deferral
	failed   []Attempt   // the first and the newest
	room     [1]Attempt  // for failed, so that a run with one failure needs no list of its own
	timer    *time.Timer // for all waits, nil before the first
}

// newRun returns a run that began at the given time since epoch and is about to make its first attempt.
func newRun(ctx context.Context, began time.Duration) *run {
	now := time.Now()
	r := &run{start: now.Add(began - now.Sub(epoch)), decision: Decision{Status: WaitingRetry}}
	r.failed = r.room[:0]
	if deadline, ok := ctx.Deadline(); ok {
		r.Deadline = deadline.Sub(r.start)
		if r.Deadline == 0 { // which is no deadline
			r.Deadline = -1
		}
	}
	return r
}

// loop makes attempts until one succeeds or a decision ends the run, and returns the result of Do. err is the error of
// the first attempt, or nil if that is yet to be made. p is the run's own copy.
//
// Whatever can take time is followed by a look at clock and context. The wait is in loop itself, and the rest in
// methods, so that the stack of a goroutine that waits fits in 2 KB (BenchmarkWaiters).
func (r *run) loop(ctx context.Context, p *Policy, fn func(context.Context) error, err error) error {
	defer r.refund(p) // if a function of the caller panics
	p.Disabled = p.Disabled || attempt.Outer(ctx) > 0
	if err != nil {
		r.follow(ctx, p, err)
	}
	for r.decision.Status == WaitingRetry {
		wait := r.decision.Delay
		if wait > 0 && r.arm(wait) {
			select {
			case <-ctx.Done():
			case <-r.timer.C:
			}
		}
		decidedNow := wait == 0 && p.Gate == nil && r.Attempt > 0
		if !decidedNow {
			r.admit(ctx, p)
			if r.decision.Status != WaitingRetry || r.decision.Delay > 0 {
				continue
			}
		}
		r.follow(ctx, p, r.try(ctx, p, fn))
	}
	return r.end(ctx, p)
}

// look reads the clock and the context, and returns the time since the last look.
//
//go:noinline
func (r *run) look(ctx context.Context) time.Duration {
	last := r.Elapsed
	r.Elapsed = time.Since(r.start)
	r.ask(ctx)
	return r.Elapsed - last
}

// arm sets the timer to the end of a wait that was decided on at the last look. It reports whether that lies ahead.
func (r *run) arm(wait time.Duration) bool {
	left := wait - (time.Since(r.start) - r.Elapsed)
	switch {
	case left <= 0:
		return false
	case r.timer == nil:
		r.timer = time.NewTimer(left)
	default:
		r.timer.Reset(left)
	}
	return true
}

// admit decides whether the next attempt may start now. If the gate defers it, the decision has a Delay.
func (r *run) admit(ctx context.Context, p *Policy) {
	r.look(ctx)
	r.decision = p.admit(&r.Progress, 0)
	if p.Gate == nil || r.decision.Status != WaitingRetry {
		return
	}
	wait := p.Gate(ctx)
	r.recheck(ctx, p)
	if r.decision.Status == WaitingRetry {
		r.decision = p.admit(&r.Progress, wait)
		r.byGate = r.decision.Status != WaitingRetry
	}
}

// recheck looks again after a function of the caller, and ends the run if it is too late by now for an attempt after
// the Delay that was decided on.
func (r *run) recheck(ctx context.Context, p *Policy) {
	r.look(ctx)
	again := p.admit(&r.Progress, r.decision.Delay)
	if again.Status != WaitingRetry {
		r.decision.end(again.Reason)
	}
}

// try makes the next attempt.
func (r *run) try(ctx context.Context, p *Policy, fn func(context.Context) error) error {
	number := next(r.Attempt)
	last := p.lastByCount(number, r.Forgiven)
	err := limited(attempt.Mark(ctx, number, last), p.AttemptTimeout, fn)
	r.paid = false // for a retry that has returned
	return err
}

// follow decides what follows an attempt that ended with err, pays for a retry and calls Observe.
func (r *run) follow(ctx context.Context, p *Policy, err error) {
	r.Attempt = next(r.Attempt)
	if err == nil {
		r.decision = Decision{Status: Succeeded}
		return
	}
	r.Lasted = r.look(ctx)
	endedAt := r.Elapsed
	r.decide(ctx, p, err)
	if r.decision.Status == WaitingRetry && (p.Budget != nil || p.Pay != nil) {
		r.pay(ctx, p)
	}
	r.record(err, endedAt)
	if p.Observe != nil {
		r.observe(ctx, p, endedAt)
	}
}

// observe calls Observe with the last attempt, which ended at the given time since the start.
func (r *run) observe(ctx context.Context, p *Policy, endedAt time.Duration) {
	last := r.failed[len(r.failed)-1]
	p.Observe(ctx, Event{Policy: p.Name, Elapsed: endedAt, Attempt: last, Decision: r.decision})
	if r.decision.Status == WaitingRetry {
		r.recheck(ctx, p)
	} else {
		r.look(ctx)
	}
}

// decide makes the decision about an attempt that ended with err, but for the budget.
func (r *run) decide(ctx context.Context, p *Policy, err error) {
	var found finding
	found.search(err)
	d := Decision{Class: p.class(&found, err), Hint: found.hint}
	if p.Classify != nil {
		r.look(ctx)
	}
	p.reset(&r.Progress, found.progressed)
	var u float64
	if p.jitter() != NoJitter {
		if p.mayFollow(d, &r.Progress) { // otherwise Rand need not be called
			u = p.draw()
		}
		if p.Rand != nil {
			r.look(ctx)
		}
	}
	p.decide(&d, &r.Progress, err, u)
	r.Prev = d.Backoff
	r.Forgiven = d.Forgiven
	r.decision = d
}

// pay pays for the retry that was decided on.
func (r *run) pay(ctx context.Context, p *Policy) {
	p.spend(ctx, &r.decision, r.start.Add(r.Elapsed))
	r.paid = r.decision.Status == WaitingRetry
	if p.Pay != nil {
		r.recheck(ctx, p) // the reason of a caller that has gone comes before a refusal
	}
	if r.decision.Status != WaitingRetry {
		r.refund(p)
	}
}

// refund returns the token of a retry that was not made or did not return.
func (r *run) refund(p *Policy) {
	if r.paid {
		r.paid = false
		p.Budget.Refund()
	}
}

// record keeps the attempt that failed with err, at the given time since the start.
func (r *run) record(err error, endedAt time.Duration) {
	switch len(r.failed) {
	case 1:
		r.failed = append(make([]Attempt, 0, 4), r.failed...) // one allocation for the second to the fourth
	case maxFailed:
		r.failed = slices.Delete(r.failed, 1, 2)
	}
	r.failed = append(r.failed, Attempt{
		Number: r.Attempt, Start: r.start.Add(endedAt - r.Lasted), Duration: r.Lasted,
		Class: r.decision.Class, Err: err, Delay: r.decision.Delay,
	})
}

// end returns the result of Do, and calls Observe with it.
func (r *run) end(ctx context.Context, p *Policy) error {
	r.refund(p)
	if r.decision.Status == Succeeded {
		p.Budget.fund()
		if p.Observe != nil {
			r.look(ctx)
			observeSuccess(ctx, p, &Outcome{Attempts: r.Attempt, Elapsed: r.Elapsed, History: r.history()})
		}
		return nil
	}
	e := &Error{Outcome: Outcome{History: r.history()}} // field by field, in a small frame
	e.Policy = p.Name
	e.Status = r.decision.Status
	e.Reason = r.decision.Reason
	e.EndedByGate = r.byGate
	e.Attempts = r.Attempt
	e.Elapsed = r.Elapsed
	if n := len(r.failed); n > 0 {
		e.Last = r.failed[n-1].Err
	}
	e.complete(ctx, p)
	if p.Observe != nil {
		observeFailure(ctx, p, r.decision, e)
	}
	return e
}

// history returns the failed attempts of a run that has ended, which are its receiver's from then on.
func (r *run) history() []Attempt {
	if len(r.failed) == 0 {
		return nil
	}
	return r.failed
}

func observeSuccess(ctx context.Context, p *Policy, o *Outcome) {
	o.Policy = p.Name
	o.Status = Succeeded
	p.Observe(ctx, Event{Policy: p.Name, Elapsed: o.Elapsed, Decision: Decision{Status: Succeeded}, Outcome: o})
}

// observeFailure calls Observe for a run that d has ended and whose result is e.
func observeFailure(ctx context.Context, p *Policy, d Decision, e *Error) {
	_ = e.Cause() // a record keeps no context alive
	copied := *e
	copied.History = slices.Clone(e.History)
	p.Observe(ctx, Event{Policy: p.Name, Elapsed: e.Elapsed, Decision: d, Outcome: &copied.Outcome, Err: &copied})
}

// cause is context.Cause of a context. It is asked for when it is first needed, because the question takes the
// context's lock, and 100,000 waiters that one cancellation wakes would ask at once (BenchmarkWaiterCancel of bench).
// From then on it keeps no context alive.
type cause struct {
	once sync.Once
	ctx  context.Context
	err  error
}

func (c *cause) get() error {
	c.once.Do(func() {
		c.err = context.Cause(c.ctx)
		c.ctx = nil
	})
	return c.err
}
