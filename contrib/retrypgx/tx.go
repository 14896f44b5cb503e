// Package retrypgx repeats transactions of pgx as a whole, and never commits one twice. It is package retrysql, whose rules,
// errors and default policy these are, for the native interface of pgx: a *pgxpool.Pool, a pgx.Tx, its batches and COPY.
package retrypgx

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// Beginner begins transactions: a *pgxpool.Pool; or a *pgx.Conn, which is not to be used while Tx waits either, and which
// does not come back once it is lost.
type Beginner interface {
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}

// Options are those of one transaction. A nil *Options means the zero Options.
type Options struct {
	// TxOptions are what to begin with. With the AccessMode pgx.ReadOnly the transaction has no effect that could be
	// taken twice, so that a commit whose outcome is not known is repeated. A BeginQuery is not looked into and stands
	// alone: it is refused beside the modes that pgx leaves out for it. Zero means the database's defaults.
	pgx.TxOptions
	// Idempotent declares that the transaction may take effect twice, so that a commit whose outcome is not known is
	// repeated. Zero means that it must not.
	Idempotent bool
	// Committed is asked after a commit whose outcome is not known whether it took effect, as Options.Committed of
	// retrysql is: Probe.Committed is one. Nil means that nobody knows.
	Committed func(context.Context) (bool, error)
	// RollbackTimeout is how long a rollback is waited for, and how long Committed may take. Zero means 5s.
	RollbackTimeout time.Duration
}

// check returns an error that names the modes which BeginQuery overrides.
func (o *Options) check() error {
	if o.BeginQuery == "" {
		return nil
	}
	var bad []string
	for _, mode := range []struct{ name, value string }{
		{"IsoLevel", string(o.IsoLevel)},
		{"AccessMode", string(o.AccessMode)},
		{"DeferrableMode", string(o.DeferrableMode)},
	} {
		if mode.value != "" {
			bad = append(bad, fmt.Sprintf("Options.%s %q", mode.name, mode.value))
		}
	}
	if bad == nil {
		return nil
	}
	return fmt.Errorf("retrypgx: BeginQuery %q overrides %s", o.BeginQuery, strings.Join(bad, ", "))
}

// Tx runs fn in a transaction and commits it. Where the database undoes the transaction, because of a conflict or a lost
// connection, Tx rolls back, waits outside any transaction, and runs all of fn again in a new one. It returns nil exactly
// where a commit has succeeded, or Options.Committed says so; else a *retry.Error with a *retrysql.AttemptError for each
// attempt.
//
// fn must have no effects but those in the transaction, since it can run several times. It uses its context, and the
// pgx.Tx in one goroutine at a time. An error that fn makes up ends the run, unless it is marked with retry.Transient;
// p.Classify is asked before the rules of retrysql.Classify. What p leaves unset comes from retrysql.DefaultPolicy.
//
// The pgx.Tx notes the errors of its statements, also those that fn passes over: a transaction that the server has undone
// is not committed, and repeated where the error that undid it calls for that. What a savepoint of Begin has undone counts
// no more. Not noted are the errors of LargeObjects, of Conn and of the functions of a pgx.Batch; fn must return those.
//
// Commit and Rollback are for Tx. fn's own are refused, a deferred Rollback too, and so is any statement after one that has
// ended the transaction: errors.Is finds retrysql.ErrTransactionEnded, and the run ends without a commit. Not seen are
// ROLLBACK AND CHAIN, and a COMMIT after which the same Exec begins and uses another transaction. Rows, a row or a batch that
// fn leaves open end the run too.
//
// A commit is believed to have failed only where the server said so. After any other error of it errors.Is finds
// retrysql.ErrCommitAmbiguous, pgconn.SafeToRetry or not, and the transaction is not run again, unless the options allow
// it. With a cancelled caller too an error without ErrCommitAmbiguous means that the transaction was rolled back.
//
// A panic in fn rolls back and passes through.
func Tx(ctx context.Context, db Beginner, p retry.Policy, opts *Options, fn func(context.Context, pgx.Tx) error) error {
	var o Options
	if opts != nil {
		o = *opts
	}
	switch err := o.check(); {
	case db == nil:
		return errors.New("retrypgx: db is nil")
	case fn == nil:
		return errors.New("retrypgx: fn is nil")
	case err != nil:
		return err
	}
	engine := &retrysql.Options{
		ReadOnly:        o.AccessMode == pgx.ReadOnly,
		Idempotent:      o.Idempotent,
		Committed:       o.Committed,
		RollbackTimeout: o.RollbackTimeout,
	}
	begin := func(ctx context.Context) (transaction, error) {
		tx, err := db.BeginTx(ctx, o.TxOptions)
		return transaction{&txn{tx, &journal{tx: tx}}}, err
	}
	return retrysql.Run(ctx, p, engine, begin, func(ctx context.Context, t transaction) error {
		return t.log.conclude(fn(ctx, t.txn))
	})
}

// TxValue is Tx for an fn that returns a value as well. The value is that of the attempt that was committed, and the zero
// value with any error.
func TxValue[T any](ctx context.Context, db Beginner, p retry.Policy, opts *Options, fn func(context.Context, pgx.Tx) (T, error)) (T, error) {
	var value, none T
	var work func(context.Context, pgx.Tx) error
	if fn != nil {
		work = func(ctx context.Context, tx pgx.Tx) (err error) {
			value, err = fn(ctx, tx)
			return err
		}
	}
	if err := Tx(ctx, db, p, opts, work); err != nil {
		return none, err
	}
	return value, nil
}
