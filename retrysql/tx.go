package retrysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/retrygo/retry"
)

// Beginner begins transactions: a *sql.DB, or a *sql.Conn, which is then held while Tx waits, too.
type Beginner interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}

// Tx runs fn in a transaction and commits it. If the database undoes the transaction, because of a conflict or a lost
// connection, Tx rolls back, waits outside any transaction, and runs all of fn again in a new one. It returns nil if and
// only if a commit succeeded, or Options.Probe or Options.Committed says so.
//
// An answer is not a failure: sql.ErrNoRows, an error that fn made up, and what the server says to a statement that it will
// never accept, such as a unique violation. The transaction is rolled back, and Tx returns fn's error as it is; the run is a
// success for p.Observe and p.Budget. Any other failure is a *retry.Error with an *AttemptError for each attempt.
//
// fn must have no effects other than those in the transaction, since it can run several times. It must use its context, and
// the Txn in one goroutine at a time. An error of its own is an answer even if it is one of a lost connection, to another
// server; under retry.Transient it repeats the transaction. p.Classify is called before the rules of Classify. If p sets nothing of a schedule, that of DefaultPolicy is used.
//
// Only the server can say that a commit failed. After any other error of a commit errors.Is finds ErrCommitAmbiguous, and
// the transaction is not run again, not even by a run around Tx, unless the options allow it. An error without
// ErrCommitAmbiguous means that the transaction was rolled back, even if the caller was canceled.
//
// A panic in fn rolls back and passes through.
func Tx(ctx context.Context, db Beginner, p retry.Policy, opts *Options, fn func(context.Context, *Txn) error) error {
	if db == nil {
		return errors.New("retrysql: db is nil")
	}
	var o *sql.TxOptions
	if opts != nil && (opts.Isolation != 0 || opts.ReadOnly) {
		o = &sql.TxOptions{Isolation: opts.Isolation, ReadOnly: opts.ReadOnly}
	}
	pool, err := askerOf(db, opts)
	if err != nil {
		return err
	}
	begin := func(ctx context.Context) (txn, error) {
		t, err := begin(ctx, db, o)
		if err == nil {
			t.log.ctx, t.log.tx = ctx, t.tx
			if pool != nil {
				t.record = &record{pool: pool}
			}
		}
		return t, err
	}
	if fn == nil {
		return Run[txn](ctx, p, opts, begin, nil)
	}
	return Run(ctx, p, opts, begin, func(ctx context.Context, t txn) error {
		return t.log.connected(t.log.conclude(fn(ctx, t.Txn)))
	})
}

// TxValue is Tx for an fn that returns a value as well. It returns the value of the attempt that was committed, and the
// zero value with any error.
func TxValue[T any](ctx context.Context, db Beginner, p retry.Policy, opts *Options, fn func(context.Context, *Txn) (T, error)) (T, error) {
	var value, none T
	var work func(context.Context, *Txn) error
	if fn != nil {
		work = func(ctx context.Context, tx *Txn) (err error) {
			value, err = fn(ctx, tx)
			return err
		}
	}
	if err := Tx(ctx, db, p, opts, work); err != nil {
		return none, err
	}
	return value, nil
}

// Txn is the transaction that fn works in. It notes the errors of its statements, even those that fn ignores: after one
// that calls for a new transaction no statement is sent and nothing is committed. It has no Commit and no Rollback, which
// are for Tx, and it refuses statements that begin as these do, and on MySQL and MariaDB those that commit by themselves:
// TRUNCATE, CREATE TABLE, ANALYZE TABLE and their like, for which it asks the server's version once. It does not see what a
// procedure, EXECUTE or a block does, nor the statements of Unwrap: if they commit, a repetition does that work twice. Use
// Unwrap to go on after a lock that was not free, by a savepoint.
type Txn struct {
	tx  *sql.Tx
	log failures
}

// Exec is sql.Tx.ExecContext.
func (t *Txn) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := t.log.forbid(query); err != nil {
		return nil, err
	}
	result, err := t.tx.ExecContext(ctx, query, args...)
	return result, t.log.note(err)
}

