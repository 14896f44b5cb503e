package retrysql_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
	"github.com/retrygo/retry/retrysql"
)

// pgError has the method that pgconn.PgError and pq.Error have.
type pgError struct{ state, Message string }

func (e *pgError) Error() string    { return "ERROR: " + e.Message + " (SQLSTATE " + e.state + ")" }
func (e *pgError) SQLState() string { return e.state }

// mysqlError has the shape of mysql.MySQLError.
type mysqlError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *mysqlError) Error() string { return e.Message }

// sqliteError resembles that of modernc.org/sqlite.
type sqliteError struct{ code int }

func (e *sqliteError) Error() string { return "sqlite " + strconv.Itoa(e.code) }
func (e *sqliteError) Code() int     { return e.code }

type sqliteErrNo int

// sqliteFieldsError resembles that of github.com/mattn/go-sqlite3.
type sqliteFieldsError struct {
	Code         sqliteErrNo
	ExtendedCode sqliteErrNo
	SystemErrno  syscall.Errno
	err          string
}

func (e sqliteFieldsError) Error() string { return e.err }

// mssqlError resembles that of github.com/microsoft/go-mssqldb: a value that is not comparable.
type mssqlError struct {
	Number int32
	All    []mssqlError
}

func (e mssqlError) Error() string         { return "mssql: " + strconv.Itoa(int(e.Number)) }
func (e mssqlError) SQLErrorNumber() int32 { return e.Number }

// mssqlRetryableError is a driver.ErrBadConn that also wraps another error.
type mssqlRetryableError struct{ err error }

func (e mssqlRetryableError) Error() string        { return e.err.Error() }
func (e mssqlRetryableError) Unwrap() error        { return e.err }
func (e mssqlRetryableError) Is(target error) bool { return target == driver.ErrBadConn }

// safeToRetryError is pgx's pgconnError, and its connLockError.
type safeToRetryError struct{ err error }

func (e *safeToRetryError) Error() string     { return "pgx: " + e.err.Error() }
func (e *safeToRetryError) Unwrap() error     { return e.err }
func (e *safeToRetryError) SafeToRetry() bool { return true }

// hiddenError shows the error inside only through As.
type hiddenError struct{ inside error }

func (e hiddenError) Error() string      { return "hidden" }
func (e hiddenError) As(target any) bool { return errors.As(e.inside, target) }

// httpError has a Code method and is not a database's.
type httpError struct{ code int }

func (e *httpError) Error() string { return "status " + strconv.Itoa(e.code) }
func (e *httpError) Code() int     { return e.code }

func pg(state string) error { return &pgError{state, "no"} }

func my(number uint16, state string) error { return mySays(number, state, "no") }

func mySays(number uint16, state, text string) error {
	e := &mysqlError{Number: number, Message: text}
	copy(e.SQLState[:], state)
	return e
}

var phases = []retrysql.Phase{retrysql.Connect, retrysql.Statement, retrysql.Commit, retrysql.Autocommit}

// letters are the verdicts of the tables below.
var letters = map[byte]retrysql.Verdict{
	'R': {Class: retry.Retryable},
	'T': {Class: retry.Terminal},
	'A': {Class: retry.Terminal, Ambiguous: true},
	'-': {},
}

// The verdicts at Connect, Statement, Commit and Autocommit, in this order.
const (
	ifUndone      = "RRRR"
	ifMisplaced   = "RRRR"
	ifRefused     = "RRAR"
	ifUnreached   = "RRAR"
	ifLost        = "RRAA"
	ifUncertain   = "AAAA"
	ifRejected    = "TTTT"
	ifUnable      = "RTAT"
	ifFutile      = "TTAT"
	ifStopped     = "RTAA"
	ifAborted     = "R---"
	ifInterrupted = "R-AA"
	ifOver        = "TTTT"
	ifUnknown     = "R-AT"
)

// agree compares an error with its row, also wrapped and joined.
func agree(t *testing.T, err error, reason retrysql.Reason, code, want string) {
	t.Helper()
	for _, err := range []error{
		err,
		fmt.Errorf("insert: %w", err),
		errors.Join(errors.New("insert"), err),
		&retry.Error{Last: fmt.Errorf("inside: %w", err), Outcome: retry.Outcome{Reason: retry.AttemptsExhausted}},
		errors.Join(err, pg("42601"), driver.ErrBadConn),
		&retry.Error{Last: retry.Permanent(err)},
		retry.Ambiguous(err),
	} {
		for i, phase := range phases {
			verdict := letters[want[i]]
			verdict.Reason, verdict.Code = reason, code
			require.Equal(t, verdict, retrysql.Judge(phase, err), "%v: %v", phase, err)
		}
		require.Equal(t, letters[want[1]].Class, retrysql.Classify(err))
		require.Equal(t, reason, retrysql.ReasonOf(err))
	}
}

