package retry

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// epoch is a fixed instant: time.Since of it reads only the monotonic clock, which is cheaper than time.Now.
var epoch = time.Now()

// Do calls fn until it returns nil, p ends the run or ctx is done. It returns nil if and only if fn returned nil;
// otherwise it returns an *Error with the Outcome, the last error and the cause. A policy that does not validate, a nil fn
// and a nil ctx are refused before any attempt, with FieldErrors.
//
// fn runs in the caller's goroutine. Its context ends with the attempt if AttemptTimeout is set, and at the latest
// with ctx; timeouts are cooperative, so Do waits for an fn that ignores its context. A result that comes late is a
// result. A panic and runtime.Goexit in fn pass through.
//
// Do waits in the caller's goroutine and starts none. It does not wait if the wait would end at or after ctx's
// deadline or after the TTL. When ctx is canceled during a wait, Do returns at once.
func Do(ctx context.Context, p Policy, fn func(context.Context) error) error {
	if ctx == nil || fn == nil || !p.plain() && p.check() != nil {
		return refusal(ctx, &p, fn)
	}
	began := time.Since(epoch)
	if p.Gate != nil || ctx.Err() != nil || ctx.Value(numberKey{}) != nil {
		return loop(ctx, &p, fn, began, nil)
	}
	// A first attempt needs no state: this makes BenchmarkFirstTry free of allocations.
	var err error
	if p.AttemptTimeout == 0 {
		err = fn(ctx)
	} else {
		err = limited(ctx, p.AttemptTimeout, fn)
	}
	if err != nil {
		return loop(ctx, &p, fn, began, err)
	}
	if p.Budget != nil {
		p.Budget.add(p.Budget.gain)
	}
	if p.Observe != nil {
		o := Outcome{Policy: p.Name, Status: Succeeded, Attempts: 1, Elapsed: time.Since(epoch) - began}
		tellEnd(ctx, &p, &Decision{Status: Succeeded}, o, nil)
	}
	return nil
}

// loop runs attempts until one succeeds or a decision ends the run, which began at the given time since epoch. err is what
// the first attempt ended with; nil means that it is yet to be made.
//
// noinline here and on end keeps the stack of a goroutine that waits in Do within 2 KB (BenchmarkWaiters).
//
//go:noinline
func loop(ctx context.Context, p *Policy, fn func(context.Context) error, began time.Duration, err error) error {
	r := newRun(ctx, p, began)
	defer r.refund(p)
	var timer *time.Timer // one for all waits
	d := Decision{Status: Waiting}
	if err != nil {
		r.decide(ctx, p, &d, err)
	} else if c := numberOf(ctx); c != nil && c.one {
		p.Disabled = true // p is Do's own copy
	}
	for d.Status == Waiting {
		if err == nil || d.Delay > 0 || p.Gate != nil { // otherwise nothing has changed since the decision
			if left := r.left(d.Delay); left > 0 { // not 1ns, which is over before a timer could be set
				if timer == nil {
					timer = time.NewTimer(left)
				} else {
					timer.Reset(left)
				}
				select {
				case <-timer.C:
				case <-ctx.Done():
				}
				r.tick()
			}
			r.admit(ctx, p, &d)
		}
		if d.Status == Waiting && d.Delay == 0 {
			err = limited(r.context(ctx), p.AttemptTimeout, fn)
			r.decide(ctx, p, &d, err)
		}
	}
	return r.end(ctx, p, &d)
}

// DoValue is Do for an fn that returns a value as well. It returns the value of the last attempt, also if that failed, and
// the zero value if no attempt was made. With AttemptTimeout the attempt's context is done when DoValue returns, so a value
// that is bound to it, such as a response body or sql.Rows, cannot be read any more: use package retryhttp or retrysql.
func DoValue[T any](ctx context.Context, p Policy, fn func(context.Context) (T, error)) (T, error) {
	var value T
	if fn == nil {
		return value, Do(ctx, p, nil)
	}
	err := Do(ctx, p, func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	})
	return value, err
}

