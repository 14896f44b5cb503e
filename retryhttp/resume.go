package retryhttp

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/retrygo/retry"
)

// resumable is the body of a response that goes on where it breaks off: see Transport.Resume. Each break begins a run,
// whose first attempt is the one that has just ended with the break, and which succeeds once another byte has come. As
// with other bodies, Close may be called while Read is under way.
type resumable struct {
	call     *call          // of the RoundTrip that returned resp
	resp     *http.Response // the caller's
	obstacle string         // why it cannot be resumed; empty if it can
	etag     string         // the validator, or
	modified string         // the Last-Modified, if there is no ETag

	// Offsets in the content. next is that of the next byte to deliver, stop is behind the last byte of the part under
	// way, end behind that of resp, and total is the content's length. All but next may be unknown.
	next, stop, end, total int64

	last   *http.Response // the last part; nil before there was another than resp
	broken error          // what the part ended with, after the bytes before it were delivered
	ended  error          // what every further Read returns

	mu     sync.Mutex
	part   io.ReadCloser
	ctx    context.Context    // of the parts after the first; nil before
	cancel context.CancelFunc // of ctx
	closed bool
}

const unknown = math.MaxInt64 // an offset that a server has not said

// resumed makes the body of resp, which the call returns, one that can be resumed or says why it cannot.
func (c *call) resumed(resp *http.Response) {
	if _, writable := resp.Body.(io.Writer); writable || resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	b := &resumable{call: c, resp: resp, part: resp.Body, end: unknown, total: unknown}
	if b.obstacle = b.survey(); b.obstacle != "" {
		b.end = unknown
	}
	b.stop = b.end
	resp.Body = b
}

// survey notes what of resp the rest must agree with. It returns why there is no rest to be had, "" if there is.
func (b *resumable) survey() string {
	h, req, length := b.resp.Header, b.call.req, b.resp.ContentLength
	switch first, last, total, ok := contentRange(h.Values("Content-Range")); {
	case !isGet(req):
		return "the method is not GET"
	case req.Body != nil && req.Body != http.NoBody:
		return "the request has a body"
	case b.resp.Uncompressed:
		return "the transport has decoded it"
	case b.resp.StatusCode == http.StatusOK:
		if length >= 0 {
			b.end, b.total = length, length
		}
	case b.resp.StatusCode != http.StatusPartialContent:
		return "the status is neither 200 nor 206"
	case isMultipart(h):
		return "several ranges"
	case !ok || first < 0 || length >= 0 && length != last-first+1:
		return "no valid Content-Range"
	default:
		b.next, b.end, b.total = first, last+1, total
	}
	if strings.EqualFold(h.Get("Accept-Ranges"), "none") {
		return "Accept-Ranges is none"
	}
	if b.etag, b.modified = strongValidator(h); b.etag+b.modified == "" {
		return "no strong validator"
	}
	return ""
}

func isGet(req *http.Request) bool { return req.Method == "" || req.Method == http.MethodGet }

// clockSkew is how much older than the Date of its response a Last-Modified must be to be strong. RFC 9110, section
// 8.8.2.2, asks for a second if one clock makes both, RFC 7232, section 2.2.2, for 60 s otherwise.
const clockSkew = time.Minute

// strongValidator returns the ETag of h if it is strong, or the Last-Modified if that is and there is no ETag at all
// (RFC 9110, section 13.1.5). All codings of a file have the same Last-Modified.
func strongValidator(h http.Header) (etag, modified string) {
	if etag = h.Get("Etag"); etag != "" {
		if len(etag) < 2 || etag[0] != '"' || etag[len(etag)-1] != '"' {
			etag = "" // weak, or none
		}
		return etag, ""
	}
	changed, err := http.ParseTime(h.Get("Last-Modified"))
	sent, bad := http.ParseTime(h.Get("Date"))
	if err != nil || bad != nil || sent.Sub(changed) < clockSkew || h.Get("Content-Encoding") != "" {
		return "", ""
	}
	return "", h.Get("Last-Modified")
}

func isMultipart(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "multipart/byteranges")
}

