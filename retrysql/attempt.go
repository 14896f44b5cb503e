package retrysql

import (
	"context"
	"errors"

	"github.com/retrygo/retry"
)

type runner[T Transaction] struct {
	Options
	begin      func(context.Context) (T, error)
	fn         func(context.Context, T) error
	embedded   bool // the database is in this process, so a commit does not wait for a network
	repeatable bool // the transaction may take effect twice
}

// work is the part of an attempt before its transaction ends.
type work struct {
	err    error   // of fn, of Options.Probe or of the context
	first  error   // the first statement that failed
	undone error   // the first error that requires a new transaction
	record *record // identifies the transaction if Options.Probe is set

	returned bool // it was not ended by a panic
}

// attempt runs fn in a transaction of its own, which has ended when attempt returns.
func (r *runner[T]) attempt(ctx context.Context) error {
	tx, err := r.begin(ctx)
	if err != nil {
		failed := failure(ctx, Connect, err)
		failed.Class = marked(err, failed.Class)
		return failed
	}
	w := r.work(ctx, tx)
	if w.succeeded() {
		return r.commit(ctx, tx, w)
	}
	return r.undo(ctx, tx, w)
}

// work calls fn. If fn panics or calls runtime.Goexit, work rolls back.
func (r *runner[T]) work(ctx context.Context, tx T) (w work) {
	defer r.finish(ctx, tx, &w)
	w.err = r.fn(ctx, tx)
	w.first, w.undone = tx.Failures()
	asks := r.Probe && !r.ReadOnly // a read-only transaction is repeated anyway
	if asks && w.succeeded() && ctx.Err() == nil {
		w.record, w.err = track(ctx, tx)
		w.first, w.undone = tx.Failures()
	}
	if w.err == nil {
		w.err = ctx.Err() // a commit that has not begun is not ambiguous
	}
	w.returned = true
	return w
}

// finish rolls back if w did not return.
func (r *runner[T]) finish(ctx context.Context, tx T, w *work) {
	if !w.returned {
		_ = r.rollback(ctx, tx)
	}
}

// succeeded reports whether the transaction can be committed.
func (w work) succeeded() bool { return w.err == nil && w.undone == nil }

// failure returns the error of an attempt that is not committed, as far as it is known before the rollback.
func (w work) failure(ctx context.Context) *AttemptError {
	failed := failure(ctx, Statement, w.err)
	if w.undone != nil && !errors.Is(w.err, w.undone) {
		// The server has undone the transaction, so fn's own error does not matter.
		failed.Verdict = failure(ctx, Statement, w.undone).Verdict
		failed.Swallowed = w.undone
		if failed.Reason.stops() { // fn's own limit, as far as is known here
			failed.Class = retry.Retryable
		}
	}
	failed.blame(w.first)
	return failed
}

// undo rolls back and returns the error of the attempt.
func (r *runner[T]) undo(ctx context.Context, tx T, w work) error {
	failed := w.failure(ctx)
	r.leave(tx, failed, w.undone != nil)
	err := r.rollback(ctx, tx)
	switch over := wasOver(err); {
	case over && endedByContext(ctx):
		return failed
	case over:
		return ended(failed)
	case w.undone != nil && refuses(err):
		return failed // the server had undone the transaction
	}
	failed.RollbackErr = err
	switch {
	case refuses(err):
		// The server had no transaction to roll back, as after ON CONFLICT ROLLBACK of SQLite, and may have committed
		// later statements by themselves.
		return ended(failed)
	case failed.Ambiguous:
		return r.unknown(failed) // by the server's error, or by a run in fn
	case w.undone == nil && failed.foreign():
		failed.Verdict = Verdict{}
	}
	return failed
}

// leave discards the connection of the transaction if another one may do better and the error is the transaction's own. A
// read-only server is final if there is no other connection, or if Options.ReadOnly is the cause.
func (r *runner[T]) leave(tx T, failed *AttemptError, own bool) {
	if !failed.Reason.elsewhere() {
		return
	}
	other := own && tx.Discard(failed.Reason)
	if failed.Reason == ReadOnlyServer && (r.ReadOnly || !other) {
		failed.Class = retry.Terminal
	}
}

// endedByContext reports whether database/sql can have rolled back because a context is done. If the attempt has a
// deadline, its transaction has a context of its own.
func endedByContext(ctx context.Context) bool {
	_, bounded := ctx.Deadline()
	return !bounded && ctx.Err() != nil
}

// wasOver reports whether err means that the transaction has already ended, as sql.ErrTxDone does.
func wasOver(err error) bool { return Judge(Statement, err).Reason == TransactionDone }

// refuses reports whether err is a server's refusal, rather than a lost connection.
func refuses(err error) bool {
	v := Judge(Statement, err)
	return v.Code != "" && v.Class == retry.Terminal
}

// ended returns the error for a transaction that fn ended itself.
func ended(failed *AttemptError) error {
	failed.Verdict = Verdict{Class: retry.Terminal, Reason: TransactionEnded, Ambiguous: true}
	return retry.Ambiguous(failed)
}

// marked returns the class by the marks of package retry on err, or the given class if err has no such mark.
func marked(err error, unmarked retry.Class) retry.Class {
	class, _ := retry.Policy{Classify: retry.Otherwise(unmarked)}.Judge(err)
	return class
}
