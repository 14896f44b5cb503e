package retrysql

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/retrygo/retry/retrysql/internal/txlog"
)

// work is fn's context. It carries the transaction until fn returns.
type work struct {
	context.Context
	db   Beginner
	txn  *Txn
	over atomic.Bool
}

type workKey struct{}

func (w *work) Value(key any) any {
	if key == (workKey{}) {
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

// TxnFromContext returns the transaction of the fn of Tx that ctx was passed to, or derives from. Without it ok is
// false; also after fn has returned, and if the transaction is not on db. The same database means the same Beginner: a
// *sql.Conn and its *sql.DB are different. Use it for a function that works in the transaction of its caller if there
// is one:
//
//	if tx, ok := retrysql.TxnFromContext(ctx, db); ok {
//		return debit(ctx, tx) // nothing is committed yet
//	}
//	return retrysql.Tx(ctx, db, p, nil, debit)
//
// If the first debit fails and the caller ignores it, the caller's transaction can be committed with a part of debit's
// work: use Txn.Savepoint. An effect outside the database belongs in Txn.AfterCommit.
func TxnFromContext(ctx context.Context, db Beginner) (tx *Txn, ok bool) {
	for w, ok := ctx.Value(workKey{}).(*work); ok; w, ok = w.Context.Value(workKey{}).(*work) {
		if t := reflect.TypeOf(db); t == reflect.TypeOf(w.db) && t.Comparable() && w.db == db && !w.over.Load() {
			return w.txn, true
		}
	}
	return nil, false
}