// Wrap returns h with retries: each call of the result is one DoValue of its own. A nil h is refused at each call.
func Wrap[Req, Resp any](p Policy, h func(context.Context, Req) (Resp, error)) func(context.Context, Req) (Resp, error) {
	return func(ctx context.Context, req Req) (Resp, error) {
		if h == nil {
			return DoValue[Resp](ctx, p, nil)
		}
		return DoValue(ctx, p, func(ctx context.Context) (Resp, error) { return h(ctx, req) })
	}
}

// refusal returns what is wrong with a call.
func refusal(ctx context.Context, p *Policy, fn func(context.Context) error) error {
	bad := p.check()
	if ctx == nil {
		bad.Add("", "Do.ctx", nil, "is not a context")
	}
	if fn == nil {
		bad.Add("", "Do.fn", nil, "is not a function")
	}
	return bad
}

// limited calls fn with a context that ends with the attempt, and after timeout at the latest. A timeout of 0 means none.
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
	own, cancel := context.WithDeadlineCause(ctx, deadline, ErrAttemptTimeout)
	defer cancel()
	err := fn(own)
	if err != nil && context.Cause(own) == ErrAttemptTimeout && !time.Now().Before(deadline) { // and not the caller's own alone
		err = TimedOut(err)
	}
	return err
}

// run is the state of a run that is more than one attempt. It is small and on the heap, and policy, context and timer are
// not in it, for the sake of BenchmarkWaiters.
type run struct {
	Progress
	began   time.Duration // since epoch
	history history
	paid    bool // a token was taken for a retry that has not returned yet
	gated   bool // the gate's deferral has ended the run
}

// newRun allocates a run; if the policy retries at once, in one piece with its retries (BenchmarkRetries).
func newRun(ctx context.Context, p *Policy, began time.Duration) *run {
	var r *run
	if len(p.Delays) == 0 || p.Delays[0] > 0 {
		r = new(run)
	} else {
		both := new(struct {
			run
			retries
		})
		r, both.history.retries = &both.run, &both.retries
	}
	r.began = began
	if deadline, ok := ctx.Deadline(); ok {
		elapsed := time.Since(epoch) - began
		r.Deadline = cmp.Or(elapsed+min(time.Until(deadline), maxDelay-elapsed), -1)
	}
	return r
}

// tick reads the clock.
func (r *run) tick() { r.Elapsed = time.Since(epoch) - r.began }

// ask asks the caller's context whether it has ended.
func (r *run) ask(ctx context.Context) {
	switch err := ctx.Err(); {
	case err == nil:
		r.Caller = 0
	case errors.Is(err, context.DeadlineExceeded):
		r.Caller = DeadlinePassed
	default:
		r.Caller = CallerCanceled
	}
}

// refund pays back the token of a retry that did not start or did not return.
func (r *run) refund(p *Policy) {
	if r.paid {
		r.paid = false
		p.Budget.Refund()
	}
}

// left reads the clock and returns what is left of a wait that began when it was read last.
func (r *run) left(wait time.Duration) time.Duration {
	since := r.Elapsed
	r.tick()
	return wait - (r.Elapsed - since)
}

// admit makes d Waiting without a Delay if the next attempt may start, Waiting with one if the gate defers it, and otherwise
// the run's ending.
func (r *run) admit(ctx context.Context, p *Policy, d *Decision) {
	r.ask(ctx)
	p.admit(d, &r.Progress, 0)
	if p.Gate == nil || d.Status != Waiting {
		return
	}
	wait := p.Gate(ctx)
	if r.again(ctx, p, d); d.Status == Waiting {
		p.admit(d, &r.Progress, wait)
		r.gated = d.Status != Waiting
	}
}

// again makes a Waiting d the run's ending if a function of the caller's took so long that it is too late now.
func (r *run) again(ctx context.Context, p *Policy, d *Decision) {
	r.tick()
	r.ask(ctx)
	var now Decision
	if p.admit(&now, &r.Progress, d.Delay); d.Status == Waiting && now.Status != Waiting {
		d.end(now.Reason)
	}
}

