package retry

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/retrygo/retry/internal/attempt"
	"github.com/retrygo/retry/internal/saturate"
)

// epoch is a fixed instant: time.Since of it reads only the monotonic clock, which is cheaper than time.Now.
var epoch = time.Now()

// Do calls fn until it returns nil, p ends the run or ctx is done. It returns nil if and only if fn returned nil;
// otherwise it returns an *Error with the Outcome, the last error and the cause. Do refuses a policy that does not
// validate, a nil fn and a nil ctx before any attempt, with FieldErrors.
//
// fn runs in the caller's goroutine. Its context ends with the attempt if AttemptTimeout is set, and at the latest with
// ctx; timeouts are cooperative, so Do waits for an fn that ignores its context. A result that comes late is a result.
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
		return loop(ctx, &p, fn, newRun(ctx, &p, began), nil)
	}
	// A first attempt needs no state: this makes BenchmarkFirstTry free of allocations.
	var err error
	if p.AttemptTimeout == 0 {
		err = fn(ctx)
	} else {
		err = limited(ctx, p.AttemptTimeout, fn)
	}
	if err != nil {
		return loop(ctx, &p, fn, newRun(ctx, &p, began), err)
	}
	p.Budget.fund()
	if p.Observe != nil {
		observeSuccess(ctx, &p, &Outcome{Attempts: 1, Elapsed: time.Since(epoch) - began})
	}
	return nil
}

// Continue is the rest of a run whose first attempt the caller has made: it began the given time ago and has just failed
// with err. It returns what Do would have returned. It is for shells that make the first attempt without the overhead
// of a run, such as package retryhttp; neither the Gate nor AttemptTimeout applies to that attempt. It refuses a nil
// err and everything that Do refuses.
func (p Policy) Continue(ctx context.Context, took time.Duration, err error, fn func(context.Context) error) error {
	if bad := refused(ctx, &p, fn); bad != nil {
		return bad
	}
	if err == nil {
		return &FieldError{Field: "Continue.err", Value: "<nil>", Rule: "is not an error"}
	}
	return loop(ctx, &p, fn, newRun(ctx, &p, time.Since(epoch)-max(took, 0)), err)
}

// loop runs attempts until one succeeds or a decision ends the run, and returns what Do does. err is what the first
// attempt ended with; nil means that it is yet to be made. p is the run's own copy.
//
// The clock and the context are read again after everything that can take time:
//
//	after                          the clock  the context
//	an attempt                     loop       decide
//	Classify                       decide     decide
//	Rand                           decide     decide
//	Pay                            late       late
//	Observe of a failed attempt    late       late
//	a wait                         loop       mayStart
//	Gate                           late       late
//	Observe of the end             nothing follows
//
// A goroutine that waits here fits in 2 KB of stack (BenchmarkWaiters): what needs more is in functions of its own.
func loop(ctx context.Context, p *Policy, fn func(context.Context) error, r *run, err error) error {
	p.Disabled = p.Disabled || attempt.Outer(ctx) > 0
	var delay time.Duration
	ended := false
	if err != nil {
		r.Lasted = r.tick()
		delay, ended, err = r.follow(ctx, p, err)
	}
	var timer *time.Timer // one for all waits
	for !ended {
		if delay > 0 {
			if left := delay - r.tick(); left > 0 { // a wait of nanoseconds is over by now
				if timer == nil {
					timer = time.NewTimer(left)
				} else {
					timer.Reset(left)
				}
				select {
				case <-ctx.Done():
				case <-timer.C:
				}
				r.tick()
			}
		}
		if delay > 0 || p.Gate != nil || r.Attempt == 0 { // otherwise what was decided still holds: BenchmarkRetries
			if delay, ended, err = r.admit(ctx, p); ended || delay > 0 {
				continue
			}
		}
		if err = r.attempt(ctx, p, fn); err != nil {
			r.Lasted = r.tick()
		}
		delay, ended, err = r.follow(ctx, p, err)
	}
	return err
}

// JitteredDelay returns the wait after the given failed attempt, drawn with Rand evenly between its Bounds; it does not
// ask Wait. attempt counts from 1; anything below counts as 1. The method value p.JitteredDelay is for other libraries'
// hooks. One that counts from 0 needs attempt+1: otherwise the first wait is repeated and every later one is a step late.
// A hook gets no error, and so no hint, and cannot end a run: MaxAttempts, TTL, AttemptTimeout and the errors to retry
// are settings of the library.
func (p Policy) JitteredDelay(attempt int) time.Duration {
	lo, hi := p.Bounds(attempt)
	if lo < hi {
		lo += saturate.Within(hi-lo, p.draw())
	}
	return lo
}

