// Package retryriver makes River (https://riverqueue.com) the durable engine of retryjob: jobs wait as rows of a
// database and survive every restart. The database is a SQLite file in the process, or PostgreSQL; nothing else
// differs.
//
// A process that only enqueues uses OpenSQLite or a pool, New, NewClient without workers, and NewAdmin. InsertTx with
// NewSQLite takes a transaction of a database of OpenSQLite for the same path, Queue.Adapter and ClientOf[*sql.Tx].
//
// There are two ways in. NewSQLite and NewPostgres return a complete retryjob.Queue, so that moving to it from the
// engine in memory changes one line. A program with plain river.Workers keeps them, and has its client from NewClient.
//
// # What is promised
//
// A job runs at least once. A completion that was not yet written when its process died is made again; handlers must be
// idempotent, and AttemptInfo.JobID of retryjob.AttemptFrom is what to deduplicate by. An attempt whose process died counts as one that
// failed with retryjob.ErrLost, and if it was the last one, the job is DeadLettered with AttemptsExhausted.
//
// A due time is a lower bound; attempts start late by up to the poll interval: 100 ms with NewSQLite and NewPostgres.
// With River's own settings (1 s) half of them are 0.5 s late, the slowest 1.1 s, on both databases. Delays under some
// 300 ms mean little, since River writes results in batches: retry.Do is for those.
//
// After the death of a process its jobs run again once they are out of time, the AttemptTimeout and ten seconds more,
// and River's leader makes its round: every 30 s; if the leader died, another one steps in within 20 s.
//
// # What River makes its users do
//
//   - Handlers should end with their context. One that ignores it, or whose process is suspended, for longer than its
//     attempt may take is given up as lost, and its job is attempted again while it goes on. What it returns at last
//     changes nothing but its own line in the record: retryjob.Attempt.Late.
//   - Every process must register all kinds. River's leader, which may be any of them, discards a lost job of a kind
//     that it does not know; Admin shows it as DeadLettered with AttemptsExhausted, and it can be replayed. A process
//     that fetches a job of a kind it does not know wastes one of its attempts.
//   - All processes must run the same policies under the same names. If the process that fetches a job does not know
//     its policy, the job is not lost: it is put off for a minute, which does not count as an attempt, and the process
//     logs a warning.
//   - Budgets are counted in each process apart.
//   - River and its drivers must have the same version; this module is built and tested with v0.47.0. A program may not
//     raise one of them alone.
//   - A worker may not have a NextRetry of its own, which River would ask instead of the policy, nor a Timeout of -1,
//     with which a lost job is never found. Neither can be seen by NewClient.
//   - river.Client.JobRetry does not replay: it gives a job one more attempt with its TTL long over, and runs again
//     what was completed. A job that had ended before is put back to its end. Admin.Replay is what replays.
//   - River calls its ErrorHandler only for failures that are retried. A policy's Observe is called for all. The final
//     call comes once the end is in the database, so that Observe can replay the job; it does not come if the process
//     dies in between.
//   - A running job is canceled by River's notifications within some 50 ms; with river.Config.PollOnly, or if
//     river.Client.JobCancel is called on SQLite, it does not, and is Canceled once its attempt has failed.
//   - Payloads are kept as the databases keep JSON: as values, not as text. PostgreSQL refuses \u0000.
//
// # What is in the database
//
// Beside River's tables there is one of ours, retryjob_job, in which lists and counts look jobs up by status, reason,
// policy, kind and time. OpenSQLite, NewSQLite and MigratePostgres make it, and fill it if there are jobs already;
// writers of jobs wait meanwhile, some seconds for a hundred thousand. Triggers on river_job keep it right, no matter
// which program writes there. All it holds is in River's tables too.
//
// On SQLite most of what the triggers cost is that the driver compiles them with each statement. A database of
// OpenSQLite or NewSQLite compiles a statement once, which doubles the jobs a second: more than River alone does
// without that (BenchmarkOverhead). A program that opens the file in another way pays some 100 µs for each job that it
// writes.
//
// The retryjob.Record is the only element of an array under the key "retryjob" of a job's metadata; attempts that ended
// late are in another one under the key "retryjob_late". A plain job has a record from its first failure on. A client
// of NewClient refuses a job that has one of these keys already. A success is not written there, since the row has its
// start and end, to the millisecond on SQLite. To River, a job that ended as DeadLettered, Expired, Failed or Canceled
// was canceled. River's max_attempts is set out of the way, since the policy as it is when the attempt ends decides.
// From its hundredth attempt on a job is snoozed by River rather than failed, since each failure makes its row longer.
// Do not close the database before the client has stopped: River would keep trying to recover.
package retryriver
