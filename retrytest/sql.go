package retrytest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Op is an operation of a database driver.
type Op string

// The operations.
const (
	Connect  Op = "connect"
	Reuse    Op = "reuse" // the pool reuses a connection, which a fault makes unusable
	Begin    Op = "begin"
	Exec     Op = "exec"
	Query    Op = "query"
	Commit   Op = "commit"
	Rollback Op = "rollback"

	// Calls of these are recorded only if they fail.
	Prepare Op = "prepare" // of a *sql.Stmt, but not if the driver has to prepare each statement
	Ping    Op = "ping"
	Next    Op = "next" // sql.Rows.Next
)

var ops = []Op{Connect, Reuse, Begin, Exec, Query, Commit, Rollback, Prepare, Ping, Next}

// quiet reports whether calls of op are recorded only if they fail.
func (op Op) quiet() bool { return op == Reuse || op == Prepare || op == Ping || op == Next }

// SQLFault is a fault of the next operation that On and Query match. Earlier operations that do not match succeed. Err,
// Lost and Late determine how it ends. A row without Err, Lost and Takes lets one operation pass, so that a later row
// can fail the next one.
type SQLFault struct {
	// On is the operation. Empty means Exec or Query.
	On Op
	// Query is a part of the statement's text. Empty means any text. It must be empty unless On is Exec, Query, Prepare,
	// Next or empty.
	Query string
	// Err is the driver's error, which is one of this package's or a real driver's. Nil means success, unless Lost is
	// set. An Err with an SQLState method leaves a transaction aborted, as in PostgreSQL.
	Err error
	// Lost means that the connection is lost. A transaction is rolled back unless Late has committed it. The driver
	// returns Err, or a connection reset if Err is nil.
	Lost bool
	// Late means that the database does its part first, and only the answer is lost. False means that the fault comes
	// first.
	Late bool
	// Takes is how long the operation takes. If its context ends earlier, the operation ends with the context's error,
	// undone. A commit and a rollback do not have a context. Zero means no time.
	Takes time.Duration
	// Times is the number of operations that use the row. Zero means 1. Forever means all that follow.
	Times int
}

func (f SQLFault) times() int { return f.Times }

func (f SQLFault) check(bad refuse) {
	if f.On != "" && !slices.Contains(ops, f.On) {
		bad("On", strconv.Quote(string(f.On)), fmt.Sprintf("is not one of %q", ops))
	} else if f.Query != "" && !slices.Contains([]Op{"", Exec, Query, Prepare, Next}, f.On) {
		bad("Query", strconv.Quote(f.Query), fmt.Sprintf("does not go with On %q", f.On))
	}
	bad.negative("Takes", f.Takes)
}

func (f *SQLFault) fails() bool { return f.Err != nil || f.Lost }

func (f *SQLFault) matches(op Op, query string) bool {
	statement := op == Exec || op == Query
	return (f.On == op || f.On == "" && statement) && strings.Contains(query, f.Query)
}

// Errors of servers, for SQLFault.Err. Package retrysql recognizes them like the errors of drivers. It knows the first
// three by their SQLState method, and ErrBusy as an SQLite driver's.
var (
	ErrSerialization error = &stateError{"40001", "could not serialize access"}
	ErrDeadlock      error = &stateError{"40P01", "deadlock detected"}
	ErrReadOnly      error = &stateError{"25006", "cannot execute in a read-only transaction"}
	ErrBusy          error = &sqliteError{5, "database is locked"}
)

type stateError struct{ state, text string }

func (e *stateError) Error() string    { return e.text + " (SQLSTATE " + e.state + ")" }
func (e *stateError) SQLState() string { return e.state }

type sqliteError struct {
	code int
	text string
}

func (e *sqliteError) Error() string { return e.text + " (SQLITE_BUSY)" }
func (e *sqliteError) Code() int     { return e.code }

// PostgreSQL's error in a transaction that an error has aborted, and pgx's for its COMMIT.
var (
	errAborted          = &stateError{"25P02", "current transaction is aborted"}
	errCommitRolledBack = errors.New("commit unexpectedly resulted in rollback")
)

// SQLCall is a call to a driver.
type SQLCall struct {
	Conn  int    // the connection, from 1, or 0 if it was not made
	Op    Op     // never empty, but a Reuse, Prepare, Ping or Next is recorded only if it fails
	Query string // the statement, or the options of a Begin, such as "read only serializable", and otherwise empty
	Args  []any  // of the statement, nil if it has no arguments
	Done  bool   // the database has executed it, even if Err is set
	Err   error  // the result of the driver, nil for a success
}