func TestPostgres(t *testing.T) {
	for _, row := range []struct {
		state  string
		reason retrysql.Reason
		want   string
	}{
		{"40001", retrysql.SerializationFailure, ifUndone},
		{"CR000", retrysql.SerializationFailure, ifUndone},
		{"40P01", retrysql.Deadlock, ifUndone},
		{"40000", retrysql.TransactionRollback, ifUndone},
		{"40002", retrysql.ConstraintViolation, ifRejected},
		{"40003", retrysql.CompletionUnknown, ifUncertain},
		{"55P03", retrysql.LockTimeout, ifRefused},
		{"55006", retrysql.ObjectInUse, ifUnable},
		{"53300", retrysql.TooManyConnections, ifUnreached},
		{"53400", retrysql.TooManyConnections, ifRefused},
		{"53200", retrysql.OutOfMemory, ifRefused},
		{"53100", retrysql.DiskFull, ifUnable},
		{"57P01", retrysql.AdminShutdown, ifLost},
		{"57P02", retrysql.AdminShutdown, ifLost},
		{"57P05", retrysql.AdminShutdown, ifLost},
		{"57P03", retrysql.CannotConnectNow, ifUnreached},
		{"08001", retrysql.CannotConnect, ifUnreached},
		{"08004", retrysql.CannotConnect, ifUnreached},
		{"08P01", retrysql.InternalError, ifStopped},
		{"08000", retrysql.ConnectionLost, ifLost},
		{"08003", retrysql.ConnectionLost, ifLost},
		{"08006", retrysql.ConnectionLost, ifLost},
		{"08007", retrysql.CompletionUnknown, ifUncertain},
		{"57014", retrysql.QueryCanceled, ifStopped},
		{"25P02", retrysql.TransactionAborted, ifAborted},
		{"25P03", retrysql.IdleInTransaction, ifLost},
		{"25P04", retrysql.TransactionTimeout, ifStopped},
		{"25006", retrysql.ReadOnlyServer, ifMisplaced},
		{"23505", retrysql.UniqueViolation, ifRejected},
		{"23P01", retrysql.UniqueViolation, ifRejected},
		{"22001", retrysql.InvalidData, ifRejected},
		{"22003", retrysql.InvalidData, ifRejected},
		{"23503", retrysql.ConstraintViolation, ifRejected},
		{"28P01", retrysql.AuthFailed, ifFutile},
		{"28000", retrysql.AuthFailed, ifFutile},
		{"3D000", retrysql.UnknownDatabase, ifFutile},
		{"42601", retrysql.SyntaxOrAccess, ifRejected},
		{"42P01", retrysql.SyntaxOrAccess, ifRejected},
		{"P0001", retrysql.RaisedException, ifRejected},
		{"58030", retrysql.StorageFault, ifStopped},
		{"XX000", retrysql.InternalError, ifStopped},
		{"XXA00", retrysql.InternalError, ifStopped}, // CockroachDB
		{"XXUUU", retrysql.InternalError, ifStopped}, // CockroachDB: uncategorized
		{"0A000", retrysql.ServerError, ifUnable},
		{"57P04", retrysql.ServerError, ifUnable},
		{"54000", retrysql.ServerError, ifUnable},
	} {
		t.Run(row.state, func(t *testing.T) { agree(t, pg(row.state), row.reason, row.state, row.want) })
	}
	t.Run("0A000 of a cached plan", func(t *testing.T) {
		agree(t, &pgError{"0A000", "cached plan must not change result type"}, retrysql.CachedPlan, "0A000", ifRefused)
	})
	t.Run("a SQLSTATE has five characters", func(t *testing.T) {
		for _, state := range []string{"", "4000", "400011"} {
			require.Equal(t, retrysql.Verdict{}, retrysql.Judge(retrysql.Statement, pg(state)))
		}
	})
	t.Run("a code that only As shows", func(t *testing.T) {
		require.Equal(t, "40001", retrysql.Judge(retrysql.Commit, hiddenError{pg("40001")}).Code)
		require.Equal(t, "1205", retrysql.Judge(retrysql.Commit, hiddenError{mssqlError{Number: 1205}}).Code)
		require.Empty(t, retrysql.Judge(retrysql.Statement, hiddenError{io.ErrNoProgress}))
	})
}

// TestWordsBesideACode is about codes that poolers share with servers: the words, of which "…" is any part, tell them apart.
// What each pooler says is in tests/retrysql: TestWhatStandsBetween.
func TestWordsBesideACode(t *testing.T) {
	for _, row := range []struct {
		name   string
		err    error
		reason retrysql.Reason
		code   string
		want   string
	}{
		{"the words", &pgError{"08P01", "query_wait_timeout"}, retrysql.TooManyConnections, "08P01", ifUnreached},
		{"the words around another", &pgError{"08P01", `database "shop" is disabled`}, retrysql.UnknownDatabase, "08P01", ifFutile},
		{"the beginning of a text", &pgError{"XX000", "(EMAXCONN) max clients reached"}, retrysql.TooManyConnections, "XX000", ifUnreached},
		{"words around two others", mySays(1105, "HY000", "target: shop.0.primary: vttablet: rpc error: code = Unavailable desc = not serving"), retrysql.ConnectionLost, "1105", ifLost},
		{"other words", &pgError{"08P01", "invalid message length"}, retrysql.InternalError, "08P01", ifStopped},
		{"a text with the words in it", &pgError{"08P01", "the query_wait_timeout"}, retrysql.InternalError, "08P01", ifStopped},
		{"a text that goes on", &pgError{"08P01", "query_wait_timeout?"}, retrysql.InternalError, "08P01", ifStopped},
		{"a text that is cut", &pgError{"08P01", `database "shop" is`}, retrysql.InternalError, "08P01", ifStopped},
		{"the words with another code", &pgError{"42501", "not allowed"}, retrysql.SyntaxOrAccess, "42501", ifRejected},
		{"a function's words", &pgError{"P0001", "(EMAXCONN) no"}, retrysql.RaisedException, "P0001", ifRejected},
		{"other words of MySQL", mySays(1105, "HY000", "no"), retrysql.ServerError, "1105", ifUnable},
	} {
		t.Run(row.name, func(t *testing.T) { agree(t, row.err, row.reason, row.code, row.want) })
	}
}

