package retryhttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/retrygo/retry"
)

// resumable is the body of a response that goes on where it breaks off (see Transport.Resume). Each break begins a run,
// whose first attempt is the one that has just ended with the break, and which succeeds once another byte has come. As
// with other bodies, Close may be called while Read is under way.
type resumable struct {
	run  *run           // the RoundTrip that returned resp
	resp *http.Response // the caller's, for its trailers
	content
	digest *digest       // nil if resp names no digest
	from   origin        // of the part under way
	asked  *http.Request // for which the rest is asked, which is the run's or the one to which its redirects lead by now
	parts  parts

	next, stop int64          // offsets of the next byte to deliver and behind the last one of the part, which may be unknown
	passed     int64          // how many bytes of the part were delivered before, and are passed over
	renewed    bool           // asked was renewed since the last byte came
	last       *http.Response // the last part, nil before there was another than resp
	broken     error          // the error with which the part ended, after the bytes before it were delivered
	ended      error          // the error that every further Read returns
}

// resume makes the body of the response one that can be resumed, or one whose error names the obstacle.
func (x *exchange) resume() {
	resp := x.resp
	if _, writable := resp.Body.(io.Writer); writable || resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	req := x.run.request.req
	b := &resumable{run: x.run, resp: resp, content: contentOf(req, resp), digest: digestOf(resp), from: x.origin(), asked: req}
	b.parts.part = resp.Body
	b.digest.begin(b.first)
	b.next = b.first
	b.stop = b.end
	resp.Body = b
}

func (b *resumable) Read(p []byte) (n int, err error) {
	if b.ended != nil || len(p) == 0 {
		return 0, b.ended
	}
	if err = b.broken; err == nil {
		n, err = b.read(p)
	}
	if n > 0 && err != io.EOF {
		b.broken = err
		return n, nil
	}
	if err != nil && err != io.EOF {
		n, err = b.ask(p, err)
	}
	if err == io.EOF {
		err = b.atEnd()
	}
	if err != nil {
		b.ended = err
		b.letGo()
	}
	return n, err
}

// atEnd returns the error of Read at the end of the body. It is io.EOF if the digest is right.
func (b *resumable) atEnd() error {
	if err := b.digest.mismatch(); err != nil {
		return &AttemptError{Reason: DigestMismatch, Request: b.run.request.req, Err: err}
	}
	return io.EOF
}

// read reads from the part under way. It returns io.EOF only at the end of all, and never a byte beyond the part.
func (b *resumable) read(p []byte) (int, error) {
	left := b.stop - b.next
	if int64(len(p)) > left {
		p = p[:max(left, 1)] // one more for the part's io.EOF and its trailers
	}
	n, err := b.parts.part.Read(p)
	if int64(n) > left {
		n = 0
		err = io.EOF // more than the server has announced
	}
	b.next += int64(n)
	b.digest.add(p[:n])
	switch {
	case err == nil:
		return n, nil
	case b.next == b.end:
		return n, io.EOF // an HTTP/2 stream can be reset after its last byte
	case err == io.EOF && b.stop != unknown:
		return n, io.ErrUnexpectedEOF
	default:
		return n, err
	}
}

// ask asks for the rest, until the policy ends the run, and reads its beginning into p. cause is the error with which
// the part under way ended. ask returns it unchanged if the caller has canceled the request or closed the body.
func (b *resumable) ask(p []byte, cause error) (n int, err error) {
	b.broken = cause // if a function of the caller's or Base panics
	isWhole := b.next == b.stop
	first := 2 // the number of the first attempt at the rest, since a part that broke off is attempt 1
	if isWhole {
		first = 1
	}
	r := b.nextRun(first)
	if r == nil {
		return 0, cause
	}
	defer r.finish()
	if r.gone() != "" {
		return 0, cause
	}
	policy := r.restPolicy()
	attempt := func(ctx context.Context) error {
		n, err = b.attempt(ctx, r, p)
		r.unspent = false
		return err
	}
	lasted := time.Since(epoch) - r.began
	if isWhole && r.request.policy.Admit(r.progress(), 0).Status == retry.WaitingRetry {
		if policy.TTL > 0 {
			policy.TTL = max(policy.TTL-lasted, 1)
		}
		err = retry.Do(r, policy, attempt) // the part is whole and shorter than the range that was asked for, which is not a failure
	} else {
		err = policy.Continue(r, lasted, b.failure(r, cause), attempt)
	}
	if err == nil && n == 0 {
		return 0, io.EOF
	}
	return n, b.explained(r, err)
}

