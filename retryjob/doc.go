// Package retryjob retries what must not hold a goroutine while it waits: a job whose next attempt is due in an hour is
// a record and a due time, nothing more. An engine keeps the records and runs what is due. All engines ask the same
// retry.Policy.Decide that retry.Do asks, through the same Stepper, and all offer the same Admin.
//
// Engine, in this package, keeps its jobs in memory: it needs nothing, and what it holds is gone with its process.
// Module contrib/retryriver keeps them in SQLite or PostgreSQL. Both run a job at least once: an attempt whose worker
// dies is made again, so handlers must be idempotent. ID and Attempt in AttemptFrom are what to deduplicate by.
package retryjob
