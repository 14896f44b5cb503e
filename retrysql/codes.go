package retrysql

import (
	"database/sql/driver"
	"reflect"
	"strconv"
	"strings"
)

// seePostgres recognizes the errors of PostgreSQL, and of CockroachDB, YugabyteDB and Spanner, which use its protocol.
func seePostgres(err error) finding {
	e, ok := as[interface{ SQLState() string }](err) // pgx and lib/pq
	if !ok || len(e.SQLState()) != 5 {
		return finding{}
	}
	state := e.SQLState()
	if f := lookupWords(postgresWords, state, messageOf(e)); f.reason != "" {
		return f
	}
	return lookup(postgresCodes, state, state[:2])
}

// postgresCodes are SQLSTATEs, and classes for the SQLSTATEs that are not listed (appendix A of PostgreSQL's manual).
var postgresCodes = []coded{
	// The application should be prepared to repeat such a transaction from its start (section 13.5). SERIALIZABLE also
	// fails at the commit.
	{meaning{TransactionRollback, undone}, "40000"},
	{meaning{SerializationFailure, undone}, "40001 CR000"}, // also CockroachDB, before and since it uses 40001, and Spanner
	{meaning{Deadlock, undone}, "40P01"},
	{meaning{ConstraintViolation, rejected}, "40002 23"},
	{meaning{CompletionUnknown, uncertain}, "40003 08007"}, // the first is CockroachDB's, for a commit whose result is ambiguous
	{meaning{LockTimeout, refused}, "55P03"},               // NOWAIT and lock_timeout
	{meaning{ObjectInUse, unable}, "55006"},                // DROP DATABASE and the like
	{meaning{DiskFull, unable}, "53100"},                   // waiting milliseconds for a disk does not help
	{meaning{OutOfMemory, refused}, "53200"},
	{meaning{TooManyConnections, refused}, "53300 53400"}, // 53400 is a configured limit, which also applies to a running statement
	// A backend can end at any time, even after a commit is on disk while it waits for a standby.
	{meaning{AdminShutdown, lost}, "57P01 57P02 57P05"}, // the last is idle_session_timeout
	{meaning{IdleInTransaction, lost}, "25P03"},         // some drivers (lib/pq) only report that the connection is lost
	{meaning{CannotConnectNow, refused}, "57P03"},
	{meaning{QueryCanceled, stopped}, "57014"},
	{meaning{TransactionTimeout, stopped}, "25P04"}, // from PostgreSQL 17
	{meaning{ConnectionLost, lost}, "08000 08003 08006"},
	{meaning{CannotConnect, refused}, "08001 08004"},
	{meaning{InternalError, stopped}, "08P01 XX"}, // protocol violation, and CockroachDB's XXA00, by which the transaction is committed but a schema change has failed
	{meaning{TransactionAborted, aborted}, "25P02"},
	{meaning{ReadOnlyServer, misplaced}, "25006"},
	{meaning{UniqueViolation, rejected}, "23505 23P01"}, // sometimes a serialization failure in disguise (section 13.5)
	{meaning{InvalidData, rejected}, "22"},
	{meaning{AuthFailed, futile}, "28"},
	{meaning{UnknownDatabase, futile}, "3D"},
	{meaning{SyntaxOrAccess, rejected}, "42"},
	{meaning{RaisedException, rejected}, "P0"}, // of PL/pgSQL, which runs before the commit
	{meaning{StorageFault, stopped}, "58"},     // of something outside PostgreSQL, such as files
}

// seeMySQL recognizes the errors of github.com/go-sql-driver/mysql. They have no code method, so without importing the
// driver only reflection can recognize them. It looks for their fields Number uint16, SQLState [5]byte and Message
// string.
func seeMySQL(err error) finding {
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || v.NumField() != 3 {
		return finding{}
	}
	number := v.FieldByName("Number")
	state := v.FieldByName("SQLState")
	message := v.FieldByName("Message")
	switch {
	case number.Kind() != reflect.Uint16, message.Kind() != reflect.String:
		return finding{}
	case !state.IsValid() || state.Type() != reflect.TypeFor[[5]byte]():
		return finding{}
	}
	text := strconv.FormatUint(number.Uint(), 10)
	if f := lookupWords(mysqlWords, text, message.String()); f.reason != "" {
		return f
	}
	class := string([]byte{byte(state.Index(0).Uint()), byte(state.Index(1).Uint())})
	return lookup(mysqlCodes, text, class)
}