func (p *Policy) draw() float64 {
	if p.Rand == nil {
		return rand.Float64()
	}
	return p.Rand()
}

// limited calls fn with a context that ends with the attempt, and after timeout at the latest; 0 means no timeout.
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

// run is the state of a run of more than one attempt. For BenchmarkWaiters it is small and on the heap, and does not
// hold what loop has anyway: the context, the policy and the timer.
type run struct {
	Progress
	began   time.Duration // since epoch
	history history
}

func newRun(ctx context.Context, p *Policy, began time.Duration) *run {
	r := &run{began: began}
	if deadline, ok := ctx.Deadline(); ok {
		r.Deadline = cmp.Or(saturate.Sum(time.Since(epoch)-began, time.Until(deadline)), -1)
	}
	return r
}

// tick reads the clock and returns how much time has passed since it was last read. It is not inlined for loop's stack.
//
//go:noinline
func (r *run) tick() time.Duration {
	last := r.Elapsed
	r.Elapsed = time.Since(epoch) - r.began
	return r.Elapsed - last
}

// attempt makes the next attempt. A retry that does not return is paid back.
func (r *run) attempt(ctx context.Context, p *Policy, fn func(context.Context) error) error {
	ctx = r.history.context(ctx, next(r.Attempt))
	if p.Budget == nil && p.AttemptTimeout == 0 { // BenchmarkRetries
		return fn(ctx)
	}
	returned := r.Attempt == 0
	defer p.Budget.refundUnless(&returned)
	err := limited(ctx, p.AttemptTimeout, fn)
	returned = true
	return err
}

// admit returns for how long the gate defers the next attempt, or true and what Do returns if it may not start.
func (r *run) admit(ctx context.Context, p *Policy) (delay time.Duration, ended bool, err error) {
	var d Decision
	gated := r.mayStart(ctx, p, &d)
	if d.Status == WaitingRetry {
		return d.Delay, false, nil
	}
	return 0, true, r.end(ctx, p, &d, gated)
}

// mayStart makes d WaitingRetry, with a Delay if the gate defers the attempt, or the ending if no attempt may start: then, and
// if ctx or Gate panics, a retry is paid back. It reports whether the ending is due to the gate's deferral.
func (r *run) mayStart(ctx context.Context, p *Policy, d *Decision) (gated bool) {
	settled := r.Attempt == 0
	defer p.Budget.refundUnless(&settled)
	r.ask(ctx)
	if p.admit(d, &r.Progress, 0); p.Gate != nil && d.Status == WaitingRetry {
		wait := p.Gate(ctx)
		if r.late(ctx, p, d); d.Status == WaitingRetry {
			p.admit(d, &r.Progress, wait)
			gated = d.Status != WaitingRetry
		}
	}
	settled = settled || d.Status == WaitingRetry
	return gated
}

// late makes d the ending if it is too late by now for an attempt after its Delay, since a function of the caller's may
// have taken long.
func (r *run) late(ctx context.Context, p *Policy, d *Decision) {
	r.tick()
	r.ask(ctx)
	var now Decision
	if p.admit(&now, &r.Progress, d.Delay); now.Status != WaitingRetry {
		d.end(now.Reason)
	}
}

// follow notes the attempt that has just ended with err. It returns the wait for the next one, or true and what Do
// returns.
func (r *run) follow(ctx context.Context, p *Policy, err error) (time.Duration, bool, error) {
	r.Attempt = next(r.Attempt)
	var d Decision
	if err == nil {
		d.Status = Succeeded
		p.Budget.fund()
	} else {
		f := r.history.note(r.Attempt)
		f.start, f.duration, f.err = r.Elapsed-r.Lasted, r.Lasted, err
		r.decide(ctx, p, &d, f)
		if p.Budget != nil || p.Pay != nil || p.Observe != nil { // otherwise BenchmarkRetries pays for the call
			r.spend(ctx, p, &d, f)
		}
	}
	if d.Status == WaitingRetry {
		return d.Delay, false, nil
	}
	return 0, true, r.end(ctx, p, &d, false)
}