func TestMySQL(t *testing.T) {
	for _, row := range []struct {
		number uint16
		state  string
		reason retrysql.Reason
		want   string
	}{
		{1213, "40001", retrysql.Deadlock, ifUndone},
		{1205, "HY000", retrysql.LockTimeout, ifRefused},
		{1020, "HY000", retrysql.SerializationFailure, ifRefused},
		{3572, "HY000", retrysql.LockTimeout, ifRefused},
		{1637, "HY000", retrysql.Overloaded, ifRefused},
		{1047, "08S01", retrysql.CannotConnectNow, ifRefused},
		{3101, "40000", retrysql.TransactionRollback, ifUndone},
		{9007, "HY000", retrysql.SerializationFailure, ifUndone},
		{8002, "HY000", retrysql.SerializationFailure, ifUndone},
		{8022, "HY000", retrysql.SerializationFailure, ifUndone},
		{8005, "HY000", retrysql.SerializationFailure, ifUndone},
		{8028, "HY000", retrysql.SchemaChanged, ifUndone},
		{8027, "HY000", retrysql.Overloaded, ifRefused},
		{9001, "HY000", retrysql.Overloaded, ifRefused}, // also ProxySQL's
		{9002, "HY000", retrysql.Overloaded, ifRefused},
		{9003, "HY000", retrysql.Overloaded, ifRefused},
		{9004, "HY000", retrysql.Overloaded, ifRefused},
		{9005, "HY000", retrysql.Overloaded, ifRefused},
		{9006, "HY000", retrysql.ServerError, ifUnable},
		{1040, "08004", retrysql.TooManyConnections, ifUnreached},
		{1203, "42000", retrysql.TooManyConnections, ifUnreached},
		{1226, "42000", retrysql.TooManyConnections, ifUnreached},
		{4031, "HY000", retrysql.AdminShutdown, ifUnreached},
		{1053, "08S01", retrysql.AdminShutdown, ifLost},
		{1927, "70100", retrysql.AdminShutdown, ifLost},
		{2006, "HY000", retrysql.ConnectionLost, ifLost},
		{2013, "HY000", retrysql.ConnectionLost, ifLost},
		{2055, "HY000", retrysql.ConnectionLost, ifLost},
		{1180, "HY000", retrysql.CompletionUnknown, ifUncertain},
		{1290, "HY000", retrysql.ReadOnlyServer, ifMisplaced},
		{1792, "25006", retrysql.ReadOnlyServer, ifMisplaced},
		{1836, "HY000", retrysql.ReadOnlyServer, ifMisplaced},
		{1062, "23000", retrysql.UniqueViolation, ifRejected},
		{1451, "23000", retrysql.ConstraintViolation, ifRejected},
		{1452, "23000", retrysql.ConstraintViolation, ifRejected},
		{1054, "42S22", retrysql.SyntaxOrAccess, ifRejected},
		{1064, "42000", retrysql.SyntaxOrAccess, ifRejected},
		{1317, "70100", retrysql.QueryCanceled, ifUnable},
		{1969, "70100", retrysql.StatementTimeout, ifUnable},
		{3024, "HY000", retrysql.StatementTimeout, ifUnable},
		{1406, "22001", retrysql.InvalidData, ifRejected},
		{1044, "42000", retrysql.AuthFailed, ifFutile},
		{1045, "28000", retrysql.AuthFailed, ifFutile},
		{1698, "28000", retrysql.AuthFailed, ifFutile},
		{1049, "42000", retrysql.UnknownDatabase, ifFutile},
		// By the class of the SQLSTATE.
		{1048, "23000", retrysql.ConstraintViolation, ifRejected},
		{1264, "22003", retrysql.InvalidData, ifRejected},
		{1146, "42S02", retrysql.SyntaxOrAccess, ifRejected},
		{1275, "28000", retrysql.AuthFailed, ifFutile},
		{1105, "HY000", retrysql.ServerError, ifUnable},
		{1105, "", retrysql.ServerError, ifUnable},
	} {
		number := strconv.Itoa(int(row.number))
		t.Run(number+" "+row.state, func(t *testing.T) { agree(t, my(row.number, row.state), row.reason, number, row.want) })
	}
	t.Run("another shape is not an error of MySQL", func(t *testing.T) {
		for _, err := range []error{&threeFields{}, &twoFields{Number: 1213}, &wrongNumber{Number: 1213}, &wrongState{Number: 1213}} {
			require.Equal(t, retrysql.Verdict{}, retrysql.Judge(retrysql.Statement, err))
		}
	})
}

type message struct{}

func (*message) Error() string { return "odd" }

type (
	threeFields struct {
		*message
		Number, Message int
	}
	twoFields struct {
		*message
		Number uint16
	}
	wrongNumber struct {
		*message
		Number   int
		SQLState [5]byte
	}
	wrongState struct {
		*message
		Number   uint16
		SQLState string
	}
)