// contentRange parses the only value of a Content-Range (RFC 9110, section 14.4): "bytes 0-99/1000". total is unknown
// for "bytes 0-99/*"; first and last are -1 for "bytes */1000", which says that no byte of the range exists.
func contentRange(values []string) (first, last, total int64, ok bool) {
	if len(values) != 1 {
		return 0, 0, 0, false
	}
	unit, rest, _ := strings.Cut(values[0], " ")
	span, length, _ := strings.Cut(rest, "/")
	from, to, _ := strings.Cut(span, "-")
	if first, last, total = offset(from), offset(to), offset(length); length == "*" {
		total = unknown
	}
	ok = 0 <= first && first <= last && last < total || span == "*" && total >= 0 && total != unknown
	return first, last, total, ok && strings.EqualFold(unit, "bytes")
}

// offset parses a number of digits alone that is less than unknown, and returns -1 for anything else.
func offset(s string) int64 {
	n, err := strconv.ParseUint(s, 10, 63) // refuses a sign
	if err != nil || n == unknown {
		return -1
	}
	return int64(n)
}

func (b *resumable) Read(p []byte) (n int, err error) {
	if b.ended != nil || len(p) == 0 {
		return 0, b.ended
	}
	if err = b.broken; err == nil {
		n, err = b.read(p)
	}
	if n > 0 && err != io.EOF {
		b.broken, err = err, nil
	} else if err != nil && err != io.EOF {
		n, err = b.resume(p, err)
	}
	if err != nil {
		b.ended = err
		b.letGo()
	}
	return n, err
}

