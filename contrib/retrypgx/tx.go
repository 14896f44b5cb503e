// Package retrypgx repeats transactions of pgx as a whole, and never commits one twice. It has the rules, errors and
// default policy of package retrysql, for the native interface of pgx, which is a *pgxpool.Pool, a pgx.Tx, its batches and COPY.
//
// # Isolation
//
// At PostgreSQL's default isolation, read committed, if two transactions read the same value and each writes one
// computed from it, one of the two updates is lost without an error, and without a retry. Begin such a transaction
// with Options.IsoLevel pgx.RepeatableRead or pgx.Serializable, or read with FOR UPDATE.
//
// This package may change until it says otherwise.
package retrypgx

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// Beginner begins transactions. It is a *pgxpool.Pool, or a *pgx.Conn, which must not be used while Tx waits either,
// and which does not reconnect after it is lost.
type Beginner interface {
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}

// Options are those of one transaction. A nil *Options means the zero Options.
type Options struct {
	// TxOptions are the options to begin with. With the AccessMode pgx.ReadOnly the commit has no effect, so one whose
	// outcome is unknown is repeated. With a BeginQuery pgx ignores the modes, so Validate refuses them. Zero means the
	// database's defaults.
	pgx.TxOptions
	// Probe is retrysql.Options.Probe. It asks PostgreSQL about a commit whose outcome is unknown. It needs a pool, and
	// a connection besides that of the transaction. Zero means that the server is not asked.
	Probe bool
	// Confirm is retrysql.Options.Confirm. It is called after such a commit if Probe is not set or has no answer. On
	// PostgreSQL only true counts. Nil means that the outcome remains unknown.
	Confirm func(context.Context) (bool, error)
	// EndTimeout is retrysql.Options.EndTimeout. Zero means 5s.
	EndTimeout time.Duration
}

// Validate returns nil, or retry.FieldErrors if there is a mode besides a BeginQuery or EndTimeout is negative. Tx
// refuses options that Validate refuses.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	modes := o.IsoLevel != "" || o.AccessMode != "" || o.DeferrableMode != ""
	if o.BeginQuery != "" && modes {
		bad.Refuse("retrypgx.Options.BeginQuery", strconv.Quote(o.BeginQuery), "overrides the modes that are set")
	}
	bad.Append(o.engine().Validate())
	return bad.Err()
}

// engine returns the options of retrysql.Run.
func (o Options) engine() *retrysql.Options {
	return &retrysql.Options{
		ReadOnly:   o.AccessMode == pgx.ReadOnly,
		Probe:      o.Probe,
		Confirm:    o.Confirm,
		EndTimeout: o.EndTimeout,
	}
}

// Tx runs fn in a transaction and commits it. If the database undoes the transaction, because of a conflict or a lost
// connection, Tx rolls back, waits outside any transaction, and runs all of fn again in a new one. It returns nil if
// and only if a commit succeeded, or Options.Probe or Options.Confirm says so. Like retrysql.Tx, it returns an
// answer, such as pgx.ErrNoRows or a unique violation, as it is. After any other failure it returns a *retry.Error with
// a *retrysql.AttemptError for each attempt. A call with the context of the fn of another Tx on the same Beginner is an
// error (use Begin for a savepoint).
//
// fn must have no effects other than those in the transaction, since it can run several times. It must use its context,
// and use the pgx.Tx in one goroutine at a time. An error of its own, of another database or of a run in it is an
// answer, unless it is marked with retry.Transient. fn must create the pgx.CopyFromSource of a CopyFrom itself. A source that an earlier attempt has
// read is refused if it is a pointer, as those of pgx are. Tx does not recognize a source of another type, a new source
// around rows that are used up, or PgConn().CopyFrom. p.Classify is called before the rules of retrysql.Classify. If p
// sets no part of a schedule, that of retrysql.DefaultPolicy is used.
//
// The pgx.Tx notes the errors of its statements, even those that fn ignores. A transaction that the server has undone
// is not committed, and is repeated if the error that undid it requires that. An error that a savepoint of Begin has
// undone no longer counts. The pgx.Tx does not note the errors of LargeObjects, of Conn and of the functions of a
// pgx.Batch, so fn must return those. It also does not see statements that fn sends through Conn, or a COMMIT and BEGIN in one
// pgx.Batch.
//
// fn must not commit or roll back. Tx commits if it returns nil, and rolls back if it returns an error. Its Commit is
// refused, and so is any statement after Rollback or after a statement that ended the transaction. errors.Is finds
// retrysql.ErrTransactionEnded, and the run ends without a commit. Rollback only returns such an error, so a deferred
// one is harmless. If fn calls it and then returns nil, Tx commits. Tx does not see ROLLBACK AND CHAIN, or a COMMIT
// after which the same Exec begins and uses another transaction. If fn leaves rows, a row or a batch open, the run ends
// too.
//
// Only the server can say that a commit failed. After any other error of a commit errors.Is finds
// retrysql.ErrCommitAmbiguous, pgconn.SafeToRetry or not, and the transaction is not run again, not even by a run
// around Tx, unless the options allow it. An error without ErrCommitAmbiguous means that the transaction was rolled
// back, even if the caller was canceled.
//
// A panic in fn rolls back and passes through.
func Tx(ctx context.Context, db Beginner, p retry.Policy, opts *Options, fn func(context.Context, pgx.Tx) error) error {
	var o Options
	if opts != nil {
		o = *opts
	}
	switch err := o.Validate(); {
	case ctx == nil:
		return errors.New("retrypgx: ctx is nil")
	case db == nil || isNil(db):
		return errors.New("retrypgx: db is nil")
	case fn == nil:
		return errors.New("retrypgx: fn is nil")
	case err != nil:
		var bad retry.FieldErrors
		bad.Append(err)
		bad.Append(p.OrSchedule(retrysql.DefaultPolicy()).Validate())
		return bad
	case isWithin(ctx, db):
		return errors.New("retrypgx: Tx is called in the fn of a Tx on the same database: use Begin of its pgx.Tx")
	}
	from := &origin{db: db, opts: o.TxOptions}
	from.pool, _ = db.(*pgxpool.Pool) // a type that embeds one may begin transactions in its own way
	var err error
	if from.asker, err = askerOf(db, o); err != nil {
		return err
	}
	return retrysql.Run(ctx, p, o.engine(), from.begin, func(ctx context.Context, t transaction) error {
		defer t.log.done.Store(true)
		return t.log.conclude(fn(context.WithValue(ctx, within{db}, t.log), t.txn))
	})
}

// within is the key in fn's context for the transaction on a database.
type within struct{ db Beginner }

// isWithin reports whether ctx is that of an fn that has not returned.
func isWithin(ctx context.Context, db Beginner) bool {
	j, ok := ctx.Value(within{db}).(*journal)
	return ok && !j.done.Load()
}

// isNil reports whether db is a nil pointer, such as a nil *pgxpool.Pool.
func isNil(db Beginner) bool {
	v := reflect.ValueOf(db)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// TxValue is Tx for an fn that returns a value as well. It returns the value of the attempt that was committed, and the
// zero value with any error.
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
