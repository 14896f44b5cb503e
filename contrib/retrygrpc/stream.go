package retrygrpc

import (
	"cmp"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryshell"
)

// serverStream is a grpc.ClientStream with one request that is sent again until the server begins to answer. The first
// RecvMsg or Header makes the run, and the other waits for it.
type serverStream struct {
	*call
	desc     *grpc.StreamDesc
	streamer grpc.Streamer
	timeout  time.Duration // of an attempt
	finished sync.Once     // the caller's OnFinish functions have been called
	watching func() bool   // ends the wait for the end of the caller's context, nil without OnFinish functions

	begun atomic.Pointer[streamAttempt] // the attempt that the caller reads, nil before

	running sync.Mutex     // guards the fields below
	last    *streamAttempt // of a run without a message
	ended   error          // the result

	mu        sync.Mutex // guards the fields below. Held while a message is sent, not while one is received
	request   any
	requested bool
	closed    bool
	current   *streamAttempt // the newest one, nil before the first
}

type streamAttempt struct {
	grpc.ClientStream // nil if it could not be made
	ctx               context.Context
	cancel            context.CancelCauseFunc
	err               error // the error if it could not be made
	began             time.Time
	sent, closed      bool
	timer             *time.Timer // cancels with retry.ErrAttemptTimeout, nil without a timeout
	left              time.Duration
	done              bool // RecvMsg has returned its end
}

func newServerStream(c *call, desc *grpc.StreamDesc, streamer grpc.Streamer) *serverStream {
	s := &serverStream{call: c, desc: desc, streamer: streamer, timeout: c.Policy.AttemptTimeout}
	c.Policy.AttemptTimeout = 0 // it covers only the header, which Do cannot know
	if len(c.onFinish) > 0 {
		s.watching = context.AfterFunc(c.Context(), func() { s.finishOnce(status.FromContextError(c.Context().Err()).Err()) })
	}
	if c.Policy.Gate == nil {
		s.current = s.open(c.Context())
	}
	return s
}

// open begins an attempt. Its error is in the attempt.
func (s *serverStream) open(ctx context.Context) *streamAttempt {
	a := &streamAttempt{left: s.timeout, began: time.Now()}
	opts := s.next() // counts the attempt
	if len(s.onFinish) > 0 {
		opts = append(opts, grpc.OnFinish(func(err error) {
			if s.begun.Load() == a { // otherwise the run goes on
				s.over(err)
			}
		}))
	}
	a.ctx, a.cancel = context.WithCancelCause(s.numbered(ctx))
	if s.timeout > 0 {
		a.timer = time.AfterFunc(s.timeout, func() { a.cancel(retry.ErrAttemptTimeout) })
	}
	a.ClientStream, a.err = s.streamer(a.ctx, s.desc, s.cc, s.Method, opts...)
	if !a.disarm() {
		a.err = timedOut(s.timeout)
	}
	a.left -= time.Since(a.began)
	return a
}

// arm runs the rest of the attempt's timeout while the caller waits for the header.
func (a *streamAttempt) arm() {
	if a.timer != nil {
		a.timer.Reset(max(a.left, 0))
	}
}

// disarm stops the timeout and reports whether it did so in time.
func (a *streamAttempt) disarm() bool { return a.timer == nil || a.timer.Stop() }

// SendMsg keeps the request for later attempts and sends it in the current one.
func (s *serverStream) SendMsg(m any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requested {
		if s.current != nil && s.current.ClientStream != nil {
			return s.current.SendMsg(m) // which refuses a second one
		}
		return status.Error(codes.Internal, "retrygrpc: SendMsg of a second request")
	}
	s.requested = true
	if s.begun.Load() == nil {
		s.request = m
	}
	if s.current == nil {
		return nil
	}
	s.current.sent = s.current.ClientStream != nil
	return s.current.send(m)
}

// CloseSend is grpc.ClientStream.CloseSend.
func (s *serverStream) CloseSend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.current == nil {
		return nil
	}
	return s.current.close()
}

// send sends the request. A stream that has ended is not a failure here, since RecvMsg returns its status.
func (a *streamAttempt) send(m any) error {
	if a.ClientStream == nil {
		return nil
	}
	if err := a.ClientStream.SendMsg(m); err != io.EOF {
		return err
	}
	return nil
}

func (a *streamAttempt) close() error {
	if a.closed || a.ClientStream == nil {
		return nil
	}
	a.closed = true
	return a.ClientStream.CloseSend()
}

// replay makes the attempt the current one and repeats the messages that the caller has sent so far.
func (s *serverStream) replay(a *streamAttempt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = a
	if s.requested && !a.sent {
		a.sent = a.ClientStream != nil
		if err := a.send(s.request); err != nil {
			return err
		}
	}
	if s.closed {
		return a.close()
	}
	return nil
}

// RecvMsg makes the run, if it has not been made, and receives a message.
func (s *serverStream) RecvMsg(m any) error {
	if a := s.begun.Load(); a != nil {
		return s.received(a, a.RecvMsg(m))
	}
	s.running.Lock()
	defer s.running.Unlock()
	if a := s.begun.Load(); a != nil { // Header was faster
		return s.received(a, a.RecvMsg(m))
	}
	if s.ended != nil {
		return s.ended
	}
	var end error
	err := s.run(func(a *streamAttempt, number int) error {
		if number > 1 {
			reset(m)
		}
		end = a.RecvMsg(m)
		return end
	})
	if err != nil {
		return err
	}
	return s.received(s.begun.Load(), end)
}

