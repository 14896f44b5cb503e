package retry

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// ErrAttemptTimeout is context.Cause of an attempt's context once AttemptTimeout has passed; where the caller's own
// deadline comes first, or at the same instant, the cause is the caller's. It matches context.DeadlineExceeded, which
// is what such a context's Err returns.
var ErrAttemptTimeout error = attemptTimeout{}

type attemptTimeout struct{}

func (attemptTimeout) Error() string        { return "retry: attempt timeout" }
func (attemptTimeout) Timeout() bool        { return true }
func (attemptTimeout) Is(target error) bool { return target == context.DeadlineExceeded }

// epoch is a fixed instant: time.Since of it reads only the monotonic clock, which is cheaper than time.Now.
var epoch = time.Now()

// now is the clock of a Budget with Trickle.
func now() time.Time { return time.Now() }

// Do calls fn until it returns nil, p ends the run or ctx is done. It returns nil exactly where fn returned nil, else
// an *Error with the Outcome, the last error and the cause. A policy that does not validate, a nil fn and a nil ctx
// are refused before any attempt, with an error that is not an *Error.
//
// fn runs in the caller's goroutine. Its context ends with the attempt, if AttemptTimeout is set, and at the latest
// with ctx; timeouts are cooperative, so an fn that ignores its context is waited for. A result that comes late is a
// result. A panic and runtime.Goexit in fn pass through.
//
// Do waits in the caller's goroutine and starts none. It does not wait where the wait would end at or after ctx's
// deadline or after the TTL. When ctx is cancelled during a wait, Do returns at once. Beyond what the context of
// an AttemptTimeout does, it asks ctx for Done when a wait begins, and only then.
func Do(ctx context.Context, p Policy, fn func(context.Context) error) error {
	// The first attempt of the commonest calls is made here. It needs no preparation where there is no gate and the
	// caller is alive and has no other run's number; where it succeeds, there is nothing to keep either.
	if ctx == nil || fn == nil || !(p.simple() && (p.simpleFormula() || p.simpleList())) && p.check() != nil {
		return refusal(ctx, &p, fn)
	}
	start := time.Since(epoch)
	if p.Gate != nil || ctx.Err() != nil || nested(ctx) {
		return goOn(ctx, &p, fn, start, nil)
	}
	var err error
	if p.AttemptTimeout == 0 {
		err = fn(ctx)
	} else {
		err = limited(ctx, p.AttemptTimeout, fn)
	}
	if err != nil {
		return goOn(ctx, &p, fn, start, err)
	}
	if p.Budget != nil {
		p.Budget.Deposit()
	}
	if p.Observe != nil {
		p.tellSuccess(ctx, start)
	}
	return nil
}

// goOn takes the run that began at the given time since epoch to its end. err is what its first attempt ended with, nil
// where that is yet to be made.
//
//go:noinline
func goOn(ctx context.Context, p *Policy, fn func(context.Context) error, start time.Duration, err error) error {
	c := newCall(ctx, p, start)
	defer c.release(p)
	// A decision holds until the attempt where nothing comes between: no wait and no code of the caller's.
	holds := p.Observe == nil && p.Gate == nil && p.Rand == nil
	d, fresh := Decision{Status: Waiting}, false
	if err != nil {
		d, fresh = c.decide(p, 0, err), holds
	}
	for d.Status == Waiting {
		if d.Delay > 0 {
			if d = c.over(p, d.Delay); d.Status != Waiting {
				break // Observe took its time
			}
			if left := c.left(d.Delay); left > 0 { // not 1ns, which is over before a timer could be set
				if c.timer == nil { // one for all waits
					c.timer = time.NewTimer(left)
				} else {
					c.timer.Reset(left)
				}
				select {
				case <-c.timer.C:
				case <-ctx.Done():
				}
				c.tick()
			}
			fresh = false
		}
		if !fresh {
			d = c.admit(p)
		}
		if d.Status == Waiting && d.Delay == 0 {
			d, fresh = c.attempt(p, fn), holds
		}
	}
	return c.end(p, d)
}

// DoValue is Do for an fn that returns a value as well. It returns the value of the last attempt, also where that
// failed, and the zero value where no attempt was made.
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

// tellSuccess tells Observe of a run that began at the given time since epoch and succeeded at the first attempt.
//
//go:noinline
func (p *Policy) tellSuccess(ctx context.Context, began time.Duration) {
	elapsed := time.Since(epoch) - began
	outcome := &Outcome{Policy: p.Name, Status: Succeeded, Attempts: 1, Elapsed: elapsed}
	p.Observe(ctx, Event{Policy: p.Name, Elapsed: elapsed, Decision: Decision{Status: Succeeded}, Outcome: outcome})
}

