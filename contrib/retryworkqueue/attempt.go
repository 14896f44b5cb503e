package retryworkqueue

import (
	"context"
	"errors"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// attempt is one attempt of an item, with the limiter's record of the run.
type attempt struct {
	policy retry.Policy
	run    run
	start  time.Time
	gated  bool // the gate's deferral has ended the run
}

func (a *attempt) look(ctx context.Context) {
	pr := &a.run.progress
	pr.Elapsed, pr.Caller = time.Since(a.run.began), 0
	if errors.Is(ctx.Err(), context.Canceled) {
		pr.Caller = retry.CallerCanceled
	}
}

// admit returns Waiting without a Delay if the attempt may start, with one if the gate defers it, and otherwise the
// ending.
func (a *attempt) admit(ctx context.Context) retry.Decision {
	a.look(ctx)
	d := a.policy.Admit(a.run.progress, 0)
	if d.Status != retry.WaitingRetry || a.policy.Gate == nil {
		return d
	}
	wait := a.policy.Gate(ctx)
	a.look(ctx)
	d = a.policy.Admit(a.run.progress, wait)
	a.gated = d.Status != retry.WaitingRetry
	return d
}

func (a *attempt) make(ctx context.Context, fn func(context.Context) error) error {
	a.start = time.Now() // a gate may have taken time
	if a.policy.AttemptTimeout == 0 {
		return fn(ctx)
	}
	own, cancel := context.WithTimeoutCause(ctx, a.policy.AttemptTimeout, retry.ErrAttemptTimeout)
	defer cancel()
	err := fn(own)
	if err != nil && context.Cause(own) == retry.ErrAttemptTimeout && ctx.Err() == nil {
		err = retryshell.MarkTimeout(err)
	}
	return err
}

// decide returns the decision after the attempt that ended with err, pays for it and calls Observe.
func (a *attempt) decide(ctx context.Context, err error, draw func() float64) retry.Decision {
	pr := &a.run.progress
	pr.Attempt++
	pr.Lasted = time.Since(a.start)
	a.look(ctx)
	d := a.policy.Spend(ctx, a.policy.Decide(*pr, err, draw()), time.Now())
	pr.Prev, pr.Forgiven = d.Backoff, d.Forgiven
	a.run.delay, a.run.decided = d.Delay, true
	a.run.open = false
	charged := d.Status == retry.WaitingRetry && a.policy.Budget != nil
	defer func() {
		if charged && !a.run.paid { // Observe has panicked
			a.policy.Budget.Refund()
		}
	}()
	if err != nil && a.policy.Observe != nil {
		a.policy.Observe(ctx, retry.Event{Policy: a.policy.Name, Elapsed: pr.Elapsed, Decision: d, Attempt: retry.Attempt{
			Number: pr.Attempt, Start: a.start, Duration: pr.Lasted, Class: d.Class, Err: err, Delay: d.Delay,
		}})
	}
	a.run.paid = charged
	return d
}

// end returns the error of a run that has ended, where last is that of its last attempt, and calls Observe.
func (a *attempt) end(ctx context.Context, d retry.Decision, last error) error {
	o := retry.Outcome{
		Policy: a.policy.Name, Status: d.Status, Reason: d.Reason, EndedByGate: a.gated,
		Attempts: a.run.progress.Attempt, Elapsed: a.run.progress.Elapsed,
	}
	var err error
	if d.Status != retry.Succeeded {
		err = a.policy.NewError(ctx, o, last)
	}
	if a.policy.Observe != nil {
		a.policy.Observe(ctx, retry.Event{Policy: a.policy.Name, Elapsed: o.Elapsed, Decision: d, Outcome: &o, Err: err})
	}
	return err
}