func TestSQLite(t *testing.T) {
	for _, row := range []struct {
		number int
		reason retrysql.Reason
		want   string
	}{
		{5, retrysql.Busy, ifUndone},
		{261, retrysql.Busy, ifUndone},
		{517, retrysql.BusySnapshot, ifUndone},
		{773, retrysql.Busy, ifUndone},
		{6, retrysql.Busy, ifUndone},
		{262, retrysql.Busy, ifUndone},
		{15, retrysql.Busy, ifUndone},
		{17, retrysql.SchemaChanged, ifUndone},
		{516, retrysql.TransactionRollback, ifUndone},
		{1, retrysql.SyntaxOrAccess, ifFutile},
		{8, retrysql.SyntaxOrAccess, ifFutile},
		{9, retrysql.QueryCanceled, ifUnable},
		{10, retrysql.StorageFault, ifStopped},
		{11, retrysql.InternalError, ifStopped},
		{13, retrysql.DiskFull, ifRejected},
		{7, retrysql.OutOfMemory, ifUnable},
		{14, retrysql.StorageFault, ifUnable},
		{19, retrysql.ConstraintViolation, ifRejected},
		{787, retrysql.ConstraintViolation, ifRejected}, // CONSTRAINT_FOREIGNKEY, deferred
		{1555, retrysql.UniqueViolation, ifRejected},
		{2067, retrysql.UniqueViolation, ifRejected},
		{20, retrysql.InvalidData, ifFutile},
		{21, retrysql.SyntaxOrAccess, ifFutile},
		{23, retrysql.SyntaxOrAccess, ifFutile},
		{26, retrysql.StorageFault, ifFutile},
		{4, retrysql.ServerError, ifUnable},
		{0, retrysql.ServerError, ifUnable},
		{-1, retrysql.ServerError, ifUnable},
	} {
		number := strconv.Itoa(row.number)
		t.Run("modernc "+number, func(t *testing.T) { agree(t, &sqliteError{row.number}, row.reason, number, row.want) })
		t.Run("mattn "+number, func(t *testing.T) {
			fields := sqliteFieldsError{Code: sqliteErrNo(row.number & 0xff), ExtendedCode: sqliteErrNo(row.number)}
			agree(t, fields, row.reason, number, row.want)
			agree(t, &fields, row.reason, number, row.want)
		})
	}
	t.Run("a primary code alone", func(t *testing.T) {
		agree(t, sqliteFieldsError{Code: 5}, retrysql.Busy, "5", ifUndone)
	})
	t.Run("Code of something else is not an error of SQLite", func(t *testing.T) {
		require.Equal(t, retrysql.Verdict{}, retrysql.Judge(retrysql.Statement, &httpError{5}))
		require.Equal(t, retrysql.Verdict{}, retrysql.Judge(retrysql.Statement, sqliteOdd("5")))
		for _, err := range []error{sqliteText{Code: "5"}, sqliteHalf{Code: 5}, &sqliteHalf{Code: 5}, sqliteNone{}} {
			require.Equal(t, retrysql.Verdict{}, retrysql.Judge(retrysql.Statement, err))
		}
	})
}

type sqliteOdd string

func (e sqliteOdd) Error() string { return string(e) }

type sqliteText struct{ Code string }

func (e sqliteText) Error() string { return e.Code }

type sqliteHalf struct {
	Code         int
	ExtendedCode string
}

func (e sqliteHalf) Error() string { return "no number" }

type sqliteNone struct{}

func (e sqliteNone) Error() string { return "no number" }

func TestSQLServer(t *testing.T) {
	for _, row := range []struct {
		reason  retrysql.Reason
		want    string
		numbers []int32
	}{
		{retrysql.Deadlock, ifUndone, []int32{1205}},
		{retrysql.SerializationFailure, ifUndone, []int32{3960, 3966, 41301, 41302, 41305, 41325}},
		{retrysql.TransactionRollback, ifUndone, []int32{3947, 3948}},
		{retrysql.SchemaChanged, ifUndone, []int32{41339}},
		{retrysql.LockTimeout, ifRefused, []int32{1222}},
		{retrysql.Overloaded, ifRefused, []int32{1204, 41839, 10928, 10929, 40501, 49918, 49919, 49920}},
		{retrysql.CannotConnectNow, ifRefused, []int32{40613, 42108, 42109}},
		{retrysql.ServerFault, ifLost, []int32{40197, 40540, 40143}},
		{retrysql.CannotConnectNow, ifUnreached, []int32{4060, 615, 921, 952, 18401}},
		{retrysql.CannotConnect, ifUnreached, []int32{233, 64, 10060}},
		{retrysql.TLSRefused, ifFutile, []int32{20}},
		{retrysql.ConnectionLost, ifLost, []int32{121, 10053, 10054}},
		{retrysql.StatementTimeout, ifStopped, []int32{-2}},
		{retrysql.TransactionAborted, ifAborted, []int32{3930, 3998}},
		{retrysql.UniqueViolation, ifRejected, []int32{2601, 2627}},
		{retrysql.ConstraintViolation, ifRejected, []int32{547, 515}},
		{retrysql.InvalidData, ifRejected, []int32{2628, 8152}},
		{retrysql.SyntaxOrAccess, ifRejected, []int32{102, 207, 208, 229}},
		{retrysql.ReadOnlyServer, ifMisplaced, []int32{3906}},
		{retrysql.AuthFailed, ifFutile, []int32{18456}},
		{retrysql.ServerError, ifUnable, []int32{0, 50000}},
	} {
		for _, number := range row.numbers {
			text := strconv.Itoa(int(number))
			t.Run(text, func(t *testing.T) { agree(t, mssqlError{Number: number}, row.reason, text, row.want) })
		}
	}
	t.Run("ServerError", func(t *testing.T) {
		agree(t, errors.New("SQL Server had internal error"), retrysql.ServerFault, "", ifLost)
	})
	t.Run("StreamError", func(t *testing.T) {
		agree(t, errors.New("Invalid TDS stream: EOF"), retrysql.ConnectionLost, "", ifLost)
	})
	t.Run("RetryableError", func(t *testing.T) {
		agree(t, mssqlRetryableError{errors.New("write: no")}, retrysql.ConnectionLost, "", ifLost)
	})
}

type timeoutError struct{ inside error }

