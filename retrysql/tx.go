package retrysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql/internal/txlog"
)

// Beginner begins transactions. It is a *sql.DB, or a *sql.Conn, which Tx also holds while it waits.
type Beginner interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}

// Tx runs fn in a transaction and commits it. If the database undoes the transaction, because of a conflict or a lost
// connection, Tx rolls back, waits outside any transaction, and runs all of fn again in a new one. It returns nil if
// and only if a commit succeeded, also by the answer of Options.Probe or Options.Confirm.
//
// Some errors are answers, not failures. They are sql.ErrNoRows, an error of fn's own, and the server's refusal of a
// statement that it will never accept, such as a unique violation. Tx then rolls back and returns fn's error unchanged,
// and the run is a success for p.Observe and p.Budget. After any other failure Tx returns a *retry.Error with an
// *AttemptError for each attempt.
//
// fn must have no effects other than those in the transaction, since it can run several times. It must use its context,
// and use the Txn in one goroutine at a time. Only errors of the transaction's own statements repeat it. An error of
// another database is one of fn's own, and so is the error of a run in fn. To repeat the transaction after an error of
// its own, fn wraps it in retry.Transient. A panic in fn rolls back and passes through.
//
// If db is a *sql.DB, the retry goes to another connection if the attempt failed because of its own. That is so if the
// server is read-only or shuts down, or the connection was lost. A connection that died in the pool costs no attempt.
// On a *sql.Conn, or a type that embeds a *sql.DB, a read-only server ends the run.
//
// p.Classify is called before the rules of Classify. The fields that p does not set are DefaultPolicy's. If an argument
// is nil or Validate refuses the options, Tx returns an error and does not begin a transaction. The same holds for a
// call of Tx or Do with the context of the fn of a Tx on the same database, since that Tx would not roll it back. Use
// TxnFromContext there, or pass another context.
//
// Only the server can decide that a commit failed. After any other error of a commit errors.Is finds
// ErrCommitAmbiguous, and the transaction is not run again, not even by a run around Tx, unless the options allow it.
// An error without ErrCommitAmbiguous means that the transaction was rolled back, even if the caller was canceled.
func Tx(ctx context.Context, db Beginner, p retry.Policy, opts *Options, fn func(context.Context, *Txn) error) error {
	switch {
	case ctx == nil:
		return errNoContext
	case db == nil || isNil(db):
		return errors.New("retrysql: db is nil")
	case fn == nil:
		return errNoFn
	}
	var o *sql.TxOptions
	if opts != nil && (opts.Isolation != 0 || opts.ReadOnly) {
		o = &sql.TxOptions{Isolation: opts.Isolation, ReadOnly: opts.ReadOnly}
	}
	if _, ok := db.(pool); opts != nil && opts.Probe && !ok {
		return fmt.Errorf("retrysql: Options.Probe needs a *sql.DB, not a %T", db)
	}
	if _, within := TxnFromContext(ctx, db); within {
		return errors.New("retrysql: Tx is called in the fn of a Tx on the same database: use TxnFromContext")
	}
	sqlite := isSQLite(db)
	if sqlite && o != nil && o.ReadOnly {
		return errors.New("retrysql: Options.ReadOnly: drivers of SQLite ignore it (use PRAGMA query_only)")
	}
	from := origin{db: db, opts: o}
	from.pool, _ = db.(*sql.DB) // a type that embeds one may begin transactions in its own way
	r := runner[txn]{embedded: sqlite, begin: from.begin, fn: func(_ context.Context, t txn) error { return t.run(fn) }}
	if err := r.run(ctx, p, opts); err != nil {
		return err
	}
	from.last.committed(ctx, r.EndTimeout)
	return nil
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

// TxnFromContext returns the transaction of the fn whose context ctx is or derives from. ok is false if ctx has no
// transaction on db, and after fn has returned. The same database means the same Beginner, so a *sql.Conn and its
// *sql.DB are different. Use it for a function that works in the transaction of its caller if there is one:
//
//	if tx, ok := retrysql.TxnFromContext(ctx, db); ok {
//		return debit(ctx, tx) // nothing is committed yet
//	}
//	return retrysql.Tx(ctx, db, p, nil, debit)
//
// If the first debit fails and the caller ignores it, the caller's transaction can be committed with a part of debit's
// work. Use Txn.Savepoint to prevent that. An effect outside the database belongs in Txn.AfterCommit.
func TxnFromContext(ctx context.Context, db Beginner) (tx *Txn, ok bool) {
	for w, ok := ctx.Value(withinKey{}).(*within); ok; w, ok = w.Context.Value(withinKey{}).(*within) {
		if w.isOn(db) && !w.over.Load() {
			return w.txn, true
		}
	}
	return nil, false
}

// within is fn's context. It carries the transaction until fn returns.
type within struct {
	context.Context
	db   Beginner
	txn  *Txn
	over atomic.Bool
}

type withinKey struct{}

// isOn reports whether the transaction is on db, which can be of a type that cannot be compared.
func (w *within) isOn(db Beginner) bool {
	t := reflect.TypeOf(db)
	return t == reflect.TypeOf(w.db) && t.Comparable() && w.db == db
}

func (w *within) Value(key any) any {
	if key == (withinKey{}) {
		return w
	}
	return w.Context.Value(key)
}

// begun is the context in which a transaction begins. It carries the log in which a connection of package allerrors
// notes errors.
type begun struct {
	context.Context
	log *failures
}

func (b *begun) Value(key any) any {
	if key == (txlog.Key{}) {
		return b.log
	}
	return b.Context.Value(key)
}

// txn is a Txn with the methods that only Run may call.
type txn struct{ *Txn }

// pool is the part of a *sql.DB that a *sql.Conn, which has only one connection, does not have.
type pool interface {
	Driver() driver.Driver
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Ask notes the error, like the error of any statement.
func (t txn) Ask(ctx context.Context, dest []any, query string, args ...any) error {
	return t.note(t.tx.QueryRowContext(ctx, query, args...).Scan(dest...))
}

func (t txn) AskOutside(ctx context.Context, dest []any, query string, args ...any) error {
	pool, ok := t.within.db.(pool)
	if !ok {
		return retry.Permanent(errors.New("retrysql: there is no other connection to ask on"))
	}
	return pool.QueryRowContext(ctx, query, args...).Scan(dest...)
}

// begin begins the transaction. If the attempt has a deadline, the transaction gets a context of its own. Otherwise, at
// the end of the attempt's context, database/sql would roll back in a goroutine, and the next attempt could not wait
// for it.
func (t *Txn) begin(ctx context.Context, from *origin) error {
	t.within.Context = ctx
	t.within.db = from.db
	t.within.txn = t
	if _, bounded := ctx.Deadline(); !bounded {
		return t.start(ctx, ctx, from)
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.cancel = cancel
	stop := context.AfterFunc(ctx, cancel)
	err := t.start(ctx, own, from)
	switch stopped := stop(); {
	case err == nil && stopped:
		return nil
	case err == nil: // database/sql rolls back in a goroutine
		_ = t.tx.Rollback()
		go t.release("") // which waits for that
		return ctx.Err()
	case !stopped && errors.Is(err, context.Canceled):
		err = ctx.Err() // err is own's
	}
	cancel()
	return err
}

// start begins the transaction in own, and waits for a connection until ctx ends.
func (t *Txn) start(ctx, own context.Context, from *origin) (err error) {
	t.begun = begun{own, &t.log}
	t.log.stays = !t.pooled || from.opts != nil && from.opts.ReadOnly
	if !t.pooled {
		t.tx, err = from.db.BeginTx(&t.begun, from.opts)
		return final(err)
	}
	t.conn, err = from.connect(ctx, func(_ context.Context, conn *sql.Conn) (err error) {
		t.tx, err = conn.BeginTx(&t.begun, from.opts)
		return err
	})
	return err
}

// Discard notes the reason why the connection must not be used again.
func (t txn) Discard(reason Reason) bool {
	t.bad = reason
	return t.pooled
}

// Commit ends with ctx if the driver honors the context in which the transaction began.
func (t txn) Commit(ctx context.Context) error {
	if t.cancel != nil {
		defer t.cancel()
		defer context.AfterFunc(ctx, t.cancel)()
	}
	err := t.tx.Commit()
	t.release(ReasonOf(err))
	return err
}

func (t txn) Rollback(context.Context) error {
	if t.cancel != nil {
		defer t.cancel()
	}
	err := t.rollback()
	t.release(t.bad)
	return err
}

// release gives the connection back. A *sql.Conn cannot be closed before its transaction has ended, so this is for the
// goroutine in which it has.
func (t *Txn) release(reason Reason) {
	if t.conn != nil {
		giveBack(t.conn, reason)
		t.conn = nil
	}
}

func (t txn) Failures() (first, retryable error) {
	now := t.log.state()
	return now.first, now.undone
}
