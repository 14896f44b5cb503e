package drivers_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// effects are what an error means at each phase.
type effects struct {
	connect, statement, commit, autocommit retrysql.Verdict
}

var (
	noOpinion = retrysql.Verdict{}
	again     = retrysql.Verdict{Class: retry.Retryable}
	never     = retrysql.Verdict{Class: retry.Terminal}
	ambiguous = retrysql.Verdict{Class: retry.Terminal, Ambiguous: true}
)

// The rows of the tables.
var (
	undone    = effects{again, again, again, again}                 // the whole transaction
	refused   = effects{again, again, ambiguous, again}             // the statement, for now
	unreached = refused                                             // no session
	lost      = effects{again, again, ambiguous, ambiguous}         // the connection
	uncertain = effects{ambiguous, ambiguous, ambiguous, ambiguous} // the server says so
	rejected  = effects{never, never, never, never}                 // the work
	failed    = effects{never, never, ambiguous, never}             // the statement, and any connection
	unable    = effects{again, never, ambiguous, never}             // the statement
	misplaced = effects{again, again, again, again}                 // on this server
	stopped   = effects{again, never, ambiguous, ambiguous}         // the statement, in its middle
	aborted   = effects{again, noOpinion, noOpinion, noOpinion}     // because of an earlier error
	gaveUp    = effects{again, noOpinion, ambiguous, ambiguous}     // a context is done
	over      = effects{never, never, never, never}                 // before it was begun
)

func postgresErrors(state string) map[string]error {
	return map[string]error{
		"lib/pq": &pq.Error{Severity: "ERROR", Code: pqerror.Code(state), Message: "made by hand"},
		"pgx":    &pgconn.PgError{Severity: "ERROR", Code: state, Message: "made by hand"},
	}
}

func mysqlError(number uint16, state string) error {
	return &mysql.MySQLError{Number: number, SQLState: [5]byte([]byte(state)), Message: "made by hand"}
}

// requireJudged requires Judge's verdict on an error at each phase.
func requireJudged(t *testing.T, err error, at effects, reason retrysql.Reason, code string) {
	t.Helper()
	for _, row := range []struct {
		phase retrysql.Phase
		want  retrysql.Verdict
	}{
		{retrysql.Connect, at.connect},
		{retrysql.Statement, at.statement},
		{retrysql.Commit, at.commit},
		{retrysql.Autocommit, at.autocommit},
	} {
		row.want.Reason, row.want.Code = reason, code
		require.Equal(t, row.want, retrysql.Judge(row.phase, err), "%v at %v", err, row.phase)
	}
	require.Equal(t, at.statement.Class, retrysql.Classify(err))
	require.Equal(t, reason, retrysql.ReasonOf(err))
}

func TestTheCodesOfPostgreSQLAreReadFromBothDrivers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		state  string
		reason retrysql.Reason
		at     effects
	}{
		{"40001", retrysql.SerializationFailure, undone},
		{"CR000", retrysql.SerializationFailure, undone},
		{"40P01", retrysql.Deadlock, undone},
		{"40000", retrysql.TransactionRollback, undone},
		{"40002", retrysql.ConstraintViolation, rejected},
		{"40003", retrysql.CompletionUnknown, uncertain},
		{"55P03", retrysql.LockTimeout, refused},
		{"55006", retrysql.ObjectInUse, unable},
		{"53300", retrysql.TooManyConnections, unreached},
		{"53200", retrysql.OutOfMemory, refused},
		{"53100", retrysql.DiskFull, unable},
		{"57P01", retrysql.AdminShutdown, lost},
		{"57P02", retrysql.AdminShutdown, lost},
		{"57P05", retrysql.AdminShutdown, lost},
		{"57P03", retrysql.CannotConnectNow, unreached},
		{"08001", retrysql.CannotConnect, unreached},
		{"08004", retrysql.CannotConnect, unreached},
		{"08006", retrysql.ConnectionLost, lost},
		{"08007", retrysql.CompletionUnknown, uncertain},
		{"57014", retrysql.QueryCanceled, stopped},
		{"25P02", retrysql.TransactionAborted, aborted},
		{"25P03", retrysql.IdleInTransaction, lost},
		{"25006", retrysql.ReadOnlyServer, misplaced},
		{"23505", retrysql.UniqueViolation, rejected},
		{"23503", retrysql.ConstraintViolation, rejected},
		{"22001", retrysql.InvalidData, rejected},
		{"42P01", retrysql.SyntaxOrAccess, rejected},
		{"28P01", retrysql.AuthFailed, failed},
		{"3D000", retrysql.UnknownDatabase, failed},
		{"XX000", retrysql.InternalError, stopped},
		{"58030", retrysql.StorageFault, stopped},
	} {
		for name, err := range postgresErrors(row.state) {
			t.Run(row.state+"/"+name, func(t *testing.T) { requireJudged(t, err, row.at, row.reason, row.state) })
		}
	}
}

