// Package store runs transactions, again if they conflict.
package store

import (
	"context"
	"errors"
	"time"
)

var errConflict = errors.New("conflict")

type Tx struct{}

func (*Tx) Rows(string) ([]string, error)         { return nil, nil }
func (*Tx) Put(context.Context, ...any) error     { return nil }
func (*Tx) Each(string, func(string) error) error { return nil } // want Each:"runs no parameter again"
func (*Tx) Commit() error                         { return nil }

// DB is implemented by disk.
type DB interface {
	Update(ctx context.Context, f func(*Tx) error) error
	View(ctx context.Context, f func(*Tx) error) error
}

type disk struct{}

func (disk) Update(ctx context.Context, f func(*Tx) error) error { // want Update:"runs a parameter again"
	for attempt := 0; attempt < 5; attempt++ {
		tx := new(Tx)
		err := f(tx)
		if err == nil {
			err = tx.Commit()
		}
		if !errors.Is(err, errConflict) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return errConflict
}

func (disk) View(ctx context.Context, f func(*Tx) error) error { return f(new(Tx)) } // want View:"runs no parameter again"

// Retry calls attempt until it succeeds.
func Retry(ctx context.Context, attempt func() error) (err error) { // want Retry:"runs a parameter again"
	once := func() error { return attempt() }
	for range 3 {
		if err = once(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// Quietly passes on what it gets.
func Quietly(ctx context.Context, f func() error) { // want Quietly:"runs a parameter again"
	_ = Retry(ctx, f)
}

// ReadAll reads in a transaction.
func ReadAll(ctx context.Context, db DB, each func(string) error) error { // want ReadAll:"runs a parameter again"
	return db.Update(ctx, func(tx *Tx) error {
		rows, err := tx.Rows("")
		if err != nil {
			return err
		}
		return each(rows[0])
	})
}

// ForEach is no retry.
func ForEach(items []string, f func(string) error) error {
	for i := 0; i < len(items); i++ {
		if err := f(items[i]); err != nil {
			return err
		}
		time.Sleep(time.Second)
	}
	return nil
}

// Numbered passes the number of the turn.
func Numbered(f func(int) error) (err error) {
	for attempt := 0; attempt < 3; attempt++ {
		if err = f(attempt); err == nil {
			return nil
		}
	}
	return err
}

// Begin runs it once, whatever its name says.
func RetryTx(ctx context.Context, f func(*Tx) error) error {
	return f(new(Tx))
}