// Header makes the run, if it has not been made, and returns the header. It is nil without an error if the stream ended
// without a header. RecvMsg returns its error.
func (s *serverStream) Header() (metadata.MD, error) {
	if a := s.begun.Load(); a != nil {
		return a.Header()
	}
	s.running.Lock()
	defer s.running.Unlock()
	if s.begun.Load() == nil && s.ended == nil {
		_ = s.run(nil)
	}
	if a := cmp.Or(s.begun.Load(), s.last); a != nil && a.ClientStream != nil {
		return a.Header()
	}
	return nil, nil
}

// run makes attempts until the server begins to answer, and returns the end of a stream without messages. receive
// receives the first message. Nil means that the header is enough.
func (s *serverStream) run(receive func(a *streamAttempt, number int) error) error {
	err := s.Returned(s.tellBegun(retry.Do(s.call.Context(), s.Policy, func(ctx context.Context) error {
		s.mu.Lock()
		a := s.current
		s.mu.Unlock()
		if a == nil || a.done {
			a = s.open(ctx)
		}
		s.last = a
		err := s.attempt(a, receive)
		a.done = true
		return err
	})))
	if err == nil {
		return nil
	}
	s.ended = err
	s.reportOn(s.last)
	s.over(err)
	return err
}

// over calls the caller's OnFinish functions with err, since the stream has ended.
func (s *serverStream) over(err error) {
	if s.watching == nil {
		return
	}
	s.watching()
	if err == io.EOF {
		err = nil
	}
	s.finishOnce(err)
}

func (s *serverStream) finishOnce(err error) { s.finished.Do(func() { s.finish(err) }) }

// tellBegun adds the attempt that was begun before the run to the error of a run that ended before its first
// attempt, since the server may have served it.
func (s *serverStream) tellBegun(err error) error {
	s.mu.Lock()
	a := s.current
	s.mu.Unlock()
	run, ok := err.(*retry.Error)
	if !ok || run.Attempts > 0 || a == nil {
		return err
	}
	cause := a.err
	switch {
	case cause != nil:
	case run.Reason == retry.CallerCanceled:
		cause = status.FromContextError(context.Canceled).Err()
	default: // the context's timer may not have fired yet
		cause = status.FromContextError(context.DeadlineExceeded).Err()
	}
	run.Attempts = 1
	if run.Last = s.giveUp(a, cause); run.Last == nil { // an answer, which no run has seen
		run.Last = attemptError{&retryrpc.AttemptError{
			Method: s.Method, Code: retryrpc.Code(status.Code(cause)), Origin: retryrpc.Remote, Idempotent: s.Idempotent, Err: cause,
		}}
	}
	class, _ := s.Policy.Judge(run.Last)
	run.History = []retry.Attempt{{Number: 1, Start: a.began, Duration: time.Since(a.began), Class: class, Err: run.Last}}
	return run
}

// attempt waits for the attempt's header or end, and calls receive for the first message.
func (s *serverStream) attempt(a *streamAttempt, receive func(*streamAttempt, int) error) error {
	if a.err != nil {
		return s.giveUp(a, a.err)
	}
	if err := s.replay(a); err != nil {
		return s.giveUp(a, err)
	}
	a.arm()
	header, _ := a.Header() // RecvMsg also returns the error
	if !a.disarm() {
		return s.giveUp(a, timedOut(s.timeout))
	}
	if header != nil && receive == nil {
		s.take(a)
		return nil
	}
	var err error
	if receive != nil {
		err = receive(a, s.attempts)
	} else { // without a message this only gets the status
		err = a.RecvMsg(new(struct{}))
	}
	if header == nil && err != nil && err != io.EOF {
		return s.giveUp(a, err)
	}
	s.take(a)
	if receive == nil {
		_ = s.received(a, err)
	}
	return nil
}

func (s *serverStream) giveUp(a *streamAttempt, err error) error {
	var trailer metadata.MD
	if a.ClientStream != nil && a.ctx.Err() == nil {
		trailer = a.Trailer()
	}
	s.mu.Lock()
	sent := a.sent
	s.mu.Unlock()
	failed := s.failed(a.ctx, err, trailer, retryrpc.Failure{Unsent: !sent})
	a.cancel(nil)
	return failed
}

// take makes the attempt the one that the caller reads.
func (s *serverStream) take(a *streamAttempt) {
	s.mu.Lock()
	s.request = nil
	s.mu.Unlock()
	s.begun.Store(a)
}

// received handles the result of RecvMsg of the attempt that the caller reads.
func (s *serverStream) received(a *streamAttempt, err error) error {
	if err != nil {
		s.reportOn(a)
		a.cancel(nil)
		s.over(err)
	}
	return err
}

// reportOn sets the results that the caller's options ask for about the attempt.
func (s *serverStream) reportOn(a *streamAttempt) {
	if len(s.reports) == 0 || a == nil || a.ClientStream == nil {
		return
	}
	header, _ := a.Header()
	from, _ := peer.FromContext(a.ClientStream.Context())
	s.report(header, a.Trailer(), from)
}

// Trailer returns the trailer of the attempt that was read, or of the last attempt of a failed run.
func (s *serverStream) Trailer() metadata.MD {
	a := s.begun.Load()
	if a == nil {
		s.running.Lock()
		defer s.running.Unlock()
		a = s.last
	}
	if a == nil || a.ClientStream == nil {
		return nil
	}
	return a.Trailer()
}

// Context returns the context of the attempt that is read, without the values that this package has added for the
// attempt. Before the server has begun to answer it is the caller's.
func (s *serverStream) Context() context.Context {
	if a := s.begun.Load(); a != nil {
		return retryshell.WithAttemptOf(a.ClientStream.Context(), s.call.Context())
	}
	return s.call.Context()
}

// timedOut is the error of an attempt that got no header within the AttemptTimeout.
func timedOut(after time.Duration) error {
	return status.Errorf(codes.DeadlineExceeded, "no header within %v", after)
}
