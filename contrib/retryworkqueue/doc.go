// Package retryworkqueue lets a retry.Policy decide when the items of a Kubernetes work queue run again, and when they
// no longer do.
//
// # Limiter
//
// A [Limiter] is a workqueue.TypedRateLimiter of client-go, and fits every version of it. There are three ways to use
// one:
//
//   - alone, as the rate limiter of a queue. A queue does not hand it errors, so that it can only wait: see
//     [Limiter.When];
//   - with [Handle] in the loop of a worker, which knows the error: it waits, or ends the item's run;
//   - with [Reconciler] around a reconciler of controller-runtime, whose queue has the Limiter too. This package does
//     not import controller-runtime.
//
// # Limits
//
// The last two keep the whole policy. What no rate limiter can do is to hold an item back from an informer's event: an
// event during a wait runs the item at once, and counts as its next attempt, hint or not. Runs are kept in memory: a
// restart of the process restarts them.
//
// [Backoff] and [FromBackoff] are wait.Backoff both ways.
package retryworkqueue