func (timeoutError) Error() string   { return "timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }
func (e timeoutError) Unwrap() error { return e.inside }

func TestWithoutCode(t *testing.T) {
	_, refusedDial := net.Dial("tcp", "127.0.0.1:1")
	require.Error(t, refusedDial)
	for _, row := range []struct {
		name   string
		err    error
		reason retrysql.Reason
		want   string
	}{
		{"driver.ErrBadConn", driver.ErrBadConn, retrysql.ConnectionLost, ifLost},
		{"mysql.ErrInvalidConn", errors.New("invalid connection"), retrysql.ConnectionLost, ifLost},
		{"mysql, bad connection", errors.New("bad connection"), retrysql.ConnectionLost, ifLost},
		{"pgx, conn closed, safe to retry", &safeToRetryError{errors.New("conn closed")}, retrysql.ConnectionLost, ifLost},
		{"pgx, unexpected EOF", &safeToRetryError{io.ErrUnexpectedEOF}, retrysql.ConnectionLost, ifLost},
		{"EOF", io.EOF, retrysql.ConnectionLost, ifLost},
		{"closed pipe", io.ErrClosedPipe, retrysql.ConnectionLost, ifLost},
		{"net.ErrClosed", &net.OpError{Op: "read", Err: net.ErrClosed}, retrysql.ConnectionLost, ifLost},
		{"bare net.ErrClosed", net.ErrClosed, retrysql.ConnectionLost, ifLost},
		{"connection reset", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, retrysql.ConnectionLost, ifLost},
		{"bare connection reset", syscall.ECONNRESET, retrysql.ConnectionLost, ifLost},
		{"bare broken pipe", os.NewSyscallError("write", syscall.EPIPE), retrysql.ConnectionLost, ifLost},
		{"bare timeout of a socket", syscall.ETIMEDOUT, retrysql.ConnectionLost, ifLost},
		{"Windows: reset", syscall.Errno(10054), retrysql.ConnectionLost, ifLost},
		{"i/o timeout", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, retrysql.ConnectionLost, ifLost},
		{"bare i/o timeout", os.ErrDeadlineExceeded, retrysql.ConnectionLost, ifLost},
		{"another net.Error", timeoutError{}, retrysql.ConnectionLost, ifLost},
		{"a url.Error with EOF", &url.Error{Op: "Get", URL: "/", Err: io.EOF}, retrysql.ConnectionLost, ifLost},
		{"sql.ErrConnDone", sql.ErrConnDone, retrysql.ConnectionLost, ifLost},
		{"the attempt's timeout", retry.ErrAttemptTimeout, retrysql.AttemptTimeout, ifLost},

		{"refused", refusedDial, retrysql.CannotConnect, ifUnreached},
		{"bare refused", syscall.ECONNREFUSED, retrysql.CannotConnect, ifUnreached},
		{"Windows: refused", syscall.Errno(10061), retrysql.CannotConnect, ifUnreached},
		{"dial timeout", &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, retrysql.CannotConnect, ifUnreached},
		{"no such host", &net.DNSError{Err: "no such host", IsNotFound: true}, retrysql.CannotConnect, ifUnreached},

		{"a certificate that does not verify", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, retrysql.TLSRefused, ifFutile},
		{"not TLS", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, retrysql.TLSRefused, ifFutile},
		{"pgx, no TLS", errors.New("server refused TLS connection"), retrysql.TLSRefused, ifFutile},
		{"pq, no TLS", errors.New("pq: SSL is not enabled on the server"), retrysql.TLSRefused, ifFutile},
		{"mysql, no TLS", errors.New("TLS requested but server does not support TLS"), retrysql.TLSRefused, ifFutile},

		{"database/sql, a closed pool", errors.New("sql: database is closed"), retrysql.PoolClosed, ifFutile},
		{"puddle.ErrClosedPool", errors.New("closed pool"), retrysql.PoolClosed, ifFutile},
		{"pq, a source that does not parse", errors.New(`pq: wrong value for "connect_timeout": no`), retrysql.InvalidSource, ifFutile},

		{"pgx.ErrTxCommitRollback", errors.New("commit unexpectedly resulted in rollback"), retrysql.TransactionAborted, ifAborted},
		{"pq.ErrInFailedTransaction", errors.New("pq: could not complete operation in a failed transaction"), retrysql.TransactionAborted, ifAborted},
		{"sql.ErrTxDone", sql.ErrTxDone, retrysql.TransactionDone, ifOver},
		{"pgx.ErrTxClosed", errors.New("tx is closed"), retrysql.TransactionDone, ifOver},
		{"sql.ErrNoRows", sql.ErrNoRows, retrysql.NoRows, ifUnable},

		{"context.Canceled", context.Canceled, retrysql.Canceled, ifInterrupted},
		{"context.DeadlineExceeded", context.DeadlineExceeded, retrysql.Timeout, ifInterrupted},
		{"pgx, context done", &safeToRetryError{context.DeadlineExceeded}, retrysql.Timeout, ifInterrupted},
		{"cancelled dial", &net.OpError{Op: "dial", Err: context.Canceled}, retrysql.Canceled, ifInterrupted},
		{"cancelled look-up", canceledLookup(), retrysql.Canceled, ifInterrupted},

		{"ErrCommitAmbiguous", retrysql.ErrCommitAmbiguous, retrysql.CommitAmbiguous, ifUncertain},
		{"ErrStatementAmbiguous", retrysql.ErrStatementAmbiguous, retrysql.StatementAmbiguous, ifUncertain},
		{"ErrTransactionEnded", retrysql.ErrTransactionEnded, retrysql.TransactionEnded, ifFutile},
	} {
		t.Run(row.name, func(t *testing.T) { agree(t, row.err, row.reason, "", row.want) })
	}
}

func canceledLookup() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := (&net.Resolver{PreferGo: true}).LookupHost(ctx, "retry.invalid")
	return err
}

