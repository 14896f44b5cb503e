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
	class := string([]byte{byte(state.Index(0).Uint()), byte(state.Index(1).Uint())})
	return lookup(mysqlCodes, text, class)
}

// mysqlCodes are the error numbers of the MySQL and MariaDB servers that mean more than the class of their SQLSTATE,
// which for many is the general HY000, and such classes. Sources: MySQL's "Server Error Message Reference" and "Client
// Error Message Reference", MariaDB's "Error Codes", TiDB's "Error Codes and Troubleshooting".
var mysqlCodes = []coded{
	{meaning{Deadlock, undone}, "1213"}, // of the whole transaction; Galera also returns it at the commit
	// Undoes only the statement, unless innodb_rollback_on_timeout is set, so roll back first. 3572 is that of NOWAIT.
	{meaning{LockTimeout, refused}, "1205 3572"},
	{meaning{SerializationFailure, refused}, "1020"},          // MariaDB's innodb_snapshot_isolation: the row has changed
	{meaning{Overloaded, refused}, "1637"},                    // too many transactions at once
	{meaning{CannotConnectNow, refused}, "1047"},              // Galera: the node is not ready for queries
	{meaning{TransactionRollback, undone}, "3101"},            // Group Replication: another member's transaction came first
	{meaning{SerializationFailure, undone}, "8002 8022 9007"}, // TiDB: a write conflict, found at the commit
	{meaning{TooManyConnections, refused}, "1040 1203 1226"},  // in total, for this user, and for this user and hour
	{meaning{AdminShutdown, refused}, "4031"},                 // wait_timeout: sent to an idle client
	{meaning{AdminShutdown, lost}, "1053 1927"},               // 1927 is MariaDB's: the connection was killed
	{meaning{ConnectionLost, lost}, "2006 2013 2055"},
	{meaning{CompletionUnknown, uncertain}, "1180"},       // an error during a commit, which in a transaction is the implicit one of DDL
	{meaning{ReadOnlyServer, rejected}, "1290 1792 1836"}, // the server, the transaction
	{meaning{UniqueViolation, rejected}, "1062"},
	{meaning{ConstraintViolation, rejected}, "1451 1452 23"},
	{meaning{SyntaxOrAccess, rejected}, "1054 1064 42"},
	{meaning{InvalidData, rejected}, "1406 22"},
	// KILL QUERY, max_execution_time, and MariaDB's max_statement_time. They undo the statement: its outcome is certain, and
	// repeating it does not help.
	{meaning{QueryCanceled, futile}, "1317"},
	{meaning{StatementTimeout, futile}, "3024 1969"},
	{meaning{AuthFailed, futile}, "1044 1045 1698 28"},
	{meaning{UnknownDatabase, futile}, "1049"},
}
