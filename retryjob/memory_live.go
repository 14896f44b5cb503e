package retryjob

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry/internal/jobkey"
)

// live is the context of an attempt. Each attempt has its own, since a handler may keep it. It makes a cancelable
// context only when one is needed, because few handlers use it and few attempts are canceled.
type live struct {
	inner atomic.Pointer[cancelable] // nil until a method needs it or the context ends
	start instant
	info  AttemptInfo
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
	if l.inner.Load() == nil {
		l.inner.CompareAndSwap(nil, newCancelable())
	}
	return l.inner.Load()
}

func (l *live) cancel(cause error) { l.context().cancel(cause) }

// end ends the context of an attempt that has ended.
func (l *live) end() {
	if !l.inner.CompareAndSwap(nil, finished) {
		l.cancel(nil)
	}
}

// The methods of context.Context. Package context finds the cancelable context by a key of its own.
func (*live) Deadline() (deadline time.Time, ok bool) { return }
func (l *live) Done() <-chan struct{}                 { return l.context().Done() }
func (l *live) Err() error {
	if c := l.inner.Load(); c != nil {
		return c.Err()
	}
	return nil
}
func (l *live) Value(key any) any {
	if key == (jobkey.Handler{}) {
		return &l.info
	}
	return l.context().Value(key)
}
