// Package retrysql repeats database transactions as a whole, and never commits one twice. Tx is for database/sql, Run
// for any other driver, Do for single statements outside a transaction. Judge says what an error means, which depends
// on the phase that it came in; it recognizes the errors of PostgreSQL and its kin, MySQL and MariaDB, SQLite and SQL
// Server by their form, so that no driver is imported.
//
// # The commit
//
// Whether a commit took effect cannot be known if its answer is lost: see ErrCommitAmbiguous, and Options.Probe for
// PostgreSQL.
//
// # Isolation
//
// A conflict is repeated only if the database reports it, which depends on the isolation. At the default of PostgreSQL,
// MySQL and MariaDB, if two transactions read the same value and each writes one computed from it, one of the two
// updates is lost without an error. Begin such a transaction with Options.Isolation sql.LevelSerializable, read with
// FOR UPDATE, or let the statement compute the value, as in SET balance = balance - 60. For a row that is read and
// written sql.LevelRepeatableRead is enough on PostgreSQL, but not on MySQL.
//
// # Other libraries
//
// A Txn has the methods of *sql.Tx, so sqlc, gorm, bun and ent can use it; sqlx can use its Unwrap. README.md shows
// how, and which errors are noted with and without Open.
//
// An SQLite transaction that writes should begin immediately (_txlock=immediate in the data source name): one that has read first and finds a newer
// snapshot when it writes (517) has to begin again, however long busy_timeout is.
package retrysql
