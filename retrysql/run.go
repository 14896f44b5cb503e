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

// DefaultPolicy returns the policy of which Tx, Run and Do use what the caller's policy does not set:
//
//	sql: 5 attempts, exponential 10ms ×2, cap 1s, full jitter: 10ms 20ms 40ms 80ms (0s to 150ms in all)
//
// Its delays are used as a whole, and its attempts by themselves (see Policy.OrSchedule): retry.Policy{MaxAttempts: 3}
// has these delays. To change one of them, start from DefaultPolicy.
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

// Options are those of one transaction. A nil *Options means the zero Options.
type Options struct {
	// Isolation is the isolation level of the transaction. Validate accepts any, since a driver can have levels of its
	// own, as that of Spanner does. Zero means the database's default.
	Isolation sql.IsolationLevel
	// ReadOnly begins a transaction that cannot write. A commit whose outcome is unknown is repeated, since it has no
	// effect. Drivers of SQLite ignore the option, so Tx refuses it there. Zero means that the transaction may write.
	ReadOnly bool
	// Probe asks PostgreSQL, by the transaction's id, about a commit whose outcome is unknown. If it committed, Tx
	// returns nil; otherwise the transaction is repeated. Both answers are certain. Probe costs a round trip before
	// each commit, and needs PostgreSQL 13 or later and a *sql.DB. On another server, such as CockroachDB, the
	// transaction fails before the commit. PostgreSQL has no answer if it was restarted, has crashed or was replaced
	// since: a server that has lost its last transactions reuses their ids. Zero means that the server is not asked.
	Probe bool
	// Confirm is called after a commit whose outcome is unknown, if Probe is not set or has no answer. It reports
	// whether the commit took effect, by a row that the transaction wrote. True is a success, false repeats the
	// transaction. If the run fails after a false, its error has ErrCommitAmbiguous. Its context ends after
	// RollbackTimeout, not with the caller's. Nil, or an error, means that the outcome remains unknown.
	//
	// The commit may still be in progress, and only a statement that waits for it sees its outcome. MySQL and MariaDB
	// wait in a SELECT of the row with FOR UPDATE, SQLite in a transaction of BEGIN IMMEDIATE. PostgreSQL does not wait
	// in any SELECT, so there false leaves the outcome unknown: use Probe.
	Confirm func(context.Context) (bool, error)
	// RollbackTimeout is how long to wait for a rollback, for Probe and Confirm, for a hook of Txn.AfterCommit, and for
	// a commit once the attempt's context has ended, but a commit of SQLite may take its busy_timeout. If a context
	// without a deadline is canceled, pgx as a driver of database/sql ends the commit at once. Zero means 5s.
	RollbackTimeout time.Duration
}

// Validate returns nil, or retry.FieldErrors if RollbackTimeout is negative. Tx and Run call it.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	if o.RollbackTimeout < 0 {
		bad.Refuse("retrysql.Options.RollbackTimeout", o.RollbackTimeout, "is negative")
	}
	return bad.Err()
}

var (
	errNoContext = errors.New("retrysql: ctx is nil")
	errNoFn      = errors.New("retrysql: fn is nil")
)

// Long enough for a server under load to answer, short enough for a caller whose network is gone.
const defaultRollbackTimeout = 5 * time.Second

// Transaction is what Run needs. Commit and Rollback return an error that is sql.ErrTxDone if it has already ended.
type Transaction interface {
	Commit(context.Context) error
	Rollback(context.Context) error
	// Failures returns the error of the first statement that failed, and the first error that requires a retry, or nil.
	// The transaction must refuse every statement after retryable: MySQL would commit them by themselves. If retryable is
	// nil, a server's error in fn's is taken to be that of another database; a lost connection too, if Rollback succeeds.
	Failures() (first, retryable error)
	// Ask executes a query of Options.Probe in the transaction and scans its only row into dest. It is called before
	// Commit. AskOutside does so on another connection, after a Commit whose outcome is unknown.
	Ask(ctx context.Context, dest []any, query string, args ...any) error
	AskOutside(ctx context.Context, dest []any, query string, args ...any) error
}

// Run is Tx for the transactions of any driver: begin begins one, and fn works in it. Otherwise Run is like Tx, except
// that Options.Isolation has no effect.
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
	r.RollbackTimeout = cmp.Or(r.RollbackTimeout, defaultRollbackTimeout)
	r.repeatable = r.ReadOnly || isIdempotent(ctx)
	return repeat(ctx, p, r.repeatable, r.attempt)
}

