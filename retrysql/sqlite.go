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
	text := strconv.FormatInt(number, 10)
	if c, ok := sqliteCodes[number]; ok {
		return c.finding(text)
	}
	if c, ok := sqliteCodes[number&0xff]; ok { // the primary code
		return c.finding(text)
	}
	return meaning{ServerError, futile}.finding(text)
}

// sqliteCodes are primary codes, and the extended ones that mean more. A commit that meets a lock has not happened: the
// database is in this process, and both drivers roll back.
var sqliteCodes = map[int64]meaning{
	5:   {Busy, undone}, // also 261 BUSY_RECOVERY, 773 BUSY_TIMEOUT
	517: {BusySnapshot, undone},
	6:   {Busy, undone},                // LOCKED, also 262 LOCKED_SHAREDCACHE
	15:  {Busy, undone},                // PROTOCOL: too many races for the locks of the write-ahead log
	17:  {SchemaChanged, undone},       // SCHEMA
	516: {TransactionRollback, undone}, // ABORT_ROLLBACK: a rollback ended the statement that was pending

	9:  {QueryCanceled, futile},  // INTERRUPT: the drivers return the context's error in its place
	10: {StorageFault, stopped},  // IOERR: the content of the file is unknown
	13: {DiskFull, rejected},     // FULL: a commit could not write its pages
	7:  {OutOfMemory, futile},    // NOMEM
	14: {StorageFault, futile},   // CANTOPEN
	11: {InternalError, stopped}, // CORRUPT
	26: {StorageFault, futile},   // NOTADB

	19:   {ConstraintViolation, rejected},
	1555: {UniqueViolation, rejected}, // CONSTRAINT_PRIMARYKEY
	2067: {UniqueViolation, rejected}, // CONSTRAINT_UNIQUE
	20:   {InvalidData, futile},       // MISMATCH
	1:    {SyntaxOrAccess, futile},    // ERROR: the general one, usually an error in the SQL
	8:    {SyntaxOrAccess, futile},    // READONLY
	21:   {SyntaxOrAccess, futile},    // MISUSE: of the library, by the driver
	23:   {SyntaxOrAccess, futile},    // AUTH: an authorizer's refusal
}
