package retryworkqueue

import (
	"context"
	"errors"
	"time"

	"github.com/retrygo/retry"
)

// Handle makes the next attempt of an item that a worker got from q, a workqueue.TypedRateLimitingInterface, and adds
// the item again or forgets it. It returns the result of Attempt. The worker calls q.Done after it, as for any item:
//
//	item, shutdown := q.Get()
//	...
//	_, err := retryworkqueue.Handle(ctx, q, limiter, item, work)
//	q.Done(item)
func Handle[T comparable](
	ctx context.Context, q interface {
		AddAfter(item T, delay time.Duration)
		Forget(item T)
	}, l *Limiter[T], item T, fn func(context.Context) error,
) (retry.Decision, error) {
	d, err := l.Attempt(ctx, item, fn)
	if d.Status == retry.WaitingRetry {
		q.AddAfter(item, d.Delay)
	} else {
		q.Forget(item)
	}
	return d, err
}

// Reconciler is a reconcile.TypedReconciler of controller-runtime around another one, if R is reconcile.Result. The
// queue of its controller must have the same Limiter, as the RateLimiter of controller.TypedOptions.
//
// An error that is repeated is returned unchanged, so the controller logs and counts it, and adds the item after the
// decided wait. If a gate defers an attempt, the error is of this kind too. A TerminalError ends the run, and the error
// of a run that has ended is a TerminalError. A result without an error is a success, also one with RequeueAfter or the
// deprecated Requeue. The waits of repeated Requeues are the policy's first, second, third and so on.
type Reconciler[T comparable, R any] struct {
	// Limiter keeps the runs. It must not be nil.
	Limiter *Limiter[T]
	// Inside is the method Reconcile of the wrapped reconciler. It must not be nil.
	Inside func(ctx context.Context, item T) (R, error)
	// Terminal marks an error after which the controller does not add the item again. It must be set to
	// reconcile.TerminalError.
	Terminal func(error) error
}

// Reconcile makes the next attempt of an item.
func (r *Reconciler[T, R]) Reconcile(ctx context.Context, item T) (R, error) {
	var result R
	terminal := func(err error) bool { return errors.Is(err, r.Terminal(nil)) } // as the controller asks
	d, err := r.Limiter.attempt(ctx, item, true, func(ctx context.Context) (err error) {
		if result, err = r.Inside(ctx, item); terminal(err) {
			err = retry.Permanent(err) // the controller does not come back
		}
		return err
	})
	if err == nil {
		return result, nil
	}
	if d.Status != retry.WaitingRetry && !terminal(err) {
		err = r.Terminal(err)
	}
	var none R // the controller warns of a result with an error, and ignores it
	return none, err
}
