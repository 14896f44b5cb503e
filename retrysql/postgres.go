package retrysql

import "strings"

// seePostgres recognizes the errors of PostgreSQL, and of CockroachDB, YugabyteDB and Spanner, which use its protocol.
func seePostgres(err error) (finding, bool) {
	var state string
	if e, ok := as[interface{ SQLState() string }](err); ok { // pgx and lib/pq
		state = e.SQLState()
	}
	if len(state) != 5 {
		return finding{}, false
	}
	if state == "0A000" && strings.Contains(err.Error(), "cached plan must not change result type") {
		return finding{meaning{CachedPlan, refused}, state}, true // PostgreSQL has no code for it: plancache.c
	}
	return lookup(postgresCodes, state, state[:2])
}

// postgresCodes are SQLSTATEs, and classes for the SQLSTATEs that are not listed: PostgreSQL's manual, appendix A.
var postgresCodes = []coded{
	// Section 13.5: the application should be prepared to repeat such a transaction from its start. SERIALIZABLE also
	// fails at the commit.
	{meaning{TransactionRollback, undone}, "40000"},
	{meaning{SerializationFailure, undone}, "40001 CR000"}, // also CockroachDB, before and since it uses 40001, and Spanner
	{meaning{Deadlock, undone}, "40P01"},
	{meaning{ConstraintViolation, rejected}, "40002 23"},
	{meaning{CompletionUnknown, uncertain}, "40003 08007"}, // CockroachDB: the result of the commit is ambiguous; "transaction resolution unknown"
	{meaning{LockTimeout, refused}, "55P03"},               // NOWAIT and lock_timeout
	{meaning{ObjectInUse, futile}, "55006"},                // DROP DATABASE and the like
	{meaning{DiskFull, futile}, "53100"},                   // waiting milliseconds for a disk does not help
	{meaning{OutOfMemory, refused}, "53200"},
	{meaning{TooManyConnections, refused}, "53300 53400"}, // 53400: a configured limit, which also applies to a running statement
	// A backend can end at any time, even after a commit is on disk while it waits for a standby.
	{meaning{AdminShutdown, lost}, "57P01 57P02 57P05"}, // the last is idle_session_timeout
	{meaning{IdleInTransaction, lost}, "25P03"},         // some drivers (lib/pq) only report that the connection is lost
	{meaning{CannotConnectNow, refused}, "57P03"},
	{meaning{QueryCanceled, stopped}, "57014"},
	{meaning{TransactionTime, stopped}, "25P04"}, // from PostgreSQL 17
	{meaning{ConnectionLost, lost}, "08000 08003 08006"},
	{meaning{CannotConnect, refused}, "08001 08004"},
	{meaning{InternalError, stopped}, "08P01 XX"}, // protocol violation; CockroachDB's XXA00: committed, but a schema change failed
	{meaning{TransactionAborted, aborted}, "25P02"},
	{meaning{ReadOnlyServer, rejected}, "25006"},
	{meaning{UniqueViolation, rejected}, "23505 23P01"}, // section 13.5: sometimes a serialization failure in disguise
	{meaning{InvalidData, rejected}, "22"},
	{meaning{AuthFailed, futile}, "28"},
	{meaning{UnknownDatabase, futile}, "3D"},
	{meaning{SyntaxOrAccess, rejected}, "42"},
	{meaning{RaisedException, rejected}, "P0"}, // PL/pgSQL: it runs before the commit
	{meaning{StorageFault, stopped}, "58"},     // outside PostgreSQL: files
}
