package retrysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/retrygo/retry"
)

// Do runs fn, which executes a single statement outside a transaction, until it succeeds or p ends the run. Each
// attempt has a connection of its own, which is returned to the pool before a wait. So database/sql does not repeat the
// statement by itself, unlike a sql.DB whose driver returns driver.ErrBadConn.
//
// A read is also repeated after a lost connection. A write is repeated only if the server's error means that it had no
// effect. Otherwise the run ends, and errors.Is finds ErrStatementAmbiguous if the write may have taken effect. Under a
// context of WithIdempotent a write is repeated like a read.
//
// A statement reads if its text begins with SELECT, and the word INTO is not in it, or with SHOW, VALUES, TABLE or
// DESCRIBE. Any other statement is a write. Use Tx for a SELECT with side effects. If fn returns an error of its own
// after a write has succeeded, the run also ends with ErrStatementAmbiguous.
//
// A restarted server leaves a pool full of dead connections, and a write on one is in doubt. go-sql-driver/mysql looks at
// a connection before it uses it, pgx if the connection was idle for more than a second, and lib/pq never. Once an
// attempt has lost its connection, Do pings each one before it uses it, which costs no attempt.
//
// p, nil arguments, answers, the *retry.Error and a call with the context of the fn of a Tx are as for Tx.
func Do(ctx context.Context, db *sql.DB, p retry.Policy, fn func(context.Context, *Single) error) error {
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
	from := origin{db: db, pool: db}
	return repeat(ctx, p, repeatable, func(ctx context.Context) error { return one(ctx, &from, repeatable, fn) })
}

// one is an attempt. Only a ping shows whether a connection died in the pool, and a write that fails there is in doubt.
func one(ctx context.Context, from *origin, repeatable bool, fn func(context.Context, *Single) error) error {
	conn, err := from.connect(ctx, from.ping)
	if err != nil {
		return failure(ctx, Connect, err)
	}
	s := &Single{conn: conn, db: from.pool}
	defer s.close()
	if err = fn(ctx, s); err == nil {
		return nil
	}
	s.end(err)
	from.note(ReasonOf(s.err))
	return s.failure(ctx, err, repeatable)
}

type idempotentKey struct{}

// WithIdempotent returns a context under which Do repeats a write, and Tx a transaction, whose outcome is unknown. It
// declares that a second effect does no harm. It does not apply to calls of Do and Tx in fn.
func WithIdempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

func isIdempotent(ctx context.Context) bool { return ctx.Value(idempotentKey{}) == true }

// Single sends the only statement of an attempt of Do. It is the DBTX of sqlc. The zero Single is not usable. A second
// statement is refused, and so is PrepareContext. Rows that fn leaves open are closed when fn returns. A Single does not
// see the error of a row's Scan, so fn must return it.
type Single struct {
	conn *sql.Conn
	db   *sql.DB

	sent, write bool  // a statement, which may write
	err         error // of the statement, as far as it is known
	rows        *sql.Rows
	row         bool               // it has a *sql.Row, whose error Scan returns
	cancel      context.CancelFunc // closes the row
}

// ExecContext is sql.Conn.ExecContext.
func (s *Single) ExecContext(ctx context.Context, query string, args ...any) (result sql.Result, err error) {
	if err := s.send(query); err != nil {
		return nil, err
	}
	result, s.err = s.conn.ExecContext(ctx, query, args...)
	return result, s.err
}

// QueryContext is sql.Conn.QueryContext.
func (s *Single) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := s.send(query); err != nil {
		return nil, err
	}
	s.rows, s.err = s.conn.QueryContext(ctx, query, args...)
	return s.rows, s.err
}

// QueryRowContext is sql.Conn.QueryRowContext.
func (s *Single) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := s.send(query); err != nil {
		return s.db.QueryRowContext(refuse(err), query) // unlike a *sql.Conn, it asks the context first
	}
	ctx, s.cancel = context.WithCancel(ctx)
	row := s.conn.QueryRowContext(ctx, query, args...)
	s.err = row.Err()
	s.row = s.err == nil
	return row
}

// PrepareContext returns an error. It makes a Single the DBTX of sqlc.
func (s *Single) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	return nil, errors.New("retrysql: Do does not prepare statements: use Tx")
}

// send returns an error for a second statement.
func (s *Single) send(query string) error {
	if s.sent {
		return errors.New("retrysql: Do is for one statement: use Tx for several")
	}
	s.sent, s.write = true, !isRead(query)
	return nil
}

// end closes the rows that fn has left open, and derives the error of the statement from the error of fn.
func (s *Single) end(err error) {
	if s.rows != nil {
		_ = s.rows.Close()
		s.err = s.rows.Err()
	}
	if s.row && !errors.As(err, new(*retry.Error)) {
		s.err = err
	}
}

// outcome is the effect of a statement, if it is a write.
type outcome uint8

const (
	nothing outcome = iota // it is a read, it was not sent, or the server's error excludes an effect
	perhaps
	written
)

// outcome returns the effect of the statement, by its error at Autocommit.
func (s *Single) outcome(own Verdict) outcome {
	switch {
	case !s.write:
		return nothing
	case own.Ambiguous, s.isUnknown(own):
		return perhaps
	case s.err == nil, s.row && own.Code == "" && own.Reason != NoRows: // Scan failed by itself
		return written
	default:
		return nothing
	}
}

// isUnknown reports whether the statement's error is a driver's that Judge does not recognize, such as the driver's
// error of a database that Judge does not know. The errors of database/sql itself are from before the statement is
// sent.
func (s *Single) isUnknown(own Verdict) bool {
	if s.err == nil || s.row {
		return false
	}
	return own.Reason == "" && own.Code == "" && !strings.HasPrefix(s.err.Error(), "sql: ")
}

// failure returns the error of an attempt whose fn returned err.
func (s *Single) failure(ctx context.Context, err error, repeatable bool) error {
	own := Judge(Autocommit, s.err)
	failed := failure(ctx, Statement, err)
	if s.err == nil && failed.foreign() {
		failed.Verdict = Verdict{}
	}
	switch did := s.outcome(own); {
	case did == perhaps && repeatable: // this may be the last attempt
		failed.Ambiguous = true
	case did == perhaps:
		failed.Verdict = own
		failed.Class = retry.Terminal
		failed.Ambiguous = true
		if !errors.Is(err, s.err) {
			failed.Swallowed = s.err
		}
	case did == written && !repeatable:
		failed.Verdict = Verdict{retry.Terminal, PartlyDone, failed.Code, true}
	case failed.Ambiguous:
		return failed // of a run in fn
	}
	failed.Phase = Autocommit
	if failed.Ambiguous && !repeatable {
		return retry.Ambiguous(failed)
	}
	return failed
}

// close closes the row and the rows that are still open on the connection, for which the pool would wait, and returns
// the connection to the pool.
func (s *Single) close() {
	if s.cancel != nil {
		s.cancel()
	}
	if s.rows != nil {
		_ = s.rows.Close()
	}
	giveBack(s.conn, ReasonOf(s.err))
}