// mysqlCodes are the error numbers of the MySQL and MariaDB servers that mean more than the class of their SQLSTATE,
// which for many is the general HY000, and such classes. They are from MySQL's "Server Error Message Reference" and
// "Client Error Message Reference", MariaDB's "Error Codes", and TiDB's "Error Codes and Troubleshooting".
var mysqlCodes = []coded{
	{meaning{Deadlock, undone}, "1213"}, // of the whole transaction, and in Galera also at the commit
	// Undoes only the statement, unless innodb_rollback_on_timeout is set, so roll back first. 3572 is the number for
	// NOWAIT.
	{meaning{LockTimeout, refused}, "1205 3572"},
	{meaning{SerializationFailure, refused}, "1020"}, // of MariaDB's innodb_snapshot_isolation, if the row has changed
	{meaning{Overloaded, refused}, "1637"},           // too many transactions at once
	{meaning{CannotConnectNow, refused}, "1047"},     // a node of Galera is not ready for queries
	{meaning{TransactionRollback, undone}, "3101"},   // in Group Replication, another member's transaction came first
	// In TiDB, conflicts of rows, and 8028 with a change of the table. Each refuses the commit.
	{meaning{SerializationFailure, undone}, "8002 8005 8022 9007"},
	{meaning{SchemaChanged, undone}, "8028"},
	// In TiDB, this server's schema is out of date, or PD or TiKV did not answer in time, is busy, has a lock that it
	// could not resolve, or has no leader. ProxySQL's 9001 is a host group that it could not connect to in time.
	{meaning{Overloaded, refused}, "8027 9001 9002 9003 9004 9005"},
	{meaning{TooManyConnections, refused}, "1040 1203 1226"}, // in total, for this user, and for this user and hour
	{meaning{AdminShutdown, refused}, "4031"},                // wait_timeout, sent to an idle client
	{meaning{AdminShutdown, lost}, "1053 1927"},              // 1927 is MariaDB's, for a connection that was killed
	{meaning{ConnectionLost, lost}, "2006 2013 2055"},
	{meaning{CompletionUnknown, uncertain}, "1180"},        // an error during a commit, which in a transaction is the implicit one of DDL
	{meaning{ReadOnlyServer, misplaced}, "1290 1792 1836"}, // the server or the transaction, and a commit that MySQL and MariaDB refuse and roll back
	{meaning{UniqueViolation, rejected}, "1062"},
	{meaning{ConstraintViolation, rejected}, "1451 1452 23"},
	{meaning{SyntaxOrAccess, rejected}, "1054 1064 42"},
	{meaning{InvalidData, rejected}, "1406 22"},
	// KILL QUERY, max_execution_time, and MariaDB's max_statement_time. They undo the statement, so its outcome is
	// certain, and repeating it does not help.
	{meaning{QueryCanceled, unable}, "1317"},
	{meaning{StatementTimeout, unable}, "3024 1969"},
	{meaning{AuthFailed, futile}, "1044 1045 1698 28"},
	{meaning{UnknownDatabase, futile}, "1049"},
}

// seeSQLite recognizes the errors of two drivers. The Code method of modernc.org/sqlite returns the extended code. The
// type of github.com/mattn/go-sqlite3 has only fields, so without importing the driver only reflection can read them.
// Other packages may have errors of the same shape, so the name of the type, with its package, must contain "sqlite".
func seeSQLite(err error) finding {
	v := reflect.ValueOf(err)
	if !strings.Contains(strings.ToLower(v.Type().String()), "sqlite") {
		return finding{}
	}
	if e, ok := err.(interface{ Code() int }); ok {
		return sqliteCode(int64(e.Code()))
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return finding{}
	}
	primary, extended := v.FieldByName("Code"), v.FieldByName("ExtendedCode")
	switch {
	case !primary.IsValid() || !primary.CanInt(), !extended.IsValid() || !extended.CanInt():
		return finding{}
	case extended.Int() != 0:
		return sqliteCode(extended.Int())
	default:
		return sqliteCode(primary.Int())
	}
}

func isSQLiteError(err error) bool {
	return each(err, func(err error) bool { return seeSQLite(err).reason != "" })
}

// isSQLite reports whether db has a driver of SQLite, by the name of its type. A *sql.Conn does not expose its driver.
func isSQLite(db Beginner) bool {
	pool, ok := db.(interface{ Driver() driver.Driver })
	if !ok {
		return false
	}
	d := pool.Driver()
	return d != nil && strings.Contains(reflect.TypeOf(d).String(), "sqlite")
}

// sqliteCode returns the meaning of an extended or primary code (https://sqlite.org/rescode.html).
func sqliteCode(number int64) finding {
	return lookup(sqliteCodes, strconv.FormatInt(number, 10), strconv.FormatInt(number&0xff, 10))
}

