package retryhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"
)

// letGoTime is the longest wait for a failed attempt to close the stream that the next attempt needs. A transport that
// has answered early, to Expect: 100-continue, does so a moment after it has returned.
const letGoTime = time.Second

// payload is the body of the caller's request, and hands each attempt its body. The zero payload belongs to a request
// that was not looked at yet.
type payload struct {
	getBody func() (io.ReadCloser, error) // nil for a stream
	length  int64                         // of a body that was read into memory, 0 if the request's is right
	plain   bool                          // in memory, so that reading it cannot fail
	given   bool                          // it is closed, or will be by the exchange that has it
	stream  *stream                       // nil if there is getBody
}

// open takes over the body of req and reads one of up to limit bytes into memory, if it has no GetBody. An error comes
// with its reason.
func (p *payload) open(ctx context.Context, req *http.Request, limit int64) (Reason, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return "", nil
	}
	if req.GetBody != nil {
		p.getBody = req.GetBody
		if kept := inMemory(req.Body); kept != nil {
			p.plain = true
			return checkLength(req, int64(kept.Len()))
		}
		return "", nil
	}
	source := req.Body
	if limit > 0 && req.ContentLength <= limit { // a ContentLength of 0 does not exclude a body
		start, err := p.start(ctx, source, min(limit, math.MaxInt64-1)+1)
		if err != nil {
			return BodyFailed, err
		}
		if int64(len(start)) <= limit {
			p.given = true
			_ = source.Close()
			p.plain = true
			p.getBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(start)), nil }
			if len(start) == 0 {
				p.getBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
			}
			if len(req.Trailer) == 0 { // which a body with Content-Length cannot have
				p.length = int64(len(start))
			}
			return checkLength(req, int64(len(start)))
		}
		source = &spilled{io.MultiReader(bytes.NewReader(start), source), source}
	}
	p.stream = &stream{source: source}
	return "", nil
}

// start reads up to n bytes of body. It closes body when ctx ends, because that ends a Read that waits, such as the
// Read of a pipe or of a server's request.
func (p *payload) start(ctx context.Context, body io.ReadCloser, n int64) (read []byte, err error) {
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	defer func() { // also after a panic of Read
		if p.given = !stop(); p.given && err == nil {
			err = ctx.Err() // a closed body may report its end
		}
	}()
	return io.ReadAll(io.LimitReader(body, n))
}

// checkLength refuses a body in memory whose length is not the ContentLength of the request. net/http notices it while
// it sends, too late, and does not always report it.
func checkLength(req *http.Request, n int64) (Reason, error) {
	switch want := req.ContentLength; {
	case want <= 0 || n == want:
		return "", nil
	case n == 0:
		return BodyNotReplayable, fmt.Errorf("Request.ContentLength is %d, but the body is empty", want)
	default:
		return BodyFailed, fmt.Errorf("Request.ContentLength %d is not the length of the body, %d", want, n)
	}
}

// spilled is a body too long to be kept, with its start put back.
type spilled struct {
	io.Reader
	io.Closer
}

// inMemory returns the buffer of a body that http.NewRequest has made of one, otherwise nil. net/http asks the same,
// for other reasons.
func inMemory(body io.ReadCloser) interface{ Len() int } {
	switch reflect.TypeOf(body) {
	case reflect.TypeOf(io.NopCloser(nil)), reflect.TypeOf(io.NopCloser(struct {
		io.Reader
		io.WriterTo
	}{})):
	default:
		return nil
	}
	switch buffer := reflect.ValueOf(body).Field(0).Interface().(type) {
	case *bytes.Buffer:
		return buffer
	case *bytes.Reader:
		return buffer
	case *strings.Reader:
		return buffer
	default:
		return nil
	}
}

var errConsumed = errors.New("the body is a stream and has been read")

// sending is the body that an exchange sends. The zero sending leaves the request's body as it is.
type sending struct {
	reader  io.ReadCloser
	again   func() (io.ReadCloser, error) // GetBody
	watched *handle                       // reader, if it is one, or nil if reading cannot fail
}

// next returns the body for the next attempt at req.
func (p *payload) next(req *http.Request) (sending, error) {
	switch {
	case p.stream != nil:
		p.given = true
		h, err := p.stream.lend()
		if err != nil {
			return sending{}, err
		}
		return sending{reader: h.expect(req), watched: h}, nil
	case p.getBody == nil:
		return sending{}, nil
	case p.given:
		return p.another(req)
	}
	p.given = true
	if p.plain {
		return sending{}, nil
	}
	return p.watch(req, req.Body), nil
}

