package retrysql

import "strings"

// sqlStater is an error with a SQLSTATE, like those of pgx and lib/pq.
type sqlStater interface{ SQLState() string }

// seePostgres recognizes the errors of PostgreSQL, and of CockroachDB, YugabyteDB and Spanner, which use its protocol.
func seePostgres(err error) (finding, bool) {
	var state string
	if e, ok := as[sqlStater](err); ok {
		state = e.SQLState()
	}
	if len(state) != 5 {
		return finding{}, false
	}
	if state == "0A000" && strings.Contains(err.Error(), "cached plan must not change result type") {
		return meaning{CachedPlan, refused}.finding(state) // PostgreSQL has no code for it: plancache.c
	}
	if c, ok := postgresCodes[state]; ok {
		return c.finding(state)
	}
	if c, ok := postgresClasses[state[:2]]; ok {
		return c.finding(state)
	}
	return meaning{ServerError, futile}.finding(state)
}

// postgresCodes are the SQLSTATEs that mean more than their class: PostgreSQL's manual, appendix A.
var postgresCodes = map[string]meaning{
	// Section 13.5: the application should be prepared to repeat such a transaction from its start. SERIALIZABLE also
	// fails at the commit.
	"40000": {TransactionRollback, undone},
	"40001": {SerializationFailure, undone}, // also CockroachDB and Spanner
	"40P01": {Deadlock, undone},
	"CR000": {SerializationFailure, undone}, // CockroachDB before it used 40001
	"40002": {ConstraintViolation, rejected},
	"40003": {CompletionUnknown, uncertain}, // CockroachDB: the result of the commit is ambiguous
	"08007": {CompletionUnknown, uncertain}, // "transaction resolution unknown"; some libraries call it transient

	"55P03": {LockTimeout, refused}, // NOWAIT and lock_timeout
	"55006": {ObjectInUse, futile},  // DROP DATABASE and the like

	"53100": {DiskFull, futile}, // waiting milliseconds for a disk does not help
	"53200": {OutOfMemory, refused},
	"53300": {TooManyConnections, unreached},
	"53400": {TooManyConnections, refused}, // a configured limit, which also applies to a running statement

	// A backend can end at any time, even after a commit is on disk while it waits for a standby.
	"57P01": {AdminShutdown, lost},
	"57P02": {AdminShutdown, lost}, // another backend has crashed
	"57P05": {AdminShutdown, lost}, // idle_session_timeout
	"57P03": {CannotConnectNow, unreached},
	"57014": {QueryCanceled, stopped},
	"25P03": {IdleInTransaction, lost},  // some drivers (lib/pq) only report that the connection is lost
	"25P04": {TransactionTime, stopped}, // from PostgreSQL 17

	"08000": {ConnectionLost, lost},
	"08003": {ConnectionLost, lost},
	"08006": {ConnectionLost, lost},
	"08001": {CannotConnect, unreached},
	"08004": {CannotConnect, unreached},
	"08P01": {InternalError, stopped}, // protocol violation

	"25P02": {TransactionAborted, aborted},
	"25006": {ReadOnlyServer, rejected},

	"23505": {UniqueViolation, rejected}, // section 13.5: sometimes a serialization failure in disguise
	"23P01": {UniqueViolation, rejected}, // an exclusion constraint, likewise
}

// postgresClasses are keyed by the first two characters of the other SQLSTATEs. A deferred constraint or trigger fails
// at the commit.
var postgresClasses = map[string]meaning{
	"22": {InvalidData, rejected},
	"23": {ConstraintViolation, rejected},
	"28": {AuthFailed, futile},
	"3D": {UnknownDatabase, futile},
	"42": {SyntaxOrAccess, rejected},
	"P0": {RaisedException, rejected}, // PL/pgSQL: it runs before the commit
	"58": {StorageFault, stopped},     // outside PostgreSQL: files
	"XX": {InternalError, stopped},    // CockroachDB's XXA00: committed, but a schema change failed
}
