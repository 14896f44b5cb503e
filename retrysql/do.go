package retrysql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/retrygo/retry"
)

// Do runs fn, which executes a single statement outside a transaction, until it succeeds or p ends the run. Each attempt
// has a connection of its own, which is returned before a wait; so database/sql repeats nothing by itself, as a sql.DB
// does if a driver returns driver.ErrBadConn.
//
// A statement that reads is repeated after a lost connection too. One that writes is repeated only if the server says
// that it did nothing. Otherwise the run ends, and errors.Is finds ErrAmbiguous if the write may have taken effect. A
// context of MarkIdempotent declares that a write may be repeated as a read is.
//
// A statement reads if its text begins with SELECT, without INTO, or with SHOW, VALUES, TABLE or DESCRIBE, and is simple
// enough to be sure. Use Tx for a SELECT with side effects, and for several statements: after a write that succeeded
// nothing is repeated.
//
// A connection that was not used by Do for a second is pinged first, and replaced if it is dead: a server that was restarted
// leaves a pool full of dead connections, and some drivers (lib/pq) notice only when a statement is lost on one.
//
// Everything else is as for Tx: p.Classify and DefaultPolicy, the *retry.Error, and other errors of fn.
func Do(ctx context.Context, db *sql.DB, p retry.Policy, fn func(context.Context, *Conn) error) error {
	switch {
	case db == nil:
		return errors.New("retrysql: db is nil")
	case fn == nil:
		return errors.New("retrysql: fn is nil")
	}
	p = prepared(p)
	var answer, doubt error // doubt is the error of the first write that may have taken effect and was repeated
	err := retry.Do(ctx, p, func(ctx context.Context) error {
		failed, err := one(ctx, db, fn)
		if err == nil {
			return nil
		}
		if failed.Phase == Autocommit && failed.Ambiguous && doubt == nil {
			doubt = failed
		}
		if doubt == nil {
			answer, err = failed.answer(ctx, p.Classify, err)
		}
		return err
	})
	switch {
	case err == nil:
		return answer
	case doubt != nil:
		return carry(err, doubt, isIdempotent(ctx))
	default:
		return err
	}
}

// one makes one attempt. It returns an error, and the AttemptError in it.
func one(ctx context.Context, db *sql.DB, fn func(context.Context, *Conn) error) (*AttemptError, error) {
	conn, err := alive(ctx, db)
	if err != nil {
		failed := failure(ctx, Connect, err)
		return failed, failed
	}
	c := &Conn{conn: conn, repeatable: isIdempotent(ctx)}
	defer c.close()
	if err := fn(ctx, c); err != nil {
		return c.failure(ctx, err)
	}
	return nil, nil
}

type idempotentKey struct{}

// MarkIdempotent returns a context under which Do may repeat a write, and Tx a transaction, whose outcome is not known.
func MarkIdempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

func isIdempotent(ctx context.Context) bool { return ctx.Value(idempotentKey{}) != nil }

// Conn is the connection of one attempt of Do.
type Conn struct {
	conn       *sql.Conn
	repeatable bool // MarkIdempotent
	open       []*Rows

	log     failures
	writes  []*Rows // of writes, which may fail while these are read
	unknown error   // of a write that may have taken effect
	written bool    // a write succeeded
}

// Exec is sql.Conn.ExecContext.
func (c *Conn) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	result, err := c.conn.ExecContext(ctx, query, args...)
	if !isRead(query) {
		c.wrote(err)
	}
	return result, c.log.note(err)
}

// Query is sql.Conn.QueryContext. The rows are closed when fn returns.
func (c *Conn) Query(ctx context.Context, query string, args ...any) (*Rows, error) {
	write := !isRead(query)
	found, err := c.conn.QueryContext(ctx, query, args...)
	if err != nil {
		if write {
			c.wrote(err)
		}
		return nil, c.log.note(err)
	}
	rows := &Rows{found, &c.log}
	c.open = append(c.open, rows)
	if write {
		c.writes = append(c.writes, rows)
	}
	return rows, nil
}

// QueryRow is sql.Conn.QueryRowContext.
func (c *Conn) QueryRow(ctx context.Context, query string, args ...any) *Row {
	return row(c.Query(ctx, query, args...))
}

// wrote notes how a write ended.
func (c *Conn) wrote(err error) {
	if err == nil {
		c.written = true
	} else if Judge(Autocommit, err).Ambiguous {
		c.unknown = err
	}
}

// failure returns the AttemptError for the error that fn returned, and that with its mark.
func (c *Conn) failure(ctx context.Context, err error) (*AttemptError, error) {
	failed := failure(ctx, Statement, err)
	for _, rows := range c.writes {
		_ = rows.Close()
		c.wrote(rows.Err())
	}
	if c.log.now().undone == nil && failed.elsewhere() {
		failed.Verdict = Verdict{}
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
		if !failed.Ambiguous { // otherwise a run in fn is
			failed.Phase = Autocommit
		}
		return failed, failed
	}
}

// close returns the connection, after closing its rows, which it would wait for.
func (c *Conn) close() {
	for _, rows := range c.open {
		_ = rows.Close()
	}
	used.note(c.conn)
	_ = c.conn.Close()
}
