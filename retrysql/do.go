package retrysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/retrygo/retry"
)

// Do runs fn, which executes a single statement outside a transaction, until it succeeds or p ends the run. Each attempt
// has a connection of its own, which is given back before a wait; database/sql then repeats nothing by itself, as it does
// for a sql.DB where a driver says driver.ErrBadConn.
//
// A statement that reads is repeated after a lost connection too. One that writes is repeated only where the server says
// that it did nothing: otherwise the run ends, and errors.Is finds ErrAmbiguous where it may have taken effect. A context
// of MarkIdempotent declares that a write may be repeated as a read is. A statement reads if its text begins with SELECT,
// without INTO, or with SHOW, VALUES, TABLE or DESCRIBE, and has nothing in it that needs a closer look: a SELECT that
// calls a function with an effect is for Tx. Where fn executes several statements, none is repeated after a write that succeeded: that is for Tx as well.
//
// The rest is as with Tx: p.Classify and DefaultPolicy, the *retry.Error, errors that fn makes up.
func Do(ctx context.Context, db *sql.DB, p retry.Policy, fn func(context.Context, *Conn) error) error {
	switch {
	case db == nil:
		return errors.New("retrysql: db is nil")
	case fn == nil:
		return errors.New("retrysql: fn is nil")
	}
	var unsure error // of a write before the attempt that may have taken effect, and was allowed to be repeated
	return retry.Do(ctx, prepared(p), func(ctx context.Context) error {
		unknown, err := one(ctx, db, fn)
		if err != nil && unsure != nil {
			err = fmt.Errorf("%w; an attempt before: %w: %w", err, ErrAmbiguous, unsure)
		}
		unsure = cmp.Or(unsure, unknown)
		return err
	})
}

// one makes one attempt, and returns also the error of a write that may have taken effect.
func one(ctx context.Context, db *sql.DB, fn func(context.Context, *Conn) error) (unknown, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, failure(ctx, Connect, err)
	}
	c := &Conn{conn: conn, repeatable: isIdempotent(ctx)}
	defer c.close()
	if err := fn(ctx, c); err != nil {
		err = c.failure(ctx, err)
		return c.unknown, err
	}
	return nil, nil
}

type idempotentKey struct{}

// MarkIdempotent returns a context under which Do may repeat a write whose outcome is not known, and Tx a transaction.
func MarkIdempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

func isIdempotent(ctx context.Context) bool { return ctx.Value(idempotentKey{}) != nil }

// Conn is the connection of one attempt of Do.
type Conn struct {
	conn       *sql.Conn
	repeatable bool // whatever is executed
	open       []*Rows

	log     failures
	writes  []*Rows // of writes that return rows, and may fail while these are read
	unknown error   // of a write that may have taken effect
	written bool    // a write succeeded
}

// Exec is sql.Conn.ExecContext.
func (c *Conn) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	result, err := c.conn.ExecContext(ctx, query, args...)
	if !isRead(query) {
		c.wrote(err)
	}
	return result, err
}

// Query is sql.Conn.QueryContext. The rows are closed when fn returns.
func (c *Conn) Query(ctx context.Context, query string, args ...any) (*Rows, error) {
	write := !isRead(query)
	found, err := c.conn.QueryContext(ctx, query, args...)
	if err != nil {
		if write {
			c.wrote(err)
		}
		return nil, err
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

// wrote notes how a write has ended.
func (c *Conn) wrote(err error) {
	if err == nil {
		c.written = true
	} else if Judge(Autocommit, err).Ambiguous {
		c.unknown = err
	}
}

// failure returns the AttemptError for what fn has returned.
func (c *Conn) failure(ctx context.Context, err error) error {
	failed := failure(ctx, Statement, err)
	for _, rows := range c.writes {
		_ = rows.Close()
		c.wrote(rows.Err())
	}
	switch {
	case c.repeatable:
		if c.unknown != nil { // it may be repeated, and yet be the last attempt
			failed.Step, failed.Ambiguous = Autocommit, true
		}
		return failed
	case c.unknown != nil:
		failed.Step, failed.Verdict = Autocommit, Judge(Autocommit, c.unknown)
		if !errors.Is(err, c.unknown) {
			failed.Swallowed = c.unknown
		}
		return retry.Permanent(failed)
	case c.written:
		failed.Class, failed.Reason = retry.Terminal, PartlyDone
		return retry.Permanent(failed)
	default:
		failed.Step = Autocommit
		return failed
	}
}

// close gives the connection back. It waits for rows that are open, so these are closed before it.
func (c *Conn) close() {
	for _, rows := range c.open {
		_ = rows.Close()
	}
	_ = c.conn.Close()
}