func TestUnknown(t *testing.T) {
	for _, err := range []error{
		errors.New("insufficient funds"),
		fs.ErrNotExist,
		&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT},
		syscall.ENOENT,
		syscall.EAGAIN, // a net.Error that is a timeout, but of a file
		&url.Error{Op: "parse", URL: ":", Err: errors.New("missing protocol scheme")},
		&httpError{5},
		(*pgError)(nil),
		(*mysqlError)(nil),
		(*sqliteError)(nil),
		(*sqliteFieldsError)(nil),
		(*mssqlError)(nil),
		(*retry.Error)(nil),
		(*retrysql.AttemptError)(nil),
		(*net.OpError)(nil),
		&retry.Error{},
		fmt.Errorf("%w", (*pgError)(nil)),
		errors.Join((*pgError)(nil), (*mysqlError)(nil)),
		hiddenError{(*pgError)(nil)},
	} {
		for i, phase := range phases {
			require.Equal(t, letters[ifUnknown[i]], retrysql.Judge(phase, err), "%v: %T", phase, err)
		}
	}
}

func TestNoErrorHasNoVerdict(t *testing.T) {
	for _, phase := range append(phases, 0, 9) {
		require.Equal(t, retrysql.Verdict{}, retrysql.Judge(phase, nil))
	}
	require.Equal(t, retry.Unknown, retrysql.Classify(nil))
	require.Empty(t, retrysql.ReasonOf(nil))
}

func TestAPhaseThatIsNoneIsACommit(t *testing.T) {
	for _, err := range sampled {
		require.Equal(t, retrysql.Judge(retrysql.Commit, err), retrysql.Judge(0, err))
		require.Equal(t, retrysql.Judge(retrysql.Commit, err), retrysql.Judge(9, err))
	}
}

func TestPhaseText(t *testing.T) {
	var texts []string
	for phase := range retrysql.Phase(6) {
		texts = append(texts, phase.String())
	}
	require.Equal(t, []string{"Phase(0)", "connect", "statement", "commit", "autocommit", "Phase(5)"}, texts)
}

func TestTheOutermostErrorCounts(t *testing.T) {
	judge := func(err error) string {
		v := retrysql.Judge(retrysql.Commit, err)
		return fmt.Sprint(v.Reason, " ", v.Code, " ", v.Class)
	}
	require.Equal(t, "serialization_failure 40001 retryable", judge(errors.Join(pg("40001"), io.EOF)))
	require.Equal(t, "connection_lost  terminal", judge(errors.Join(io.EOF, pg("40001"))))
	require.Equal(t, "deadlock 1213 retryable", judge(fmt.Errorf("%w, then %w", my(1213, "40001"), my(1062, "23000"))))
}

func TestACancelBesideItsContextsErrorIsTheContexts(t *testing.T) {
	for _, join := range []func(a, b error) error{
		func(a, b error) error { return errors.Join(a, b) },
		func(a, b error) error { return errors.Join(b, a) },
	} {
		for _, code := range []error{pg("57014"), my(1317, "70100"), &sqliteError{9}} {
			canceled := join(code, context.Canceled)
			require.Equal(t, retry.Unknown, retrysql.Classify(canceled))
			require.Equal(t, retrysql.Canceled, retrysql.ReasonOf(canceled))
			require.Equal(t, retrysql.Timeout, retrysql.ReasonOf(join(code, context.DeadlineExceeded)))
			require.True(t, retrysql.Judge(retrysql.Commit, canceled).Ambiguous)
		}
	}
}

func TestANestedRunsVerdictStands(t *testing.T) {
	attempt := func(phase retrysql.Phase, v retrysql.Verdict, err error) error {
		return &retry.Error{Last: fmt.Errorf("inner: %w", &retrysql.AttemptError{Phase: phase, Verdict: v, Err: err})}
	}
	timedOut := func(phase retrysql.Phase, v retrysql.Verdict) error {
		return &retry.Error{Last: retryshell.MarkTimeout(&retrysql.AttemptError{Phase: phase, Verdict: v, Err: context.Canceled})}
	}
	for _, row := range []struct {
		name string
		err  error
		want retrysql.Verdict
	}{
		{"an ambiguous commit", attempt(retrysql.Commit, retrysql.Judge(retrysql.Commit, pg("40003")), pg("40003")),
			retrysql.Verdict{Class: retry.Terminal, Reason: retrysql.CommitAmbiguous, Code: "40003", Ambiguous: true}},
		{"an ambiguous statement", attempt(retrysql.Autocommit, retrysql.Judge(retrysql.Autocommit, io.EOF), io.EOF),
			retrysql.Verdict{Class: retry.Terminal, Reason: retrysql.StatementAmbiguous, Ambiguous: true}},
		{"an ambiguous commit that may be repeated", attempt(retrysql.Commit, retrysql.Verdict{Class: retry.Retryable, Reason: retrysql.ConnectionLost, Ambiguous: true}, io.EOF),
			retrysql.Verdict{Class: retry.Retryable, Reason: retrysql.ConnectionLost}},
		{"a write before the failure", attempt(retrysql.Statement, retrysql.Verdict{Class: retry.Terminal, Reason: retrysql.PartlyDone, Code: "40001"}, pg("40001")),
			retrysql.Verdict{Class: retry.Terminal, Reason: retrysql.PartlyDone, Code: "40001"}},
		{"a conflict", attempt(retrysql.Commit, retrysql.Judge(retrysql.Commit, pg("40001")), pg("40001")),
			retrysql.Verdict{Class: retry.Retryable, Reason: retrysql.SerializationFailure, Code: "40001"}},
		{"nothing known", attempt(retrysql.Statement, retrysql.Verdict{}, errors.New("no")), retrysql.Verdict{}},
		{"an ambiguous commit of an attempt that timed out", timedOut(retrysql.Commit, retrysql.Judge(retrysql.Commit, context.Canceled)),
			retrysql.Verdict{Class: retry.Terminal, Reason: retrysql.CommitAmbiguous, Ambiguous: true}},
		{"a terminal statement of an attempt that timed out", timedOut(retrysql.Statement, retrysql.Verdict{Class: retry.Terminal, Reason: retrysql.NoRows}),
			retrysql.Verdict{Class: retry.Terminal, Reason: retrysql.NoRows}},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, retrysql.Judge(retrysql.Statement, row.err)) })
	}
}

