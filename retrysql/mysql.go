package retrysql

import (
	"reflect"
	"strconv"
)

// seeMySQL recognizes the errors of github.com/go-sql-driver/mysql. They have no code method, so without importing the
// driver only reflection can recognize them, by their shape:
//
//	type MySQLError struct {
//		Number   uint16
//		SQLState [5]byte
//		Message  string
//	}
func seeMySQL(err error) (finding, bool) {
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || v.NumField() != 3 {
		return finding{}, false
	}
	number, state, message := v.FieldByName("Number"), v.FieldByName("SQLState"), v.FieldByName("Message")
	if number.Kind() != reflect.Uint16 || message.Kind() != reflect.String ||
		!state.IsValid() || state.Type() != reflect.TypeFor[[5]byte]() {
		return finding{}, false
	}
	text := strconv.FormatUint(number.Uint(), 10)
	if c, ok := mysqlCodes[uint16(number.Uint())]; ok {
		return c.finding(text)
	}
	if c, ok := mysqlClasses[[2]byte{byte(state.Index(0).Uint()), byte(state.Index(1).Uint())}]; ok {
		return c.finding(text)
	}
	return meaning{ServerError, futile}.finding(text)
}

// mysqlCodes are the error numbers of the MySQL and MariaDB servers that mean more than the class of their SQLSTATE,
// which for many is the general HY000. Sources: MySQL's "Server Error Message Reference" and "Client Error Message
// Reference", MariaDB's "Error Codes", TiDB's "Error Codes and Troubleshooting".
var mysqlCodes = map[uint16]meaning{
	1213: {Deadlock, undone}, // of the whole transaction; Galera also returns it at the commit
	// Undoes only the statement, unless innodb_rollback_on_timeout is set, so roll back first.
	1205: {LockTimeout, refused},
	3572: {LockTimeout, refused},          // NOWAIT
	1020: {SerializationFailure, refused}, // MariaDB's innodb_snapshot_isolation: the row has changed
	1637: {Overloaded, refused},           // too many transactions at once
	1047: {CannotConnectNow, refused},     // Galera: the node is not ready for queries
	3101: {TransactionRollback, undone},   // Group Replication: another member's transaction came first
	8002: {SerializationFailure, undone},  // TiDB: the commit conflicts, after SELECT FOR UPDATE
	8022: {SerializationFailure, undone},  // TiDB: the commit failed and is rolled back
	9007: {SerializationFailure, undone},  // TiDB: a write conflict, found at the commit

	1040: {TooManyConnections, unreached},
	1203: {TooManyConnections, unreached}, // max_user_connections
	1226: {TooManyConnections, unreached}, // the user's hourly limit
	4031: {AdminShutdown, unreached},      // wait_timeout: sent to an idle client

	1053: {AdminShutdown, lost},
	1927: {AdminShutdown, lost}, // MariaDB: the connection was killed
	2006: {ConnectionLost, lost},
	2013: {ConnectionLost, lost},
	2055: {ConnectionLost, lost},
	1180: {CompletionUnknown, uncertain}, // an error during a commit, which in a transaction is the implicit one of DDL

	1290: {ReadOnlyServer, rejected}, // --read-only
	1792: {ReadOnlyServer, rejected}, // the transaction is read-only
	1836: {ReadOnlyServer, rejected},

	1062: {UniqueViolation, rejected},
	1451: {ConstraintViolation, rejected},
	1452: {ConstraintViolation, rejected},
	1054: {SyntaxOrAccess, rejected}, // no such column
	1064: {SyntaxOrAccess, rejected},
	1406: {InvalidData, rejected}, // too long

	// KILL QUERY and max_execution_time. They undo the statement: its outcome is certain, and repeating it does not
	// help.
	1317: {QueryCanceled, futile},
	1969: {StatementTimeout, futile}, // MariaDB's max_statement_time
	3024: {StatementTimeout, futile},

	1044: {AuthFailed, futile},
	1045: {AuthFailed, futile},
	1698: {AuthFailed, futile}, // a plugin's
	1049: {UnknownDatabase, futile},
}

// mysqlClasses are keyed by the first two characters of the SQLSTATE of the other errors.
var mysqlClasses = map[[2]byte]meaning{
	{'2', '2'}: {InvalidData, rejected},
	{'2', '3'}: {ConstraintViolation, rejected},
	{'2', '8'}: {AuthFailed, futile},
	{'4', '2'}: {SyntaxOrAccess, rejected},
}
