// Package retrysql repeats database transactions as a whole, and never commits one twice. Tx is for database/sql, Run
// for any other driver, and Do for single statements outside a transaction. Judge returns the meaning of an error.
//
//	err := retrysql.Tx(ctx, db, retry.Inline(), nil, func(ctx context.Context, tx *retrysql.Txn) error {
//		return New(tx).TakeOne(ctx, id) // New is sqlc's
//	})
//
// # The commit
//
// If the answer to a commit is lost, the client cannot know whether it took effect. See ErrCommitAmbiguous, and
// Options.Probe for PostgreSQL.
//
// # Isolation
//
// A conflict is repeated only if the database reports it, which depends on the isolation. At the default of PostgreSQL,
// MySQL and MariaDB, if two transactions read the same value and each writes one computed from it, one of the updates
// is lost without an error. Begin such a transaction with Options.Isolation sql.LevelSerializable, read with FOR UPDATE,
// or let the statement compute the value, as in SET balance = balance - 60.
//
// # Other libraries
//
// sqlc, gorm, bun and ent can use a Txn, and sqlx its Unwrap. README.md shows how, and which errors are then noted.
//
// An SQLite transaction that writes should begin immediately (_txlock=immediate in the data source name). Otherwise it
// must begin again, however long busy_timeout is, if another connection writes between its first read and first write.
//
// This package is of the stable core. Its names are meant for v1.
package retrysql