func TestATimeoutOfAnUnknownErrorIsUnknown(t *testing.T) {
	require.Empty(t, retrysql.ReasonOf(timeoutError{errors.New("inside")}))
	require.Equal(t, retrysql.Deadlock, retrysql.ReasonOf(timeoutError{pg("40P01")}))
}

func TestARunThatItsCallerEndedIsCanceledWhateverTheCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(pg("40P01"))
	err := retry.Policy{}.NewError(ctx, retry.Outcome{Reason: retry.CallerCanceled}, nil)
	require.Equal(t, retrysql.Canceled, retrysql.ReasonOf(err))
}

func TestOnReason(t *testing.T) {
	reasons := []retrysql.Reason{retrysql.ReadOnlyServer, ""}
	classify := retrysql.OnReason(retry.Retryable, reasons...)
	reasons[0] = retrysql.Deadlock
	for _, err := range []error{pg("25006"), my(1290, "HY000"), mssqlError{Number: 3906}} {
		require.Equal(t, retry.Retryable, classify(err))
	}
	for _, err := range []error{nil, pg("40P01"), errors.New("no")} {
		require.Equal(t, retry.Unknown, classify(err))
	}
}

// keeps checks the promises of Verdict.
func keeps(t *testing.T, phase retrysql.Phase, err error) {
	v := retrysql.Judge(phase, err)
	if v.Ambiguous {
		require.Equal(t, retry.Terminal, v.Class, "ambiguous, yet not terminal: %v %v", phase, err)
	}
	require.Equal(t, retrysql.ReasonOf(err), v.Reason)
}

func TestPromises(t *testing.T) {
	const alphabet = "0123456789PXAC"
	for _, phase := range phases {
		for _, class := range []string{"08", "0A", "22", "23", "25", "28", "3D", "40", "42", "53", "55", "57", "58", "P0", "XX", "CR", "99"} {
			for _, a := range alphabet {
				for n := range 100 {
					keeps(t, phase, pg(class+string(a)+fmt.Sprintf("%02d", n)))
				}
			}
		}
		for number := range 1 << 16 {
			keeps(t, phase, my(uint16(number), "HY000"))
		}
		for number := range int32(4096) {
			keeps(t, phase, &sqliteError{int(number)})
			keeps(t, phase, mssqlError{Number: number - 3})
		}
		for _, number := range []int32{10053, 10054, 10060, 10928, 40143, 40197, 40501, 40540, 40613, 41301, 41302, 41839, 42108, 49920} {
			keeps(t, phase, mssqlError{Number: number})
		}
		for _, err := range sampled {
			keeps(t, phase, err)
		}
	}
}

// sampled is an error of each kind.
var sampled = []error{
	io.EOF, driver.ErrBadConn, sql.ErrTxDone, sql.ErrNoRows, sql.ErrConnDone, context.Canceled, context.DeadlineExceeded,
	retrysql.ErrCommitAmbiguous, retrysql.ErrStatementAmbiguous, retrysql.ErrTransactionEnded, errors.New("no"), retry.ErrAttemptTimeout,
	pg("40001"), pg("40003"), pg("25P02"), pg("57P01"), pg("53300"), my(1213, "40001"), &sqliteError{517}, mssqlError{Number: -2},
	syscall.ECONNREFUSED, &net.OpError{Op: "dial", Err: io.EOF}, &net.OpError{Op: "read"}, &safeToRetryError{errors.New("conn closed")},
}

func FuzzJudge(f *testing.F) {
	f.Add(uint8(3), uint8(0), int32(1213), "40001", "no")
	f.Add(uint8(2), uint8(1), int32(517), "HY000", "0A000 cached plan must not change result type")
	f.Add(uint8(1), uint8(5), int32(-2), "", "conn closed")
	f.Add(uint8(4), uint8(6), int32(40197), "\x00", "Invalid TDS stream: ")
	f.Fuzz(func(t *testing.T, phase, shape uint8, number int32, state, text string) {
		var err error
		switch shape % 8 {
		case 0:
			err = &pgError{state, text}
		case 1:
			err = my(uint16(number), state)
		case 2:
			err = &sqliteError{int(number)}
		case 3:
			err = sqliteFieldsError{Code: sqliteErrNo(number), ExtendedCode: sqliteErrNo(len(state)), err: text}
		case 4:
			err = mssqlError{Number: number}
		case 5:
			err = errors.New(text)
		case 6:
			err = syscall.Errno(uint16(number))
		case 7:
			err = &net.OpError{Op: text, Err: errors.New(state)}
		}
		at := phases[int(phase)%len(phases)]
		keeps(t, at, err)
		require.Equal(t, retrysql.Judge(at, err), retrysql.Judge(at, fmt.Errorf("wrapped: %w", err)))
		// An unrecognized error does not hide the one behind it.
		if v := retrysql.Judge(at, err); v.Reason != "" {
			require.Equal(t, v, retrysql.Judge(at, errors.Join(err, pg("40P01"))))
		}
		if len(state) == 5 && shape%8 == 0 {
			require.Equal(t, state, retrysql.Judge(at, err).Code)
		}
	})
}

