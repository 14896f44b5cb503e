// Package retryworkqueue lets a retry.Policy decide when the items of a Kubernetes work queue run again, and when to
// stop.
//
// # Limiter
//
// A [Limiter] is a workqueue.TypedRateLimiter of client-go, and fits every version of it. There are three ways to use
// one:
//
//   - alone, as the rate limiter of a queue. A queue does not pass it errors, so it can only wait (see [Limiter.When]).
//   - with [Handle] in the loop of a worker, which knows the error. It waits, or ends the item's run.
//   - with [Reconciler] around a reconciler of controller-runtime, whose queue has the Limiter too. This package does
//     not import controller-runtime.
//
// # Limits
//
// The last two keep the whole policy. No rate limiter can delay an informer's event. An event during a wait runs the
// item at once, as its next attempt, even before the end of a hint. Runs are kept in memory, so a restart of the process
// restarts them.
//
// This package may change until it says otherwise.
package retryworkqueue