// decide makes d what follows the attempt that has just ended with err: it asks the policy, pays, records the attempt and
// calls Observe. After each function of the caller's it reads the clock again.
func (r *run) decide(ctx context.Context, p *Policy, d *Decision, err error) {
	started := r.Elapsed
	r.paid = false
	r.Attempt = next(r.Attempt)
	if err == nil {
		*d = Decision{Status: Succeeded}
		return
	}
	r.tick()
	ended := r.Elapsed
	r.Lasted = ended - started
	*d = Decision{}
	if d.Class, d.Hint = p.judge(err); p.Classify != nil {
		r.tick()
	}
	r.ask(ctx)
	if p.open(d, &r.Progress); d.Status == Waiting {
		u := p.draw()
		if p.Rand != nil {
			r.tick()
			r.ask(ctx)
			p.open(d, &r.Progress)
		}
		if d.Status == Waiting {
			p.delay(d, &r.Progress, err, u)
		}
	}
	if d.Status == Waiting && (p.Budget != nil || p.Pay != nil) {
		p.spend(ctx, d, epoch.Add(r.began+r.Elapsed))
		r.paid = d.Status == Waiting
	}
	r.Prev, r.Since = d.Backoff, d.Since
	if p.Pay != nil {
		r.again(ctx, p, d)
	}
	f := failure{started, ended - started, d.Delay, err, d.Class}
	r.history.note(r.Attempt, f)
	if p.Observe != nil {
		p.Observe(ctx, Event{Policy: p.Name, Elapsed: ended, Attempt: f.attempt(r.Attempt, r.start()), Decision: *d})
		r.again(ctx, p, d)
	}
}

// end returns what Do returns for the ending d. It does the money and tells Observe.
//
//go:noinline
func (r *run) end(ctx context.Context, p *Policy, d *Decision) error {
	r.refund(p)
	failed := r.Attempt
	if d.Status == Succeeded {
		p.Budget.spend(d, time.Time{})
		if p.Observe == nil {
			return nil
		}
		failed--
		r.tick()
	}
	o := Outcome{Policy: p.Name, Status: d.Status, Reason: d.Reason, Attempts: r.Attempt, Elapsed: r.Elapsed, Gated: r.gated}
	var last, err error
	if failed > 0 {
		o.History = r.history.attempts(failed, r.start())
		last = o.History[len(o.History)-1].Err
	}
	if d.Status != Succeeded {
		err = newError(ctx, p, o, last)
	}
	if p.Observe != nil {
		tellEnd(ctx, p, d, o, err)
	}
	return err
}

// tellEnd tells Observe how the run ended, with a copy of what Do returns.
//
//go:noinline
func tellEnd(ctx context.Context, p *Policy, d *Decision, o Outcome, err error) {
	o.History = slices.Clone(o.History)
	e := Event{Policy: p.Name, Elapsed: o.Elapsed, Decision: *d, Outcome: &o}
	if failed, ok := err.(*Error); ok {
		told := *failed
		told.Outcome = o
		e.Outcome, e.Err = &told.Outcome, &told
	}
	p.Observe(ctx, e)
}

// start returns when the run began by today's wall clock, which may have been set since epoch.
func (r *run) start() time.Time {
	now := time.Now()
	return now.Add(r.began - now.Sub(epoch))
}

// context returns the caller's context with the number of the next attempt. An unmarked one says 1 already.
func (r *run) context(ctx context.Context) context.Context {
	if r.Attempt == 0 {
		if c := numberOf(ctx); c != nil {
			return &numbered{ctx, 1, c.one}
		}
		return ctx
	}
	if r.history.retries == nil {
		r.history.retries = new(retries)
	}
	return r.history.retries.context(ctx, next(r.Attempt))
}

// draw returns the u of one delay: a random number if there is jitter.
func (p *Policy) draw() float64 {
	switch {
	case p.jitter() == NoJitter:
		return 0
	case p.Rand != nil:
		return p.Rand()
	default:
		return rand.Float64()
	}
}