// TestReasonWords: the words are in users' logs, metrics and rules, so they must not change.
func TestReasonWords(t *testing.T) {
	require.Equal(t, []retrysql.Reason{
		"serialization_failure", "deadlock", "lock_timeout", "busy", "busy_snapshot", "transaction_rollback", "cached_plan", "schema_changed",
		"too_many_connections", "cannot_connect_now", "cannot_connect", "overloaded", "out_of_memory",
		"connection_lost", "admin_shutdown", "server_fault",
		"completion_unknown", "commit_ambiguous", "statement_ambiguous",
		"query_canceled", "statement_timeout", "idle_in_transaction", "transaction_timeout", "attempt_timeout", "canceled", "timeout",
		"unique_violation", "constraint_violation", "invalid_data", "syntax_or_access", "raised_exception", "auth_failed", "unknown_database",
		"tls_refused", "invalid_source", "pool_closed", "object_in_use", "read_only_server", "disk_full", "storage_fault", "internal_error", "server_error", "no_rows",
		"transaction_aborted", "transaction_done", "transaction_ended", "partly_done",
	}, []retrysql.Reason{
		retrysql.SerializationFailure, retrysql.Deadlock, retrysql.LockTimeout, retrysql.Busy, retrysql.BusySnapshot, retrysql.TransactionRollback, retrysql.CachedPlan, retrysql.SchemaChanged,
		retrysql.TooManyConnections, retrysql.CannotConnectNow, retrysql.CannotConnect, retrysql.Overloaded, retrysql.OutOfMemory,
		retrysql.ConnectionLost, retrysql.AdminShutdown, retrysql.ServerFault,
		retrysql.CompletionUnknown, retrysql.CommitAmbiguous, retrysql.StatementAmbiguous,
		retrysql.QueryCanceled, retrysql.StatementTimeout, retrysql.IdleInTransaction, retrysql.TransactionTimeout, retrysql.AttemptTimeout, retrysql.Canceled, retrysql.Timeout,
		retrysql.UniqueViolation, retrysql.ConstraintViolation, retrysql.InvalidData, retrysql.SyntaxOrAccess, retrysql.RaisedException, retrysql.AuthFailed, retrysql.UnknownDatabase,
		retrysql.TLSRefused, retrysql.InvalidSource, retrysql.PoolClosed, retrysql.ObjectInUse, retrysql.ReadOnlyServer, retrysql.DiskFull, retrysql.StorageFault, retrysql.InternalError, retrysql.ServerError, retrysql.NoRows,
		retrysql.TransactionAborted, retrysql.TransactionDone, retrysql.TransactionEnded, retrysql.PartlyDone,
	})
}

// Errors that resemble a driver's.
type (
	likeMySQL  struct{ Number, State, Message any }
	likeNumber struct {
		Number         uint16
		State, Message string
	}
	likeState struct {
		Number   uint16
		SQLState string
		Message  string
	}
	likeMessage struct {
		Number   uint16
		SQLState [5]byte
		Message  int
	}
	likeSQLite struct{ Code, ExtendedCode string }
	halfSQLite struct{ Code int }
	sqliteWord string
)

func (likeMySQL) Error() string   { return "like" }
func (likeNumber) Error() string  { return "like" }
func (likeState) Error() string   { return "like" }
func (likeMessage) Error() string { return "like" }
func (likeSQLite) Error() string  { return "like" }
func (halfSQLite) Error() string  { return "like" }
func (sqliteWord) Error() string  { return "like" }

// TestErrorsOfOtherShapesAreNotKnown: reflection on them does not panic.
func TestErrorsOfOtherShapesAreNotKnown(t *testing.T) {
	for _, err := range []error{likeMySQL{}, &likeMySQL{}, likeNumber{}, likeState{}, likeMessage{}, likeSQLite{}, &likeSQLite{}, halfSQLite{}, sqliteWord("")} {
		require.Equal(t, retrysql.Verdict{}, retrysql.Judge(retrysql.Statement, err), "%T", err)
	}
}

// TestSocketErrorsOfWindows: no call there returns the syscall constants of these names.
func TestSocketErrorsOfWindows(t *testing.T) {
	for number, want := range map[syscall.Errno]retrysql.Reason{
		10050: retrysql.ConnectionLost, 10051: retrysql.ConnectionLost, 10052: retrysql.ConnectionLost, 10053: retrysql.ConnectionLost,
		10054: retrysql.ConnectionLost, 10057: retrysql.ConnectionLost, 10058: retrysql.ConnectionLost, 10060: retrysql.ConnectionLost,
		10061: retrysql.CannotConnect, 10065: retrysql.ConnectionLost, 10055: "", 10062: "",
	} {
		require.Equal(t, want, retrysql.ReasonOf(number), "%d", uint(number))
	}
	for _, errno := range []syscall.Errno{syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT, syscall.ENOTCONN,
		syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.ENETRESET} {
		require.Equal(t, retrysql.ConnectionLost, retrysql.ReasonOf(errno), errno)
	}
}
