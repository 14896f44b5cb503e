package retrytest_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

// server is a driver that logs its calls. Its connections have every optional method; those of oldServer have none.
type server struct {
	mu      sync.Mutex
	seen    []string
	prepare bool  // statements with arguments must be prepared
	refuses error // of each statement
}

func (s *server) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

// log returns the calls that reached s.
func (s *server) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, ", ")
}

func (s *server) Connect(context.Context) (driver.Conn, error) {
	s.note("connect")
	return &serverConn{oldConn{s}, true}, nil
}
func (s *server) Driver() driver.Driver { return oldServer{s} }

type oldServer struct{ *server }

func (s oldServer) Open(name string) (driver.Conn, error) {
	if name == "" {
		return nil, errDown
	}
	s.note("open " + name)
	return oldConn(s), nil
}

type oldConn struct{ *server }

func (c oldConn) Close() error              { c.note("close"); return nil }
func (c oldConn) Begin() (driver.Tx, error) { c.note("begin"); return serverTx(c), nil }
func (c oldConn) Prepare(query string) (driver.Stmt, error) {
	c.note("prepare")
	if query == "bad" {
		return nil, errDown
	}
	return oldStmt{c.server, query}, nil
}

type serverConn struct {
	oldConn
	valid bool
}

func (c *serverConn) BeginTx(_ context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.note(fmt.Sprintf("begin %v %v", o.ReadOnly, o.Isolation))
	return serverTx{c.server}, nil
}
func (c *serverConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	s, err := c.Prepare(query)
	return serverStmt{s}, err
}
func (c *serverConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.prepare && len(args) > 0 {
		return nil, driver.ErrSkip
	}
	c.note(query)
	return driver.RowsAffected(1), c.refuses
}
func (c *serverConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.prepare && len(args) > 0 {
		return nil, driver.ErrSkip
	}
	c.note(query)
	return &serverRows{server: c.server}, nil
}
func (c *serverConn) Ping(context.Context) error         { c.note("ping"); return nil }
func (c *serverConn) ResetSession(context.Context) error { c.note("reset"); return nil }
func (c *serverConn) IsValid() bool                      { return c.valid }
func (c *serverConn) CheckNamedValue(v *driver.NamedValue) error {
	v.Value = fmt.Sprint("conn ", v.Value)
	return nil
}

type serverTx struct{ *server }

func (t serverTx) Commit() error   { t.note("commit"); return nil }
func (t serverTx) Rollback() error { t.note("rollback"); return nil }

type oldStmt struct {
	*server
	query string
}

func (s oldStmt) Close() error  { s.note("close " + s.query); return nil }
func (s oldStmt) NumInput() int { return -1 }
func (s oldStmt) Exec(args []driver.Value) (driver.Result, error) {
	s.note(fmt.Sprint(s.query, args))
	return driver.RowsAffected(1), nil
}
func (s oldStmt) Query(args []driver.Value) (driver.Rows, error) {
	s.note(fmt.Sprint(s.query, args))
	return &serverRows{server: s.server}, nil
}

type serverStmt struct{ driver.Stmt }

func (s serverStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.Exec([]driver.Value{args[0].Value, "ctx"})
}
func (s serverStmt) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.Query([]driver.Value{args[0].Value, "ctx"})
}
func (s serverStmt) CheckNamedValue(v *driver.NamedValue) error {
	v.Value = fmt.Sprint("stmt ", v.Value)
	return nil
}

type serverRows struct {
	*server
	read bool
}

func (r *serverRows) Columns() []string                     { return []string{"n"} }
func (r *serverRows) ColumnTypeDatabaseTypeName(int) string { return "BIGINT" }
func (r *serverRows) Close() error                          { r.note("close rows"); return nil }
func (r *serverRows) Next(v []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, v[0] = true, int64(7)
	return nil
}

