package retrysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

// DefaultPolicy returns the policy from which Tx, Run and Do take the fields that the caller's policy does not set:
//
//	sql: 5 attempts, exponential 10ms ×2, cap 1s, full jitter: 10ms 20ms 40ms 80ms (0s to 150ms in all)
//
// Its delays are used as a whole, and its attempts by themselves (see Policy.OrSchedule). For example,
// retry.Policy{MaxAttempts: 3} has these delays. To change one of them, start from DefaultPolicy.
//
// The waits are short because a conflict ends with the other transaction, within milliseconds. Jitter is full because
// two transactions that conflict and then wait equally long conflict again. If five attempts fail, contention is too
// high for more to help.
//
// A server takes seconds to restart or fail over. A caller that can wait for that sets MaxAttempts to 16, and the Cap
// and Jitter of DefaultPolicy's Backoff to 5s and retry.EqualJitter, which waits 17s to 35s in all.
func DefaultPolicy() retry.Policy {
	return retry.Policy{
		Name:        "sql",
		MaxAttempts: 5,
		Backoff:     retry.Backoff{Base: 10 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter},
	}
}

// Options are the options of one transaction. A nil *Options means the zero Options.
type Options struct {
	// Isolation is the isolation level of the transaction. Validate accepts any, since a driver can have levels of its
	// own, as Spanner's does. Zero means the database's default.
	Isolation sql.IsolationLevel
	// ReadOnly begins a transaction that cannot write. A commit whose outcome is unknown is repeated, since it has no
	// effect. Drivers of SQLite ignore the option, so Tx refuses it there. Zero means that the transaction may write.
	ReadOnly bool
	// Probe asks PostgreSQL, by the transaction's id, about a commit whose outcome is unknown. If it committed, Tx
	// returns nil. Otherwise the transaction is repeated. Both answers are certain. Probe costs a round trip before
	// each commit, and needs PostgreSQL 13 or later and a *sql.DB. On another server, such as CockroachDB, the
	// transaction fails before the commit. PostgreSQL has no answer if it was restarted, has crashed or was replaced
	// since, because a server that has lost its last transactions reuses their ids. Zero means that the server is not
	// asked.
	Probe bool
	// Confirm is called after a commit whose outcome is unknown, if Probe is not set or has no answer. It reports
	// whether the commit took effect, by a row that the transaction wrote. True is a success, false repeats the
	// transaction. If the run fails after a false, its error has ErrCommitAmbiguous. Its context ends after
	// EndTimeout, not with the caller's. Nil, or an error, means that the outcome remains unknown.
	//
	// The commit may still be in progress, and only a statement that waits for it sees its outcome. MySQL and MariaDB
	// wait in a SELECT of the row with FOR UPDATE, SQLite in a transaction of BEGIN IMMEDIATE. PostgreSQL does not wait
	// in any SELECT, so there false leaves the outcome unknown. Use Probe there.
	Confirm func(context.Context) (bool, error)
	// EndTimeout is how long to wait for a rollback, for Probe and Confirm, for a hook of Txn.AfterCommit, and for
	// a commit once the attempt's context has ended, but a commit of SQLite may take its busy_timeout. If a context
	// without a deadline is canceled, pgx as a driver of database/sql ends the commit at once. Zero means 5s.
	EndTimeout time.Duration
}

// Validate returns nil, or retry.FieldErrors if EndTimeout is negative. Tx and Run call it.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	if o.EndTimeout < 0 {
		bad.Refuse("retrysql.Options.EndTimeout", o.EndTimeout, "is negative")
	}
	return bad.Err()
}

var (
	errNoContext = errors.New("retrysql: ctx is nil")
	errNoFn      = errors.New("retrysql: fn is nil")
)

// defaultRollbackTimeout is long enough for a server under load to answer, and short enough for a caller whose network
// is gone.
const defaultRollbackTimeout = 5 * time.Second

// Transaction is a transaction of the driver for which Run is used. Commit and Rollback return an error that is
// sql.ErrTxDone if it has already ended.
type Transaction interface {
	Commit(context.Context) error
	Rollback(context.Context) error
	// Failures returns the error of the first statement that failed, and the first error that requires a retry, or nil.
	// The transaction must refuse every statement after retryable, because MySQL would commit them by themselves. If
	// retryable is nil, a server's error in fn's error is taken to be another database's, and so is a lost connection
	// if Rollback succeeds.
	Failures() (first, retryable error)
	// Discard is called if the attempt failed for a reason that lies in its connection, or in the server that the
	// connection leads to. Rollback must then close the connection rather than return it to a pool. Discard reports
	// whether the next transaction begins on another connection. If not, an error of a read-only server ends the run.
	// It is called before Rollback, and after a Commit that failed.
	Discard(Reason) (elsewhere bool)
	// Ask executes a query of Options.Probe in the transaction and scans its only row into dest. It is called before
	// Commit. AskOutside does so on another connection, after a Commit whose outcome is unknown. It is called again after
	// an error that is not Terminal for Classify, until EndTimeout, unless it is marked with retry.Permanent.
	Ask(ctx context.Context, dest []any, query string, args ...any) error
	AskOutside(ctx context.Context, dest []any, query string, args ...any) error
}

