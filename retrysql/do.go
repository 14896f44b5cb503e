package retrysql

import (
	"context"
	"database/sql"
	"errors"
	"io"

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
// DESCRIBE. Any other statement is a write. Use Tx for a SELECT with side effects and for several statements: after a
// write has succeeded, nothing is repeated.
//
// A call with the context of the fn of a Tx on the same database is an error, since its write would not be rolled back
// with the transaction. To make it anyway, pass a context from outside fn.
//
// A restarted server leaves a pool full of dead connections. The drivers pgx and go-sql-driver/mysql replace a dead one
// before they use it. With lib/pq a write is lost on each, with ErrStatementAmbiguous: let the pool close connections
// that are not in use, with sql.DB.SetConnMaxIdleTime.
//
// p.Classify, DefaultPolicy, nil arguments, answers and the *retry.Error are as for Tx.
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
	return repeat(ctx, p, repeatable, func(ctx context.Context) (*AttemptError, error) { return one(ctx, db, repeatable, fn) })
}

// one makes one attempt. It returns an error and the AttemptError in it.
func one(ctx context.Context, db *sql.DB, repeatable bool, fn func(context.Context, *Conn) error) (*AttemptError, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		failed := failure(ctx, Connect, err)
		return failed, failed
	}
	c := &Conn{conn: conn, repeatable: repeatable}
	defer c.close()
	if err := fn(ctx, c); err != nil {
		return c.failure(ctx, err)
	}
	return nil, nil
}

type idempotentKey struct{}

// MarkIdempotent returns a context under which Do may repeat a write, and Tx a transaction, whose outcome is unknown,
// because it may take effect twice. It does not apply to what fn calls.
func MarkIdempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

func isIdempotent(ctx context.Context) bool { return ctx.Value(idempotentKey{}) == true }

// Conn is the connection of one attempt of Do. It has methods of *sql.Conn, so it is the DBTX of sqlc. Do makes it:
// the zero Conn is not usable. Only one goroutine at a time may use it. Rows and statements that fn leaves open
// are closed when fn returns.
//
// A Conn does not see the errors of a row's Scan and of a *sql.Stmt, so fn must return them. Nothing is repeated after
// a prepared write, or if another statement follows the row of a write.
type Conn struct {
	conn       *sql.Conn
	repeatable bool // MarkIdempotent
	open       []io.Closer
	cancels    []context.CancelFunc // which close the rows of QueryRowContext

	log     failures
	writes  []*sql.Rows // of writes, which may fail while these are read
	unseen  bool        // a row's Scan or a *sql.Stmt may have failed
	pending bool        // ... and it is the row of a write, the last statement
	unknown error       // of a write that may have taken effect
	written bool        // a write succeeded, or counts as one that succeeded
}

// ExecContext is sql.Conn.ExecContext.
func (c *Conn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c.next()
	result, err := c.conn.ExecContext(ctx, query, args...)
	if !isRead(query) {
		c.wrote(err)
	}
	return result, c.note(err)
}

// QueryContext is sql.Conn.QueryContext.
func (c *Conn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c.next()
	write := !isRead(query)
	rows, err := c.conn.QueryContext(ctx, query, args...)
	if err != nil {
		if write {
			c.wrote(err)
		}
		return nil, c.note(err)
	}
	c.open = append(c.open, rows)
	c.log.watch(rows)
	if write {
		c.writes = append(c.writes, rows)
	}
	return rows, nil
}

// QueryRowContext is sql.Conn.QueryRowContext.
func (c *Conn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	c.next()
	ctx, cancel := context.WithCancel(ctx)
	c.cancels = append(c.cancels, cancel)
	row := c.conn.QueryRowContext(ctx, query, args...)
	write, err := !isRead(query), c.note(row.Err())
	if err == nil {
		c.unseen, c.pending = true, write
	} else if write {
		c.wrote(err)
	}
	return row
}

// PrepareContext is sql.Conn.PrepareContext.
func (c *Conn) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	c.next()
	stmt, err := c.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.note(err)
	}
	c.open = append(c.open, stmt)
	c.unseen, c.written = true, c.written || !isRead(query)
	return stmt, nil
}

// note notes err and returns it.
func (c *Conn) note(err error) error {
	if err != nil {
		c.log.Note(err, nil)
	}
	return err
}

// next is called before each statement: after another statement, the outcome of a write that returned a row is hidden.
func (c *Conn) next() {
	c.written = c.written || c.pending
	c.pending = false
}

// wrote notes the outcome of a write.
func (c *Conn) wrote(err error) {
	if err == nil {
		c.written = true
	} else if Judge(Autocommit, err).Ambiguous {
		c.unknown = err
	}
}

// failure returns the AttemptError for the error that fn returned, and the error with its mark.
func (c *Conn) failure(ctx context.Context, err error) (*AttemptError, error) {
	failed := failure(ctx, Statement, err)
	for _, rows := range c.writes {
		_ = rows.Close()
		c.wrote(rows.Err())
	}
	c.log.look(nil)
	elsewhere := failed.elsewhere() && c.log.Undone() == nil && (!c.unseen || ofRun(err) || failed.Code == "" && c.answers(ctx))
	if elsewhere {
		failed.Verdict = Verdict{}
	}
	if c.pending {
		switch v := Judge(Autocommit, err); {
		case v.Ambiguous && !elsewhere:
			c.unknown = err
		case v.Code == "" && v.Reason != NoRows: // not the server's error, so the row was there
			c.written = true
		}
	}
	switch {
	case c.repeatable:
		if c.unknown != nil { // this may be the last attempt
			failed.Phase, failed.Ambiguous = Autocommit, true
		}
		return failed, failed
	case c.unknown != nil:
		failed.Phase, failed.Verdict = Autocommit, Judge(Autocommit, c.unknown)
		if !errors.Is(err, c.unknown) {
			failed.Swallowed = c.unknown
		}
		return failed, retry.Ambiguous(failed)
	case c.written:
		failed.Class, failed.Reason, failed.Ambiguous = retry.Terminal, PartlyDone, true
		return failed, retry.Ambiguous(failed)
	default:
		if !failed.Ambiguous { // otherwise it is from a run in fn
			failed.Phase = Autocommit
		}
		return failed, failed
	}
}

// answers reports whether the connection is alive.
func (c *Conn) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, defaultRollbackTimeout)
	defer cancel()
	_, err := c.conn.ExecContext(ctx, "SELECT 1")
	return err == nil
}

// close closes what is open on the connection, which its return to the pool would wait for, and returns it.
func (c *Conn) close() {
	for _, cancel := range c.cancels {
		cancel()
	}
	for _, open := range c.open {
		_ = open.Close()
	}
	_ = c.conn.Close()
}