// insert makes one attempt at a transaction.
func insert(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT"); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// Each fault at the driver, and retrysql's verdict on it.
func TestSQLFault(t *testing.T) {
	const (
		begin = "connect, begin false 0"
		whole = begin + ", INSERT, commit"
		back  = begin + ", INSERT, rollback"
	)
	type fault = retrytest.SQLFault
	again := func(reason retrysql.Reason, code string) retrysql.Verdict {
		return retrysql.Verdict{Class: retry.Retryable, Reason: reason, Code: code}
	}
	doubt := func(reason retrysql.Reason) retrysql.Verdict {
		return retrysql.Verdict{Class: retry.Terminal, Reason: reason, Ambiguous: true}
	}
	for _, row := range []struct {
		name      string
		fault     fault
		err       error
		seen      string // by the server, in one transaction
		committed int
		phase     retrysql.Phase
		want      retrysql.Verdict
		took      time.Duration
	}{
		{"serialization failure of a statement", fault{Err: retrytest.ErrSerialization}, retrytest.ErrSerialization,
			begin + ", rollback", 0, retrysql.Statement, again(retrysql.SerializationFailure, "40001"), 0},
		{"serialization failure of the commit", fault{On: retrytest.Commit, Err: retrytest.ErrSerialization}, retrytest.ErrSerialization,
			back, 0, retrysql.Commit, again(retrysql.SerializationFailure, "40001"), 0},
		{"deadlock", fault{Query: "INS", Err: retrytest.ErrDeadlock}, retrytest.ErrDeadlock,
			begin + ", rollback", 0, retrysql.Statement, again(retrysql.Deadlock, "40P01"), 0},
		{"busy", fault{Err: retrytest.ErrBusy}, retrytest.ErrBusy, begin + ", rollback", 0, retrysql.Statement, again(retrysql.Busy, "5"), 0},
		{"read-only", fault{Err: retrytest.ErrReadOnly}, retrytest.ErrReadOnly,
			begin + ", rollback", 0, retrysql.Statement, again(retrysql.ReadOnlyServer, "25006"), 0},
		{"connection lost before the server took COMMIT", fault{On: retrytest.Commit, Lost: true}, syscall.ECONNRESET,
			back + ", close", 0, retrysql.Commit, doubt(retrysql.ConnectionLost), 0},
		{"connection lost after the server took COMMIT", fault{On: retrytest.Commit, Lost: true, Late: true}, syscall.ECONNRESET,
			whole + ", close", 1, retrysql.Commit, doubt(retrysql.ConnectionLost), 0},
		{"connection lost, with the driver's own error", fault{On: retrytest.Commit, Lost: true, Late: true, Err: driver.ErrBadConn}, driver.ErrBadConn,
			whole + ", close", 1, retrysql.Commit, doubt(retrysql.ConnectionLost), 0},
		{"an answer of COMMIT that comes as an error", fault{On: retrytest.Commit, Late: true, Err: context.DeadlineExceeded}, context.DeadlineExceeded,
			whole, 1, retrysql.Commit, doubt(retrysql.Timeout), 0},
		{"connection lost at a statement", fault{On: retrytest.Exec, Lost: true}, syscall.ECONNRESET,
			begin + ", rollback, close", 0, retrysql.Statement, again(retrysql.ConnectionLost, ""), 0},
		{"connection lost after a statement", fault{On: retrytest.Exec, Lost: true, Late: true}, syscall.ECONNRESET,
			back + ", close", 0, retrysql.Statement, again(retrysql.ConnectionLost, ""), 0},
		{"connection lost at BEGIN", fault{On: retrytest.Begin, Lost: true}, syscall.ECONNRESET,
			"connect, close", 0, retrysql.Connect, again(retrysql.ConnectionLost, ""), 0},
		{"BEGIN that is done and fails", fault{On: retrytest.Begin, Late: true, Err: errDown}, errDown,
			begin + ", rollback", 0, retrysql.Connect, again("", ""), 0},
		{"no connection", fault{On: retrytest.Connect, Lost: true}, syscall.ECONNRESET, "", 0, retrysql.Connect, again(retrysql.ConnectionLost, ""), 0},
		{"a connection that is lost once it is made", fault{On: retrytest.Connect, Lost: true, Late: true}, syscall.ECONNRESET,
			"connect, close", 0, retrysql.Connect, again(retrysql.ConnectionLost, ""), 0},
		{"a bad connection, which database/sql replaces", fault{On: retrytest.Begin, Err: driver.ErrBadConn}, nil,
			"connect, close, " + whole, 1, 0, retrysql.Verdict{}, 0},
		{"a slow statement", fault{Takes: time.Minute}, nil, whole, 1, 0, retrysql.Verdict{}, time.Minute},
		{"a slow commit", fault{On: retrytest.Commit, Takes: time.Hour}, nil, whole, 1, 0, retrysql.Verdict{}, time.Hour},
		{"a statement that is too slow for its context", fault{Takes: 3 * time.Hour}, context.DeadlineExceeded,
			begin + ", rollback", 0, retrysql.Statement, retrysql.Verdict{Reason: retrysql.Timeout}, 2 * time.Hour},
		{"a row that lets an operation pass", fault{On: retrytest.Commit}, nil, whole, 1, 0, retrysql.Verdict{}, 0},
	} {
		bubble(t, row.name, func(t *testing.T) {
			s := new(server)
			c := retrytest.NewConnector(t, s, []retrytest.SQLFault{row.fault})
			db := c.OpenDB()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
			defer cancel()
			began := time.Now()
			err := insert(ctx, db)
			require.Equal(t, row.took, time.Since(began))
			require.ErrorIs(t, err, row.err)
			require.Equal(t, row.want, retrysql.Judge(row.phase, err))
			time.Sleep(time.Second) // for database/sql's own goroutine
			require.Equal(t, row.seen, s.log())
			require.Len(t, c.Committed(), row.committed)
		})
	}
	bubble(t, "a connection that has gone bad in the pool", func(t *testing.T) {
		s := new(server)
		db := retrytest.NewConnector(t, s, []fault{{On: retrytest.Reuse, Lost: true}}).OpenDB()
		for range 3 {
			require.NoError(t, insert(t.Context(), db))
		}
		const work = ", begin false 0, INSERT, commit"
		require.Equal(t, "connect"+work+", close, connect"+work+", reset"+work, s.log())
	})
	bubble(t, "in an aborted transaction nothing more is done, and COMMIT rolls back", func(t *testing.T) {
		s := new(server)
		c := retrytest.NewConnector(t, s, []fault{{Query: "first", Err: retrytest.ErrDeadlock}})
		db := c.OpenDB()
		tx, err := db.Begin()
		require.NoError(t, err)
		_, err = tx.Exec("first")
		require.ErrorIs(t, err, retrytest.ErrDeadlock)
		_, err = tx.Exec("second")
		require.EqualError(t, err, "current transaction is aborted (SQLSTATE 25P02)")
		err = tx.Commit()
		require.EqualError(t, err, "commit unexpectedly resulted in rollback")
		require.Equal(t, retrysql.Verdict{Reason: retrysql.TransactionAborted}, retrysql.Judge(retrysql.Commit, err))
		require.Empty(t, c.Committed())
		require.NoError(t, insert(t.Context(), db))
		require.Equal(t, []string{"INSERT"}, c.Committed())
	})
	bubble(t, "outside a transaction nothing is aborted, and what is lost late has happened", func(t *testing.T) {
		s := new(server)
		c := retrytest.NewConnector(t, s, []fault{{Err: retrytest.ErrDeadlock}, {}, {Lost: true}, {Lost: true, Late: true}, {On: retrytest.Query, Lost: true, Late: true}})
		db := c.OpenDB()
		var got []bool
		for i := range 4 {
			_, err := db.Exec(fmt.Sprint(i))
			got = append(got, err == nil)
		}
		require.Equal(t, []bool{false, true, false, false}, got)
		_, err := db.Query("select")
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, "connect, reset, 1, reset, close, connect, 3, close, connect, select, close rows, close", s.log())
		require.Equal(t, []string{"1", "3", "select"}, c.Committed())
	})
	bubble(t, "a lost connection answers nothing more, nor does it prepare", func(t *testing.T) {
		db := retrytest.NewConnector(t, new(server), []fault{{Lost: true}}).OpenDB()
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		require.NoError(t, conn.PingContext(t.Context()))
		_, err = conn.ExecContext(t.Context(), "INSERT")
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.ErrorIs(t, conn.PingContext(t.Context()), driver.ErrBadConn)
		require.ErrorIs(t, conn.Close(), sql.ErrConnDone)

		conn, err = retrytest.NewConnector(t, nil, []fault{{Lost: true}}).OpenDB().Conn(t.Context())
		require.NoError(t, err)
		_, err = conn.ExecContext(t.Context(), "INSERT")
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = conn.PrepareContext(t.Context(), "INSERT")
		require.ErrorIs(t, err, driver.ErrBadConn)
	})
}