// repeat calls attempt until it succeeds, has an answer, or p ends the run. The errors of attempt have an AttemptError
// in them. repeatable means that work may be repeated even if it may have taken effect.
func repeat(ctx context.Context, p retry.Policy, repeatable bool, attempt func(context.Context) error) error {
	if isIdempotent(ctx) {
		ctx = context.WithValue(ctx, idempotentKey{}, false) // for what fn calls
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
		if doubt == nil && failed.Ambiguous && (failed.Phase == Commit || failed.Phase == Autocommit) {
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

// prepared returns p with the schedule and name of DefaultPolicy where p has none, and with the rules of this package
// after its own.
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

type runner[T Transaction] struct {
	Options
	begin      func(context.Context) (T, error)
	fn         func(context.Context, T) error
	embedded   bool // the database is in this process, so a commit does not wait for a network
	repeatable bool // the transaction may take effect twice
}

// carry returns the error of a run, with the doubt about an attempt in it. The mark is for the runs around it; this run
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

// attempt runs fn in a transaction of its own, which has ended when attempt returns.
func (r *runner[T]) attempt(ctx context.Context) error {
	tx, err := r.begin(ctx)
	if err != nil {
		failed := failure(ctx, Connect, err)
		if errors.Is(err, sql.ErrConnDone) {
			failed.Class = retry.Terminal // db is a *sql.Conn, which cannot reconnect
		}
		return failed
	}
	returned := false
	defer func() {
		if !returned { // a panic or runtime.Goexit
			_ = r.rollback(ctx, tx)
		}
	}()
	err = r.fn(ctx, tx)
	var noted *record // not a field of r: whatever of it goes to the heap would take r and its functions along
	if _, conflict := tx.Failures(); err == nil && conflict == nil && ctx.Err() == nil && r.Probe && !r.ReadOnly {
		noted, err = track(ctx, tx) // a read-only transaction is repeated anyway
	}
	returned = true
	if err == nil {
		err = ctx.Err() // a commit that has not begun is not ambiguous
	}
	first, retryable := tx.Failures()
	if err == nil && retryable == nil {
		return r.commit(ctx, tx, noted, first)
	}
	failed := failure(ctx, Statement, err)
	if retryable != nil && !errors.Is(err, retryable) {
		// The server has undone the transaction, so fn's own error does not matter.
		failed.Verdict = failure(ctx, Statement, retryable).Verdict
		if failed.Reason.stops() { // fn's own limit, as far as is known here
			failed.Class = retry.Retryable
		}
		failed.Swallowed = retryable
	}
	failed.blame(first)
	failed.RollbackErr = r.rollback(ctx, tx)
	switch {
	case retryable != nil && refuses(failed.RollbackErr):
		failed.RollbackErr = nil // the server had undone the transaction
	case wasOver(failed.RollbackErr):
		failed.RollbackErr = nil
		if _, bounded := ctx.Deadline(); bounded || ctx.Err() == nil { // otherwise database/sql rolled back
			return ended(failed)
		}
	case refuses(failed.RollbackErr):
		// The server had nothing to roll back, as after ON CONFLICT ROLLBACK of SQLite, and may have committed later
		// statements by themselves.
		return ended(failed)
	case failed.Ambiguous:
		return r.unknown(failed) // the server says so, or a run in fn
	case retryable == nil && (failed.Code != "" || failed.RollbackErr == nil) && failed.elsewhere():
		failed.Verdict = Verdict{} // no statement has noted it, or the rollback shows that this connection is not lost
	}
	return failed
}

// wasOver reports whether err says that the transaction has already ended, as sql.ErrTxDone does.
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

// commit commits the transaction, or returns what is known about a failed commit.
func (r *runner[T]) commit(ctx context.Context, tx T, noted *record, first error) error {
	var err error
	returned := true
	if ctx.Done() == nil || r.embedded {
		err = tx.Commit(ctx)
	} else {
		err, returned = r.wait(ctx, tx.Commit)
	}
	switch {
	case !returned:
		err = fmt.Errorf("retrysql: commit did not return within %v after %w", r.RollbackTimeout, context.Cause(ctx))
	case err == nil:
		return nil
	}
	failed := failure(ctx, Commit, err)
	if !returned { // so the transaction must not be touched
		return r.probe(ctx, tx, noted, failed, true)
	}
	if wasOver(err) {
		if ctx.Err() != nil { // database/sql rolled back
			return failure(ctx, Statement, context.Cause(ctx))
		}
		if _, retryable := tx.Failures(); retryable != nil { // of rows that the commit closed
			return failure(ctx, Statement, retryable)
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
	return r.probe(ctx, tx, noted, failed, false)
}

// probe asks the server and then Confirm, as far as the options allow, about a commit whose outcome is unknown. If the
// commit is in progress, a Confirm that returns false does not count, since the commit may still take effect.
func (r *runner[T]) probe(ctx context.Context, tx T, noted *record, failed *AttemptError, underWay bool) error {
	alive, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.RollbackTimeout)
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
	marks := retry.Policy{Classify: retry.Otherwise(unmarked)}
	if class, _ := marks.Judge(failed.Err); class == retry.Retryable {
		failed.Class = retry.Retryable
		return failed
	}
	return retry.Ambiguous(failed)
}

// rollback undoes the transaction and waits at most RollbackTimeout.
func (r *runner[T]) rollback(ctx context.Context, tx T) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	err, returned := r.wait(ctx, tx.Rollback)
	if !returned {
		return fmt.Errorf("retrysql: rollback did not return within %v", r.RollbackTimeout)
	}
	return err
}

// wait calls Commit or Rollback with a context that ends when wait returns, and reports whether end returned within
// RollbackTimeout of the end of ctx. The methods of database/sql do not take a context, and a driver may wait for a
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
	timer := time.NewTimer(r.RollbackTimeout)
	defer timer.Stop()
	select {
	case err = <-done:
		return err, true
	case <-timer.C:
		return nil, false
	}
}
