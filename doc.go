// Package retry decides whether a failed call is worth another attempt, how long to wait before it and when to stop, and
// records how each run ended.
//
//	err := retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
//		return charge(ctx, card)
//	})
//
// # One decision
//
// A [Policy] is plain data. [Policy.Decide] is a pure function of it: given the progress of a run, the error of an attempt
// and a number u in [0,1) for the jitter, it returns a [Decision]: wait that long, or end with this [Status] for this
// [Reason]. [Do] is a thin shell that calls, decides and waits in the caller's goroutine. Delays come from [Backoff], which
// is pure as well, so both can be tested without a clock, and Do to the nanosecond with testing/synctest.
//
// [Inline] is for a call that a caller waits for: 4 attempts within a second. The zero Policy is a schedule for deliveries:
// 8 attempts with waits of 5s, 10s, 20s, 40s, 1m20s, 2m40s and 5m20s between them.
//
// # What is retried
//
// Every error is, except context.Canceled while the caller's context lives: the work was abandoned. An attempt's own timeout
// is retried like any error, and so is the failure of a nested run. A panic is not caught. To change this, in the order of
// precedence:
//
//   - mark an error where it arises: [Permanent], [Transient], [After], [Ambiguous];
//   - classify errors in the policy: Policy.Classify, with [RetryOn], [StopOn], [RetryIf], [StopIf], [FirstOf] and
//     [Otherwise].
//
// Only errors are judged: a value is a result, whatever it says.
//
// # How a run ends
//
// Do returns nil if and only if fn returned nil; otherwise it returns one [*Error], whose [Outcome] has one of these
// endings. If several apply, it is the first in the order CallerCanceled, DeadlinePassed, RetriesDisabled, TerminalError,
// AttemptsExhausted, HintTooLong, TTLElapsed, DeadlineTooNear, BudgetExhausted.
//
//	Status        Reason              context.Canceled   context.DeadlineExceeded
//	DeadLettered  TerminalError       if Last does       if Last does
//	DeadLettered  AttemptsExhausted   if Last does       if Last does
//	DeadLettered  BudgetExhausted     if Last does       if Last does
//	Expired       TTLElapsed          if Last does       if Last does
//	Expired       DeadlinePassed      if Last/Cause do   yes
//	Expired       DeadlineTooNear     if Last does       if Last does
//	Expired       HintTooLong         if Last does       if Last does
//	Failed        RetriesDisabled     if Last does       if Last does
//	Canceled      CallerCanceled      yes                if Last/Cause do
//
// The last two columns are what errors.Is reports. It also matches the Reason, and no other, not even one in the error of a
// nested run. errors.Is and errors.As reach Error.Last, and Error.Cause for CallerCanceled and DeadlinePassed.
//
// The package imports the standard library only, starts no goroutine, logs nothing and has no state but that of a Budget.
package retry
