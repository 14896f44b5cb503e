// Package retryjob retries what must not hold a goroutine while it waits: a job whose next attempt is due in an hour is
// a record and a due time, nothing more. An engine keeps the records and runs what is due.
//
//	engine, err := retryjob.New(retryjob.Options{
//		Policies: retryjob.FromMap(map[string]retry.Policy{"mail": policy}),
//		Handlers: map[string]retryjob.Handler{"welcome": sendWelcome},
//	})
//	...
//	handle, err := engine.Enqueue(ctx, retryjob.Job{Kind: "welcome", Policy: "mail", Payload: payload})
//
// # Engines
//
// [New] returns an [Engine] that keeps its jobs in memory: it needs nothing, and what it holds is gone with its
// process. Module contrib/retryriver keeps them in SQLite or PostgreSQL. All engines ask the same retry.Policy.Decide
// that retry.Do asks, through the same [Stepper], and all offer the same [Admin]: it counts, lists, replays, cancels
// and purges jobs.
//
// # At least once
//
// Every engine runs a job at least once: an attempt whose worker dies is recorded with [ErrLost], counts, and is made
// again. Handlers must therefore be idempotent. The JobID in [AttemptFrom] is the same for all attempts and replays of
// a job, and makes an idempotency key. A policy whose Classify makes ErrLost Terminal runs a job at most once.
//
// # Records
//
// A [Record] has the job's [Status], its retry.Reason, when it is due, and its attempts. It is plain data: an engine of
// your own stores it, and calls [Stepper.Step] for each attempt. [DeadLetterTo] enqueues what a run of retry.Do has
// given up.
package retryjob
