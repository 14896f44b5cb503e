// Package retrytemporal gives Temporal a retry.Policy.
//
// There are two ways, and each says what it loses:
//
//   - [Policy] returns a temporal.RetryPolicy. Temporal computes the waits: an exponential without jitter, whatever the
//     error.
//   - [Error] wraps what an activity returns in an application error that carries the policy's own decision: the next
//     delay, or that there is no next attempt. Lists, jitter, hints, classifiers, the TTL and the budget work then as
//     in retry.Do. [PolicyForErrors] returns the temporal.RetryPolicy that goes with it.
//
// A call of an activity or of a child workflow that Temporal retries needs no retry.Do around it, nor one within it for
// the same errors: layers multiply.
//
// # What differs in Temporal's test suite
//
// The waits and decisions of this package are tested in testsuite.WorkflowTestSuite, in virtual time and to the
// nanosecond. The suite is not a server, and differs from one in what follows. What is said of the server here is read
// from its source, not run.
//
//   - The server cuts a next delay to MaximumInterval; the suite and the SDK's local activities do not. PolicyForErrors
//     sets a MaximumInterval that cuts none.
//   - A server older than 1.24.2 ignores the next delay and waits by the RetryPolicy.
//   - The suite makes at most 10 attempts if MaximumAttempts is 0, which means no limit.
//   - The suite takes MaximumInterval 0 for InitialInterval, the server for 100 times that. It is always set here.
//   - Activities in the suite see the real clock in activity.GetInfo, not the virtual one, and so Error finds that
//     hardly any time has passed. A test of the TTL calls [ErrorAt] with the time of its environment.
//   - The suite sets no RetryState; from the server ActivityError.RetryState is NonRetryableFailure if Error ended the
//     run.
//   - The server adds its own latency: a delay is the earliest time at which the next attempt is given to a worker. It
//     keeps a minimum between two runs of a workflow that is retried.
package retrytemporal
