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
// Everything else is as for Tx: p.Classify and DefaultPolicy, the *retry.Error, and other errors of fn.
func Do(ctx context.Context, db *sql.DB, p retry.Policy, fn func(context.Context, *Conn) error) error {
	switch {
	case db == nil:
		return errors.New("retrysql: db is nil")
	case fn == nil:
		return errors.New("retrysql: fn is nil")
	}
	var unsure error // of an earlier write that may have taken effect and was repeated
	return retry.Do(ctx, prepared(p), func(ctx context.Context) error {
		unknown, err := one(ctx, db, fn)
		if err != nil && unsure != nil {
			err = fmt.Errorf("%w; an attempt before: %w: %w", err, ErrAmbiguous, unsure)
		}
		unsure = cmp.Or(unsure, unknown)
		return err
	})
}

// one makes one attempt. It returns the error of a write that may have taken effect as well.
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

// wrote notes how a write ended.
func (c *Conn) wrote(err error) {
	if err == nil {
		c.written = true
	} else if Judge(Autocommit, err).Ambiguous {
		c.unknown = err
	}
}

// failure returns the AttemptError for the error that fn returned.
func (c *Conn) failure(ctx context.Context, err error) error {
	failed := failure(ctx, Statement, err)
	for _, rows := range c.writes {
		_ = rows.Close()
		c.wrote(rows.Err())
	}
	switch {
	case c.repeatable:
		if c.unknown != nil { // this may be the last attempt
			failed.Phase, failed.Ambiguous = Autocommit, true
		}
		return failed
	case c.unknown != nil:
		failed.Phase, failed.Verdict = Autocommit, Judge(Autocommit, c.unknown)
		if !errors.Is(err, c.unknown) {
			failed.Swallowed = c.unknown
		}
		return retry.Ambiguous(failed)
	case c.written:
		failed.Class, failed.Reason = retry.Terminal, PartlyDone
		return retry.Permanent(failed)
	default:
		failed.Phase = Autocommit
		return failed
	}
}

// close returns the connection, after closing its rows, which it would wait for.
func (c *Conn) close() {
	for _, rows := range c.open {
		_ = rows.Close()
	}
	_ = c.conn.Close()
}