// Connector is a driver that injects faults into another one and records its calls. NewConnector makes one. The zero
// Connector is not usable.
type Connector struct {
	base driver.Connector
	pick func(Op, string) SQLFault // the zero SQLFault if the operation passes
	next bool                      // a Next can fail
	tb   testing.TB

	mu    sync.Mutex
	conns int
	calls []SQLCall
}

// NewConnector returns a connector to the databases of base with the given faults, in order. If base is nil, the
// database accepts every statement, stores no data and returns no rows. A fault that did not happen fails the test. A
// connection whose fault is Lost is closed. A database in memory that exists only in that connection is lost with it.
func NewConnector(tb testing.TB, base driver.Connector, faults []SQLFault) *Connector {
	s := newScript(tb, faults)
	return newConnector(tb, base, faults, func(op Op, query string) SQLFault {
		call := strings.TrimSpace(fmt.Sprintf("%s %.60s", op, query))
		f, _, ok := s.take(call, func(f SQLFault) fit {
			if f.matches(op, query) {
				return takes
			}
			return never
		})
		if !ok && !op.quiet() {
			s.mu.Lock()
			s.note(call)
			s.mu.Unlock()
		}
		return f
	})
}

func newConnector(tb testing.TB, base driver.Connector, faults []SQLFault, pick func(Op, string) SQLFault) *Connector {
	if base == nil {
		base = DSN(nowhere{}, "")
	}
	next := slices.ContainsFunc(faults, func(f SQLFault) bool { return f.On == Next })
	return &Connector{base: base, pick: pick, next: next, tb: tb}
}

// OpenDB returns a database over c, which is closed at the test's end. A connection that is in use then, because rows
// or a transaction were not closed, fails the test.
func (c *Connector) OpenDB() *sql.DB {
	db := sql.OpenDB(c)
	c.tb.Cleanup(func() {
		if n := db.Stats().InUse; n > 0 {
			c.tb.Errorf("retrytest: %d connections are in use at the test's end: rows or a transaction are not closed", n)
		}
		_ = db.Close()
	})
	return db
}

// Connect implements driver.Connector.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	out := &faultyConn{connector: c}
	err := out.do(ctx, SQLCall{Op: Connect}, func() (err error) {
		if out.Conn, err = c.base.Connect(ctx); err == nil {
			c.mu.Lock()
			c.conns++
			out.number = c.conns
			c.mu.Unlock()
		}
		return err
	})
	if err != nil {
		if out.Conn != nil {
			_ = out.Close()
		}
		return nil, err
	}
	return out, nil
}

// Driver implements driver.Connector.
func (c *Connector) Driver() driver.Driver { return c.base.Driver() }

// Calls returns the calls to the driver, in order.
func (c *Connector) Calls() []SQLCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// Committed returns the statements that have taken effect, queries included, in the order in which they took effect. A
// statement outside a transaction takes effect at once, and a statement in a transaction with its commit, whatever the
// driver returned for it.
func (c *Connector) Committed() []string {
	var committed []string
	open := map[int][]string{} // not nil in a transaction
	for _, call := range c.Calls() {
		pending := open[call.Conn]
		switch {
		case call.Op == Begin && call.Err == nil:
			open[call.Conn] = []string{}
		case call.Op == Commit && call.Done:
			committed = append(committed, pending...)
			delete(open, call.Conn)
		case call.Op == Commit, call.Op == Rollback:
			delete(open, call.Conn)
		case call.Op != Exec && call.Op != Query || !call.Done:
		case pending != nil:
			open[call.Conn] = append(pending, call.Query)
		default:
			committed = append(committed, call.Query)
		}
	}
	return committed
}

// DSN returns a connector that opens connections of d by name, for a driver without its own connectors.
func DSN(d driver.Driver, name string) driver.Connector { return dsn{d, name} }

type dsn struct {
	driver driver.Driver
	name   string
}

func (d dsn) Connect(context.Context) (driver.Conn, error) { return d.driver.Open(d.name) }
func (d dsn) Driver() driver.Driver                        { return d.driver }