// Query is sql.Tx.QueryContext.
func (t *Txn) Query(ctx context.Context, query string, args ...any) (*Rows, error) {
	if err := t.log.forbid(query); err != nil {
		return nil, err
	}
	rows, err := t.tx.QueryContext(ctx, query, args...)
	return t.log.rows(rows, err)
}

// QueryRow is sql.Tx.QueryRowContext.
func (t *Txn) QueryRow(ctx context.Context, query string, args ...any) *Row {
	return row(t.Query(ctx, query, args...))
}

// Prepare is sql.Tx.PrepareContext. The statement lives as long as the transaction.
func (t *Txn) Prepare(ctx context.Context, query string) (*Stmt, error) {
	if err := t.log.forbid(query); err != nil {
		return nil, err
	}
	stmt, err := t.tx.PrepareContext(ctx, query)
	if err != nil {
		return nil, t.log.note(err)
	}
	return &Stmt{stmt, &t.log}, nil
}

// Unwrap returns the transaction itself, for code that needs a *sql.Tx. Its errors are not noted: fn must return them, and
// send nothing after them. It must not be committed or rolled back.
func (t *Txn) Unwrap() *sql.Tx { return t.tx }

// txn is a Txn with what only Run may do.
type txn struct {
	*Txn
	cancel context.CancelFunc // of the transaction's own context; nil if it has none
	record *record            // nil without Options.Probe
}

// begin begins a transaction. If the attempt has a deadline, the transaction gets a context of its own: at the end of the
// attempt's, database/sql would roll back in a goroutine of its own, for which the next attempt could not wait.
func begin(ctx context.Context, db Beginner, opts *sql.TxOptions) (txn, error) {
	if !bounded(ctx) {
		tx, err := db.BeginTx(ctx, opts)
		return txn{Txn: &Txn{tx: tx}}, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	tx, err := db.BeginTx(own, opts)
	if err != nil {
		cancel()
		if !stop() && errors.Is(err, context.Canceled) {
			err = ctx.Err() // err is that of own
		}
		return txn{}, err
	}
	if !stop() {
		_ = tx.Rollback()
		return txn{}, ctx.Err()
	}
	return txn{Txn: &Txn{tx: tx}, cancel: cancel}, nil
}

// Commit ends with ctx if the driver honors the context that the transaction was begun with.
func (t txn) Commit(ctx context.Context) error {
	if t.cancel != nil {
		defer t.cancel()
		defer context.AfterFunc(ctx, t.cancel)()
	}
	return t.tx.Commit()
}

func (t txn) Rollback(context.Context) error {
	if t.cancel != nil {
		defer t.cancel()
	}
	return t.tx.Rollback()
}

func (t txn) Failures() (first, retryable error) { return t.log.both() }

// Stmt is a prepared statement of a Txn. It notes errors as that does.
type Stmt struct {
	stmt *sql.Stmt
	log  *failures
}

// Exec is sql.Stmt.ExecContext.
func (s *Stmt) Exec(ctx context.Context, args ...any) (sql.Result, error) {
	if err := s.log.forbid(""); err != nil {
		return nil, err
	}
	result, err := s.stmt.ExecContext(ctx, args...)
	return result, s.log.note(err)
}

// Query is sql.Stmt.QueryContext.
func (s *Stmt) Query(ctx context.Context, args ...any) (*Rows, error) {
	if err := s.log.forbid(""); err != nil {
		return nil, err
	}
	rows, err := s.stmt.QueryContext(ctx, args...)
	return s.log.rows(rows, err)
}

// QueryRow is sql.Stmt.QueryRowContext.
func (s *Stmt) QueryRow(ctx context.Context, args ...any) *Row { return row(s.Query(ctx, args...)) }

// Close is sql.Stmt.Close.
func (s *Stmt) Close() error { return s.stmt.Close() }

// Rows are a *sql.Rows whose errors are noted.
type Rows struct {
	*sql.Rows
	log *failures
}

// Next is sql.Rows.Next.
func (r *Rows) Next() bool {
	more := r.Rows.Next()
	if !more {
		_ = r.log.note(r.Rows.Err())
	}
	return more
}

// NextResultSet is sql.Rows.NextResultSet.
func (r *Rows) NextResultSet() bool {
	more := r.Rows.NextResultSet()
	if !more {
		_ = r.log.note(r.Rows.Err())
	}
	return more
}

// Close is sql.Rows.Close.
func (r *Rows) Close() error {
	err := r.log.note(r.Rows.Close())
	_ = r.log.note(r.Rows.Err())
	return err
}

// Row is the one row of a QueryRow.
type Row struct {
	rows *Rows
	err  error
}

func row(rows *Rows, err error) *Row { return &Row{rows, err} }

// Scan is sql.Row.Scan: it returns sql.ErrNoRows if there is no row, and reads the first row if there are more.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	for _, d := range dest {
		if _, ok := d.(*sql.RawBytes); ok {
			return errors.New("retrysql: RawBytes isn't allowed on Row.Scan")
		}
	}
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	return r.rows.Close()
}

