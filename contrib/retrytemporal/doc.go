// Package retrytemporal uses a retry.Policy for the retries of Temporal.
//
// There are two ways, and each returns a list of its losses:
//
//   - [Policy] returns a temporal.RetryPolicy. Temporal computes the waits, an exponential without jitter, whatever the
//     error.
//   - [Error] wraps the error that an activity returns in an application error with the policy's own decision, the next
//     delay or the end of the run. Lists, jitter, hints, classifiers, the TTL and the budget then work as in retry.Do.
//     [PolicyForErrors] returns the temporal.RetryPolicy that goes with it.
//
// A call of an activity or of a child workflow that Temporal retries needs no retry.Do around it, nor one within it for
// the same errors. Layers multiply.
//
// # What differs in Temporal's test suite
//
// The waits and decisions of this package are tested in testsuite.WorkflowTestSuite, in virtual time. The suite differs
// from a server in the following points. The statements about the server are from its source, and not tested.
//
//   - The server limits a next delay to MaximumInterval. The suite and the SDK's local activities do not.
//     PolicyForErrors sets a MaximumInterval above every delay. A server older than 1.24.2 ignores the next delay.
//   - The suite makes at most 10 attempts if MaximumAttempts is 0, which means no limit.
//   - Activities in the suite see the real clock in activity.GetInfo, not the virtual one, so for Error hardly any time
//     has passed. To test a TTL, call [ErrorAt] with the time of the environment.
//   - The suite sets no RetryState. From the server ActivityError.RetryState is NonRetryableFailure if Error ended the
//     run.
//
// This package may change until it says otherwise.
package retrytemporal
