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
	"strings"
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
		require.Equal(t, retrysql.Judge(retrysql.Commit, err), retrysql.Judge(0, err), "an invalid phase")
		require.Equal(t, retrysql.Judge(retrysql.Commit, err), retrysql.Judge(9, err), "an invalid phase")
		require.Equal(t, letters[want[1]].Class, retrysql.Classify(err))
		require.Equal(t, reason, retrysql.ReasonOf(err))
	}
}

func TestPostgres(t *testing.T) {
	for _, row := range []struct {
		reason retrysql.Reason
		want   string
		states string
	}{
		{retrysql.SerializationFailure, ifUndone, "40001 CR000"},
		{retrysql.Deadlock, ifUndone, "40P01"},
		{retrysql.TransactionRollback, ifUndone, "40000"},
		{retrysql.CompletionUnknown, ifUncertain, "40003 08007"},
		{retrysql.LockTimeout, ifRefused, "55P03"},
		{retrysql.ObjectInUse, ifUnable, "55006"},
		{retrysql.TooManyConnections, ifUnreached, "53300 53400"},
		{retrysql.OutOfMemory, ifRefused, "53200"},
		{retrysql.DiskFull, ifUnable, "53100"},
		{retrysql.AdminShutdown, ifLost, "57P01 57P02 57P05"},
		{retrysql.CannotConnectNow, ifUnreached, "57P03"},
		{retrysql.CannotConnect, ifUnreached, "08001 08004"},
		{retrysql.ConnectionLost, ifLost, "08000 08003 08006"},
		{retrysql.QueryCanceled, ifStopped, "57014"},
		{retrysql.TransactionAborted, ifAborted, "25P02"},
		{retrysql.IdleInTransaction, ifLost, "25P03"},
		{retrysql.TransactionTimeout, ifStopped, "25P04"},
		{retrysql.ReadOnlyServer, ifMisplaced, "25006"},
		{retrysql.UniqueViolation, ifRejected, "23505 23P01"},
		{retrysql.ConstraintViolation, ifRejected, "23503 40002"},
		{retrysql.InvalidData, ifRejected, "22001 22003"},
		{retrysql.AuthFailed, ifFutile, "28P01 28000"},
		{retrysql.UnknownDatabase, ifFutile, "3D000"},
		{retrysql.SyntaxOrAccess, ifRejected, "42601 42P01"},
		{retrysql.RaisedException, ifRejected, "P0001"},
		{retrysql.StorageFault, ifStopped, "58030"},
		{retrysql.InternalError, ifStopped, "XX000 08P01 XXA00 XXUUU"}, // the last two are CockroachDB's, a schema change and uncategorized
		{retrysql.ServerError, ifUnable, "0A000 57P04 54000"},
	} {
		for state := range strings.FieldsSeq(row.states) {
			t.Run(state, func(t *testing.T) { agree(t, pg(state), row.reason, state, row.want) })
		}
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
		reason  retrysql.Reason
		want    string
		state   string
		numbers []uint16
	}{
		{retrysql.Deadlock, ifUndone, "40001", []uint16{1213}},
		{retrysql.LockTimeout, ifRefused, "HY000", []uint16{1205, 3572}},
		{retrysql.SerializationFailure, ifRefused, "HY000", []uint16{1020}},
		{retrysql.SerializationFailure, ifUndone, "HY000", []uint16{8002, 8005, 8022, 9007}},
		{retrysql.SchemaChanged, ifUndone, "HY000", []uint16{8028}},
		{retrysql.TransactionRollback, ifUndone, "40000", []uint16{3101}},
		{retrysql.CannotConnectNow, ifRefused, "08S01", []uint16{1047}},
		{retrysql.Overloaded, ifRefused, "HY000", []uint16{1637, 8027, 9001, 9002, 9003, 9004, 9005}}, // 9001 is also ProxySQL's
		{retrysql.TooManyConnections, ifUnreached, "42000", []uint16{1040, 1203, 1226}},
		{retrysql.AdminShutdown, ifUnreached, "HY000", []uint16{4031}},
		{retrysql.AdminShutdown, ifLost, "08S01", []uint16{1053, 1927}},
		{retrysql.ConnectionLost, ifLost, "HY000", []uint16{2006, 2013, 2055}},
		{retrysql.CompletionUnknown, ifUncertain, "HY000", []uint16{1180}},
		{retrysql.ReadOnlyServer, ifMisplaced, "HY000", []uint16{1290, 1792, 1836}},
		{retrysql.QueryCanceled, ifUnable, "70100", []uint16{1317}},
		{retrysql.StatementTimeout, ifUnable, "70100", []uint16{1969, 3024}},
		{retrysql.UniqueViolation, ifRejected, "23000", []uint16{1062}},
		{retrysql.ConstraintViolation, ifRejected, "", []uint16{1451, 1452}},
		{retrysql.SyntaxOrAccess, ifRejected, "", []uint16{1054, 1064}},
		{retrysql.InvalidData, ifRejected, "", []uint16{1406}},
		{retrysql.AuthFailed, ifFutile, "42000", []uint16{1044, 1045, 1698}},
		{retrysql.UnknownDatabase, ifFutile, "42000", []uint16{1049}},
		{retrysql.ServerError, ifUnable, "HY000", []uint16{1105, 9006}},
		{retrysql.ServerError, ifUnable, "", []uint16{1105}},
		// By the class of the SQLSTATE.
		{retrysql.ConstraintViolation, ifRejected, "23000", []uint16{1048}},
		{retrysql.InvalidData, ifRejected, "22003", []uint16{1264}},
		{retrysql.SyntaxOrAccess, ifRejected, "42S02", []uint16{1146}},
		{retrysql.AuthFailed, ifFutile, "28000", []uint16{1275}},
	} {
		for _, number := range row.numbers {
			text := strconv.Itoa(int(number))
			t.Run(text+" "+row.state, func(t *testing.T) { agree(t, my(number, row.state), row.reason, text, row.want) })
		}
	}
}