// another returns the body for one more exchange, from getBody.
func (p *payload) another(req *http.Request) (sending, error) {
	if p.getBody == nil {
		return sending{}, nil
	}
	body, err := p.getBody()
	switch {
	case err != nil:
		return sending{}, err
	case body == nil:
		return sending{}, errors.New("GetBody returned no body")
	case p.plain:
		return sending{reader: body, again: p.getBody}, nil
	default:
		return p.watch(req, body), nil
	}
}

func (p *payload) watch(req *http.Request, body io.ReadCloser) sending {
	h := &handle{source: body}
	return sending{reader: h.expect(req), again: p.getBody, watched: h}
}

// veto returns the Reason why the body cannot be sent again, or "" if it can. h is the body of the exchange that has
// failed.
func (p *payload) veto(ctx context.Context, h *handle) Reason {
	if p.stream == nil || h == nil {
		return ""
	}
	return p.stream.letGo(ctx, h)
}

// leave leaves a stream to h, since a response was returned while its exchange may still be sending.
func (p *payload) leave(h *handle) {
	if p.stream != nil && h != nil {
		p.stream.leave(h)
	}
}

// finish closes the body, if no exchange does.
func (p *payload) finish(body io.Closer) {
	switch {
	case p.stream != nil:
		p.stream.finish()
	case !p.given && body != nil:
		_ = body.Close()
	}
}

// stream is a body that has no second copy, but can be lent to another attempt as long as not a byte of it was read. It
// is closed once. Its borrower closes it if it was read, and otherwise the run at its end.
type stream struct {
	source io.ReadCloser

	mu     sync.Mutex
	read   bool    // a byte was read, or may have been by a Read that has not returned
	final  *handle // that closes the stream, since no exchange will follow it, or nil before
	closed bool
}

// lend returns a handle for one attempt.
func (s *stream) lend() (*handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read || s.closed {
		return nil, errConsumed
	}
	return &handle{source: s.source, stream: s, done: make(chan struct{})}, nil
}

// letGo waits until the borrower has closed h. It returns the Reason why the stream cannot be lent again, or "" if it
// can.
func (s *stream) letGo(ctx context.Context, h *handle) Reason {
	if s.wasRead() {
		return BodyNotReplayable
	}
	timer := time.NewTimer(letGoTime)
	defer timer.Stop()
	select {
	case <-h.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	if s.wasRead() || !h.isClosed() {
		return BodyNotReplayable
	}
	return ""
}

func (s *stream) wasRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

func (s *stream) leave(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.final = h
}

// finish closes the stream. If it was left to a handle that is still open, the handle's Close closes it instead.
func (s *stream) finish() {
	s.mu.Lock()
	final := s.final
	s.mu.Unlock()
	if final == nil || final.isClosed() {
		_ = s.close()
	}
}

func (s *stream) close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	return s.source.Close()
}

// handle is the body of one attempt. It notes how reading ends, and once closed it no longer touches its source, which
// may be with another attempt then.
type handle struct {
	source io.ReadCloser
	stream *stream       // nil if the source is this attempt's alone
	done   chan struct{} // closed by Close, or nil without a stream

	mu      sync.Mutex
	closed  bool
	reading bool
	left    int64 // of the ContentLength, or -1 if that is not known
	failed  Reason
}

// expect returns h, which from now on fails if its length is not the ContentLength of req.
func (h *handle) expect(req *http.Request) *handle {
	h.left = -1
	if req.ContentLength > 0 {
		h.left = req.ContentLength
	}
	return h
}

// failure returns BodyFailed if the caller's body was at fault, and otherwise "", as for a nil h. A body is at fault if
// reading it ended with an error that the transport had not caused, or if its length was not the request's.
func (h *handle) failure() Reason {
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failed
}

func (h *handle) Read(b []byte) (int, error) {
	if !h.begin() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := h.source.Read(b)
	h.end(n, err)
	return n, err
}

func (h *handle) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = !h.closed
	return h.reading
}

func (h *handle) end(n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = false
	if n > 0 {
		h.taken()
	}
	if h.left >= 0 {
		h.left -= int64(n)
		if h.left < 0 || h.left > 0 && err == io.EOF {
			h.left = -1
			h.failed = BodyFailed
		}
	}
	if err != nil && err != io.EOF && !h.closed {
		h.failed = BodyFailed
	}
}

// taken notes that the source has lost a byte.
func (h *handle) taken() {
	if s := h.stream; s != nil {
		s.mu.Lock()
		s.read = true
		s.mu.Unlock()
	}
}

// Close closes the source of this attempt alone. It closes a stream only if no other attempt can need it.
func (h *handle) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	if h.reading {
		h.taken() // it may still take one
	}
	h.mu.Unlock()
	if h.stream == nil {
		return h.source.Close()
	}
	defer close(h.done)
	s := h.stream
	s.mu.Lock()
	needless := s.read || s.final != nil
	s.mu.Unlock()
	if needless {
		return s.close()
	}
	return nil
}

func (h *handle) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}