// faultyConn is a connection of a Connector. database/sql uses it in one goroutine at a time.
type faultyConn struct {
	driver.Conn // of the base
	connector   *Connector
	number      int

	tx      driver.Tx // of the base, nil outside a transaction
	aborted bool      // tx is
	lost    bool
	held    *SQLFault // of a statement that the base requires to be prepared first
}

// do executes one operation of the base, or the script's fault in its place, and records it.
func (c *faultyConn) do(ctx context.Context, call SQLCall, run func() error) error {
	if c.lost {
		return driver.ErrBadConn
	}
	var f SQLFault
	if statement := call.Op == Exec || call.Op == Query; statement && c.held != nil {
		f = *c.held
		c.held = nil
	} else {
		f = c.connector.pick(call.Op, call.Query)
	}
	inTx := c.tx != nil
	err := sleep(ctx, f.Takes)
	if statement := call.Op == Exec || call.Op == Query; err == nil && statement && c.aborted {
		err = errAborted
	}
	if err == nil && (f.Late || !f.fails()) {
		err = run()
		if errors.Is(err, driver.ErrSkip) {
			f.Takes = 0
			c.held = &f
			return err
		}
		call.Done = err == nil
	}
	if err == nil && f.fails() {
		if err = f.Err; err == nil {
			err = reset("read")
		}
		c.undo(f, call.Op, inTx)
	}
	call.Conn = c.number
	call.Err = err
	c.connector.mu.Lock()
	defer c.connector.mu.Unlock()
	if !call.Op.quiet() || err != nil && err != io.EOF {
		c.connector.calls = append(c.connector.calls, call)
	}
	return err
}

// undo changes the transaction as a server would.
func (c *faultyConn) undo(f SQLFault, op Op, inTx bool) {
	var server interface{ SQLState() string }
	switch {
	case f.Lost: // database/sql closes the connection, once its rows and statements are closed
		c.lost = true
		c.rollback()
	case op == Begin, op == Commit, op == Rollback:
		c.rollback()
	case inTx && errors.As(f.Err, &server):
		c.aborted = true
	}
}

func (c *faultyConn) rollback() {
	if c.tx != nil {
		_ = c.tx.Rollback()
		c.tx = nil
	}
	c.aborted = false
}

func (c *faultyConn) ResetSession(ctx context.Context) error {
	err := c.do(ctx, SQLCall{Op: Reuse}, func() error {
		if r, ok := c.Conn.(driver.SessionResetter); ok {
			return r.ResetSession(ctx)
		}
		return nil
	})
	if err != nil {
		return driver.ErrBadConn // database/sql ignores any other error
	}
	return nil
}

func (c *faultyConn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !c.lost && (!ok || v.IsValid())
}

func (c *faultyConn) Ping(ctx context.Context) error {
	return c.do(ctx, SQLCall{Op: Ping}, func() error {
		if p, ok := c.Conn.(driver.Pinger); ok {
			return p.Ping(ctx)
		}
		return nil
	})
}

