package retrysql

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/retrygo/retry"
)

// work is fn's context. It carries the transaction, for a Tx in fn.
type work struct {
	context.Context
	db  Beginner
	txn *Txn
}

type workKey struct{}

func (w *work) Value(key any) any {
	if key == (workKey{}) {
		return w
	}
	return w.Context.Value(key)
}

// begun is the context in which a transaction begins. It carries the log in which a connection of Watch notes errors.
type begun struct {
	context.Context
	log *failures
}

type begunKey struct{}

func (b *begun) Value(key any) any {
	if key == (begunKey{}) {
		return b.log
	}
	return b.Context.Value(key)
}

// around returns the transaction on db that ctx belongs to, or nil.
func around(ctx context.Context, db Beginner) *Txn {
	for w, ok := ctx.Value(workKey{}).(*work); ok; w, ok = w.Context.Value(workKey{}).(*work) {
		if t := reflect.TypeOf(db); t == reflect.TypeOf(w.db) && t.Comparable() && w.db == db {
			return w.txn
		}
	}
	return nil
}

// join runs fn as a part of t. An error of fn dooms all of t, since otherwise part of fn's work would be committed.
func (t *Txn) join(ctx context.Context, p retry.Policy, opts *Options, fn func(context.Context, *Txn) error) error {
	switch {
	case opts == nil || !opts.Join:
		return errors.New("retrysql: Tx is called in the fn of a Tx on the same database, without Options.Join")
	case opts.Isolation != 0 && opts.Isolation != t.isolation:
		return fmt.Errorf("retrysql: Options.Isolation %v cannot join a transaction with %v", opts.Isolation, t.isolation)
	case t.log.readOnly && !opts.ReadOnly:
		return errors.New("retrysql: a transaction that may write cannot join one with Options.ReadOnly")
	}
	if err := badFields(*opts, p); err != nil {
		return err
	}
	err := t.part("joined Tx", func() error { return fn(ctx, t) })
	if err != nil {
		t.log.look() // an earlier error counts
		t.log.doom(err)
	}
	return err
}

// part runs fn. If fn panics, which the outer fn may recover from, the transaction is not committed.
func (t *Txn) part(of string, fn func() error) error {
	returned := false
	defer func() {
		if !returned {
			t.log.doom(fmt.Errorf("retrysql: the fn of a %s did not return", of))
		}
	}()
	err := fn()
	returned = true
	return err
}
