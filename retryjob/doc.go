// Package retryjob retries work without holding a goroutine while it waits: a job whose next attempt is due in an hour
// is a record with a due time. An engine keeps the records and runs the jobs that are due.
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
// [New] returns an [Engine] that keeps its jobs in memory. Its jobs end with its process. Module
// contrib/retryriver keeps them in SQLite or PostgreSQL. All engines call retry.Policy.Decide, as retry.Do does,
// through the same [Stepper]. All of them implement [Admin], which counts, lists, replays, cancels and purges jobs.
//
// # At least once
//
// Every engine runs a job at least once: an attempt whose worker dies is recorded with [ErrLost], counts as a failure,
// and is made again. Handlers must therefore be idempotent. The JobID in [AttemptFrom] is the same for all attempts and
// replays of a job. Use it as an idempotency key. A policy whose Classify returns Terminal for ErrLost runs a job at
// most once.
//
// # Records
//
// A [Record] has the job's [Status], its retry.Reason, its due time and its attempts. It is plain data: your own engine
// stores it and calls [Stepper.Step] for each attempt. [DeadLetterTo] enqueues the work of a run of retry.Do that
// failed.
//
// This package may change until it says otherwise.
package retryjob
