package retrysql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/retrygo/retry"
)

// Do runs fn, which executes a single statement outside a transaction, until it succeeds or p ends the run. Each
// attempt has a connection of its own, which is returned to the pool before a wait. So database/sql repeats nothing by
// itself, unlike a sql.DB whose driver returns driver.ErrBadConn.
//
// A read is also repeated after a lost connection. A write is repeated only if the server says that it did nothing.
// Otherwise the run ends, and errors.Is finds ErrStatementAmbiguous if the write may have taken effect. Under a context
// of MarkIdempotent a write is repeated like a read.
//
// A statement reads if its text begins with SELECT, and the word INTO is not in it, or with SHOW, VALUES, TABLE or
// DESCRIBE. Any other statement is a write. Use Tx for a SELECT with side effects. If fn returns an error of its own
// after a write has succeeded, the run also ends with ErrStatementAmbiguous.
//
// A restarted server leaves a pool full of dead connections. The drivers pgx and go-sql-driver/mysql replace a dead one
// before they use it. With lib/pq a write is lost on each, with ErrStatementAmbiguous: let the pool close connections
// that are not in use, with sql.DB.SetConnMaxIdleTime.
//
// p, nil arguments, answers, the *retry.Error and a call with the context of the fn of a Tx are as for Tx.
func Do(ctx context.Context, db *sql.DB, p retry.Policy, fn func(context.Context, *Conn) error) error {
	switch {
	case ctx == nil:
		return errNoContext
	case db == nil:
		return errors.New("retrysql: db is nil")
	case fn == nil:
		return errNoFn
	}
	if _, within := TxnFromContext(ctx, db); within {
		return errors.New("retrysql: Do is called in the fn of a Tx on the same database: use its Txn")
	}
	repeatable := isIdempotent(ctx)
	return repeat(ctx, p, repeatable, func(ctx context.Context) error { return one(ctx, db, repeatable, fn) })
}

func one(ctx context.Context, db *sql.DB, repeatable bool, fn func(context.Context, *Conn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return failure(ctx, Connect, err)
	}
	c := &Conn{conn: conn, db: db}
	defer c.close()
	if err := fn(ctx, c); err != nil {
		return c.failure(ctx, err, repeatable)
	}
	return nil
}

type idempotentKey struct{}

// MarkIdempotent returns a context under which Do may repeat a write, and Tx a transaction, whose outcome is unknown,
// because it may take effect twice. It does not apply to what fn calls.
func MarkIdempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

func isIdempotent(ctx context.Context) bool { return ctx.Value(idempotentKey{}) == true }

// Conn is the connection of one attempt of Do, and the DBTX of sqlc. The zero Conn is not usable. A second statement is
// refused, and so is PrepareContext. Rows that fn leaves open are closed when fn returns. A Conn does not see the error
// of a row's Scan, so fn must return it.
type Conn struct {
	conn *sql.Conn
	db   *sql.DB

	sent, write bool  // a statement, which may write
	err         error // of the statement, as far as it is known
	rows        *sql.Rows
	row         bool               // it has a *sql.Row, whose error Scan returns
	cancel      context.CancelFunc // closes the row
}

// ExecContext is sql.Conn.ExecContext.
func (c *Conn) ExecContext(ctx context.Context, query string, args ...any) (result sql.Result, err error) {
	if err := c.send(query); err != nil {
		return nil, err
	}
	result, c.err = c.conn.ExecContext(ctx, query, args...)
	return result, c.err
}

// QueryContext is sql.Conn.QueryContext.
func (c *Conn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := c.send(query); err != nil {
		return nil, err
	}
	c.rows, c.err = c.conn.QueryContext(ctx, query, args...)
	return c.rows, c.err
}

// QueryRowContext is sql.Conn.QueryRowContext.
func (c *Conn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := c.send(query); err != nil {
		return c.db.QueryRowContext(refuse(err), query) // unlike a *sql.Conn, it asks the context first
	}
	ctx, c.cancel = context.WithCancel(ctx)
	row := c.conn.QueryRowContext(ctx, query, args...)
	c.err = row.Err()
	c.row = c.err == nil
	return row
}

// PrepareContext returns an error. It makes a Conn the DBTX of sqlc.
func (c *Conn) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	return nil, errors.New("retrysql: Do does not prepare statements: use Tx")
}

// send returns an error for a second statement.
func (c *Conn) send(query string) error {
	if c.sent {
		return errors.New("retrysql: Do is for one statement: use Tx for several")
	}
	c.sent, c.write = true, !isRead(query)
	return nil
}

// failure returns the error of an attempt whose fn returned err.
func (c *Conn) failure(ctx context.Context, err error, repeatable bool) error {
	if c.rows != nil {
		_ = c.rows.Close()
		c.err = c.rows.Err()
	}
	if c.row && !errors.As(err, new(*retry.Error)) {
		c.err = err
	}
	failed, own := failure(ctx, Statement, err), Judge(Autocommit, c.err)
	if c.err == nil && failed.elsewhere() {
		failed.Verdict = Verdict{}
	}
	if !failed.Ambiguous { // otherwise it is from a run in fn
		failed.Phase = Autocommit
	}
	switch {
	case !c.write:
	case own.Ambiguous && repeatable: // this may be the last attempt
		failed.Phase, failed.Ambiguous = Autocommit, true
	case repeatable:
	case own.Ambiguous:
		failed.Phase, failed.Verdict = Autocommit, own
		if !errors.Is(err, c.err) {
			failed.Swallowed = c.err
		}
		return retry.Ambiguous(failed)
	case c.err == nil, c.row && own.Code == "" && own.Reason != NoRows: // the write has succeeded
		failed.Phase, failed.Verdict = Autocommit, Verdict{retry.Terminal, PartlyDone, failed.Code, true}
		return retry.Ambiguous(failed)
	}
	return failed
}

// close closes what is open on the connection, which its return to the pool would wait for, and returns it.
func (c *Conn) close() {
	if c.cancel != nil {
		c.cancel()
	}
	if c.rows != nil {
		_ = c.rows.Close()
	}
	_ = c.conn.Close()
}