// read reads from the part under way. It returns io.EOF only at the end of all, and never a byte beyond the part.
func (b *resumable) read(p []byte) (int, error) {
	left := b.stop - b.next
	if int64(len(p)) > left {
		p = p[:max(left, 1)] // one more for the part's io.EOF and its trailers
	}
	n, err := b.part.Read(p)
	if int64(n) > left {
		n, err = 0, io.EOF // more than the server has announced
	}
	b.next += int64(n)
	switch {
	case err == nil:
	case b.next == b.end:
		err = io.EOF // an HTTP/2 stream can be reset after its last byte
	case err == io.EOF && b.stop != unknown:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// resume asks for the rest, until the policy ends the run, and reads its beginning into p. cause is what the part under
// way ended with; it is returned unchanged if the caller has canceled the request or closed the body.
func (b *resumable) resume(p []byte, cause error) (n int, err error) {
	b.broken = cause // if a function of the caller's or Base panics
	c := b.nextCall()
	if c == nil {
		return 0, cause
	}
	defer c.finish()
	if c.gone() != "" {
		return 0, cause
	}
	failed := c.fault(cause, nil)
	if b.obstacle != "" {
		failed.Veto, failed.Err = NotResumable, fmt.Errorf("%w (%s)", failed.Err, b.obstacle)
	}
	policy := c.runPolicy()
	policy.Name = strings.TrimSpace(policy.Name + " body")
	if own := c.policy.Observe; own != nil { // not observe: the record of c's context is that of the RoundTrip
		policy.Observe = func(_ context.Context, e retry.Event) { own(c.Context, e) }
	}
	if c.policy.Gate != nil {
		policy.Gate = gate
	}
	ask := func(ctx context.Context) error {
		n, err = b.ask(ctx, c, p)
		return err
	}
	lasted := time.Since(epoch) - c.began
	if b.next == b.stop && c.policy.Admit(c.progress(), 0).Status == retry.WaitingRetry {
		if policy.TTL > 0 {
			policy.TTL = max(policy.TTL-lasted, 1)
		}
		err = retry.Do(c, policy, ask) // the part is whole, and was less than asked for: not a failure
	} else {
		err = policy.Continue(c, lasted, c.judged(failed), ask)
	}
	switch failed, ok := err.(*retry.Error); {
	case err == nil && n == 0:
		err = io.EOF
	case ok && failed.Reason == retry.CallerCanceled && b.call.Err() == nil:
		err = http.ErrBodyReadAfterClose // Close has ended c's context
	case ok && failed.Cause() != nil:
		err = c.detached(failed)
	}
	return n, err
}

// nextCall closes the part under way and returns the call for the rest, nil if the body is closed.
func (b *resumable) nextCall() *call {
	if !b.take(http.NoBody) {
		return nil
	}
	req := b.call.req.WithContext(b.ctx)
	req.Header = http.Header{}
	maps.Copy(req.Header, b.call.req.Header)
	span := fmt.Sprintf("bytes=%d-", b.next)
	if b.resp.StatusCode == http.StatusPartialContent {
		span += strconv.FormatInt(b.end-1, 10)
	}
	setOnly(req.Header, "Range", span)
	setOnly(req.Header, "If-Range", b.etag+b.modified)
	t := *b.call.transport
	t.Accept, t.Delivery = nil, false          // what is a success here is for check
	if b.call.byHedge && t.Hedge.Base != nil { // the rest is where the body came from
		swapped := *t.Hedge
		t.Base, swapped.Base = t.Hedge.Base, t.base()
		t.Hedge = &swapped
	}
	c := newCall(&t, b.call.policy, req)
	c.began, c.ready, c.repeatable = b.call.began, true, true // a GET without a body
	return c
}

// ask makes an attempt at the rest and reads its beginning into p. It returns nil once a byte has come, and at the end.
func (b *resumable) ask(ctx context.Context, c *call, p []byte) (n int, err error) {
	if err := c.attempt(ctx); err != nil {
		return 0, err
	}
	resp := c.resp
	c.resp = nil
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	if failed := b.check(resp); failed != nil {
		closeBody(resp)
		failed.Request = b.call.req
		return 0, failed.forbidden()
	}
	if !b.take(resp.Body) {
		return 0, context.Canceled
	}
	b.last = resp
	for n == 0 && err == nil {
		n, err = b.read(p)
	}
	if n > 0 || err == io.EOF {
		b.broken = err
		return n, nil
	}
	return 0, c.judged(c.fault(err, nil))
}

// check returns nil and notes where resp ends if it is the rest of the same content, or a part of that.
func (b *resumable) check(resp *http.Response) *AttemptError {
	h, length, reason := resp.Header, resp.ContentLength, NotResumable
	first, last, total, ok := contentRange(h.Values("Content-Range"))
	partial := resp.StatusCode == http.StatusPartialContent
	agrees := func(name string) bool { // a 206 need not repeat what is not the ETag, nor a 416 anything
		said := h.Get(name)
		return said == b.resp.Header.Get(name) || said == "" && resp.StatusCode != http.StatusOK
	}
	same := !resp.Uncompressed && h.Get("Etag") == b.etag && agrees("Content-Encoding") && (b.etag != "" || agrees("Last-Modified"))
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && ok && total == b.next && b.end == unknown && agrees("Etag"):
		b.stop, b.end = b.next, b.next // all was delivered
		return nil
	case !partial && resp.StatusCode != http.StatusOK:
		refused := statusError(resp, 0, nil)
		refused.Header = kept(h)
		return refused
	case !partial && same && b.next == 0 && b.resp.StatusCode == http.StatusOK && length == b.resp.ContentLength:
		b.stop = b.end // nothing was delivered yet
		return nil
	case !same || ok && total != b.total && total != unknown && b.total != unknown:
		reason = ContentChanged
	case partial && ok && first == b.next && last < b.end && (length < 0 || length == last-first+1) && !isMultipart(h):
		b.total = min(b.total, total)
		b.stop, b.end = last+1, min(b.end, b.total)
		return nil
	}
	return &AttemptError{Reason: reason, Veto: reason, Err: fmt.Errorf(
		"%s with ETag %q and Content-Range %q, after %d bytes of %q",
		statusText(resp.StatusCode), h.Get("Etag"), h.Get("Content-Range"), b.next, b.etag+b.modified)}
}

// take closes the part under way and makes part the next one. It reports false, and closes part, if the body is closed.
func (b *resumable) take(part io.ReadCloser) bool {
	b.mu.Lock()
	if !b.closed {
		b.part, part = part, b.part
		if b.ctx == nil {
			b.ctx, b.cancel = context.WithCancel(b.call.req.Context())
		}
	}
	closed := b.closed
	b.mu.Unlock()
	_ = part.Close()
	return !closed
}

// letGo frees what the parts after the first have, since Read has ended, and passes their trailers on.
func (b *resumable) letGo() {
	if b.ctx != nil {
		b.take(http.NoBody)
		b.cancel()
	}
	if b.last != nil && len(b.last.Trailer) > 0 {
		b.resp.Trailer = b.last.Trailer
	}
}

// Close ends a Read that waits or asks for the rest.
func (b *resumable) Close() error {
	b.mu.Lock()
	part, cancel, closed := b.part, b.cancel, b.closed
	b.closed = true
	if cancel != nil {
		cancel() // before a Read finds the body closed, and asks the context why
	}
	b.mu.Unlock()
	if closed {
		return nil
	}
	return part.Close()
}
