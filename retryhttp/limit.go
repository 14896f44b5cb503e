package retryhttp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry"
)

// limit is the context of an attempt that has a timeout. It can be stopped, which the deadline of a context cannot, so
// that the body that follows the headers has all the time it needs. Once the timeout has passed, its Err is
// context.DeadlineExceeded and its context.Cause is retry.ErrAttemptTimeout. The same holds for every context derived
// from it.
//
// The limit of an attempt with hedges also holds the context of the request that has won, and may have no timeout of
// its own. The methods stop, release and settle of a nil limit have no effect.
type limit struct {
	context.Context                         // ends with the attempt with the right Cause, but after the timeout its Err is Canceled
	cancel          context.CancelCauseFunc // nil without a timeout
	endWinner       func()                  // nil without hedges
	timer           *time.Timer             // nil without a timeout
	until           time.Time               // when the timeout passes
	stopped         atomic.Bool             // it will not pass
	once            sync.Once
	done            chan struct{}
	body            guardedBody // room for it, since most responses have one
}

// newLimit returns a limit that begins now, as a context below ctx.
func newLimit(ctx context.Context, timeout time.Duration) *limit {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &limit{Context: ctx, cancel: cancel, until: time.Now().Add(timeout)}
	l.timer = time.AfterFunc(timeout, func() { cancel(retry.ErrAttemptTimeout) })
	return l
}

// endsWithin reports whether the deadline of ctx, which then ends the attempt, is not after the end of the timeout.
func endsWithin(ctx context.Context, timeout time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= timeout
}

// Deadline returns the end of the timeout, or the deadline of the caller once the timeout is stopped.
func (l *limit) Deadline() (time.Time, bool) {
	if l.stopped.Load() {
		return l.Context.Deadline()
	}
	return l.until, true // no later than the caller's, by endsWithin
}

// Done returns a channel other than the channel of l.Context. If both were the same, package context would give a
// context derived from l the Err of l.Context. The channel is made on the first call.
func (l *limit) Done() <-chan struct{} {
	l.once.Do(func() {
		l.done = make(chan struct{})
		context.AfterFunc(l.Context, func() { close(l.done) })
	})
	return l.done
}

func (l *limit) Err() error {
	if context.Cause(l.Context) == retry.ErrAttemptTimeout {
		return context.DeadlineExceeded
	}
	return l.Context.Err()
}

// AfterFunc is found by package context, which would otherwise start a goroutine for each context derived from l.
func (l *limit) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(l.Context, f) }

// stop stops the timeout. It reports whether the timeout has not passed.
func (l *limit) stop() bool {
	if l == nil || l.timer == nil {
		return true
	}
	stopped := l.timer.Stop()
	l.stopped.Store(stopped)
	return stopped
}

// release frees the context, which ends all work that still runs with it.
func (l *limit) release() {
	if l == nil {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.end()
}

// room returns room for the body of a response.
func (l *limit) room() *guardedBody {
	if l == nil {
		return new(guardedBody)
	}
	return &l.body
}

// settle is release, unless the body of a response is to do it.
func (l *limit) settle() {
	if l != nil && l.body.body == nil {
		l.release()
	}
}

// end is release for a limit whose timeout is stopped.
func (l *limit) end() {
	if l.endWinner != nil {
		l.endWinner()
	}
	if l.cancel != nil {
		l.cancel(nil)
	}
}