func TestConnector(t *testing.T) {
	bubble(t, "calls are recorded as they end", func(t *testing.T) {
		c := retrytest.NewConnector(t, nil, []retrytest.SQLFault{{Query: "two", Err: errDown}})
		db := c.OpenDB()
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true})
		require.NoError(t, err)
		_, err = tx.Exec("one", 1, "a")
		require.NoError(t, err)
		require.ErrorIs(t, tx.QueryRow("two").Scan(new(int)), errDown)
		require.ErrorIs(t, tx.QueryRow("three").Scan(new(int)), sql.ErrNoRows)
		require.NoError(t, tx.Rollback())
		require.Equal(t, []retrytest.SQLCall{
			{Conn: 1, Op: retrytest.Connect, Done: true},
			{Conn: 1, Op: retrytest.Begin, Query: "read only serializable", Done: true},
			{Conn: 1, Op: retrytest.Exec, Query: "one", Args: []any{int64(1), "a"}, Done: true},
			{Conn: 1, Op: retrytest.Query, Query: "two", Err: errDown},
			{Conn: 1, Op: retrytest.Query, Query: "three", Done: true},
			{Conn: 1, Op: retrytest.Rollback, Done: true},
		}, c.Calls())
		require.Empty(t, c.Committed())
	})
	bubble(t, "a rollback that fails is one still", func(t *testing.T) {
		s := new(server)
		db := retrytest.NewConnector(t, s, []retrytest.SQLFault{{On: retrytest.Rollback, Err: errDown}}).OpenDB()
		tx, err := db.Begin()
		require.NoError(t, err)
		require.ErrorIs(t, tx.Rollback(), errDown)
		require.Equal(t, "connect, begin false 0, rollback", s.log())
	})
	for _, old := range []bool{false, true} {
		bubble(t, fmt.Sprintf("statements reach the driver as without us, old: %v", old), func(t *testing.T) {
			seen := func(wrap bool) string {
				s := &server{prepare: true}
				var base driver.Connector = s
				if old {
					base = retrytest.DSN(s.Driver(), "name")
				}
				db := sql.OpenDB(base)
				if wrap {
					_ = db.Close()
					db = retrytest.NewConnector(t, base, nil).OpenDB()
				}
				defer func() { _ = db.Close() }()
				require.NoError(t, db.Ping())
				_, err := db.Exec("exec")
				require.NoError(t, err)
				_, err = db.Exec("exec with", 1)
				require.NoError(t, err)
				var n int
				require.NoError(t, db.QueryRow("query").Scan(&n))
				require.NoError(t, db.QueryRow("query with", 2).Scan(&n))
				require.Equal(t, 7, n)
				stmt, err := db.Prepare("prepared")
				require.NoError(t, err)
				_, err = stmt.Exec(3)
				require.NoError(t, err)
				require.NoError(t, stmt.QueryRow(4).Scan(&n))
				require.NoError(t, stmt.Close())
				_, err = db.Exec("bad", 5)
				require.ErrorIs(t, err, errDown)
				tx, err := db.Begin()
				require.NoError(t, err)
				require.NoError(t, tx.Commit())
				if tx, err = db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true}); err == nil {
					require.NoError(t, tx.Rollback())
				}
				require.Equal(t, old, err != nil)
				return s.log()
			}
			require.Equal(t, seen(false), seen(true))
		})
	}
	bubble(t, "a fault of a statement that is prepared first happens once", func(t *testing.T) {
		s := &server{prepare: true}
		c := retrytest.NewConnector(t, s, []retrytest.SQLFault{
			{Err: errDown, Late: true, Takes: time.Second}, {Takes: time.Second}, {On: retrytest.Query, Err: errDown, Takes: time.Second, Late: true},
		})
		db := c.OpenDB()
		began := time.Now()
		_, err := db.Exec("one", 1)
		require.ErrorIs(t, err, errDown)
		_, err = db.Exec("two", 2)
		require.NoError(t, err)
		require.ErrorIs(t, db.QueryRow("three", 3).Scan(new(int)), errDown)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Equal(t, []string{"one", "two", "three"}, c.Committed())
	})
	bubble(t, "the server's own error comes before a late fault", func(t *testing.T) {
		s := &server{refuses: errors.New("syntax")}
		c := retrytest.NewConnector(t, s, []retrytest.SQLFault{{Late: true, Err: errDown}})
		_, err := c.OpenDB().Exec("INSERT")
		require.ErrorIs(t, err, s.refuses)
		require.Empty(t, c.Committed())
	})
	bubble(t, "an invalid connection of the base is not reused", func(t *testing.T) {
		s := new(server)
		c := retrytest.NewConnector(t, s, nil)
		db := c.OpenDB()
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		require.NoError(t, conn.Raw(func(c any) error {
			require.True(t, c.(driver.Validator).IsValid())
			return nil
		}))
		require.NoError(t, conn.Close())
		require.NotNil(t, c.Driver())
	})
	t.Run("no connection of the base", func(t *testing.T) {
		c := retrytest.NewConnector(t, retrytest.DSN(new(server).Driver(), ""), nil)
		require.ErrorIs(t, c.OpenDB().Ping(), errDown)
		require.Equal(t, []retrytest.SQLCall{{Op: retrytest.Connect, Err: errDown}}, c.Calls())
	})
	t.Run("what fails the test", func(t *testing.T) {
		r := recorder{TB: t}
		db := retrytest.NewConnector(&r, nil, []retrytest.SQLFault{{On: retrytest.Commit, Lost: true}}).OpenDB()
		tx, err := db.Begin()
		require.NoError(t, err)
		require.Equal(t, []string{"retrytest: 1 connections are in use at the test's end: rows or a transaction are not closed"}, r.ended())
		_ = tx.Rollback()
	})
	t.Run("many at once", func(t *testing.T) {
		c := retrytest.NewConnector(t, nil, []retrytest.SQLFault{{On: retrytest.Commit, Err: errDown, Times: 10}})
		db := c.OpenDB()
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() { _ = insert(t.Context(), db) })
		}
		all.Wait()
		require.Len(t, c.Committed(), 30)
	})
}

