// Package retrysql repeats database transactions as a whole, and never commits one twice. Tx is for database/sql, Run for
// any other driver, Do for single statements outside a transaction. Judge says what an error means, which depends on the
// phase that it came in; it recognizes the errors of PostgreSQL and its kin, MySQL and MariaDB, SQLite and SQL Server by
// their form, so that no driver is imported.
//
// Whether a commit took effect cannot be known if its answer is lost: see ErrCommitAmbiguous, and Options.Probe for
// PostgreSQL.
//
// An SQLite transaction that writes should begin with _txlock=immediate: one that has read first and finds a newer
// snapshot when it writes (517) has to begin again, however long busy_timeout is.
package retrysql
