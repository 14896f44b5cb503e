package retrytemporal

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/retrygo/retry"
)

// Error returns the error with which an activity must end after an attempt that returned err, so that p decides the
// next step:
//
//	func Charge(ctx context.Context, order Order) error {
//		return retrytemporal.Error(ctx, policy, charge(ctx, order))
//	}
//
// It calls p.Decide with the attempt's number and the time since the activity was scheduled, and then p.Spend. ErrorAt
// describes the result. That time is from the worker's clock, so it is only as accurate as the clocks of worker and
// server agree. p.Budget is funded if err is nil.
//
// The number that chooses the jitter is p.Rand's. If that is not set, the number depends only on the identities of
// workflow and activity and on the attempt, so DecorrelatedJitter, which needs the previous wait, can compute it again
// on any worker. With p.Rand that wait is drawn again. Beyond 1,001 attempts only the last 1,000 are used.
//
// Nil, activity.ErrResultPending, and a context.Canceled or temporal.CanceledError once ctx is canceled pass through
// unchanged, so that Temporal sees the activity as canceled. For a ctx that is not an activity's and for a policy
// that does not validate, Error returns an error that wraps err. Temporal's own rules apply to that, so a new
// deployment can fix it.
//
// Gate and Observe are not called, ResetAfter has no effect, and AttemptTimeout does not end ctx. See PolicyForErrors,
// whose RetryPolicy the activity needs.
func Error(ctx context.Context, p retry.Policy, err error) error {
	if err == nil {
		p.Spend(ctx, retry.Decision{Status: retry.Succeeded}, time.Now())
		return nil
	}
	if ctx == nil || !activity.IsActivity(ctx) {
		return fmt.Errorf("retrytemporal: Error: ctx is not the context of an activity: %w", err)
	}
	if err == activity.ErrResultPending || canceled(ctx, err) { // as the SDK compares it
		return err
	}
	if bad := p.Validate(); bad != nil {
		return fmt.Errorf("retrytemporal: Error: %w: %w", bad, err)
	}
	info := activity.GetInfo(ctx)
	pr, u := progress(&p, &info, time.Now())
	return carry(&p, pr, err, p.Spend(ctx, decide(p, pr, err, u), time.Now()))
}

// ErrorAt is Error for a given Progress and a number u in [0,1), such as those of a workflow that is itself retried. It
// does not read a clock or draw a number, and is deterministic. It does not call p.Budget or p.Pay, and it does not
// validate p. ErrorAt of a nil err is nil.
//
// The result is a *temporal.ApplicationError with err as its cause. If p waits, its next delay is the wait, or 1ns if
// that is 0, which to Temporal means no next delay. If the run is over it is non-retryable, and its message has the
// Reason, as in "retry: gave up after 3 attempts in 1.2s (attempts_exhausted)".
//
// It keeps the type, category and details of an application error in err, and otherwise the type that Temporal would
// see. A non-retryable application error counts as terminal unless a mark says otherwise. Its own next delay counts as
// a hint. A temporal.CanceledError that neither a mark nor p.Classify has judged is terminal, as context.Canceled is,
// because the work was abandoned.
func ErrorAt(p retry.Policy, pr retry.Progress, err error, u float64) error {
	if err == nil {
		return nil
	}
	return carry(&p, pr, err, decide(p, pr, err, u))
}

// canceled reports whether Temporal must see the activity as canceled.
func canceled(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || temporal.IsCanceledError(err))
}

// followed is how many earlier attempts DecorrelatedJitter computes.
const followed = 1000

// progress returns the activity's progress, and the number for the jitter.
func progress(p *retry.Policy, info *activity.Info, now time.Time) (retry.Progress, float64) {
	// If the worker's clock is slow, it would count less than the server already has.
	if now.Before(info.StartedTime) {
		now = info.StartedTime
	}
	pr := retry.Progress{Attempt: int(info.Attempt), Elapsed: now.Sub(info.ScheduledTime)}
	if p.Jitter == retry.NoJitter {
		return pr, 0
	}
	draw := drawer(p, info)
	if p.Jitter == retry.DecorrelatedJitter {
		for n := max(pr.Attempt-followed, 1); n < pr.Attempt; n++ {
			pr.Prev = p.Jittered(n, pr.Prev, draw(n))
		}
	}
	return pr, draw(pr.Attempt)
}

