// Package retry decides whether a failed call is worth another attempt, how long to wait before it and when to stop,
// and records how each run ended.
//
//	price, err := retry.DoValue(ctx, retry.Inline(), func(ctx context.Context) (Price, error) {
//		return shop.Price(ctx, item)
//	})
//
// [Inline] is for a call that a caller waits for. It makes 4 attempts with waits of at most 350ms in all. The zero
// [Policy] is for deliveries. It makes 8 attempts with waits of 5s, 10s, 20s and so on. [Attempts] is [Do] as a loop.
// [DoBatch] repeats the rest of a batch. [Wrap] adds retries to a function.
//
// Every error is retried, except those that [Classifier] lists, such as context.Canceled while the caller's context
// lives. To change this, mark an error where it arises ([Permanent], [Transient], [After], [Ambiguous]), or classify
// errors in Policy.Classify ([RetryOn], [StopOn], [RetryIf], [StopIf], [FirstOf], [Otherwise]). A mark comes before
// Classify. A value is a result, unless [Checked] refuses it, and a panic passes through. [Progressed] marks an attempt
// that got a part of its work done.
//
// Do returns nil if and only if fn returned nil. Otherwise it returns an [*Error], whose [Outcome] describes the end of
// the run. [Policy.Decide] makes the decisions. It is a pure function of plain data, with time and chance as arguments.
// Package retryshell is for code that makes attempts without Do. This package starts no goroutine, does not log and
// keeps state only in a [Budget] or [Budgets].
//
// This package is of the stable core. Its names are meant for v1.
package retry
