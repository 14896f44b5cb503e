package retrysql

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

// commit commits the transaction. If the commit fails, it returns an error with all that is known about the outcome.
func (r *runner[T]) commit(ctx context.Context, tx T, w work) error {
	var err error
	returned := true
	if ctx.Done() == nil || r.embedded {
		err = tx.Commit(ctx)
	} else {
		err, returned = r.wait(ctx, tx.Commit)
	}
	switch {
	case !returned: // so the transaction must not be touched
		err = fmt.Errorf("retrysql: commit did not return within %v after %w", r.EndTimeout, context.Cause(ctx))
		return r.probe(ctx, tx, w.record, failure(ctx, Commit, err), true)
	case err == nil:
		return nil
	case wasOver(err):
		return notCommitted(ctx, tx, err)
	}
	failed := failure(ctx, Commit, err)
	r.leave(tx, failed, true)
	if err := r.rollback(ctx, tx); !wasOver(err) {
		failed.RollbackErr = err
	}
	if failed.Ambiguous {
		return r.probe(ctx, tx, w.record, failed, false)
	}
	failed.blame(w.first)
	return failed
}

// notCommitted returns the error for a commit that found the transaction over, before anything was sent.
func notCommitted(ctx context.Context, tx Transaction, err error) error {
	_, undone := tx.Failures() // also of rows that the commit closed
	switch {
	case ctx.Err() != nil: // database/sql rolled back
		return failure(ctx, Statement, context.Cause(ctx))
	case undone != nil:
		return failure(ctx, Statement, undone)
	default:
		return ended(failure(ctx, Commit, err))
	}
}

// probe asks the server and then Confirm, as far as the options allow, about a commit whose outcome is unknown. If the
// commit is in progress, a Confirm that returns false does not count, since the commit may still take effect.
func (r *runner[T]) probe(ctx context.Context, tx T, noted *record, failed *AttemptError, underWay bool) error {
	alive, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.EndTimeout)
	defer cancel()
	if noted != nil {
		switch committed, err := noted.committed(alive, tx); {
		case err != nil:
			failed.ProbeErr = err
		case committed:
			return nil
		default:
			failed.Verdict = Verdict{Class: retry.Retryable, Reason: failed.Reason, Code: failed.Code}
			return failed
		}
	}
	if r.Confirm == nil {
		return r.unknown(failed)
	}
	committed, err := r.Confirm(alive)
	switch {
	case err != nil:
	case committed:
		return nil
	case alive.Err() != nil: // false may mean that it gave up
		err = alive.Err()
	case !underWay:
		if err = waits(alive, tx); err == nil {
			failed.Class = retry.Retryable
			return failed
		}
	}
	failed.ProbeErr = cmp.Or(failed.ProbeErr, err)
	return r.unknown(failed)
}

// unknown returns the error for a transaction that may have taken effect. The run ends, and every run around it, unless
// the transaction may take effect twice or fn's error is under retry.Transient. A run in fn has its own transaction, so
// its mark takes precedence over these options.
func (r *runner[T]) unknown(failed *AttemptError) error {
	unmarked := retry.Terminal
	if r.repeatable {
		unmarked = retry.Retryable
	}
	if marked(failed.Err, unmarked) == retry.Retryable {
		failed.Class = retry.Retryable
		return failed
	}
	return retry.Ambiguous(failed)
}

// rollback undoes the transaction and waits at most EndTimeout.
func (r *runner[T]) rollback(ctx context.Context, tx T) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	err, returned := r.wait(ctx, tx.Rollback)
	if !returned {
		return fmt.Errorf("retrysql: rollback did not return within %v", r.EndTimeout)
	}
	return err
}

// wait calls Commit or Rollback with a context that ends when wait returns, and reports whether end returned within
// EndTimeout of the end of ctx. The methods of database/sql do not take a context, and a driver may wait for a
// network that is gone.
func (r *runner[T]) wait(ctx context.Context, end func(context.Context) error) (err error, returned bool) {
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- end(alive) }()
	select {
	case err = <-done:
		return err, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(r.EndTimeout)
	defer timer.Stop()
	select {
	case err = <-done:
		return err, true
	case <-timer.C:
		return nil, false
	}
}
