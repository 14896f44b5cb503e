package retryhttp

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// A response that is given up is read to its end, so that its HTTP/1 connection can be used again. It is read only
	// as far as that is cheaper than a new connection. The first 64 KiB arrive in a few round trips, as many as a
	// handshake takes. net/http's client reads no more than 2 KiB of a redirect's body for the same end, its server 256
	// KiB.
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

// ErrBodyStalled is the error of a Read of a response's body that has taken longer than Transport.StallTimeout. It
// matches context.DeadlineExceeded and is a timeout.
var ErrBodyStalled error = bodyStalled{}

type bodyStalled struct{}

func (bodyStalled) Error() string        { return "retryhttp: response body stalled" }
func (bodyStalled) Timeout() bool        { return true }
func (bodyStalled) Is(target error) bool { return target == context.DeadlineExceeded }

// guard wraps the body of resp in a guardedBody, which frees the context of the attempt when the body ends and applies
// the stall timeout. If the response needs neither, its body is unchanged. If there is no body, limit.settle frees l.
func guard(resp *http.Response, l *limit, stall time.Duration) {
	if l == nil && stall == 0 {
		return
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	conn, writable := resp.Body.(io.ReadWriteCloser)
	guarded := l.room()
	guarded.body = resp.Body
	guarded.limit = l
	guarded.stall = stall
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
	stall   time.Duration // 0 for no limit
	timer   *time.Timer   // of the stall timeout, nil before the first Read
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
		err = ErrBodyStalled // also for io.EOF, since a closed body may report its end
	}
	b.over(err)
	return n, err
}

// cut ends a Read that takes too long.
func (b *guardedBody) cut() {
	b.stalled.Store(true)
	_ = b.close()
}

// over frees the attempt's context once the body has ended.
func (b *guardedBody) over(err error) {
	if err != nil && b.limit != nil {
		b.limit.end()
	}
}

func (b *guardedBody) Close() error {
	err := b.close()
	b.over(io.EOF)
	return err
}

// close closes the body, unless it was closed, because the behavior of a second Close is undefined.
func (b *guardedBody) close() error {
	if b.closed.Swap(true) {
		return nil
	}
	return b.body.Close()
}

// upgradedBody is the body of a 101, which is a connection. It may be silent, and either half of it can end before the
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

// halvedBody is an upgradedBody whose writing half can be closed alone, as net/http's can. httputil.ReverseProxy passes
// that on.
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
