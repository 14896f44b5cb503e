package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrysql/allerrors"
	"github.com/retrygo/retry/retrytest"
)

type faults = []retrytest.SQLFault

// nothing is an fn that sends nothing.
func nothing(context.Context, *retrysql.Txn) error { return nil }

// sends is an fn that executes statements until one fails.
func sends(queries ...string) func(context.Context, *retrysql.Txn) error {
	return func(ctx context.Context, tx *retrysql.Txn) error {
		for _, query := range queries {
			if _, err := tx.ExecContext(ctx, query); err != nil {
				return err
			}
		}
		return nil
	}
}

func plain(c driver.Connector) driver.Connector { return c }

// bothWays are without and with package allerrors.
var bothWays = map[string]func(driver.Connector) driver.Connector{"plain": plain, "watched": allerrors.Connector}

// openDB returns a database over b with the given faults, and a func that returns the log of calls to the driver; a
// failure has "!". A way is around the connector of the faults.
func openDB(t testing.TB, b *base, f faults, way ...func(driver.Connector) driver.Connector) (*sql.DB, func() string) {
	t.Cleanup(func() { require.Zero(t, b.open.Load(), "no connection is open") })
	c := retrytest.NewConnector(t, b, f)
	around := plain
	if len(way) > 0 {
		around = way[0]
	}
	db := sql.OpenDB(around(c))
	t.Cleanup(func() {
		require.Zero(t, db.Stats().InUse, "rows and transactions are closed")
		require.NoError(t, db.Close())
	})
	return db, func() string {
		var log []string
		for _, call := range c.Calls() {
			what := string(call.Op)
			switch {
			case call.Op == retrytest.Connect && call.Err == nil:
				continue
			case strings.Contains(call.Query, "pg_current_xact_id"):
				what = "track"
			case strings.Contains(call.Query, "pg_xact_status"):
				what = "record"
			case call.Op == retrytest.Exec, call.Op == retrytest.Query:
				what = call.Query
			case call.Query != "":
				what += " " + call.Query
			}
			if call.Err != nil {
				what += "!"
			}
			log = append(log, what)
		}
		return strings.Join(log, " ")
	}
}

// base is a database without faults. Its queries are for one goroutine.
type base struct {
	statuses [][]driver.Value                        // PostgreSQL's record: is the server the same, and the status; the last repeats
	version  string                                  // answers SELECT VERSION(); empty means that the function does not exist
	began    func(context.Context, driver.TxOptions) // is called at each begin; nil does nothing
	commit   func()                                  // is called at each commit; nil does nothing
	driver   driver.Driver                           // what Driver returns
	answers  []answer                                // of the queries, in turn; the last one repeats
	bad      atomic.Int64                            // how often "bad" was prepared; the first time fails
	badErr   error                                   // how it fails; nil means with duplicate
	open     atomic.Int64                            // connections
	dead     atomic.Bool                             // the newest connection is dead after an answer ending in driver.ErrBadConn
}

func (b *base) Connect(context.Context) (driver.Conn, error) {
	b.open.Add(1)
	b.dead.Store(false)
	return baseConn{b}, nil
}
func (b *base) Driver() driver.Driver { return b.driver }

// baseConn is a connection and its transaction.
type baseConn struct{ *base }

func (c baseConn) Close() error              { c.open.Add(-1); return nil }
func (c baseConn) Rollback() error           { return nil }
func (c baseConn) Begin() (driver.Tx, error) { panic("not without options") }
func (c baseConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.began != nil {
		c.began(ctx, opts)
	}
	return c, nil
}
func (c baseConn) Commit() error {
	if c.commit != nil {
		c.commit()
	}
	return nil
}
func (c baseConn) Prepare(query string) (driver.Stmt, error) {
	if query == "bad" && c.bad.Add(1) == 1 {
		if c.badErr != nil {
			return nil, c.badErr
		}
		return nil, duplicate
	}
	return baseStmt{c}, nil
}
func (c baseConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	if c.dead.Load() {
		return nil, driver.ErrBadConn
	}
	return driver.RowsAffected(1), nil
}
func (c baseConn) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	switch {
	case query == "SELECT VERSION()":
		if c.base.version == "" {
			return nil, state("42883")
		}
		return &row{[]driver.Value{c.base.version}}, nil
	case strings.Contains(query, "pg_current_xact_id"):
		return &row{[]driver.Value{"742", "life"}}, nil
	case strings.Contains(query, "pg_xact_status"):
		values := c.statuses[0]
		c.base.statuses = c.statuses[min(1, len(c.statuses)-1):]
		return &row{values}, nil
	}
	a := answer{end: io.EOF}
	if len(c.answers) > 0 {
		a, c.base.answers = c.answers[0], c.answers[min(1, len(c.answers)-1):]
		c.dead.Store(a.end == driver.ErrBadConn)
	}
	return &a, nil
}

type baseStmt struct{ conn baseConn }

func (s baseStmt) Close() error                               { return nil }
func (s baseStmt) NumInput() int                              { return 0 }
func (s baseStmt) Exec([]driver.Value) (driver.Result, error) { return driver.RowsAffected(1), nil }
func (s baseStmt) Query([]driver.Value) (driver.Rows, error) {
	return s.conn.QueryContext(context.Background(), "", nil)
}

// answer is the rows of a query.
type answer struct {
	values []int64
	end    error // what follows the last row
	sets   int   // how many other result sets were requested
}

func (a *answer) Columns() []string { return []string{"value"} }
func (a *answer) Close() error { // reads the rest
	if len(a.values) == 0 || a.end == io.EOF {
		return nil
	}
	return a.end
}
func (a *answer) Next(dest []driver.Value) error {
	if len(a.values) == 0 {
		return a.end
	}
	dest[0], a.values = a.values[0], a.values[1:]
	return nil
}
func (a *answer) HasNextResultSet() bool { return a.sets == 0 }
func (a *answer) NextResultSet() error   { a.sets++; return a.end }

// one answers each query with a 1.
var one = []answer{{[]int64{1}, io.EOF, 0}}

// row is a row of several values.
type row struct{ values []driver.Value }

func (r *row) Columns() []string { return make([]string, len(r.values)) }
func (r *row) Close() error      { return nil }
func (r *row) Next(dest []driver.Value) error {
	if r.values == nil {
		return io.EOF
	}
	copy(dest, r.values)
	r.values = nil
	return nil
}