// failure returns the failure of the part under way, which ended with cause.
func (b *resumable) failure(r *run, cause error) error {
	failed := r.fault(cause, nil)
	if b.obstacle != "" {
		failed.Veto = NotResumable
		failed.Err = fmt.Errorf("%w (%s)", failed.Err, b.obstacle)
	}
	return r.judged(failed, nil)
}

// explained returns err, which ended the run r, as Read returns it.
func (b *resumable) explained(r *run, err error) error {
	failed, ok := err.(*retry.Error)
	switch {
	case !ok:
		return err
	case failed.Reason == retry.CallerCanceled && b.run.Err() == nil:
		return http.ErrBodyReadAfterClose // Close has ended r's context
	case failed.Cause() != nil:
		return r.detached(failed)
	default:
		return err
	}
}

// restPolicy returns the policy of a run for the rest of a body.
func (r *run) restPolicy() retry.Policy {
	p := r.policy()
	p.Budget = nil
	p.Pay = payRest
	p.Name = strings.TrimSpace(p.Name + " body")
	if own := r.request.policy.Observe; own != nil { // not observe, because the record of r's context is the RoundTrip's
		p.Observe = func(_ context.Context, e retry.Event) { own(r.Context, e) }
	}
	if r.request.policy.Gate != nil {
		p.Gate = gate
	}
	return p
}

// nextRun closes the part under way and returns the run for the rest, nil if the body is closed. first is the number of its
// first attempt, which goes where the part came from.
func (b *resumable) nextRun(first int) *run {
	ctx := b.parts.replace(http.NoBody, b.run.Context)
	if ctx == nil {
		return nil
	}
	if b.from.host != "" {
		ctx = context.WithValue(ctx, placeKey{}, place{b.from.host, first})
	}
	return b.newRun(b.rest(ctx, b.asked))
}

// newRun returns a run for req, which asks for the rest or for where it is.
func (b *resumable) newRun(req *http.Request) *run {
	caller := &b.run.request
	r := newRun(caller.transport, caller.policy, req)
	r.began = b.run.began
	from := b.from // b has another one by the time that a hedge which has lost asks
	r.request.from = &from
	r.request.prepared = true
	r.request.repeatable = true // a GET without a body
	return r
}

// rest returns req as a request for the rest of the body.
func (b *resumable) rest(ctx context.Context, req *http.Request) *http.Request {
	req = req.WithContext(ctx)
	header := edited{original: req.Header}
	span := fmt.Sprintf("bytes=%d-", b.next)
	if b.status == http.StatusPartialContent {
		span += strconv.FormatInt(b.end-1, 10)
	}
	header.setOnly("Range", span)
	header.setOnly("If-Range", b.validator())
	if b.run.request.asksIdentity() {
		header.setOnly("Accept-Encoding", "identity")
	}
	req.Header = header.copied
	return req
}

// attempt makes an attempt at the rest and reads its beginning into p. It returns nil once a byte has come, and at the
// end.
func (b *resumable) attempt(ctx context.Context, r *run, p []byte) (n int, err error) {
	x, err := b.answer(ctx, r)
	if err != nil {
		return 0, err
	}
	if failed := b.check(x.resp); failed != nil {
		x.drop()
		failed.Request = b.run.request.req
		failed.rest = true
		return 0, failed.forbidden()
	}
	if !b.take(x) {
		return 0, context.Canceled
	}
	err = b.passOver()
	for n == 0 && err == nil {
		n, err = b.read(p)
	}
	if n > 0 || err == io.EOF {
		b.broken = err
		b.renewed = false
		return n, nil
	}
	return 0, r.judged(r.fault(err, nil), nil)
}

// answer makes the exchange of an attempt, and if its URL may have expired, the one to which the first URL leads by now.
func (b *resumable) answer(ctx context.Context, r *run) (*exchange, error) {
	if err := r.attempt(ctx); err != nil {
		return nil, err
	}
	x := r.handOver()
	if !b.mayRenew(x.resp) {
		return x, nil
	}
	renewed, err := b.renew(ctx, r.Context)
	if renewed == nil && err == nil {
		return x, nil
	}
	x.drop()
	return renewed, err
}

// take makes the response of x the part under way. It reports false, and drops x, if the body is closed.
func (b *resumable) take(x *exchange) bool {
	part := x.resp.Body
	if part == nil {
		part = http.NoBody
	}
	b.last = x.resp
	b.from = x.origin()
	b.digest.begin(b.next)
	return b.parts.replace(part, b.run.Context) != nil
}

// maxPassedOver is the largest number of delivered bytes to fetch once more, for each part, from a server that knows no
// ranges. That takes 5s at 100 Mbit/s, as long as a reader may be kept waiting between two bytes.
const maxPassedOver = 64 << 20