func TestFaultsOfPrepareAndPingAndNext(t *testing.T) {
	t.Run("are those of the operation", func(t *testing.T) {
		c := retrytest.NewConnector(t, &server{}, []retrytest.SQLFault{
			{On: retrytest.Ping, Err: errDown}, {On: retrytest.Prepare, Query: "slow", Lost: true},
			{On: retrytest.Next}, {On: retrytest.Next, Lost: true},
		})
		db := c.OpenDB()
		require.Equal(t, errDown, db.PingContext(t.Context()))
		require.NoError(t, db.PingContext(t.Context()))
		stmt, err := db.PrepareContext(t.Context(), "fast")
		require.NoError(t, err)
		require.NoError(t, stmt.Close())
		_, err = db.PrepareContext(t.Context(), "slow")
		require.ErrorIs(t, err, syscall.ECONNRESET)
		rows, err := db.QueryContext(t.Context(), "SELECT 1")
		require.NoError(t, err)
		n := 0
		for rows.Next() {
			n++
		}
		require.ErrorIs(t, rows.Err(), syscall.ECONNRESET)
		require.NoError(t, rows.Close())
		require.Equal(t, 1, n, "the first row passes")
		var calls []string
		for _, call := range c.Calls() {
			calls = append(calls, fmt.Sprint(call.Conn, " ", call.Op, " ", call.Query, " ", call.Err != nil))
		}
		require.Equal(t, []string{
			"1 connect  false", "1 ping  true", "1 prepare slow true", "2 connect  false", "2 query SELECT 1 false", "2 next SELECT 1 true",
		}, calls)
	})
	t.Run("a statement whose Prepare fails late is closed", func(t *testing.T) {
		s := &server{}
		db := retrytest.NewConnector(t, s, []retrytest.SQLFault{{On: retrytest.Prepare, Err: errDown, Late: true}}).OpenDB()
		_, err := db.PrepareContext(t.Context(), "INSERT")
		require.ErrorIs(t, err, errDown)
		require.Equal(t, "connect, prepare, close INSERT", s.log())
	})
	t.Run("rows have the types of the driver's columns unless a Next is to fail", func(t *testing.T) {
		for op, want := range map[retrytest.Op]string{retrytest.Query: "BIGINT", retrytest.Next: ""} {
			db := retrytest.NewConnector(t, &server{}, []retrytest.SQLFault{{On: op}}).OpenDB()
			rows, err := db.QueryContext(t.Context(), "SELECT 1")
			require.NoError(t, err)
			types, err := rows.ColumnTypes()
			require.NoError(t, err)
			require.Equal(t, want, types[0].DatabaseTypeName(), op)
			require.True(t, rows.Next())
			require.NoError(t, rows.Close())
		}
	})
	t.Run("a row that is left names the calls", func(t *testing.T) {
		var r recorder
		db := retrytest.NewConnector(&r, nil, []retrytest.SQLFault{{On: retrytest.Exec, Query: "INSERT", Lost: true}, {On: retrytest.Commit}}).OpenDB()
		_, err := db.ExecContext(t.Context(), "UPDATE stock SET n = 1")
		require.NoError(t, err)
		require.Regexp(t, `row 1 of 2, \{On: "exec", Query: "INSERT", Lost: true\}, is left at the test's end; 2 calls were made: connect, exec UPDATE stock SET n = 1$`, r.ended()[0])
	})
}