func TestSQLite(t *testing.T) {
	for _, row := range []struct {
		reason  retrysql.Reason
		want    string
		numbers []int
	}{
		{retrysql.Busy, ifUndone, []int{5, 261, 773, 6, 262, 15}},
		{retrysql.BusySnapshot, ifUndone, []int{517}},
		{retrysql.SchemaChanged, ifUndone, []int{17}},
		{retrysql.TransactionRollback, ifUndone, []int{516}},
		{retrysql.QueryCanceled, ifUnable, []int{9}},
		{retrysql.StorageFault, ifStopped, []int{10}},
		{retrysql.StorageFault, ifUnable, []int{14}},
		{retrysql.StorageFault, ifFutile, []int{26}},
		{retrysql.DiskFull, ifRejected, []int{13}},
		{retrysql.OutOfMemory, ifUnable, []int{7}},
		{retrysql.InternalError, ifStopped, []int{11}},
		{retrysql.ConstraintViolation, ifRejected, []int{19, 787}}, // 787 is CONSTRAINT_FOREIGNKEY, deferred
		{retrysql.UniqueViolation, ifRejected, []int{1555, 2067}},
		{retrysql.InvalidData, ifFutile, []int{20}},
		{retrysql.SyntaxOrAccess, ifFutile, []int{1, 8, 21, 23}},
		{retrysql.ServerError, ifUnable, []int{4, 0, -1}},
	} {
		for _, number := range row.numbers {
			text := strconv.Itoa(number)
			t.Run("modernc "+text, func(t *testing.T) { agree(t, &sqliteError{number}, row.reason, text, row.want) })
			t.Run("mattn "+text, func(t *testing.T) {
				fields := sqliteFieldsError{Code: sqliteErrNo(number & 0xff), ExtendedCode: sqliteErrNo(number)}
				agree(t, fields, row.reason, text, row.want)
				agree(t, &fields, row.reason, text, row.want)
			})
		}
	}
	t.Run("a primary code alone", func(t *testing.T) {
		agree(t, sqliteFieldsError{Code: 5}, retrysql.Busy, "5", ifUndone)
	})
}

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
		{"mssql.ServerError", errors.New("SQL Server had internal error"), retrysql.ServerFault, ifLost},
		{"mssql.StreamError", errors.New("Invalid TDS stream: EOF"), retrysql.ConnectionLost, ifLost},
		{"mssql.RetryableError", mssqlRetryableError{errors.New("write: no")}, retrysql.ConnectionLost, ifLost},
		{"EOF", io.EOF, retrysql.ConnectionLost, ifLost},
		{"closed pipe", io.ErrClosedPipe, retrysql.ConnectionLost, ifLost},
		{"net.ErrClosed", &net.OpError{Op: "read", Err: net.ErrClosed}, retrysql.ConnectionLost, ifLost},
		{"bare net.ErrClosed", net.ErrClosed, retrysql.ConnectionLost, ifLost},
		{"connection reset", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, retrysql.ConnectionLost, ifLost},
		{"bare connection reset", syscall.ECONNRESET, retrysql.ConnectionLost, ifLost},
		{"i/o timeout", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, retrysql.ConnectionLost, ifLost},
		{"bare i/o timeout", os.ErrDeadlineExceeded, retrysql.ConnectionLost, ifLost},
		{"another net.Error", timeoutError{}, retrysql.ConnectionLost, ifLost},
		{"a url.Error with EOF", &url.Error{Op: "Get", URL: "/", Err: io.EOF}, retrysql.ConnectionLost, ifLost},
		{"sql.ErrConnDone", sql.ErrConnDone, retrysql.ConnectionLost, ifLost},
		{"the attempt's timeout", retry.ErrAttemptTimeout, retrysql.AttemptTimeout, ifLost},

		{"refused", refusedDial, retrysql.CannotConnect, ifUnreached},
		{"bare refused", syscall.ECONNREFUSED, retrysql.CannotConnect, ifUnreached},
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

