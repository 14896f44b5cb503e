package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is a driver whose statements do what the functions say; a nil function does nothing and succeeds.
type fake struct {
	begin, commit, rollback func() error
	exec                    func(query string) error
	rows                    func(query string) (values []int64, end error) // what a query returns, and what follows the last row
	mu                      sync.Mutex
	log                     []string
	open                    int // connections
}

// openFake returns a database over f, which must have no connection in use in the end.
func openFake(t testing.TB, f *fake) *sql.DB {
	db := sql.OpenDB(f)
	t.Cleanup(func() {
		require.Zero(t, db.Stats().InUse, "no connection is in use")
		require.NoError(t, db.Close())
		require.Zero(t, f.open, "no connection is open")
	})
	return db
}

func (f *fake) do(what string, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		what += "!"
	}
	f.log = append(f.log, what)
	return err
}

// seen returns the log. database/sql may still be rolling back, in a goroutine of its own.
func (f *fake) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

func (f *fake) Connect(context.Context) (driver.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
	return &fakeConn{f}, nil
}

func (f *fake) Driver() driver.Driver { return nil }

type fakeConn struct{ *fake }

func (c *fakeConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fake.open--
	return nil
}

func (c *fakeConn) Begin() (driver.Tx, error) { panic("not without options") }

func (c *fakeConn) BeginTx(_ context.Context, opts driver.TxOptions) (driver.Tx, error) {
	what := "begin"
	if opts.ReadOnly {
		what += " read only"
	}
	if opts.Isolation != 0 {
		what += " " + sql.IsolationLevel(opts.Isolation).String()
	}
	if err := c.do(what, call(c.begin)); err != nil {
		return nil, err
	}
	return fakeTx{c.fake}, nil
}

func (c *fakeConn) Prepare(query string) (driver.Stmt, error) {
	if query == "bad" {
		return nil, c.do("prepare", duplicate)
	}
	return &fakeStmt{c, query}, nil
}

func (c *fakeConn) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	var err error
	if c.exec != nil {
		err = c.exec(query)
	}
	return driver.RowsAffected(1), c.do(query, err)
}

func (c *fakeConn) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	if c.exec != nil {
		if err := c.exec(query); err != nil {
			return nil, c.do(query, err)
		}
	}
	_ = c.do(query, nil)
	r := &fakeRows{end: io.EOF}
	if c.rows != nil {
		values, end := c.rows(query)
		r.values = values
		if end != nil {
			r.end = end
		}
	}
	return r, nil
}

type fakeStmt struct {
	conn  *fakeConn
	query string
}

func (s *fakeStmt) Close() error  { return nil }
func (s *fakeStmt) NumInput() int { return 0 }
func (s *fakeStmt) Exec([]driver.Value) (driver.Result, error) {
	return s.conn.ExecContext(context.Background(), s.query, nil)
}
func (s *fakeStmt) Query([]driver.Value) (driver.Rows, error) {
	return s.conn.QueryContext(context.Background(), s.query, nil)
}

type fakeRows struct {
	values []int64
	end    error
	sets   int
}

func (r *fakeRows) Columns() []string { return []string{"value"} }
func (r *fakeRows) Close() error      { return nil }
func (r *fakeRows) Next(dest []driver.Value) error {
	if len(r.values) == 0 {
		return r.end
	}
	dest[0], r.values = r.values[0], r.values[1:]
	return nil
}
func (r *fakeRows) HasNextResultSet() bool { return r.sets == 0 }
func (r *fakeRows) NextResultSet() error   { r.sets++; return r.end }

type fakeTx struct{ *fake }

func (t fakeTx) Commit() error   { return t.do("commit", call(t.fake.commit)) }
func (t fakeTx) Rollback() error { return t.do("rollback", call(t.fake.rollback)) }

// times returns a function that returns err n times, and nil then.
func times(n int64, err error) func() error {
	var calls atomic.Int64
	return func() error {
		if calls.Add(1) > n {
			return nil
		}
		return err
	}
}

// on returns a function that gives err for the query, n times.
func on(query string, n int64, err error) func(string) error {
	next := times(n, err)
	return func(q string) error {
		if q == query {
			return next()
		}
		return nil
	}
}