func TestTheNumbersOfMySQLAreRead(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		number uint16
		state  string
		reason retrysql.Reason
		code   string
		at     effects
	}{
		{1213, "40001", retrysql.Deadlock, "1213", undone},
		{1205, "HY000", retrysql.LockTimeout, "1205", refused},
		{3572, "HY000", retrysql.LockTimeout, "3572", refused},
		{1020, "HY000", retrysql.SerializationFailure, "1020", refused},
		{9007, "HY000", retrysql.SerializationFailure, "9007", undone},
		{1040, "08004", retrysql.TooManyConnections, "1040", unreached},
		{1053, "08S01", retrysql.AdminShutdown, "1053", lost},
		{1927, "70100", retrysql.AdminShutdown, "1927", lost},
		{1180, "HY000", retrysql.CompletionUnknown, "1180", uncertain},
		{1290, "HY000", retrysql.ReadOnlyServer, "1290", misplaced},
		{1062, "23000", retrysql.UniqueViolation, "1062", rejected},
		{1452, "23000", retrysql.ConstraintViolation, "1452", rejected},
		{1064, "42000", retrysql.SyntaxOrAccess, "1064", rejected},
		{1146, "42S02", retrysql.SyntaxOrAccess, "1146", rejected},
		{1406, "22001", retrysql.InvalidData, "1406", rejected},
		{1317, "70100", retrysql.QueryCanceled, "1317", unable},
		{1969, "70100", retrysql.StatementTimeout, "1969", unable},
		{1045, "28000", retrysql.AuthFailed, "1045", failed},
	} {
		t.Run(row.code, func(t *testing.T) {
			requireJudged(t, mysqlError(row.number, row.state), row.at, row.reason, row.code)
		})
	}
}

func TestTheNumbersOfSQLServerAreRead(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		number int32
		reason retrysql.Reason
		code   string
		at     effects
	}{
		{1205, retrysql.Deadlock, "1205", undone},
		{3960, retrysql.SerializationFailure, "3960", undone},
		{41302, retrysql.SerializationFailure, "41302", undone},
		{1222, retrysql.LockTimeout, "1222", refused},
		{40501, retrysql.Overloaded, "40501", refused},
		{18456, retrysql.AuthFailed, "18456", failed},
		{208, retrysql.SyntaxOrAccess, "208", rejected},
	} {
		t.Run(row.code, func(t *testing.T) {
			err := mssql.Error{Number: row.number, Message: "made by hand"}
			requireJudged(t, err, row.at, row.reason, row.code)
			requireJudged(t, &err, row.at, row.reason, row.code)
		})
	}
}

// TestWhatDriversSayWithoutACodeIsKnown covers the errors that are recognized by their text or by what they wrap. It
// fails if a driver changes the text.
func TestWhatDriversSayWithoutACodeIsKnown(t *testing.T) {
	t.Parallel()
	_, parse := pgconn.ParseConfig("host=a port=b")
	closed, err := sql.Open("pgx", "")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for _, row := range []struct {
		name   string
		err    error
		reason retrysql.Reason
		at     effects
	}{
		{"mysql.ErrInvalidConn", mysql.ErrInvalidConn, retrysql.ConnectionLost, lost},
		{"mysql.ErrNoTLS", mysql.ErrNoTLS, retrysql.TLSRefused, failed},
		{"pgconn.ErrConnClosed", pgconn.ErrConnClosed, retrysql.ConnectionLost, lost},
		{"pgx.ErrTxClosed", pgx.ErrTxClosed, retrysql.TransactionDone, over},
		{"puddle.ErrClosedPool", puddle.ErrClosedPool, retrysql.PoolClosed, failed},
		{"pgconn.ParseConfigError", parse, retrysql.InvalidSource, failed},
		{"sql: database is closed", closed.Ping(), retrysql.PoolClosed, failed},
		{"pgx.ErrTxCommitRollback", pgx.ErrTxCommitRollback, retrysql.TransactionAborted, aborted},
		{"pgx.ErrNoRows", pgx.ErrNoRows, retrysql.NoRows, unable},
		{"pq.ErrInFailedTransaction", pq.ErrInFailedTransaction, retrysql.TransactionAborted, aborted},
		{"pq.ErrSSLNotSupported", pq.ErrSSLNotSupported, retrysql.TLSRefused, failed},
		{"mssql.ServerError", mssql.ServerError{}, retrysql.ServerFault, lost},
		{"mssql.StreamError", mssql.StreamError{InnerError: io.ErrUnexpectedEOF}, retrysql.ConnectionLost, lost},
		{"mssql.RetryableError", mssql.RetryableError{}, retrysql.ConnectionLost, lost},
		{"driver.ErrBadConn", sqldriver.ErrBadConn, retrysql.ConnectionLost, lost},
		{"sql.ErrConnDone", sql.ErrConnDone, retrysql.ConnectionLost, lost},
		{"sql.ErrTxDone", sql.ErrTxDone, retrysql.TransactionDone, over},
		{"net.ErrClosed", net.ErrClosed, retrysql.ConnectionLost, lost},
		{"context.Canceled", context.Canceled, retrysql.Canceled, gaveUp},
	} {
		t.Run(row.name, func(t *testing.T) { requireJudged(t, row.err, row.at, row.reason, "") })
	}
}