// Err is sql.Row.Err: the error of the query, without reading the row.
func (r *Row) Err() error { return r.err }

// failures are the errors of the statements of one transaction. The mutex is for an fn that uses the transaction in several
// goroutines, which it should not.
type failures struct {
	mu               sync.Mutex
	first, retryable error
	refused          error
	cut              bool // a context has ended a statement, after which some drivers close the connection

	ctx   context.Context // the attempt's
	tx    *sql.Tx
	mysql *bool // whether that is one of MySQL or MariaDB; nil means that it was not asked
}

// note notes err and returns it.
func (f *failures) note(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = err
	}
	switch v := Judge(Statement, err); {
	case f.retryable == nil && v.Class == retry.Retryable:
		f.retryable = err
	case v.Reason == Canceled, v.Reason == Timeout, v.Reason == QueryCanceled:
		f.cut = true
	}
	return err
}

// connected returns the error of an attempt whose fn returned err. If fn has passed over a statement that a context has
// ended, it asks whether the connection is still there: a commit that cannot be sent is not ambiguous.
func (f *failures) connected(err error) error {
	if err != nil || !f.cut {
		return err
	}
	if _, lost := f.tx.ExecContext(f.ctx, "SELECT 1"); Judge(Statement, lost).Class == retry.Retryable {
		return f.note(fmt.Errorf("retrysql: fn returned nil, but the connection is gone: %w", lost))
	}
	return nil
}

func (f *failures) rows(rows *sql.Rows, err error) (*Rows, error) {
	if err != nil {
		return nil, f.note(err)
	}
	return &Rows{rows, f}, nil
}

// conclude returns the error of an attempt whose fn returned err. An fn that tried to end the transaction believes that it
// did, so nothing is committed and nothing repeated.
func (f *failures) conclude(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.refused == nil:
		return err
	case err == nil || errors.Is(err, f.refused):
		return retry.Permanent(cmp.Or(err, f.refused))
	default:
		return retry.Permanent(fmt.Errorf("%w; fn returned: %w", f.refused, err))
	}
}

func (f *failures) both() (first, retryable error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first, f.retryable
}

// forbid returns the error for a statement that must not be sent: one that would begin or end a transaction, and any after
// an error that calls for a new transaction. MySQL leaves the transaction at a deadlock, and would commit what follows by
// itself.
func (f *failures) forbid(query string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.retryable != nil {
		return fmt.Errorf("retrysql: the transaction must begin again: %w", f.retryable)
	}
	keyword := control(query, false)
	if read := control(query, true); read != keyword && f.isMySQL() {
		keyword = read
	}
	if keyword != "" {
		f.refused = fmt.Errorf("%w: %s", ErrTransactionEnded, keyword)
		return f.refused
	}
	return nil
}

// isMySQL asks the server whether it is MySQL or MariaDB, once. Their versions begin with a number, those of PostgreSQL and
// its kin with a name, and SQLite and SQL Server have no such function.
func (f *failures) isMySQL() bool {
	if f.mysql == nil {
		var version string
		_ = f.tx.QueryRowContext(f.ctx, "SELECT VERSION()").Scan(&version)
		is := "0" <= version && version < ":" // which follows "9"
		f.mysql = &is
	}
	return *f.mysql
}