// decide makes d what follows the failed attempt f. It reads the clock again after a function of the caller's.
func (r *run) decide(ctx context.Context, p *Policy, d *Decision, f *failure) {
	p.reset(&r.Progress)
	if d.Class, d.Hint = p.judge(f.err); p.Classify != nil {
		r.tick()
	}
	r.ask(ctx)
	var u float64
	if p.jitter() != NoJitter {
		if p.conclude(d, &r.Progress, 0); d.Status != WaitingRetry {
			return
		}
		if u = p.draw(); p.Rand != nil {
			r.tick()
			r.ask(ctx)
		}
	}
	p.decide(d, &r.Progress, f.err, u)
	r.Prev, r.Forgiven = d.Backoff, d.Forgiven
	f.delay = d.Delay
}

// spend pays for the retry that d decided on after the failure f, and calls Observe. If it is too late for the retry by
// then, or if ctx or Observe panics, it is paid back.
func (r *run) spend(ctx context.Context, p *Policy, d *Decision, f *failure) {
	var now time.Time
	if p.Budget != nil { // otherwise epoch.Add alone takes a tenth of BenchmarkRetries
		now = epoch.Add(r.began + r.Elapsed)
	}
	p.spend(ctx, d, now)
	settled := d.Status != WaitingRetry
	defer p.Budget.refundUnless(&settled)
	if p.Pay != nil && (d.Status == WaitingRetry || d.Reason == BudgetExhausted) { // a caller that has gone comes before a refusal
		r.late(ctx, p, d)
	}
	f.delay = d.Delay
	if p.Observe != nil {
		a := f.attempt(r.Attempt, d.Class, r.start())
		p.Observe(ctx, Event{Policy: p.Name, Elapsed: f.start + f.duration, Attempt: a, Decision: *d})
		if d.Status == WaitingRetry {
			r.late(ctx, p, d)
		} else {
			r.tick()
		}
	}
	settled = settled || d.Status == WaitingRetry
}

// end returns what Do returns for the ending d, and calls Observe. It fits in the stack of a goroutine that has waited,
// which would otherwise grow for each of many that are canceled.
func (r *run) end(ctx context.Context, p *Policy, d *Decision, gated bool) error {
	if d.Status == Succeeded {
		if p.Observe != nil {
			r.tick()
			observeSuccess(ctx, p, &Outcome{Attempts: r.Attempt, Elapsed: r.Elapsed, History: r.failures(r.Attempt - 1)})
		}
		return nil
	}
	e := &Error{Outcome: Outcome{History: r.failures(r.Attempt)}}
	e.Policy, e.Status, e.Reason, e.EndedByGate = p.Name, d.Status, d.Reason, gated
	e.Attempts, e.Elapsed = r.Attempt, r.Elapsed
	if n := len(e.History); n > 0 {
		last := &e.History[n-1]
		last.Class, e.Last = cmp.Or(d.Class, last.Class), last.Err // d of a gate or a deadline has no class
	}
	e.complete(ctx)
	if p.Observe != nil {
		observeEnd(ctx, p, d, e)
	}
	return e
}

func (r *run) failures(n int) []Attempt {
	if n == 0 {
		return nil
	}
	list := make([]Attempt, min(n, 1+maxNewest))
	r.history.attempts(list, n, r.start())
	return list
}

// observeEnd calls Observe for the end d of the run, after which Do returns e.
func observeEnd(ctx context.Context, p *Policy, d *Decision, e *Error) {
	_ = e.Cause() // a record keeps no context alive
	copied := *e
	copied.History = slices.Clone(e.History)
	p.Observe(ctx, Event{Policy: p.Name, Elapsed: e.Elapsed, Decision: *d, Outcome: &copied.Outcome, Err: &copied})
}

func observeSuccess(ctx context.Context, p *Policy, o *Outcome) {
	o.Policy, o.Status = p.Name, Succeeded
	p.Observe(ctx, Event{Policy: p.Name, Elapsed: o.Elapsed, Decision: Decision{Status: Succeeded}, Outcome: o})
}

// start returns when the run began by today's wall clock, which may have been set since epoch.
func (r *run) start() time.Time {
	now := time.Now()
	return now.Add(r.began - now.Sub(epoch))
}

// cause is context.Cause of a context, asked for when it is first needed: the question takes the context's lock, and
// 100,000 waiters that one cancellation wakes would ask at once (BenchmarkWaiterCancel of bench). From then on it keeps
// no context alive.
type cause struct {
	once sync.Once
	ctx  context.Context
	err  error
}

func (c *cause) get() error {
	c.once.Do(func() { c.err, c.ctx = context.Cause(c.ctx), nil })
	return c.err
}
