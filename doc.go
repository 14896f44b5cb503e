// Package retry tries again: it decides whether a failed call is worth another attempt, how long to wait before it, and
// when to stop, and it records how each run ended.
//
//	err := retry.Do(ctx, retry.Policy{}, func(ctx context.Context) error {
//		return charge(ctx, card)
//	})
//
// # One decision
//
// A [Policy] is plain data. [Policy.Decide] is a pure function of it: given the attempt that just ended, its error and a
// number u in [0,1) for the jitter, it returns a [Decision]: wait that long, or end with this [Status] for this [Reason].
// [Do] is a thin shell around it that calls, decides and waits in the caller's goroutine. Delays come from [Backoff],
// which is pure as well, so they can be tested without a clock, and what Do does in time can be tested to the
// nanosecond with testing/synctest.
//
// The zero Policy makes 8 attempts with waits of 5s, 10s, 20s, 40s, 1m20s, 2m40s and 5m20s between them. That is a
// schedule for deliveries; a call that somebody waits for wants a shorter one:
//
//	retry.Policy{
//		MaxAttempts:    4,
//		Backoff:        retry.Backoff{Base: 50 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter},
//		AttemptTimeout: 2 * time.Second,
//		TTL:            10 * time.Second,
//	}
//
// # What is retried
//
// Every error is, but for context.Canceled while the caller's context lives: somebody gave the work up. An attempt's own
// timeout is retried like any error, and so is the failure of a nested run. A panic is not caught. To say otherwise, in the order of precedence:
//
//   - mark an error where it arises: [Permanent], [Transient], [After];
//   - classify errors in the policy: Policy.Classify, with [RetryOn], [StopOn], [RetryIf], [StopIf], [FirstOf], and
//     [Otherwise] to turn "retry unless told" into "stop unless told".
//
// A value is never judged: a result that is not an error is a result.
//
// # How a run ends
//
// A run ends in exactly one way. Do returns nil exactly where fn returned nil, and otherwise one [*Error], whose
// [Outcome] says which. What errors.Is says of it:
//
//	Status        Reason              errors.Is(err, Reason)   context.Canceled   context.DeadlineExceeded
//	DeadLettered  TerminalError       yes                      if Last does       if Last does
//	DeadLettered  AttemptsExhausted   yes                      if Last does       if Last does
//	DeadLettered  BudgetExhausted     yes                      if Last does       if Last does
//	Expired       TTLElapsed          yes                      if Last does       if Last does
//	Expired       DeadlinePassed      yes                      if Last/Cause do   yes
//	Expired       DeadlineTooNear     yes                      if Last does       if Last does
//	Expired       HintTooLong         yes                      if Last does       if Last does
//	Failed        RetriesDisabled     yes                      if Last does       if Last does
//	Canceled      CallerCanceled      yes                      yes                if Last/Cause do
//
// For every ending errors.Is and errors.As reach the last error, Error.Last. For CallerCanceled and DeadlinePassed they
// reach context.Cause of the caller's context as well, Error.Cause. No other Reason matches, not even one inside the
// error of a nested run.
//
// Several endings can apply at once. The first of these is reported: success, CallerCanceled, DeadlinePassed,
// RetriesDisabled, TerminalError, AttemptsExhausted, HintTooLong, TTLElapsed, DeadlineTooNear, BudgetExhausted.
//
// # Time
//
// Do never waits for what it knows to be too late: a wait that would end at or after the caller's deadline is not begun,
// nor one after which the TTL forbids the attempt. The TTL bounds when an attempt may start; it cuts none that is under
// way. AttemptTimeout ends an attempt's context, which is cooperative: an fn that ignores its context is waited for.
//
// # Storms
//
// A [Budget] bounds the share of calls that are retries, over all runs that share it, and a Gate keeps attempts away from
// a peer that is known to be down. Neither ever delays a caller for a token: a refused retry ends the run at once.
//
// # Beyond this package
//
// The package imports the standard library only, starts no goroutine, logs nothing and has no state but that of a
// Budget. Policy.Observe is told of every failed attempt and every end.
package retry