func (c *faultyConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	var options []string
	if opts.ReadOnly {
		options = append(options, "read only")
	}
	if opts.Isolation != 0 {
		options = append(options, strings.ToLower(sql.IsolationLevel(opts.Isolation).String()))
	}
	err := c.do(ctx, SQLCall{Op: Begin, Query: strings.Join(options, " ")}, func() (err error) {
		if b, ok := c.Conn.(driver.ConnBeginTx); ok {
			c.tx, err = b.BeginTx(ctx, opts)
		} else if len(options) > 0 {
			err = errors.New("retrytest: the driver does not support transactions with options")
		} else {
			//lint:ignore SA1019 it is all that an old driver has
			c.tx, err = c.Conn.Begin()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return faultyTx{c}, nil
}

type faultyTx struct{ conn *faultyConn }

func (t faultyTx) Commit() error {
	c := t.conn
	return c.do(context.Background(), SQLCall{Op: Commit}, func() error {
		if c.aborted {
			c.rollback()
			return errCommitRolledBack
		}
		tx := c.tx
		c.tx = nil
		return tx.Commit()
	})
}

func (t faultyTx) Rollback() error {
	c := t.conn
	return c.do(context.Background(), SQLCall{Op: Rollback}, func() error {
		tx := c.tx
		c.tx = nil
		c.aborted = false
		return tx.Rollback()
	})
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	e, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return statement(ctx, c, Exec, query, args, func() (driver.Result, error) { return e.ExecContext(ctx, query, args) })
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return statement(ctx, c, Query, query, args, func() (driver.Rows, error) {
		rows, err := q.QueryContext(ctx, query, args)
		return c.rows(rows, query), err
	})
}

type faultyRows struct {
	driver.Rows
	conn  *faultyConn
	query string
}

// rows returns rows whose Next can fail, if the script has such a fault. These lack the types of the driver's columns and
// its further result sets.
func (c *faultyConn) rows(rows driver.Rows, query string) driver.Rows {
	if rows == nil || !c.connector.next {
		return rows
	}
	return &faultyRows{rows, c, query}
}

func (r *faultyRows) Next(dest []driver.Value) error {
	return r.conn.do(context.Background(), SQLCall{Op: Next, Query: r.query}, func() error { return r.Rows.Next(dest) })
}

func statement[T any](ctx context.Context, c *faultyConn, op Op, query string, args []driver.NamedValue, run func() (T, error)) (T, error) {
	call := SQLCall{Op: op, Query: query}
	for _, a := range args {
		call.Args = append(call.Args, a.Value)
	}
	var out, none T
	err := c.do(ctx, call, func() (err error) {
		out, err = run()
		return err
	})
	if err == nil {
		return out, nil
	}
	if rows, ok := any(out).(driver.Rows); ok {
		_ = rows.Close()
	}
	return none, err
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (stmt driver.Stmt, err error) {
	prepare := func() error {
		if p, ok := c.Conn.(driver.ConnPrepareContext); ok {
			stmt, err = p.PrepareContext(ctx, query)
		} else {
			stmt, err = c.Conn.Prepare(query)
		}
		return err
	}
	switch {
	case c.lost:
		return nil, driver.ErrBadConn
	case c.held != nil: // it is part of a statement
		err = prepare()
	default:
		if err = c.do(ctx, SQLCall{Op: Prepare, Query: query}, prepare); err != nil && stmt != nil {
			_ = stmt.Close()
		}
	}
	if err != nil {
		c.held = nil
		return nil, err
	}
	return &faultyStmt{stmt, c, query}, nil
}

type faultyStmt struct {
	driver.Stmt
	conn  *faultyConn
	query string
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return statement(ctx, s.conn, Exec, s.query, args, func() (driver.Result, error) {
		if e, ok := s.Stmt.(driver.StmtExecContext); ok {
			return e.ExecContext(ctx, args)
		}
		//lint:ignore SA1019 it is all that an old driver has
		return s.Stmt.Exec(unnamed(args))
	})
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return statement(ctx, s.conn, Query, s.query, args, func() (driver.Rows, error) {
		if q, ok := s.Stmt.(driver.StmtQueryContext); ok {
			rows, err := q.QueryContext(ctx, args)
			return s.conn.rows(rows, s.query), err
		}
		//lint:ignore SA1019 it is all that an old driver has
		rows, err := s.Stmt.Query(unnamed(args))
		return s.conn.rows(rows, s.query), err
	})
}

func (s *faultyStmt) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

func unnamed(args []driver.NamedValue) []driver.Value {
	values := make([]driver.Value, len(args))
	for i, a := range args {
		values[i] = a.Value
	}
	return values
}

// nowhere is a driver that accepts every statement. It is also its connections, transactions, statements and empty
// rows. A script cannot supply rows, on purpose. A test of the results of statements needs a database, such as SQLite
// in memory.
type nowhere struct{}

func (nowhere) Open(string) (driver.Conn, error)                             { return nowhere{}, nil }
func (nowhere) Begin() (driver.Tx, error)                                    { return nowhere{}, nil }
func (nowhere) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return nowhere{}, nil }
func (nowhere) Commit() error                                                { return nil }
func (nowhere) Rollback() error                                              { return nil }
func (nowhere) Prepare(string) (driver.Stmt, error)                          { return nowhere{}, nil }
func (nowhere) NumInput() int                                                { return -1 }
func (nowhere) Exec([]driver.Value) (driver.Result, error)                   { return driver.RowsAffected(1), nil }
func (nowhere) Query([]driver.Value) (driver.Rows, error)                    { return nowhere{}, nil }
func (nowhere) Columns() []string                                            { return nil }
func (nowhere) Next([]driver.Value) error                                    { return io.EOF }
func (nowhere) Close() error                                                 { return nil }
