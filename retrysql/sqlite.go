package retrysql

import (
	"database/sql/driver"
	"reflect"
	"strconv"
	"strings"
)

// seeSQLite recognizes the errors of two drivers: modernc.org/sqlite, whose Code method returns the extended code, and
// github.com/mattn/go-sqlite3, whose type has only fields, so without importing the driver only reflection can read
// them. Other packages may have errors of the same shape, so the name of the type, with its package, must contain
// "sqlite".
func seeSQLite(err error) (finding, bool) {
	v := reflect.ValueOf(err)
	if !strings.Contains(strings.ToLower(v.Type().String()), "sqlite") {
		return finding{}, false
	}
	if e, ok := err.(interface{ Code() int }); ok {
		return sqliteCode(int64(e.Code()))
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return finding{}, false
	}
	primary, extended := v.FieldByName("Code"), v.FieldByName("ExtendedCode")
	switch {
	case !primary.IsValid() || !primary.CanInt() || !extended.IsValid() || !extended.CanInt():
		return finding{}, false
	case extended.Int() != 0:
		return sqliteCode(extended.Int())
	default:
		return sqliteCode(primary.Int())
	}
}

// isSQLiteError reports whether err is that of an SQLite driver.
func isSQLiteError(err error) bool {
	return each(err, func(err error) bool { _, ok := seeSQLite(err); return ok })
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

// sqliteCode returns the meaning of an extended or primary code: https://sqlite.org/rescode.html.
func sqliteCode(number int64) (finding, bool) {
	return lookup(sqliteCodes, strconv.FormatInt(number, 10), strconv.FormatInt(number&0xff, 10))
}

// sqliteCodes are primary codes, and the extended ones that mean more. A commit that meets a lock or a full disk has not
// happened: the database is in this process, and both drivers roll back.
var sqliteCodes = []coded{
	{meaning{Busy, undone}, "5 6 15"}, // BUSY, also 261 BUSY_RECOVERY, 773 BUSY_TIMEOUT; LOCKED, also 262 LOCKED_SHAREDCACHE; PROTOCOL
	{meaning{BusySnapshot, undone}, "517"},
	{meaning{SchemaChanged, undone}, "17"},        // SCHEMA
	{meaning{TransactionRollback, undone}, "516"}, // ABORT_ROLLBACK: a rollback ended the statement that was pending
	{meaning{QueryCanceled, futile}, "9"},         // INTERRUPT: the drivers return the context's error in its place
	{meaning{StorageFault, stopped}, "10"},        // IOERR: the content of the file is unknown
	{meaning{StorageFault, futile}, "14 26"},      // CANTOPEN, NOTADB
	{meaning{DiskFull, rejected}, "13"},           // FULL
	{meaning{OutOfMemory, futile}, "7"},           // NOMEM
	{meaning{InternalError, stopped}, "11"},       // CORRUPT
	{meaning{ConstraintViolation, rejected}, "19"},
	{meaning{UniqueViolation, rejected}, "1555 2067"}, // CONSTRAINT_PRIMARYKEY, CONSTRAINT_UNIQUE
	{meaning{InvalidData, futile}, "20"},              // MISMATCH
	{meaning{SyntaxOrAccess, futile}, "1 8 21 23"},    // ERROR, the general one, usually an error in the SQL; READONLY; MISUSE, by the driver; AUTH
}
