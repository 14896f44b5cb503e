package retryhttp

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry"
)

const (
	// A response that is given up is read to its end, so that its HTTP/1 connection can be used again, as far as that
	// is cheaper than a new one: a connection's first 64 KiB arrive in a few round trips, and a handshake takes as
	// many. net/http's client reads no more than 2 KiB of a redirect's body for the same end, its server 256 KiB.
	drainLimit = 64 << 10
	drainTime  = 100 * time.Millisecond
)

// discard reads a response that is not wanted to its end, within limits, and closes it, once.
func discard(resp *http.Response) {
	body := resp.Body
	// HTTP/2 resets the stream and keeps the connection. An upgraded connection has no end to read to.
	if resp.ProtoMajor < 2 && resp.StatusCode != http.StatusSwitchingProtocols && resp.ContentLength <= drainLimit {
		timer := time.AfterFunc(drainTime, func() { _ = body.Close() }) // ends a Read that stalls
		_, _ = io.CopyN(io.Discard, body, drainLimit)
		if !timer.Stop() {
			return // the timer has closed it
		}
	}
	_ = body.Close()
}

func closeBody(resp *http.Response) {
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
}

// limit is the context of an attempt that has a timeout. It can be stopped, which the deadline of a context cannot, so
// that the body that follows the headers has all the time it needs. Once the timeout has passed, its Err and that of
// every context derived from it is context.DeadlineExceeded, and context.Cause retry.ErrAttemptTimeout.
type limit struct {
	context.Context // ends with the attempt; its Cause is right, but its Err after the timeout is Canceled
	cancel          context.CancelCauseFunc
	timer           *time.Timer // nil for no timeout
	once            sync.Once
	done            chan struct{}
	body            guardedBody // room for it, since most responses have one
}

// start returns l after it has begun, as a context below ctx.
func (l *limit) start(ctx context.Context, timeout time.Duration) *limit {
	ctx, cancel := context.WithCancelCause(ctx)
	l.Context, l.cancel = ctx, cancel
	l.timer = time.AfterFunc(timeout, func() { cancel(retry.ErrAttemptTimeout) })
	return l
}

// Done returns a channel other than that of l.Context. With the same one, package context would give a context derived
// from l the Err of l.Context. It is made if asked for.
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

// roundTrip sends req within l, which it releases if base panics.
func (l *limit) roundTrip(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	returned := false
	defer func() {
		if !returned {
			l.release()
		}
	}()
	resp, err := base.RoundTrip(req.WithContext(l))
	returned = true
	return resp, err
}

// stop stops the timeout and reports whether it had not passed.
func (l *limit) stop() bool { return l.timer == nil || l.timer.Stop() }

// release frees the context. It ends what still runs with it.
func (l *limit) release() {
	l.stop()
	l.cancel(nil)
}

// ErrBodyStalled is what reading a response's body returns when one Read has taken longer than Transport.StallTimeout.
// It matches context.DeadlineExceeded and is a timeout.
var ErrBodyStalled error = bodyStalled{}

type bodyStalled struct{}

func (bodyStalled) Error() string        { return "retryhttp: response body stalled" }
func (bodyStalled) Timeout() bool        { return true }
func (bodyStalled) Is(target error) bool { return target == context.DeadlineExceeded }

// guard puts the body of resp behind what it needs: the context of its attempt, which has to live as long as the body
// is read, and the stall timeout. Without either the body stays what it is.
func guard(resp *http.Response, l *limit, stall time.Duration) {
	if l == nil && stall == 0 {
		return
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		if l != nil {
			l.release()
		}
		return
	}
	conn, writable := resp.Body.(io.ReadWriteCloser)
	var guarded *guardedBody
	if l != nil {
		guarded = &l.body
	} else {
		guarded = new(guardedBody)
	}
	guarded.body, guarded.limit, guarded.stall = resp.Body, l, stall
	switch {
	case !writable:
		resp.Body = guarded
	case resp.StatusCode != http.StatusSwitchingProtocols:
		resp.Body = &writableBody{guarded, conn}
	case l != nil:
		upgraded := &upgradedBody{conn, l}
		resp.Body = upgraded
		if half, ok := conn.(closeWriter); ok {
			resp.Body = &halvedBody{upgraded, half}
		}
	}
}

// guardedBody is the body of a response. As with other bodies, Close may be called while Read is under way.
type guardedBody struct {
	body    io.ReadCloser
	limit   *limit        // nil without an attempt timeout
	stall   time.Duration // 0 for none
	timer   *time.Timer   // of the stall timeout; nil before the first Read
	stalled atomic.Bool
	closed  atomic.Bool
}

func (b *guardedBody) Read(p []byte) (int, error) {
	if b.stall == 0 {
		n, err := b.body.Read(p)
		b.over(err)
		return n, err
	}
	if b.stalled.Load() {
		return 0, ErrBodyStalled
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(b.stall, b.cut)
	} else {
		b.timer.Reset(b.stall)
	}
	n, err := b.body.Read(p)
	b.timer.Stop()
	if err != nil && b.stalled.Load() {
		err = ErrBodyStalled // also for io.EOF: what was closed may call itself complete
	}
	b.over(err)
	return n, err
}

// cut ends a Read that takes too long.
func (b *guardedBody) cut() {
	b.stalled.Store(true)
	_ = b.close()
}

// over frees the attempt's context once there is nothing more to read.
func (b *guardedBody) over(err error) {
	if err != nil && b.limit != nil {
		b.limit.cancel(nil) // its timer is stopped
	}
}

func (b *guardedBody) Close() error {
	err := b.close()
	b.over(io.EOF)
	return err
}

// close closes the body, unless it was closed: what a second Close does is undefined.
func (b *guardedBody) close() error {
	if b.closed.Swap(true) {
		return nil
	}
	return b.body.Close()
}

// upgradedBody is the body of a 101: a connection, which may be silent, and either half of which can end before the
// other.
type upgradedBody struct {
	io.ReadWriteCloser
	limit *limit
}

func (b *upgradedBody) Close() error {
	err := b.ReadWriteCloser.Close()
	b.limit.release()
	return err
}

// halvedBody is one whose writing half can be closed alone, as net/http's can: httputil.ReverseProxy passes that on.
type halvedBody struct {
	*upgradedBody
	closeWriter
}

type closeWriter interface{ CloseWrite() error }

// writableBody is another body that can be written to, as a RoundTripper of one's own may return it.
type writableBody struct {
	*guardedBody
	io.Writer
}
