package retryjob

import (
	"context"
	"sync/atomic"
	"time"
	"unique"

	"github.com/retrygo/retry/internal/jobkey"
)

// live is the context of an attempt. Each attempt has its own, since a handler may keep it. It is small: it makes a
// cancelable context only when one is needed, because few handlers use it and few attempts are canceled.
type live struct {
	inner       atomic.Pointer[cancelable] // nil until a method needs it or the context ends
	clock       *clock
	id          string
	route       unique.Handle[route]
	correlation string
	first       instant
	start       instant // of the attempt
	number      int32
	replays     int32
}

// cancelable is a context with its cancel function.
type cancelable struct {
	context.Context
	cancel context.CancelCauseFunc
}

func newCancelable() *cancelable {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &cancelable{ctx, cancel}
}

// finished is the context of all attempts that ended before a method needed one.
var finished = func() *cancelable {
	c := newCancelable()
	c.cancel(nil)
	return c
}()

func (l *live) context() *cancelable {
	if c := l.inner.Load(); c != nil {
		return c
	}
	l.inner.CompareAndSwap(nil, newCancelable())
	return l.inner.Load()
}

// end ends the context of an attempt that has ended.
func (l *live) end() {
	if !l.inner.CompareAndSwap(nil, finished) {
		l.inner.Load().cancel(nil)
	}
}

// Deadline implements context.Context.
func (*live) Deadline() (deadline time.Time, ok bool) { return }

// Done implements context.Context.
func (l *live) Done() <-chan struct{} { return l.context().Done() }

// Err implements context.Context.
func (l *live) Err() error {
	if c := l.inner.Load(); c != nil {
		return c.Err()
	}
	return nil
}

// Value implements context.Context. Package context finds the cancelable context by a key of its own.
func (l *live) Value(key any) any {
	if key == (jobkey.Handler{}) {
		return &AttemptInfo{
			JobID: l.id, Kind: l.route.Value().kind.name, Correlation: l.correlation,
			Number: int(l.number), Replays: int(l.replays), FirstDue: l.clock.time(l.first),
		}
	}
	return l.context().Value(key)
}
