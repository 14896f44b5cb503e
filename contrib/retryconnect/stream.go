package retryconnect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/retrygo/retry"
)

// WrapStreamingClient returns next with retries for server streams.
func (l *layer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		if spec.StreamType != connect.StreamTypeServer {
			return next(ctx, spec)
		}
		c, err := l.begin(ctx, spec)
		if c == nil {
			return next(ctx, spec)
		}
		s := &serverStream{call: c, next: next, ended: err}             // after an error it makes no attempt
		s.timeout, s.Policy.AttemptTimeout = s.Policy.AttemptTimeout, 0 // it covers the first message only
		s.open(ctx)
		s.header, s.peer = s.current.RequestHeader().Clone(), s.current.Peer()
		return s
	}
}

// serverStream is a connection with one request that is sent again until the first message comes. Its methods are
// called as connect.StreamingClientConn requires, in one goroutine at a time, except Spec and Peer.
type serverStream struct {
	*call
	next    connect.StreamingClientFunc
	peer    connect.Peer
	header  http.Header   // of the request, as the caller set it
	timeout time.Duration // of an attempt

	request   any
	requested bool
	current   *streamAttempt // the newest one
	begun     bool           // the caller reads it
	ended     error          // of a run without a message
}

type streamAttempt struct {
	connect.StreamingClientConn
	ctx    context.Context
	cancel context.CancelCauseFunc
	left   time.Duration // of its timeout
	sent   bool
	over   bool
	err    error // of sending the request
}

// open opens a connection for another attempt, without sending the request.
func (s *serverStream) open(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(s.repeated(ctx))
	s.current = &streamAttempt{StreamingClientConn: s.next(ctx, s.spec), ctx: ctx, cancel: cancel, left: s.timeout}
}

// limited calls f within the rest of the attempt's timeout.
func (s *serverStream) limited(f func() error) error {
	a := s.current
	if s.timeout == 0 {
		return f()
	}
	began := time.Now()
	timer := time.AfterFunc(a.left, func() { a.cancel(retry.ErrAttemptTimeout) })
	err := f()
	if !timer.Stop() {
		return connect.NewError(connect.CodeDeadlineExceeded, fmt.Errorf("no message within %v", s.timeout))
	}
	a.left = max(a.left-time.Since(began), 1)
	return err
}

// send sends the request in the current attempt, whose number is n. connect waits for the response header here.
func (s *serverStream) send(number int) {
	a := s.current
	a.sent = true
	header := a.RequestHeader()
	// The timeout that connect has written for this attempt stays.
	maps.DeleteFunc(header, func(key string, _ []string) bool { return !isTimeout(key) })
	for key, values := range s.header {
		if !isTimeout(key) {
			header[key] = slices.Clone(values)
		}
	}
	s.number(number, header)
	a.err = s.limited(func() error {
		if err := a.Send(s.request); err != nil && !errors.Is(err, io.EOF) { // after io.EOF Receive returns the error
			return err
		}
		return a.CloseRequest()
	})
}

func isTimeout(key string) bool { return key == "Connect-Timeout-Ms" || key == "Grpc-Timeout" }

// Send keeps the request for later attempts and sends it in the first one.
func (s *serverStream) Send(request any) error {
	switch {
	case s.requested:
		return connect.NewError(connect.CodeInternal, errors.New("retryconnect: a second request in a server stream, which takes one"))
	case s.ended != nil:
		return nil // Receive returns it
	}
	if m, ok := request.(proto.Message); ok {
		request = proto.Clone(m)
	}
	s.request, s.requested = request, true
	if s.Policy.Gate != nil {
		s.current.cancel(nil) // its timeout, from the caller's deadline, would be too long after the gate
		s.current.over = true
		return nil
	}
	s.send(1)
	if context.Cause(s.current.ctx) == retry.ErrAttemptTimeout {
		return nil // Receive judges it
	}
	return s.current.err
}

// CloseRequest has no effect, since Send has closed the request.
func (s *serverStream) CloseRequest() error { return nil }

// Receive makes the run, if it has not been made, and receives a message.
func (s *serverStream) Receive(message any) error {
	switch {
	case s.ended != nil:
		return s.ended
	case s.begun, s.Context().Err() != nil && s.current.sent:
		return s.current.Receive(message)
	}
	var received error
	err := s.Returned(retry.Do(s.Context(), s.Policy, func(ctx context.Context) error {
		if s.current.over {
			s.current.close()
			s.open(ctx)
		}
		a := s.current
		if !a.sent {
			s.send(retry.AttemptNumber(ctx))
		}
		err := a.err
		if err == nil {
			err = s.limited(func() error { return a.Receive(message) })
		}
		if err == nil || errors.Is(err, io.EOF) { // connect takes it for the end of a stream, whatever its code
			received = err
			s.begun = true
			s.request = nil
			return s.attempted(a.ctx, nil, true)
		}
		a.over = true
		return s.attempted(a.ctx, err, true)
	}))
	if s.begun {
		return received
	}
	s.ended = err
	return err
}

func (a *streamAttempt) close() {
	a.cancel(nil) // first, so that CloseResponse does not wait for the server
	_ = a.CloseResponse()
}

// CloseResponse abandons the attempt.
func (s *serverStream) CloseResponse() error {
	if !s.current.sent || s.current.err != nil { // connect would wait for a response
		s.current.cancel(nil)
	}
	defer s.current.cancel(nil)
	return s.current.CloseResponse()
}

// ResponseHeader waits for the current attempt's header. After it the request is not repeated. It is empty if there is no
// header yet.
func (s *serverStream) ResponseHeader() http.Header {
	if !s.current.sent || s.current.err != nil {
		return make(http.Header)
	}
	s.begun = true
	return s.current.ResponseHeader()
}

func (s *serverStream) ResponseTrailer() http.Header {
	if !s.current.sent {
		return make(http.Header)
	}
	return s.current.ResponseTrailer()
}
func (s *serverStream) RequestHeader() http.Header { return s.header }
func (s *serverStream) Spec() connect.Spec         { return s.spec }
func (s *serverStream) Peer() connect.Peer         { return s.peer }
