package retrysql

import "strconv"

// seeSQLServer recognizes the errors of SQL Server and Azure SQL.
func seeSQLServer(err error) (finding, bool) {
	if e, ok := as[interface{ SQLErrorNumber() int32 }](err); ok { // github.com/microsoft/go-mssqldb
		return lookup(sqlServerCodes, strconv.FormatInt(int64(e.SQLErrorNumber()), 10), "")
	}
	return finding{}, false
}

// sqlServerCodes are the codes of EF Core's SqlServerTransientExceptionDetector that a transaction can meet, and codes
// of SQL Server's "Database Engine events and errors" that are not in it.
var sqlServerCodes = []coded{
	{meaning{Deadlock, undone}, "1205"},
	// Snapshot isolation; memory-optimized tables, whose conflicts are found at the commit.
	{meaning{SerializationFailure, undone}, "3960 3966 41301 41302 41305 41325"},
	{meaning{TransactionRollback, undone}, "3947 3948"}, // a secondary has not caught up, has changed its role, or is being cleaned up
	{meaning{SchemaChanged, undone}, "41339"},
	{meaning{LockTimeout, refused}, "1222"},
	{meaning{Overloaded, refused}, "1204 41839"}, // no lock left; too many transactions to depend on
	// Azure SQL: a limit, or a busy service. 40501 asks for 10 s, which is longer than the short waits.
	{meaning{Overloaded, refused}, "10928 10929 40501 49918 49919 49920"},
	{meaning{CannotConnectNow, refused}, "40613 42108 42109"}, // the database is not available; a Synapse pool is paused or warms up
	// "An error processing your request" is how a failover ends work in progress: the server does not say how much was
	// done.
	{meaning{ServerFault, lost}, "40197 40540 40143"},
	{meaning{CannotConnectNow, refused}, "615 921 952 4060 18401"}, // failover and recovery; script upgrade mode
	// The client library's numbers, for a connection that was not made, and for one that was. 20 means no encryption, which
	// is permanent, although EF Core repeats it.
	{meaning{CannotConnect, refused}, "64 233 10060"},
	{meaning{TLSRefused, futile}, "20"},
	{meaning{ConnectionLost, lost}, "121 10053 10054"},
	{meaning{StatementTimeout, stopped}, "-2"},          // EF Core: the operation may have been completed
	{meaning{TransactionAborted, aborted}, "3930 3998"}, // only a rollback is possible, as with XACT_ABORT
	{meaning{UniqueViolation, rejected}, "2601 2627"},
	{meaning{ConstraintViolation, rejected}, "547 515"},
	{meaning{InvalidData, rejected}, "2628 8152"},          // too long
	{meaning{SyntaxOrAccess, rejected}, "102 207 208 229"}, // also no such column, no such object, not permitted
	{meaning{ReadOnlyServer, rejected}, "3906"},
	{meaning{AuthFailed, futile}, "18456"},
}