// Run is Tx for the transactions of any driver: begin begins one, and fn works in it. Otherwise Run is like Tx, except
// that Options.Isolation has no effect. begin marks an error after which another begin is of no use with
// retry.Permanent, such as the loss of the only connection that it has.
func Run[T Transaction](ctx context.Context, p retry.Policy, opts *Options, begin func(context.Context) (T, error), fn func(context.Context, T) error) error {
	r := runner[T]{begin: begin, fn: fn}
	return r.run(ctx, p, opts)
}

func (r *runner[T]) run(ctx context.Context, p retry.Policy, opts *Options) error {
	if opts != nil {
		r.Options = *opts
	}
	switch err := r.Validate(); {
	case ctx == nil:
		return errNoContext
	case r.begin == nil:
		return errors.New("retrysql: begin is nil")
	case r.fn == nil:
		return errNoFn
	case err != nil:
		var bad retry.FieldErrors
		bad.Append(err)
		bad.Append(prepared(p).Validate())
		return bad.Err()
	}
	r.EndTimeout = cmp.Or(r.EndTimeout, defaultRollbackTimeout)
	r.repeatable = r.ReadOnly || isIdempotent(ctx)
	return repeat(ctx, p, r.repeatable, r.attempt)
}

// repeat calls attempt until it succeeds, has an answer, or p ends the run. The errors of attempt have an AttemptError
// in them. repeatable means that work may be repeated even if it may have taken effect.
func repeat(ctx context.Context, p retry.Policy, repeatable bool, attempt func(context.Context) error) error {
	if isIdempotent(ctx) {
		ctx = context.WithValue(ctx, idempotentKey{}, false) // for calls in fn
	}
	p = prepared(p)
	classify := p.Classify // p itself would go to the heap
	var (
		answer error // the caller's, of a run that has succeeded
		doubt  error // of the first commit or write that may have taken effect and was repeated
	)
	err := retry.Do(ctx, p, func(ctx context.Context) error {
		err := attempt(ctx)
		if err == nil {
			return nil
		}
		failed := attemptErrorOf(err)
		if doubt == nil && failed.Ambiguous && failed.Phase >= Commit { // not of a run in fn
			doubt = failed
		}
		if doubt == nil {
			answer, err = failed.answer(ctx, classify, err)
		}
		return err
	})
	switch {
	case err == nil:
		return answer
	case doubt != nil:
		return carry(err, doubt, repeatable)
	default:
		return err
	}
}

// prepared returns p with the schedule and name of DefaultPolicy, as far as p sets none, and with the rules of this
// package after its own.
func prepared(p retry.Policy) retry.Policy {
	defaults := DefaultPolicy()
	p = p.OrSchedule(defaults)
	p.Name = cmp.Or(p.Name, defaults.Name)
	if p.Classify == nil {
		p.Classify = classifyAttempt
	} else {
		p.Classify = retry.FirstOf(p.Classify, classifyAttempt)
	}
	return p
}

// classifyAttempt returns the class of an attempt's error. An unrecognized error, such as one of fn's own, is terminal.
func classifyAttempt(err error) retry.Class {
	if attemptErrorOf(err).Class == retry.Retryable {
		return retry.Retryable
	}
	return retry.Terminal
}

func attemptErrorOf(err error) *AttemptError {
	failed := new(AttemptError)
	errors.As(err, &failed)
	return failed
}

// carry returns the error of a run, with the doubt about an attempt in it. The mark is for the runs around it. This run
// may have continued because Confirm returned false.
func carry(err, doubt error, repeatable bool) error {
	run, ok := err.(*retry.Error)
	if !ok {
		return err
	}
	if !errors.Is(run.Last, doubt) {
		run.Last = fmt.Errorf("%w (an earlier attempt: %w)", run.Last, doubt)
	}
	if !repeatable {
		run.Last = retry.Ambiguous(run.Last)
	}
	return run
}
