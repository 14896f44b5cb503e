// Package retry decides whether a failed call is worth another attempt, how long to wait before it and when to stop,
// and records how each run ended.
//
//	err := retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
//		return charge(ctx, card)
//	})
//
// # One decision
//
// A [Policy] is plain data. [Policy.Decide] is a pure function of it: given the progress of a run, the error of an
// attempt and a number u in [0,1) for the jitter, it returns a [Decision]: wait that long, or end with this [Status]
// for this [Reason]. [Do] is a thin shell that calls, decides and waits in the caller's goroutine. Delays come from
// [Backoff], which is pure as well. No clock is needed to test them; for Do there is testing/synctest.
//
// [Inline] is for a call that a caller waits for: 4 attempts within a second. The zero Policy is a schedule for
// deliveries: 8 attempts with waits of 5s, 10s, 20s, 40s, 1m20s, 2m40s and 5m20s between them.
//
// # What is retried
//
// Every error is, except context.Canceled while the caller's context lives: the work was abandoned. An attempt's own
// timeout is retried, as is the failure of a nested run. A panic is not caught. To change this, in order of precedence:
//
//   - mark an error where it arises: [Permanent], [Transient], [After], [Ambiguous];
//   - classify errors in Policy.Classify: [RetryOn], [StopOn], [RetryIf], [StopIf], [FirstOf] and [Otherwise].
//
// Only errors are judged: a value is a result, whatever it says.
//
// # How a run ends
//
// Do returns nil if and only if fn returned nil; otherwise it returns one [*Error], whose [Outcome] has one of these
// endings. If several apply, it is the first in the order CallerCanceled, DeadlinePassed, RetriesDisabled,
// TerminalError, AttemptsExhausted, HintTooLong, TTLElapsed, DeadlineTooNear, BudgetExhausted.
//
//	DeadLettered  TerminalError, AttemptsExhausted, BudgetExhausted
//	Expired       TTLElapsed, DeadlinePassed, DeadlineTooNear, HintTooLong
//	Failed        RetriesDisabled
//	Canceled      CallerCanceled
//
// errors.Is and errors.As reach Error.Last, and Error.Cause for CallerCanceled and DeadlinePassed. errors.Is matches
// the Reason as well, and no other, not even one in the error of a nested run. It always matches context.Canceled for
// CallerCanceled and context.DeadlineExceeded for DeadlinePassed, otherwise as Last and Cause do.
//
// The package imports the standard library only, starts no goroutine, logs nothing and has no state but in a Budget.
package retry
