// Package retryriver makes River (https://riverqueue.com) the durable engine of retryjob: jobs wait as rows of a
// database and survive every restart. The database is an embedded SQLite file or PostgreSQL; the behavior is the same.
//
// A process that only enqueues uses OpenSQLite or a pool, New, NewClient without workers, and NewAdmin. InsertTx with
// NewSQLite takes a transaction of a database of OpenSQLite for the same path, Queue.Adapter and ClientOf[*sql.Tx].
//
// NewSQLite and NewPostgres return a complete retryjob.Queue, so moving from the engine in memory changes one line. A
// program with River workers of its own gets its client from NewClient. Jobs that it inserts with that client stay
// River's: the policies and Admin do not see them.
//
// # What is promised
//
// A job runs at least once. If a process dies before it has written the result of an attempt, the job runs again. So
// handlers must be idempotent; use AttemptInfo.JobID of retryjob.AttemptFrom to deduplicate. An attempt whose process
// died counts as failed with retryjob.ErrLost. If it was the last one, the job is DeadLettered with AttemptsExhausted.
//
// A due time is a lower bound. Attempts start late by up to the poll interval, which is 100 ms with NewSQLite and NewPostgres.
// With River's own settings (1 s) half of them are 0.5 s late, the slowest 1.1 s, on both databases. Delays below about
// 300 ms are not precise, since River writes results in batches. Use retry.Do for those.
//
// After a process has died, its jobs run again when their AttemptTimeout and ten more seconds have passed and River's
// leader has looked for lost jobs, which it does every 30 s. If the leader died, another one takes over within 20 s.
//
// # Requirements of River
//
//   - Handlers should end with their context. If a handler ignores it, or its process is suspended, for longer than the
//     attempt may take, the attempt counts as lost, and the job is attempted again while the handler continues. Its
//     late result changes only its own line in the record: retryjob.Attempt.Late.
//   - Every process must register all kinds. River's leader, which may be any of them, discards a lost job of a kind
//     that it does not know; Admin shows it as DeadLettered with AttemptsExhausted, and it can be replayed. A process
//     that fetches a job of an unknown kind wastes one of the job's attempts.
//   - All processes must run the same policies under the same names. If the process that fetches a job does not know
//     its policy, it postpones the job for a minute, which does not count as an attempt, and logs a warning.
//   - Each process counts its budgets separately.
//   - River and its drivers must have the same version; this module is built and tested with v0.47.0. A program must
//     not upgrade only one of them.
//   - A handler's river.JobSnooze and river.JobCancel are ordinary errors. Use retryjob.Snooze and retry.Permanent.
//   - river.Client.JobRetry does not replay: it would give a job one more attempt after its TTL, and repeat a completed
//     job. A job that had already ended is returned to its final state. Use Admin.Replay.
//   - River calls its ErrorHandler only for failures that are retried. A policy's Observe is called for all. The final
//     call follows the commit of the end, so Observe can replay the job; it is lost if the process dies in between.
//   - River's notifications cancel a running job within about 50 ms. With river.Config.PollOnly, or if
//     river.Client.JobCancel is called on SQLite, they do not, and the job is Canceled after its attempt has failed.
//   - Payloads are stored as the databases store JSON: as values, not as text. PostgreSQL refuses \u0000.
//
// # What is in the database
//
// Besides River's tables there are a table, retryjob_schedule, with a row for each schedule of recurring jobs, and two
// indexes of river_job, by which lists and counts find jobs by status, reason, cause, policy, kind and time. OpenSQLite,
// NewSQLite and MigratePostgres create them. While they create the indexes, writers of jobs wait, a few seconds for a
// hundred thousand jobs. The indexes have only jobs of retryjob, and they are correct no matter which program writes the
// table. All data about jobs is in River's tables.
//
// On PostgreSQL the table and the indexes belong to the owner of river_job, and MigratePostgres needs a role that may act
// as that owner. All programs need the rights on River's tables and sequences. A program that works on jobs also needs
// SELECT on retryjob_schedule, and INSERT and UPDATE if it has Options.Recurring or replays occurrences.
//
// The retryjob.Record is the only element of an array under the key "retryjob" of a job's metadata; attempts that ended
// late are in another array under the key "retryjob_late". A new job that has only a policy has the policy's name instead
// of the array. A success is not written there, since the row has its start and end, to the millisecond on SQLite.
//
// A job of retryjob has a unique key with a prefix of its own, so the metadata of another program decides nothing. The key
// of an ID that the caller has chosen is in River's index of unique keys. A job whose ID is taken is inserted and undone,
// in a savepoint if the transaction is the caller's, since River's insert would change the kind of the job that is there.
// A generated ID consists of the number of the row and a random key, which is in no index.
//
// In River's tables a job that ended as DeadLettered, Expired, FailedNoRetries or Canceled is canceled. River's
// max_attempts is set so high that it never applies, since the policy at the end of each attempt decides. From its
// hundredth attempt on River snoozes a job rather than failing it, since each failure makes its row longer. Do not close
// the database before the client has stopped: River would keep trying to recover.
//
// # Costs
//
// On PostgreSQL a job takes 1.3 times the CPU time that River needs for one of its own, of this process and of the server
// together. On SQLite it takes 1.7 times as much. One of River's own takes no more on PostgreSQL, and 1.1 times as much on
// SQLite (BenchmarkOverhead). If the CPU is the limit, the rate of jobs falls by as much.
//
// Of the difference on PostgreSQL half is this process. The other half is the server's, for the entries of the two
// indexes, when a job is inserted and when an attempt has ended, and those of River's index of metadata. A chosen ID
// costs another entry for each state of the job, in River's index of unique keys.
//
// A page of a list, and a count of some time, reads only its jobs. A count of all jobs and a filter by tags read the table:
// PostgreSQL does not answer a query from an index on expressions alone.
//
// A database of OpenSQLite or NewSQLite compiles a statement once. A program that opens the file in another way also pays
// for compiling the expressions of the indexes.
//
// The results of a batch of River's are written in a transaction, which takes two more round trips for the batch. A single
// statement could not undo them if another worker has taken over one of the attempts.
//
// This package may change until it says otherwise.
package retryriver
