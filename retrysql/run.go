package retrysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

// DefaultPolicy returns what Tx, Run and Do take for the fields that a policy leaves unset:
//
//	5 attempts, exponential 10ms ×2, cap 1s, full jitter: 10ms 20ms 40ms 80ms (0s to 150ms in all)
//
// A conflict is over when the other transaction is, which takes milliseconds, and somebody waits: so the waits are short.
// Jitter is full, because transactions that have met once and wait alike meet again. Five attempts are enough for the
// conflicts of a healthy database; where they are not, the work contends too much for more attempts to help.
func DefaultPolicy() retry.Policy {
	return retry.Policy{
		Name:        "sql",
		MaxAttempts: 5,
		Backoff:     retry.Backoff{Base: 10 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter},
	}
}

// Options are those of one transaction. A nil *Options means the zero Options.
type Options struct {
	// Isolation is the level to begin with. Zero means the database's default.
	Isolation sql.IsolationLevel
	// ReadOnly begins a transaction that cannot write. It has no effect that could be taken twice, so that a commit
	// whose outcome is not known is repeated. Zero means that it may write.
	ReadOnly bool
	// Idempotent declares that the transaction may take effect twice, so that a commit whose outcome is not known is
	// repeated. Zero means that it must not.
	Idempotent bool
	// Committed is asked after a commit whose outcome is not known whether it took effect: by a row that the
	// transaction has written, or by its id. True is a success, false repeats the transaction, an error leaves the
	// outcome unknown. It must return an error where the commit may still be under way. Its context lives for
	// RollbackTimeout, also where the caller has gone. Nil means that nobody knows.
	Committed func(context.Context) (bool, error)
	// RollbackTimeout is how long a rollback is waited for, a commit once the attempt's time is over, and how long
	// Committed may take. Without a deadline and AttemptTimeout a commit is waited for as long as the driver does.
	// Zero means 5s.
	RollbackTimeout time.Duration
}

// Long enough for a server under load to answer, short enough for a caller whose network is gone.
const defaultRollbackTimeout = 5 * time.Second

// Transaction is what Run needs of a driver's transaction. Both of its endings return an error that is sql.ErrTxDone where
// it was over already.
type Transaction interface {
	Commit(context.Context) error
	Rollback(context.Context) error
	// Failures returns the first error that a statement has ended with, and the first one that calls for a retry.
	// Both are nil where there was none. After the second nothing may be sent: MySQL would commit it by itself.
	Failures() (first, retryable error)
}

// Run is Tx for the transactions of any driver: begin begins one, fn works in it. The rest is as Tx says.
func Run[T Transaction](ctx context.Context, p retry.Policy, opts *Options, begin func(context.Context) (T, error), fn func(context.Context, T) error) error {
	r := runner[T]{begin: begin, fn: fn}
	if opts != nil {
		r.Options = *opts
	}
	switch {
	case begin == nil:
		return errors.New("retrysql: begin is nil")
	case fn == nil:
		return errors.New("retrysql: fn is nil")
	case r.RollbackTimeout < 0:
		return fmt.Errorf("retrysql: Options.RollbackTimeout %v is negative", r.RollbackTimeout)
	case r.RollbackTimeout == 0:
		r.RollbackTimeout = defaultRollbackTimeout
	}
	var unsure error // of the first commit that may have taken effect, and was allowed to be repeated
	return retry.Do(ctx, prepared(p), func(ctx context.Context) error {
		err := r.attempt(ctx)
		if err == nil {
			return nil
		}
		if unsure != nil {
			return fmt.Errorf("%w; an attempt before: %w", err, unsure)
		}
		if errors.Is(err, ErrCommitAmbiguous) {
			unsure = err
		}
		return err
	})
}

// prepared returns p with the defaults of this package, and its rules behind those of p.
func prepared(p retry.Policy) retry.Policy {
	p = p.Or(DefaultPolicy())
	if p.Classify == nil {
		p.Classify = classifyAttempt
	} else {
		p.Classify = retry.FirstOf(p.Classify, classifyAttempt)
	}
	return p
}

// classifyAttempt is the class of an attempt's error. What nobody has an opinion on, as an error that fn has made up, is no
// use to repeat.
func classifyAttempt(err error) retry.Class {
	var failed *AttemptError
	if errors.As(err, &failed) && failed.Class == retry.Retryable {
		return retry.Retryable
	}
	return retry.Terminal
}

// runner is one call of Run.
type runner[T Transaction] struct {
	Options
	begin func(context.Context) (T, error)
	fn    func(context.Context, T) error
}

