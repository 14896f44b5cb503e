package retrysql

import "strconv"

// sqlServerNumberer is an error with a SQL Server error number: that of github.com/microsoft/go-mssqldb.
type sqlServerNumberer interface{ SQLErrorNumber() int32 }

// seeSQLServer recognizes the errors of SQL Server and Azure SQL.
func seeSQLServer(err error) (finding, bool) {
	if e, ok := as[sqlServerNumberer](err); ok {
		text := strconv.FormatInt(int64(e.SQLErrorNumber()), 10)
		if c, ok := sqlServerCodes[e.SQLErrorNumber()]; ok {
			return c.finding(text)
		}
		return meaning{ServerError, futile}.finding(text)
	}
	return finding{}, false
}

// sqlServerCodes are the codes of EF Core's SqlServerTransientExceptionDetector that a transaction can meet, and codes
// of SQL Server's "Database Engine events and errors" that are not in it.
var sqlServerCodes = map[int32]meaning{
	1205:  {Deadlock, undone},
	3960:  {SerializationFailure, undone}, // snapshot isolation: another transaction updated the row
	3966:  {SerializationFailure, undone}, // the row's version is gone
	3947:  {TransactionRollback, undone},  // a secondary has not caught up
	3948:  {TransactionRollback, undone},  // a secondary has changed its role, or is being cleaned up
	41301: {SerializationFailure, undone}, // memory-optimized tables, checked at the commit: a transaction that this one read from has failed
	41302: {SerializationFailure, undone}, // another transaction updated the row
	41305: {SerializationFailure, undone}, // repeatable read does not hold
	41325: {SerializationFailure, undone}, // serializable does not hold
	41339: {SchemaChanged, undone},
	41839: {Overloaded, refused}, // too many transactions to depend on: ends the statement
	1222:  {LockTimeout, refused},
	1204:  {Overloaded, refused}, // no lock left

	// Azure SQL: a limit, or a busy service. 40501 asks for 10 s, which is longer than the short waits.
	10928: {Overloaded, refused},
	10929: {Overloaded, refused},
	40501: {Overloaded, refused},
	49918: {Overloaded, refused},
	49919: {Overloaded, refused},
	49920: {Overloaded, refused},
	40613: {CannotConnectNow, refused}, // the database is not available
	42108: {CannotConnectNow, refused}, // a Synapse pool is paused
	42109: {CannotConnectNow, refused}, // ... or warms up
	// "An error processing your request" is how a failover ends work in progress: the server does not say how much was
	// done.
	40197: {ServerFault, lost},
	40540: {ServerFault, lost},
	40143: {ServerFault, lost},

	// Failover and recovery.
	615:   {CannotConnectNow, unreached},
	921:   {CannotConnectNow, unreached},
	952:   {CannotConnectNow, unreached},
	4060:  {CannotConnectNow, unreached},
	18401: {CannotConnectNow, unreached}, // in script upgrade mode
	// The client library's numbers, for a connection that was not made.
	64:    {CannotConnect, unreached},
	233:   {CannotConnect, unreached},
	10060: {CannotConnect, unreached},
	20:    {TLSRefused, futile}, // no encryption, which is permanent, although EF Core repeats it

	// ... and for one that was.
	121:   {ConnectionLost, lost},
	10053: {ConnectionLost, lost},
	10054: {ConnectionLost, lost},
	-2:    {StatementTimeout, stopped}, // EF Core: the operation may have been completed

	// The transaction has met an error after which only a rollback is possible, as with XACT_ABORT.
	3930: {TransactionAborted, aborted},
	3998: {TransactionAborted, aborted},

	2601:  {UniqueViolation, rejected},
	2627:  {UniqueViolation, rejected},
	547:   {ConstraintViolation, rejected},
	515:   {ConstraintViolation, rejected}, // NULL
	2628:  {InvalidData, rejected},         // too long
	8152:  {InvalidData, rejected},
	102:   {SyntaxOrAccess, rejected},
	207:   {SyntaxOrAccess, rejected}, // no such column
	208:   {SyntaxOrAccess, rejected}, // no such object
	229:   {SyntaxOrAccess, rejected}, // not permitted
	3906:  {ReadOnlyServer, rejected},
	18456: {AuthFailed, futile},
}