// refusal says what of a call is missing, with what the policy has wrong.
func refusal(ctx context.Context, p *Policy, fn func(context.Context) error) error {
	bad := p.check()
	if ctx == nil {
		bad.add("Do", "ctx", "<nil>", "is not a context")
	}
	if fn == nil {
		bad.add("Do", "fn", "<nil>", "is not a function")
	}
	return bad
}

// limited calls fn with a context that ends with the attempt, and after timeout at the latest; with ctx itself where
// there is no timeout.
func limited(ctx context.Context, timeout time.Duration, fn func(context.Context) error) error {
	if timeout == 0 {
		return fn(ctx)
	}
	deadline := time.Now().Add(timeout)
	var cancel context.CancelFunc
	if callers, ok := ctx.Deadline(); ok && !deadline.Before(callers) {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithDeadlineCause(ctx, deadline, ErrAttemptTimeout)
	}
	defer cancel()
	return fn(ctx)
}

// call is the state of a run that is more than one attempt. A goroutine that waits in Do must not outgrow its first
// 2 kB of stack, so the state is on the heap and small, and the policy stays where the caller has put it.
type call struct {
	ctx      context.Context // the caller's
	began    time.Duration   // since epoch
	deadline time.Duration   // of the caller, since began; the largest Duration where there is none
	elapsed  time.Duration   // since began, as last read
	prev     time.Duration   // the backoff's last delay
	history  history
	timer    *time.Timer
	paid     bool // a token was taken for a retry that has not returned yet
}

// newCall allocates the call that began at the given time since epoch; where the policy retries at once, in one piece
// with its retries.
func newCall(ctx context.Context, p *Policy, began time.Duration) *call {
	var c *call
	if _, wait := p.window(1, 0); wait > 0 {
		c = new(call)
	} else {
		both := new(struct {
			call
			retries
		})
		c, both.history.retries = &both.call, &both.retries
	}
	c.ctx, c.began, c.deadline = ctx, began, maxDelay
	c.tick()
	if deadline, ok := ctx.Deadline(); ok {
		c.deadline = c.elapsed + min(time.Until(deadline), maxDelay-c.elapsed)
	}
	return c
}

// tick reads the clock.
func (c *call) tick() { c.elapsed = time.Since(epoch) - c.began }

// release stops the timer and settles with the budget by whatever way the run ends: a decision, a panic or
// runtime.Goexit.
func (c *call) release(p *Policy) {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.refund(p)
}

// refund pays back the token of a retry that did not start or did not return.
func (c *call) refund(p *Policy) {
	if c.paid {
		c.paid = false
		p.Budget.Refund()
	}
}

// left reads the clock and returns what is left of a wait that began when it was read last.
func (c *call) left(wait time.Duration) time.Duration {
	since := c.elapsed
	c.tick()
	return wait - (c.elapsed - since)
}

// admit returns Waiting without a Delay when the next attempt is to start, Waiting with one when the gate defers it,
// after which it is to be asked again, and else how the run ended.
func (c *call) admit(p *Policy) Decision {
	d := c.over(p, 0)
	if p.Gate == nil || d.Status != Waiting {
		return d
	}
	delay := max(p.Gate(c.ctx), 0)
	c.tick()
	return c.over(p, delay)
}

// over returns how the run is ended by what can change during a wait, for an attempt that would start delay from now:
// the caller, the TTL and, for a wait that is yet to begin, the caller's deadline. Otherwise it returns Waiting with the
// delay.
func (c *call) over(p *Policy, delay time.Duration) Decision {
	d := c.callerDone()
	switch {
	case d.Status != Waiting:
		return d
	case p.late(c.elapsed, delay):
		return Decision{Status: Expired, Reason: TTLElapsed}
	case delay > 0 && c.tooNear(delay):
		return Decision{Status: Expired, Reason: DeadlineTooNear}
	default:
		return Decision{Status: Waiting, Delay: delay}
	}
}

// attempt makes the next attempt and decides what follows it.
func (c *call) attempt(p *Policy, fn func(context.Context) error) Decision {
	started := c.elapsed
	err := limited(c.attemptContext(), p.AttemptTimeout, fn)
	if err != nil || p.Observe != nil { // else nobody asks
		c.tick()
	}
	return c.decide(p, started, err)
}

// decide judges the attempt that started at the given time of the run and has just ended with err, records it and
// tells Observe.
func (c *call) decide(p *Policy, started time.Duration, err error) Decision {
	c.paid = false
	if err == nil {
		return Decision{Status: Succeeded}
	}
	duration := c.elapsed - started
	class, hint := p.judge(err)
	d := c.settle(p, class, hint)
	*c.history.note() = failure{started, duration, d.Delay, err, class}
	if p.Observe != nil {
		c.tell(p, d)
	}
	return d
}