// sqliteCodes are primary codes, and the extended ones that mean more. A commit that meets a lock or a full disk has
// not happened, because the database is in this process, and both drivers roll back.
var sqliteCodes = []coded{
	{meaning{Busy, undone}, "5 6 15"}, // BUSY with 261 BUSY_RECOVERY and 773 BUSY_TIMEOUT, LOCKED with 262 LOCKED_SHAREDCACHE, and PROTOCOL
	{meaning{BusySnapshot, undone}, "517"},
	{meaning{SchemaChanged, undone}, "17"},        // SCHEMA
	{meaning{TransactionRollback, undone}, "516"}, // ABORT_ROLLBACK, by which a rollback ended the statement that was pending
	{meaning{QueryCanceled, unable}, "9"},         // INTERRUPT, in whose place the drivers return the context's error
	{meaning{StorageFault, stopped}, "10"},        // IOERR, after which the content of the file is unknown
	{meaning{StorageFault, unable}, "14"},         // CANTOPEN
	{meaning{StorageFault, futile}, "26"},         // NOTADB
	{meaning{DiskFull, rejected}, "13"},           // FULL
	{meaning{OutOfMemory, unable}, "7"},           // NOMEM
	{meaning{InternalError, stopped}, "11"},       // CORRUPT
	{meaning{ConstraintViolation, rejected}, "19"},
	{meaning{UniqueViolation, rejected}, "1555 2067"}, // CONSTRAINT_PRIMARYKEY, CONSTRAINT_UNIQUE
	{meaning{InvalidData, futile}, "20"},              // MISMATCH
	{meaning{SyntaxOrAccess, futile}, "1 8 21 23"},    // ERROR, usually in the SQL, READONLY, MISUSE by the driver, and AUTH
}

// seeSQLServer recognizes the errors of SQL Server and Azure SQL.
func seeSQLServer(err error) finding {
	if e, ok := as[interface{ SQLErrorNumber() int32 }](err); ok { // github.com/microsoft/go-mssqldb
		return lookup(sqlServerCodes, strconv.FormatInt(int64(e.SQLErrorNumber()), 10), "")
	}
	return finding{}
}

// sqlServerCodes are the codes of EF Core's SqlServerTransientExceptionDetector that a transaction can meet, and codes
// of SQL Server's "Database Engine events and errors" that are not in it.
var sqlServerCodes = []coded{
	{meaning{Deadlock, undone}, "1205"},
	// Snapshot isolation, and memory-optimized tables, whose conflicts are found at the commit.
	{meaning{SerializationFailure, undone}, "3960 3966 41301 41302 41305 41325"},
	{meaning{TransactionRollback, undone}, "3947 3948"}, // a secondary has not caught up, has changed its role, or is being cleaned up
	{meaning{SchemaChanged, undone}, "41339"},
	{meaning{LockTimeout, refused}, "1222"},
	{meaning{Overloaded, refused}, "1204 41839"}, // no lock left, and too many transactions to depend on
	// A limit of Azure SQL, or a busy service. 40501 asks for 10s, which is longer than the short waits.
	{meaning{Overloaded, refused}, "10928 10929 40501 49918 49919 49920"},
	{meaning{CannotConnectNow, refused}, "40613 42108 42109"}, // the database is not available, or a Synapse pool is paused or warms up
	// A failover ends work in progress with "An error processing your request". The server does not report how much was
	// done.
	{meaning{ServerFault, lost}, "40197 40540 40143"},
	{meaning{CannotConnectNow, refused}, "615 921 952 4060 18401"}, // failover, recovery, and script upgrade mode
	// The client library's numbers, for a connection that was not made, and for one that was. 20 means no encryption, which
	// is permanent, although EF Core repeats it.
	{meaning{CannotConnect, refused}, "64 233 10060"},
	{meaning{TLSRefused, futile}, "20"},
	{meaning{ConnectionLost, lost}, "121 10053 10054"},
	{meaning{StatementTimeout, stopped}, "-2"},          // by EF Core, the operation may have been completed
	{meaning{TransactionAborted, aborted}, "3930 3998"}, // only a rollback is possible, as with XACT_ABORT
	{meaning{UniqueViolation, rejected}, "2601 2627"},
	{meaning{ConstraintViolation, rejected}, "547 515"},
	{meaning{InvalidData, rejected}, "2628 8152"},          // too long
	{meaning{SyntaxOrAccess, rejected}, "102 207 208 229"}, // also no such column, no such object, not permitted
	{meaning{ReadOnlyServer, misplaced}, "3906"},
	{meaning{AuthFailed, futile}, "18456"},
}