func drawer(p *retry.Policy, info *activity.Info) func(attempt int) float64 {
	if p.Rand != nil {
		return func(int) float64 { return p.Rand() }
	}
	hash := fnv.New64a()
	for _, id := range []string{
		info.Namespace, info.WorkflowExecution.ID, info.WorkflowExecution.RunID, info.ActivityID, info.ActivityRunID,
	} {
		fmt.Fprintf(hash, "%q", id)
	}
	seed := hash.Sum64()
	return func(attempt int) float64 { return rand.New(rand.NewPCG(seed, uint64(attempt))).Float64() }
}

// decide is p.Decide, with the marks and hints of an application error.
func decide(p retry.Policy, pr retry.Progress, err error, u float64) retry.Decision {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		if app.NonRetryable() {
			p.Classify = retry.Otherwise(retry.Terminal)
		}
		err = retry.After(app.NextRetryDelay(), err)
	}
	p.Classify = retry.FirstOf(p.Classify, retry.StopIf(givenUp))
	return p.Decide(pr, err, u)
}

// givenUp reports whether err is or wraps a temporal.CanceledError, but not in the error of a run, as for
// context.Canceled.
func givenUp(err error) bool {
	switch e := err.(type) {
	case *temporal.CanceledError:
		return true
	case *retry.Error:
		return false
	case interface{ Unwrap() error }:
		return givenUp(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), givenUp)
	default:
		return false
	}
}

// carry returns the application error that makes Temporal follow the decision.
func carry(p *retry.Policy, pr retry.Progress, err error, d retry.Decision) error {
	for reflect.TypeOf(err) == markType {
		err = errors.Unwrap(err) // it has been used, and Temporal would see it as a type of its own
	}
	o := temporal.ApplicationErrorOptions{Cause: err, NonRetryable: d.Status != retry.WaitingRetry}
	attempts := max(pr.Attempt, 1)
	text := p.NewError(context.Background(), retry.Outcome{
		Policy: p.Name, Status: d.Status, Reason: d.Reason, Attempts: attempts, Elapsed: max(pr.Elapsed, 0),
	}, nil).Error()
	if d.Status == retry.WaitingRetry {
		o.NextRetryDelay = max(d.Delay, time.Nanosecond)
		text = "retry: "
		if p.Name != "" {
			text += p.Name + ": "
		}
		text += fmt.Sprintf("attempt %d failed, the next is due in %v", attempts, d.Delay)
	}
	kind := kindOf(err)
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		kind = app.Type()
		o.Category = app.Category()
		o.Details = detailsOf(app)
	}
	return temporal.NewApplicationErrorWithOptions(text, kind, o)
}

var markType = reflect.TypeOf(retry.Permanent(errors.New("")))

// kindOf returns the type that the SDK would send to the server, the name of err's Go type, or "" for errors.New.
func kindOf(err error) string {
	t := reflect.TypeOf(err)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Name() == "errorString" {
		return ""
	}
	return t.Name()
}

// detailsOf returns the details of an application error, which does not say how many there are. It returns 64 at most,
// and nil if only their own type can read them. The cause has them all.
func detailsOf(app *temporal.ApplicationError) (details []any) {
	if !app.HasDetails() {
		return nil
	}
	const most = 64
	type unset struct{}
	for n := 1; n <= most; n++ {
		values, targets := make([]any, n), make([]any, n)
		for i := range values {
			values[i], targets[i] = unset{}, &values[i]
		}
		// Of values that came over the wire too many can be asked for without an error.
		if app.Details(targets...) != nil || values[n-1] == any(unset{}) {
			break
		}
		details = values
	}
	return details
}