// settle asks the policy, and in the order in which endings go before each other also the caller, the deadline and
// the budget. The budget is last, so that nothing is charged for a retry that something else forbids.
func (c *call) settle(p *Policy, class Class, hint time.Duration) Decision {
	pr := Progress{Attempt: c.number(), Prev: c.prev}
	d := c.callerDone()
	if d.Status == Waiting {
		d = p.verdict(pr, class, hint)
	}
	if d.Status == Waiting {
		u := p.draw()
		if p.Classify != nil || p.Rand != nil { // which may take their time
			c.tick()
		}
		if p.Rand != nil {
			if d = c.callerDone(); d.Status != Waiting {
				return d
			}
		}
		pr.Elapsed = c.elapsed
		d, c.prev = p.schedule(pr, hint, u)
	}
	if d.Status == Waiting && c.tooNear(d.Delay) {
		return Decision{Status: Expired, Reason: DeadlineTooNear}
	}
	if d.Status == Waiting && p.Budget != nil {
		if c.paid = p.Budget.Withdraw(epoch.Add(c.began + c.elapsed)); !c.paid {
			return Decision{Status: DeadLettered, Reason: BudgetExhausted}
		}
	}
	return d
}

// callerDone returns the ending of a caller that is cancelled or past its deadline, else Waiting. The clock counts as
// well as the context, whose own timer may fire a moment late.
func (c *call) callerDone() Decision {
	switch err := c.ctx.Err(); {
	case err == nil && !c.tooNear(0):
		return Decision{Status: Waiting}
	case err == nil || errors.Is(err, context.DeadlineExceeded):
		return Decision{Status: Expired, Reason: DeadlinePassed}
	default:
		return Decision{Status: Canceled, Reason: CallerCanceled}
	}
}

// tooNear reports whether a wait from now would end at or after the caller's deadline.
func (c *call) tooNear(delay time.Duration) bool {
	return c.deadline < maxDelay && delay >= c.deadline-c.elapsed
}

// tell tells Observe of the attempt that was noted last and what was decided about it.
func (c *call) tell(p *Policy, d Decision) {
	began := c.start()
	a := c.history.last(began)
	p.Observe(c.ctx, Event{Policy: p.Name, Elapsed: a.Start.Add(a.Duration).Sub(began), Attempt: a, Decision: d})
	c.tick()
}

// end settles with the budget, tells Observe how the run ended, and returns what Do returns. What a cancelled waiter needs
// of its stack on the way out stays within the first 2 kB too: what is large has a function of its own.
//
//go:noinline
func (c *call) end(p *Policy, d Decision) error {
	c.refund(p)
	if d.Status == Succeeded {
		p.Budget.Deposit()
		if p.Observe == nil {
			return nil
		}
	}
	failed := c.failed(p, d)
	if p.Observe != nil {
		c.tellEnd(p, d, failed)
	}
	if d.Status == Succeeded {
		return nil
	}
	return failed
}

// tellEnd tells Observe how the run ended, with a copy of what Do returns.
//
//go:noinline
func (c *call) tellEnd(p *Policy, d Decision, failed *Error) {
	told := *failed
	told.History = slices.Clone(failed.History)
	event := Event{Policy: p.Name, Elapsed: told.Elapsed, Decision: d, Outcome: &told.Outcome}
	if d.Status != Succeeded {
		event.Err = &told
	}
	p.Observe(c.ctx, event)
}

// failed returns the *Error for the ending d. For a success it is but the Outcome.
func (c *call) failed(p *Policy, d Decision) *Error {
	e := new(Error)
	e.Policy, e.Status, e.Reason = p.Name, d.Status, d.Reason
	e.Attempts, e.Elapsed = c.history.noted, c.elapsed
	if c.history.noted > 0 {
		e.History = c.history.attempts(c.start())
		e.Last = c.history.at(c.history.noted).err
	}
	switch {
	case d.Status == Succeeded:
		e.Attempts = c.number()
	case d.Reason == CallerCanceled:
		e.Cause = context.Cause(c.ctx)
	case d.Reason == DeadlinePassed:
		// The context may not have noticed yet.
		e.Cause = cmp.Or(context.Cause(c.ctx), context.DeadlineExceeded)
	}
	return e
}

// number returns the number of the attempt that is under way or next.
func (c *call) number() int { return next(c.history.noted) }

// start returns when the run began by today's wall clock, which may have been set since epoch.
func (c *call) start() time.Time {
	now := time.Now()
	return now.Add(c.began - now.Sub(epoch))
}

// attemptContext returns the caller's context with the number of the attempt that is to start. An unmarked one says 1
// already.
func (c *call) attemptContext() context.Context {
	number := c.number()
	if number == 1 {
		if nested(c.ctx) {
			return &numbered{c.ctx, number}
		}
		return c.ctx
	}
	if c.history.retries == nil {
		c.history.retries = new(retries)
	}
	return c.history.retries.context(c.ctx, number)
}

// draw returns the u of one delay: chance, where there is jitter.
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