func TestEachNumberThatIsAmbiguousIsTerminal(t *testing.T) {
	for _, phase := range phases {
		judged := func(err error) {
			if v := retrysql.Judge(phase, err); v.Ambiguous && v.Class != retry.Terminal {
				t.Errorf("%v: %v is %v", phase, err, v)
			}
		}
		for number := range 1 << 16 {
			judged(my(uint16(number), "HY000"))
			judged(mssqlError{Number: int32(number) - 3})
		}
		for number := range 1 << 12 {
			judged(&sqliteError{number})
		}
	}
}

func FuzzJudge(f *testing.F) {
	for shape := range uint8(8) {
		f.Add(uint8(3), shape, int32(1213), "40001", "no")
		f.Add(uint8(1), shape, int32(-2), "", "conn closed")
	}
	f.Add(uint8(2), uint8(1), int32(517), "HY000", "0A000 cached plan must not change result type")
	f.Add(uint8(4), uint8(5), int32(40197), "\x00", "Invalid TDS stream: ")
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
		v := retrysql.Judge(at, err)
		require.True(t, !v.Ambiguous || v.Class == retry.Terminal, "%v", v)
		require.Equal(t, v, retrysql.Judge(at, fmt.Errorf("wrapped: %w", err)))
		// An unrecognized error does not hide the one behind it.
		if v.Reason != "" {
			require.Equal(t, v, retrysql.Judge(at, errors.Join(err, pg("40P01"))))
		}
		if len(state) == 5 && shape%8 == 0 {
			require.Equal(t, state, v.Code)
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

// Errors that resemble a driver's, but for one thing.
type (
	twoFields struct {
		Number   uint16
		SQLState [5]byte
	}
	otherNumber struct {
		Number   int
		SQLState [5]byte
		Message  string
	}
	otherState struct {
		Number            uint16
		SQLState, Message string
	}
	otherMessage struct {
		Number   uint16
		SQLState [5]byte
		Message  int
	}
	noState struct {
		Number         uint16
		State, Message string
	}
	sqliteWord  string
	sqliteNone  struct{}
	sqliteHalf  struct{ Code int }
	sqliteTexts struct{ Code, ExtendedCode string }
	sqliteMixed struct {
		Code         int
		ExtendedCode string
	}
)

func (twoFields) Error() string    { return "like" }
func (otherNumber) Error() string  { return "like" }
func (otherState) Error() string   { return "like" }
func (otherMessage) Error() string { return "like" }
func (noState) Error() string      { return "like" }
func (sqliteWord) Error() string   { return "like" }
func (sqliteNone) Error() string   { return "like" }
func (sqliteHalf) Error() string   { return "like" }
func (sqliteTexts) Error() string  { return "like" }
func (sqliteMixed) Error() string  { return "like" }

// TestErrorsOfOtherShapesAreNotKnown: reflection on them does not panic.
func TestErrorsOfOtherShapesAreNotKnown(t *testing.T) {
	for _, err := range []error{
		twoFields{Number: 1213}, otherNumber{Number: 1213}, otherState{Number: 1213}, otherMessage{Number: 1213}, &noState{Number: 1213},
		&httpError{5}, sqliteWord("5"), sqliteNone{}, sqliteHalf{Code: 5}, sqliteTexts{Code: "5"}, &sqliteMixed{Code: 5},
	} {
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
