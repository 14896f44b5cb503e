package retrysql

import (
	"slices"

	"github.com/retrygo/retry"
)

// Reason is a machine-readable word for the cause of a failure, for logs, metrics and rules. Words are never removed or
// changed. The empty Reason means an unknown error.
type Reason string

// The transaction conflicted with another one. A new one may succeed.
const (
	SerializationFailure Reason = "serialization_failure" // it cannot be serialized with the others
	Deadlock             Reason = "deadlock"              // two transactions wait for each other, and this one was chosen to fail
	LockTimeout          Reason = "lock_timeout"          // a lock was not free in time, or at once
	Busy                 Reason = "busy"                  // in SQLite, another connection has the lock
	BusySnapshot         Reason = "busy_snapshot"         // in SQLite, data has changed since it was read, so waiting does not help
	TransactionRollback  Reason = "transaction_rollback"  // the server rolled back, for a cause that has no Reason of its own
	CachedPlan           Reason = "cached_plan"           // in PostgreSQL, the table of a prepared statement has changed
	SchemaChanged        Reason = "schema_changed"        // the tables have changed during the transaction
)

// The server cannot serve now.
const (
	TooManyConnections Reason = "too_many_connections" // it has no connection left, in total or for this user
	CannotConnectNow   Reason = "cannot_connect_now"   // it is starting, stopping or failing over
	CannotConnect      Reason = "cannot_connect"       // it could not be reached
	Overloaded         Reason = "overloaded"           // it is overloaded
	OutOfMemory        Reason = "out_of_memory"        // it has no memory left
)

// The connection is lost, and its transaction with it.
const (
	ConnectionLost Reason = "connection_lost" // it broke, or the driver closed it
	AdminShutdown  Reason = "admin_shutdown"  // the server ended it, because of an administrator, a shutdown, a crash or a limit
	ServerFault    Reason = "server_fault"    // the server failed in a way that it does not describe
)

// The outcome is not known.
const (
	CompletionUnknown  Reason = "completion_unknown"  // by the server's own account
	CommitAmbiguous    Reason = "commit_ambiguous"    // ErrCommitAmbiguous
	StatementAmbiguous Reason = "statement_ambiguous" // ErrStatementAmbiguous
)

// The work was ended from outside.
const (
	QueryCanceled      Reason = "query_canceled"      // PostgreSQL's statement_timeout or a cancel request, which look the same
	StatementTimeout   Reason = "statement_timeout"   // the server's limit for a statement
	IdleInTransaction  Reason = "idle_in_transaction" // the server's limit for a pause in a transaction, so fn is too slow
	TransactionTimeout Reason = "transaction_timeout" // the server's limit for a transaction, so fn is too slow
	AttemptTimeout     Reason = "attempt_timeout"     // Policy.AttemptTimeout has passed
	Canceled           Reason = "canceled"            // context.Canceled
	Timeout            Reason = "timeout"             // context.DeadlineExceeded
)

// The work cannot succeed as it is.
const (
	UniqueViolation     Reason = "unique_violation"     // a key exists, but PostgreSQL may report a conflict this way
	ConstraintViolation Reason = "constraint_violation" // another constraint does not hold
	InvalidData         Reason = "invalid_data"         // a value is too long, out of range or of another type
	SyntaxOrAccess      Reason = "syntax_or_access"     // the statement is wrong, names an object that does not exist, or is not allowed
	RaisedException     Reason = "raised_exception"     // in PostgreSQL, a function or trigger raised an error
	AuthFailed          Reason = "auth_failed"          // the user or password was refused
	UnknownDatabase     Reason = "unknown_database"     // there is no such database
	TLSRefused          Reason = "tls_refused"          // one side does not speak TLS, or does not trust the other
	InvalidSource       Reason = "invalid_source"       // the data source name, or a setting in it, is wrong
	PoolClosed          Reason = "pool_closed"          // the *sql.DB or pool is closed
	ObjectInUse         Reason = "object_in_use"        // the object is in use
	ReadOnlyServer      Reason = "read_only_server"     // the server is read-only, such as a replica, perhaps since a failover
	DiskFull            Reason = "disk_full"            // the server's disk is full
	StorageFault        Reason = "storage_fault"        // the server's disk fails, or the file cannot be opened or trusted
	InternalError       Reason = "internal_error"       // the server has a bug, or corrupt data
	ServerError         Reason = "server_error"         // the code has no Reason of its own
	NoRows              Reason = "no_rows"              // sql.ErrNoRows
)

// The transaction cannot go on.
const (
	TransactionAborted Reason = "transaction_aborted" // an earlier error undid it
	TransactionDone    Reason = "transaction_done"    // sql.ErrTxDone, since it was committed or rolled back before
	TransactionEnded   Reason = "transaction_ended"   // ErrTransactionEnded
	PartlyDone         Reason = "partly_done"         // of Do, if the write succeeded and fn failed
)

// stops reports whether a context has ended a statement, or the server was asked to cancel it. pgx and the driver of
// MySQL then close the connection, PostgreSQL aborts the transaction, and SQLite undoes one that was writing.
func (r Reason) stops() bool { return r == Canceled || r == Timeout || r == QueryCanceled }

// ReasonOf returns the Reason that Judge returns in each phase. It returns "" for nil and for an unknown error.
func ReasonOf(err error) Reason { return Judge(Statement, err).Reason }

// OnReason returns a classifier that returns class for an error with one of the reasons, and otherwise Unknown. Use it
// for errors whose default class helps some users and harms others:
//
//	retry.Policy{Classify: retrysql.OnReason(retry.Retryable, retrysql.UniqueViolation)}
//
// Repeating a UniqueViolation helps if two transactions look for a row and both insert it. Repeating ObjectInUse or
// DiskFull helps if an operator corrects the cause. The reverse, retry.Terminal, is useful for IdleInTransaction, if fn
// is always too slow, and for ReadOnlyServer, if the role or the database may never write. Otherwise each attempt makes
// a new connection. The empty Reason matches no error.
//
// Retryable does not allow the repetition of a commit that may have taken effect.
func OnReason(class retry.Class, reasons ...Reason) retry.Classifier {
	reasons = slices.Clone(reasons) // the caller may reuse the slice
	return func(err error) retry.Class {
		if reason := ReasonOf(err); reason != "" && slices.Contains(reasons, reason) {
			return class
		}
		return retry.Unknown
	}
}