// passOver passes over the bytes of the part that were delivered before.
func (b *resumable) passOver() error {
	n := b.passed
	b.passed = 0
	_, err := io.CopyN(io.Discard, b.parts.part, n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// check returns nil and notes where resp ends if it is the rest of the same content, or a part of that.
func (b *resumable) check(resp *http.Response) *AttemptError {
	switch resp.StatusCode {
	case http.StatusOK:
		return b.checkWhole(resp)
	case http.StatusPartialContent:
		return b.checkPart(resp)
	}
	if b.saysComplete(resp) {
		b.stop = b.next
		b.end = b.next
		return nil
	}
	refused := statusError(resp, 0, nil)
	refused.Header = kept(resp.Header)
	return refused
}

// saysComplete reports whether resp is a 416 that shows that all bytes were delivered.
func (b *resumable) saysComplete(resp *http.Response) bool {
	if resp.StatusCode != http.StatusRequestedRangeNotSatisfiable || b.end != unknown {
		return false
	}
	r, ok := rangeOf(resp.Header)
	return ok && r.total == b.next && agrees(resp.Header, "Etag", b.etag, false)
}

// checkWhole is check for a 200.
func (b *resumable) checkWhole(resp *http.Response) *AttemptError {
	if !b.isVersionOf(resp) {
		return b.mismatch(ContentChanged, resp, b.next)
	}
	isAgain := b.next == 0 && b.status == http.StatusOK && resp.ContentLength == b.length // no byte was delivered yet
	if !isAgain && !b.mayPassOver(resp) {
		return b.mismatch(NotResumable, resp, b.next)
	}
	b.passed = b.next
	b.stop = b.end
	return nil
}

// mayPassOver reports whether the bytes delivered are also the first of resp, a 200 of the same version, and few enough.
func (b *resumable) mayPassOver(resp *http.Response) bool {
	if b.etag == "" || resp.ContentLength >= 0 && differ(resp.ContentLength, b.total) {
		return false
	}
	return b.next <= maxPassedOver
}

// checkPart is check for a 206.
func (b *resumable) checkPart(resp *http.Response) *AttemptError {
	r, ok := rangeOf(resp.Header)
	if !b.isVersionOf(resp) || ok && differ(r.total, b.total) {
		return b.mismatch(ContentChanged, resp, b.next)
	}
	if !ok || isMultipart(resp.Header) || !r.hasLength(resp.ContentLength) {
		return b.mismatch(NotResumable, resp, b.next)
	}
	if r.first != b.next || r.last >= b.end {
		return b.mismatch(NotResumable, resp, b.next)
	}
	b.total = min(b.total, r.total)
	b.stop = r.last + 1
	b.end = min(b.end, b.total)
	return nil
}

// differ reports whether two totals are known and not the same.
func differ(a, b int64) bool { return a != b && a != unknown && b != unknown }

// letGo frees the context and the body of the parts after the first, since Read has ended, and passes their trailers
// on.
func (b *resumable) letGo() {
	b.parts.end()
	if b.last != nil && len(b.last.Trailer) > 0 {
		b.resp.Trailer = b.last.Trailer
	}
}

// Close ends a Read that waits or asks for the rest.
func (b *resumable) Close() error { return b.parts.Close() }

// parts is the bodies of which a body is made, one after the other. Close may be called at any time.
type parts struct {
	part io.ReadCloser // the one under way

	mu     sync.Mutex
	ctx    context.Context    // of the parts after the first, nil before
	cancel context.CancelFunc // of ctx
	closed bool
}

// replace closes the part under way and makes part the next one. It returns the context of the parts after the first, a
// child of caller. If p is closed, it closes part and returns nil.
func (p *parts) replace(part io.ReadCloser, caller context.Context) context.Context {
	old, ctx := p.swap(part, caller)
	_ = old.Close()
	return ctx
}

func (p *parts) swap(part io.ReadCloser, caller context.Context) (old io.ReadCloser, ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return part, nil
	}
	if p.ctx == nil {
		p.ctx, p.cancel = context.WithCancel(caller)
	}
	old = p.part
	p.part = part
	return old, p.ctx
}

// end closes the part under way and ends the context, if there was more than one part.
func (p *parts) end() {
	if p.ctx == nil {
		return
	}
	p.replace(http.NoBody, p.ctx)
	p.cancel()
}

// Close closes the part under way, once, and ends the context.
func (p *parts) Close() error {
	p.mu.Lock()
	part := p.part
	closed := p.closed
	p.closed = true
	if p.cancel != nil {
		p.cancel() // before a Read finds the body closed, and asks the context why
	}
	p.mu.Unlock()
	if closed {
		return nil
	}
	return part.Close()
}
