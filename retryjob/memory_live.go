package retryjob

import (
	"context"
	"sync/atomic"
	"time"
)

// live is what a job has only while something happens about it. While an attempt is under way it is the attempt's
// context, which makes a cancelable one only if it is needed: few handlers ask, and few attempts are canceled.
type live struct {
	info  AttemptInfo
	inner atomic.Pointer[cancelable] // nil until something is asked that info does not answer, or the context ends

	// The shard's mutex guards the rest.
	underWay bool
	start    instant // of the attempt
	watch    *watch  // what Wait waits for; nil if it is not called
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

// finished is the context of attempts that have ended and were not asked for a context before.
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

// Value implements context.Context. The context that cancels what is derived from it is found by a key too.
func (l *live) Value(key any) any {
	if key == (infoKey{}) {
		return &l.info
	}
	return l.context().Value(key)
}