// attempt runs fn in a transaction of its own. Whatever happens, that is over when it returns.
func (r *runner[T]) attempt(ctx context.Context) error {
	tx, err := r.begin(ctx)
	if err != nil {
		failed := failure(ctx, Connect, err)
		if errors.Is(err, sql.ErrConnDone) {
			failed.Class = retry.Terminal // db is a connection, and gone
		}
		return failed
	}
	returned := false
	defer func() {
		if !returned { // a panic or runtime.Goexit, which goes on
			_ = r.rollback(ctx, tx)
		}
	}()
	err = r.fn(ctx, tx)
	returned = true
	if err == nil {
		err = ctx.Err() // a commit that is not begun is not ambiguous
	}
	first, retryable := tx.Failures()
	if err == nil && retryable == nil {
		return r.commit(ctx, tx, first)
	}
	failed := failure(ctx, Statement, err)
	if retryable != nil && !errors.Is(err, retryable) {
		// The server has undone the transaction. What fn has made of that, or met later, says nothing more.
		failed.Verdict = Judge(Statement, retryable)
		failed.Swallowed = retryable
	}
	failed.blame(first)
	switch failed.RollbackErr = r.rollback(ctx, tx); {
	case wasOver(failed.RollbackErr):
		failed.RollbackErr = nil
		if bounded(ctx) || ctx.Err() == nil { // else it was database/sql that has rolled back
			return ended(failed)
		}
	case retryable == nil && refuses(failed.RollbackErr):
		// The server had nothing to roll back, as after INSERT OR ROLLBACK of SQLite. What fn did then was committed
		// by itself; only after an error that calls for a retry nothing was done.
		return ended(failed)
	case failed.Ambiguous:
		return r.unknown(ctx, failed) // of a run in fn, or the server says so
	}
	return failed
}

// wasOver reports whether err says that the transaction was over before: sql.ErrTxDone and its like.
func wasOver(err error) bool { return Judge(Statement, err).Reason == TransactionDone }

// refuses reports whether err is a server's no, and not the end of a connection.
func refuses(err error) bool {
	v := Judge(Statement, err)
	return v.Code != "" && v.Class == retry.Terminal
}

// ended returns the error for a transaction that fn has ended by itself.
func ended(failed *AttemptError) error {
	failed.Verdict = Verdict{Class: retry.Terminal, Reason: TransactionEnded, Ambiguous: true}
	return retry.Permanent(failed)
}

// commit ends the transaction, and finds out how that ended.
func (r *runner[T]) commit(ctx context.Context, tx T, first error) error {
	var err error
	returned := true
	if bounded(ctx) {
		err, returned = r.wait(ctx, tx)
	} else {
		err = tx.Commit(ctx)
	}
	if err == nil {
		return nil
	}
	failed := failure(ctx, Commit, err)
	if !returned { // so that the transaction is not to be touched
		return r.settle(ctx, failed, true)
	}
	if wasOver(err) {
		if ctx.Err() != nil { // it was database/sql that has rolled back
			return failure(ctx, Statement, context.Cause(ctx))
		}
		return ended(failed)
	}
	if err := r.rollback(ctx, tx); !wasOver(err) {
		failed.RollbackErr = err
	}
	if !failed.Ambiguous {
		failed.blame(first)
		return failed
	}
	return r.settle(ctx, failed, false)
}

// settle asks the probe, if there is one, about a commit whose outcome is not known. Of one that is under way a no is not
// believed: it may take effect still.
func (r *runner[T]) settle(ctx context.Context, failed *AttemptError, underWay bool) error {
	if r.Committed == nil {
		return r.unknown(ctx, failed)
	}
	alive, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.RollbackTimeout)
	defer cancel()
	switch committed, err := r.Committed(alive); {
	case err != nil:
		failed.ProbeErr = err
	case committed:
		return nil
	case alive.Err() != nil: // it may have given up
		failed.ProbeErr = alive.Err()
	case !underWay:
		failed.Class, failed.Ambiguous = retry.Retryable, false
		return failed
	}
	return r.unknown(ctx, failed)
}

// bounded reports whether the attempt has to be over some time, so that it is worth a goroutine and contexts of the
// transaction's own, which take longer than a short transaction of SQLite does.
func bounded(ctx context.Context) bool {
	_, ok := ctx.Deadline()
	return ok
}

// wait calls a commit and reports whether it has returned: once the attempt's time is over, it is waited for no longer than
// RollbackTimeout. That of database/sql has no context, and its driver may wait for a network that is gone.
func (r *runner[T]) wait(ctx context.Context, tx T) (err error, returned bool) {
	done := make(chan error, 1)
	go func() { done <- tx.Commit(ctx) }()
	select {
	case err := <-done:
		return err, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(r.RollbackTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err, true
	case <-timer.C:
		return fmt.Errorf("retrysql: commit has not returned within %v of %w", r.RollbackTimeout, context.Cause(ctx)), false
	}
}

// unknown ends the run where it is not known whether the transaction took effect, unless it may take it twice.
func (r *runner[T]) unknown(ctx context.Context, failed *AttemptError) error {
	if r.ReadOnly || r.Idempotent || isIdempotent(ctx) {
		failed.Class = retry.Retryable
		return failed
	}
	return retry.Permanent(failed)
}

// rollback undoes the transaction and waits for it no longer than RollbackTimeout: the database/sql call has no context
// and its driver may wait for a network that is gone.
func (r *runner[T]) rollback(ctx context.Context, tx T) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.RollbackTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- tx.Rollback(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("retrysql: rollback has not returned within %v", r.RollbackTimeout)
	}
}
