package drivers_test

import (
	"context"
	"database/sql"
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
	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrysql"
)

// judged returns the reason and the code that Judge reads from an error. The tests of package retrysql show what they
// mean in each phase.
func judged(err error) string {
	v := retrysql.Judge(retrysql.Statement, err)
	return strings.TrimSpace(string(v.Reason) + " " + v.Code)
}

// TestWhatDriversReturnIsRecognized by the types of their errors, and by the texts of those without a code. It fails if
// a driver changes one.
func TestWhatDriversReturnIsRecognized(t *testing.T) {
	t.Parallel()
	_, parse := pgconn.ParseConfig("host=a port=b")
	closed, err := sql.Open("pgx", "")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"pq.Error":                        {&pq.Error{Code: "40P01"}, "deadlock 40P01"},
		"pgconn.PgError":                  {&pgconn.PgError{Code: "40P01"}, "deadlock 40P01"},
		"mysql.MySQLError, by its number": {&mysql.MySQLError{Number: 1205, SQLState: [5]byte([]byte("HY000"))}, "lock_timeout 1205"},
		"mysql.MySQLError, by the class of SQLState": {&mysql.MySQLError{Number: 1146, SQLState: [5]byte([]byte("42S02"))}, "syntax_or_access 1146"},
		"mssql.Error":              {mssql.Error{Number: 1205}, "deadlock 1205"},
		"a pointer to mssql.Error": {&mssql.Error{Number: 1205}, "deadlock 1205"},

		"mysql.ErrInvalidConn":      {mysql.ErrInvalidConn, "connection_lost"},
		"mysql.ErrNoTLS":            {mysql.ErrNoTLS, "tls_refused"},
		"pgconn.ErrConnClosed":      {pgconn.ErrConnClosed, "connection_lost"},
		"pgx.ErrTxClosed":           {pgx.ErrTxClosed, "transaction_done"},
		"puddle.ErrClosedPool":      {puddle.ErrClosedPool, "pool_closed"},
		"pgconn.ParseConfigError":   {parse, "invalid_source"},
		"sql: database is closed":   {closed.Ping(), "pool_closed"},
		"pgx.ErrTxCommitRollback":   {pgx.ErrTxCommitRollback, "transaction_aborted"},
		"pgx.ErrNoRows":             {pgx.ErrNoRows, "no_rows"},
		"pq.ErrInFailedTransaction": {pq.ErrInFailedTransaction, "transaction_aborted"},
		"pq.ErrSSLNotSupported":     {pq.ErrSSLNotSupported, "tls_refused"},
		"mssql.ServerError":         {mssql.ServerError{}, "server_fault"},
		"mssql.StreamError":         {mssql.StreamError{InnerError: io.ErrUnexpectedEOF}, "connection_lost"},
		"mssql.RetryableError":      {mssql.RetryableError{}, "connection_lost"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.want, judged(row.err)) })
	}
}

// requireJudged executes statements that fail.
func requireJudged(t *testing.T, db *sql.DB, queries map[string]string) {
	t.Helper()
	for query, want := range queries {
		_, err := db.Exec(query)
		require.Equal(t, want, judged(err), query)
	}
}

func TestWhatPostgreSQLSendsIsJudgedByItsCode(t *testing.T) {
	withPostgres(t, pairs, func(t *testing.T, _ driver, db *sql.DB) {
		requireJudged(t, db, map[string]string{
			"insert into pairs values (1, 1)":                     "unique_violation 23505",
			"insert into pairs values (3, null)":                  "constraint_violation 23502",
			"select * from nothing":                               "syntax_or_access 42P01",
			"select 1/0":                                          "invalid_data 22012",
			"do $$ begin raise sqlstate '40001'; end $$":          "serialization_failure 40001",
			"do $$ begin raise exception 'of a function'; end $$": "raised_exception P0001",
		})
		t.Run("an earlier error", func(t *testing.T) {
			tx, err := db.Begin()
			require.NoError(t, err)
			_, err = tx.Exec("select 1/0")
			require.Error(t, err)
			_, err = tx.Exec("select 1")
			require.Equal(t, "transaction_aborted 25P02", judged(err))
			require.Equal(t, "transaction_aborted", judged(tx.Commit()))
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
			require.Equal(t, "cached_plan 0A000", judged(drain(stmt.Query())))
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

func TestWhatMariaDBSendsIsJudgedByItsNumber(t *testing.T) {
	t.Parallel()
	requireJudged(t, newSite(t, goMySQL, pairs...).db, map[string]string{
		"insert into pairs values (1, 1)":                              "unique_violation 1062",
		"insert into pairs values (3, null)":                           "constraint_violation 1048",
		"select * from nothing":                                        "syntax_or_access 1146",
		"selec 1":                                                      "syntax_or_access 1064",
		"insert into pairs values (3, 99999999999)":                    "invalid_data 1264",
		"signal sqlstate '40001' set mysql_errno = 1213":               "deadlock 1213",
		"set statement max_statement_time = 0.01 for select sleep(60)": "statement_timeout 1969",
	})
}

// TestWhyNoConnectionIsMade provokes what a server or a driver says at the login.
func TestWhyNoConnectionIsMade(t *testing.T) {
	t.Parallel()
	host, port, err := ownAddress()
	require.NoError(t, err)
	for _, d := range serverDrivers {
		t.Run(d.name, func(t *testing.T) {
			s, _ := d.newDatabase(t)
			unknown := "unknown_database 3D000"
			tls := strings.Replace(d.source("postgres", s.address, "postgres"), "disable", "require", 1)
			if d.name == goMySQL.name {
				unknown = "unknown_database 1049"
				tls += "?tls=true"
			} else {
				require.Equal(t, "auth_failed 28000", judged(d.openAs(t, "nobody", s.address, "postgres").Ping()))
			}
			require.Equal(t, unknown, judged(d.open(t, s.address, "nowhere").Ping()))
			require.Equal(t, "tls_refused", judged(checked(t)(sql.Open(d.name, tls)).Ping()))
			require.Equal(t, "cannot_connect", judged(d.open(t, net.JoinHostPort(host, port), "postgres").Ping()))
		})
	}
}

func TestWhatSQLiteReturnsIsJudgedByItsExtendedCode(t *testing.T) {
	t.Parallel()
	db := newSQLite(t, "wal")
	exec1(t, db, "create table keyed (id integer primary key, name text unique, n integer not null check (n > 0))",
		"insert into keyed values (1, 'one', 1)")
	requireJudged(t, db, map[string]string{
		"insert into keyed values (1, 'two', 1)":    "unique_violation 1555",
		"insert into keyed values (2, 'one', 1)":    "unique_violation 2067",
		"insert into keyed values (2, 'two', null)": "constraint_violation 1299",
		"insert into keyed values (2, 'two', 0)":    "constraint_violation 275",
		"select * from nothing":                     "syntax_or_access 1",
	})
	none, err := sql.Open("sqlite", "file:"+t.TempDir()+"/none/none.db")
	require.NoError(t, err)
	defer none.Close()
	require.Equal(t, "storage_fault 14", judged(none.Ping()))
	tx, err := db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	require.NoError(t, drain(tx.QueryContext(context.Background(), "select n from counter")))
	exec1(t, db, "update counter set n = 2")
	_, err = tx.Exec("update counter set n = 3")
	require.Equal(t, "busy_snapshot 517", judged(err))
}