// provoked is an error that a server returned for a statement.
type provoked struct {
	name   string
	query  string
	reason retrysql.Reason
	code   string
	at     effects
}

func TestWhatPostgreSQLSendsIsJudgedByItsCode(t *testing.T) {
	rows := []provoked{
		{"a key that exists", "insert into pairs values (1, 1)", retrysql.UniqueViolation, "23505", rejected},
		{"a value that is missing", "insert into pairs values (3, null)", retrysql.ConstraintViolation, "23502", rejected},
		{"a table that is not there", "select * from nothing", retrysql.SyntaxOrAccess, "42P01", rejected},
		{"a division by zero", "select 1/0", retrysql.InvalidData, "22012", rejected},
		{"a conflict that is raised", "do $$ begin raise sqlstate '40001'; end $$", retrysql.SerializationFailure, "40001", undone},
	}
	withPostgres(t, pairs, func(t *testing.T, d driver, db *sql.DB) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				_, err := db.Exec(row.query)
				if d.name == libpq.name {
					require.ErrorAs(t, err, new(*pq.Error))
				} else {
					require.ErrorAs(t, err, new(*pgconn.PgError))
				}
				requireJudged(t, err, row.at, row.reason, row.code)
			})
		}
		t.Run("a database that is not there", func(t *testing.T) {
			err := d.open(t, required(t, postgres).address, "nowhere").Ping()
			requireJudged(t, err, failed, retrysql.UnknownDatabase, "3D000")
		})
		t.Run("a user that is not there", func(t *testing.T) {
			err := d.openAs(t, "nobody", required(t, postgres).address, "postgres").Ping()
			requireJudged(t, err, failed, retrysql.AuthFailed, "28000")
		})
		t.Run("no TLS", func(t *testing.T) {
			source := d.source("postgres", required(t, postgres).address, "postgres")
			tls, err := sql.Open(d.name, strings.Replace(source, "disable", "require", 1))
			require.NoError(t, err)
			defer tls.Close()
			requireJudged(t, tls.Ping(), failed, retrysql.TLSRefused, "")
		})
		t.Run("nothing listens", func(t *testing.T) {
			requireJudged(t, d.open(t, closedAddress(t), "postgres").Ping(), unreached, retrysql.CannotConnect, "")
		})
		t.Run("an earlier error", func(t *testing.T) {
			tx, err := db.Begin()
			require.NoError(t, err)
			_, err = tx.Exec("select 1/0")
			require.Error(t, err)
			_, err = tx.Exec("select 1")
			requireJudged(t, err, aborted, retrysql.TransactionAborted, "25P02")
			requireJudged(t, tx.Commit(), aborted, retrysql.TransactionAborted, "")
		})
		t.Run("a plan that is out of date", func(t *testing.T) {
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer conn.Close()
			stmt, err := conn.PrepareContext(t.Context(), "select * from done")
			require.NoError(t, err)
			defer stmt.Close()
			require.NoError(t, drain(stmt.Query()))
			exec1(t, db, "alter table done add m integer")
			requireJudged(t, drain(stmt.Query()), refused, retrysql.CachedPlan, "0A000")
		})
	})
}

// drain reads rows to their end and returns the error of the query or of the rows.
func drain(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return errors.Join(rows.Err(), rows.Close())
}

// closedAddress returns an address at which nothing listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	host, port, err := ownAddress()
	require.NoError(t, err)
	return net.JoinHostPort(host, port)
}

func TestWhatMariaDBSendsIsJudgedByItsNumber(t *testing.T) {
	t.Parallel()
	db := openMaria(t, pairs)
	for _, row := range []provoked{
		{"a key that exists", "insert into pairs values (1, 1)", retrysql.UniqueViolation, "1062", rejected},
		{"a value that is missing", "insert into pairs values (3, null)", retrysql.ConstraintViolation, "1048", rejected},
		{"a table that is not there", "select * from nothing", retrysql.SyntaxOrAccess, "1146", rejected},
		{"a syntax error", "selec 1", retrysql.SyntaxOrAccess, "1064", rejected},
		{"a value that is too long", "insert into pairs values (3, 99999999999)", retrysql.InvalidData, "1264", rejected},
		{"a deadlock that is raised", "signal sqlstate '40001' set mysql_errno = 1213", retrysql.Deadlock, "1213", undone},
		{"a limit of MariaDB", "set statement max_statement_time = 0.01 for select sleep(60)", retrysql.StatementTimeout, "1969", unable},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := db.Exec(row.query)
			require.ErrorAs(t, err, new(*mysql.MySQLError))
			requireJudged(t, err, row.at, row.reason, row.code)
		})
	}
	t.Run("a database that is not there", func(t *testing.T) {
		err := goMySQL.open(t, required(t, mariadb).address, "nowhere").Ping()
		requireJudged(t, err, failed, retrysql.UnknownDatabase, "1049")
	})
	t.Run("nothing listens", func(t *testing.T) {
		requireJudged(t, goMySQL.open(t, closedAddress(t), "").Ping(), unreached, retrysql.CannotConnect, "")
	})
	t.Run("no TLS", func(t *testing.T) {
		source := goMySQL.source("root", required(t, mariadb).address, "")
		tls, err := sql.Open(goMySQL.name, source+"?tls=true")
		require.NoError(t, err)
		defer tls.Close()
		requireJudged(t, tls.Ping(), failed, retrysql.TLSRefused, "")
	})
}

func TestWhatSQLiteReturnsIsJudgedByItsExtendedCode(t *testing.T) {
	t.Parallel()
	db := newSQLite(t, "wal")
	exec1(t, db, "create table keyed (id integer primary key, name text unique, n integer not null check (n > 0))",
		"insert into keyed values (1, 'one', 1)")
	for _, row := range []provoked{
		{"a primary key that exists", "insert into keyed values (1, 'two', 1)", retrysql.UniqueViolation, "1555", rejected},
		{"a unique value that exists", "insert into keyed values (2, 'one', 1)", retrysql.UniqueViolation, "2067", rejected},
		{"a value that is missing", "insert into keyed values (2, 'two', null)", retrysql.ConstraintViolation, "1299", rejected},
		{"a check that fails", "insert into keyed values (2, 'two', 0)", retrysql.ConstraintViolation, "275", rejected},
		{"a table that is not there", "select * from nothing", retrysql.SyntaxOrAccess, "1", failed},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := db.Exec(row.query)
			require.ErrorAs(t, err, new(*sqlite.Error))
			requireJudged(t, err, row.at, row.reason, row.code)
		})
	}
	t.Run("a lock of another writer", func(t *testing.T) {
		writer, err := db.Begin()
		require.NoError(t, err)
		defer func() { require.NoError(t, writer.Rollback()) }()
		_, err = writer.Exec("update counter set n = 1")
		require.NoError(t, err)
		_, err = db.Exec("update counter set n = 2")
		requireJudged(t, err, undone, retrysql.Busy, "5")
	})
	t.Run("a snapshot that is too old", func(t *testing.T) {
		tx, err := db.Begin()
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback()) }()
		var n int
		require.NoError(t, tx.QueryRow("select n from counter").Scan(&n))
		exec1(t, db, "update counter set n = 2")
		_, err = tx.Exec("update counter set n = 3")
		requireJudged(t, err, undone, retrysql.BusySnapshot, "517")
	})
	t.Run("a file that is not a database", func(t *testing.T) {
		none, err := sql.Open("sqlite", "file:"+t.TempDir()+"/none/none.db")
		require.NoError(t, err)
		defer none.Close()
		requireJudged(t, none.Ping(), unable, retrysql.StorageFault, "14")
	})
}
