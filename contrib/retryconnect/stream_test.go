package retryconnect_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
)

// failUntil is a stream that fails before its n-th attempt, then sends the messages and ends with err.
func failUntil(n int, err error, messages ...string) func(context.Context, int, *sending) error {
	return func(_ context.Context, number int, send *sending) error {
		if number < n {
			return connect.NewError(connect.CodeUnavailable, errors.New("no"))
		}
		for _, m := range messages {
			if err := send.Send(wrapperspb.String(m)); err != nil {
				return err
			}
		}
		return err
	}
}

func TestAStreamIsRepeatedUntilItsFirstMessage(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		lost := connect.NewError(connect.CodeUnavailable, errors.New("lost"))
		for name, row := range map[string]struct {
			stream   func(context.Context, int, *sending) error
			requests int
			all      string
			code     connect.Code
		}{
			"two failures, two messages":  {failUntil(3, nil, "a", "b"), 3, "ab", 0},
			"an end without messages":     {failUntil(2, nil), 2, "", 0},
			"a failure after one message": {failUntil(2, lost, "a"), 2, "a", connect.CodeUnavailable},
			"every attempt fails":         {failUntil(99, nil), 3, "", connect.CodeUnavailable},
			"an answer":                   {failUntil(2, connect.NewError(connect.CodeNotFound, nil)), 2, "", connect.CodeNotFound},
		} {
			var ends []retry.Event
			p := upTo(3)
			p.Observe = func(_ context.Context, e retry.Event) {
				if e.Outcome != nil {
					ends = append(ends, e)
				}
			}
			s := &server{stream: row.stream}
			_, stream := s.start(t, protocol, p, retryconnect.Options{})
			all, err := read(t.Context(), stream)
			require.Equal(t, row.all, all, name)
			require.Equal(t, row.requests, s.requests(), name)
			require.Equal(t, []time.Duration{time.Second, 2 * time.Second}[:row.requests-1], s.waits(), name)
			require.Len(t, ends, 1, name)
			require.Equal(t, row.requests, ends[0].Outcome.Attempts, name)
			if row.code != 0 {
				require.Equal(t, row.code, connect.CodeOf(err), name)
			} else {
				require.NoError(t, err, name)
			}
			require.Equal(t, name == "every attempt fails", ends[0].Err != nil, name)
			require.Equal(t, ends[0].Err != nil, errors.Is(err, retry.AttemptsExhausted), name)
		}
	})
}

func TestAStreamsHeaders(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := &server{stream: failUntil(3, nil, "a")}
		_, stream := s.start(t, protocol, upTo(3), retryconnect.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ctx, info := connect.NewClientContext(ctx)
		info.RequestHeader().Set("Mine", "1")
		req := connect.NewRequest(wrapperspb.String("ping"))
		req.Header().Set("Too", "2")
		req.Header().Set("Grpc-Previous-Rpc-Attempts", "7")
		got, err := stream.CallServerStream(ctx, req)
		require.NoError(t, err)
		require.True(t, got.Receive())
		require.Equal(t, "a", got.Msg().GetValue())
		require.NotEmpty(t, info.ResponseHeader())
		require.NoError(t, got.Close())
		timeouts := map[string]bool{}
		for n, h := range s.headers {
			require.Equal(t, []string{"1"}, h["Mine"])
			require.Equal(t, []string{"2"}, h["Too"])
			require.Equal(t, []string{"", "1", "2"}[n], h.Get("Grpc-Previous-Rpc-Attempts"))
			timeouts[h.Get("Connect-Timeout-Ms")+h.Get("Grpc-Timeout")] = true
		}
		require.Len(t, timeouts, 3, "each attempt sends what is left of the caller's deadline")
	})
}

func TestTheFirstAttemptOfAStreamBeginsAtOnce(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := &server{stream: failUntil(2, nil, "a")}
		_, stream := s.start(t, protocol, upTo(3), retryconnect.Options{})
		got, err := stream.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("")))
		require.NoError(t, err)
		require.Equal(t, 1, s.requests(), "before the first Receive")
		time.Sleep(time.Minute) // virtual
		require.True(t, got.Receive())
		require.Equal(t, []time.Duration{time.Minute + time.Second}, s.waits())
		require.NoError(t, got.Close())
	})
}

func TestAResponseHeaderEndsTheRepeats(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := &server{stream: failUntil(2, nil, "a")}
		_, stream := s.start(t, protocol, upTo(3), retryconnect.Options{})
		got, err := stream.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("")))
		require.NoError(t, err)
		require.NotEmpty(t, got.ResponseHeader())
		require.False(t, got.Receive())
		require.Equal(t, connect.CodeUnavailable, connect.CodeOf(got.Err()))
		require.Equal(t, 1, s.requests())
		require.NoError(t, got.Close())
	})
}

func TestAGateHoldsTheFirstAttemptOfAStream(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		p, asked := upTo(3), 0
		p.Gate = func(context.Context) time.Duration {
			if asked++; asked == 1 {
				return 10 * time.Second
			}
			return 0
		}
		s := &server{stream: failUntil(1, nil, "a")}
		_, stream := s.start(t, protocol, p, retryconnect.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := stream.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("")))
		require.NoError(t, err)
		require.Empty(t, got.ResponseHeader(), "there is none yet")
		require.Zero(t, s.requests())
		require.True(t, got.Receive())
		require.Equal(t, []time.Duration{10 * time.Second}, s.at)
		require.Contains(t, s.headers[0].Get("Connect-Timeout-Ms")+s.headers[0].Get("Grpc-Timeout"), "50000", "not of before the gate")
		require.NoError(t, got.Close())

		got, err = stream.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("")))
		require.NoError(t, err)
		require.NoError(t, got.Close(), "without a Receive")
		require.Equal(t, 1, s.requests())
	})
}

func TestAnAttemptTimeoutDoesNotCutAStreamThatHasBegun(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		p := upTo(3)
		p.AttemptTimeout = 500 * time.Millisecond
		s := &server{stream: func(ctx context.Context, n int, send *sending) error {
			if n == 1 { // a header, and no message
				_ = send.Send(nil)
				<-ctx.Done()
				return ctx.Err()
			}
			for _, m := range []string{"a", "b"} {
				if err := send.Send(wrapperspb.String(m)); err != nil {
					return err
				}
				time.Sleep(time.Minute) // virtual
			}
			return nil
		}}
		_, stream := s.start(t, protocol, p, retryconnect.Options{}, idempotent)
		all, err := read(t.Context(), stream)
		require.NoError(t, err)
		require.Equal(t, "ab", all)
		require.Equal(t, []time.Duration{1500 * time.Millisecond}, s.waits())
		for _, h := range s.headers {
			require.Empty(t, h.Get("Connect-Timeout-Ms")+h.Get("Grpc-Timeout"), "the server does not learn of it")
		}
	})
}

func TestACallerWhoLeavesAStreamBeforeItsFirstMessage(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		events := 0
		p := upTo(3)
		p.Observe = func(context.Context, retry.Event) { events++ }
		s := &server{stream: failUntil(99, nil)}
		_, stream := s.start(t, protocol, p, retryconnect.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		got, err := stream.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("")))
		require.NoError(t, err)
		cancel()
		require.False(t, got.Receive())
		require.Equal(t, connect.CodeCanceled, connect.CodeOf(got.Err()))
		require.Zero(t, events, "there was no run")
		_ = got.Close()

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		_, err = read(ctx, stream)
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.Equal(t, connect.CodeCanceled, connect.CodeOf(err), "during a wait")
		require.Equal(t, 3, s.requests())
	})
}

func TestAStreamAfterItsRunHasFailed(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		interceptor, err := retryconnect.NewInterceptor(upTo(2), retryconnect.Options{})
		require.NoError(t, err)
		s := &server{stream: failUntil(99, nil)}
		var conn connect.StreamingClientConn
		above := streaming(func(next connect.StreamingClientFunc) connect.StreamingClientFunc {
			return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
				conn = next(ctx, spec)
				return conn
			}
		})
		s.began = time.Now()
		stream := connect.NewClient[text, text](start(t, s.handler()), "http://server.test"+streamProcedure,
			append(protocol, connect.WithInterceptors(above, interceptor))...)
		_, err = stream.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("")))
		require.NoError(t, err)
		require.ErrorContains(t, conn.Send(wrapperspb.String("")), "a second request")
		first := conn.Receive(new(text))
		require.ErrorIs(t, first, retry.AttemptsExhausted)
		require.Equal(t, first, conn.Receive(new(text)), "the run is not made again")
		require.Equal(t, 2, s.requests())
		require.Equal(t, streamProcedure, conn.Spec().Procedure)
		require.Equal(t, "server.test", conn.Peer().Addr)
		_ = conn.ResponseTrailer()
		require.NoError(t, conn.CloseResponse())
	})
}

// streaming is an interceptor of streams only.
type streaming func(connect.StreamingClientFunc) connect.StreamingClientFunc

func (f streaming) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }
func (f streaming) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return f(next)
}
func (f streaming) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func TestOtherStreamsAndHandlersPassThrough(t *testing.T) {
	interceptor, err := retryconnect.NewInterceptor(upTo(2), retryconnect.Options{})
	require.NoError(t, err)
	for _, kind := range []connect.StreamType{connect.StreamTypeClient, connect.StreamTypeBidi} {
		calls := 0
		conn := interceptor.WrapStreamingClient(func(context.Context, connect.Spec) connect.StreamingClientConn {
			calls++
			return nil
		})(t.Context(), connect.Spec{StreamType: kind, IsClient: true})
		require.Nil(t, conn)
		require.Equal(t, 1, calls)
	}
	calls := 0
	err = interceptor.WrapStreamingHandler(func(context.Context, connect.StreamingHandlerConn) error {
		calls++
		return io.ErrUnexpectedEOF
	})(t.Context(), nil)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	_, err = interceptor.WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
		calls++
		return nil, connect.NewError(connect.CodeUnavailable, nil)
	})(t.Context(), connect.NewRequest(new(text)))
	require.IsType(t, &connect.Error{}, err, "a handler's request is not the client's")
	require.Equal(t, 2, calls)
}

func TestAStreamSendsTheMessageOfItsCallAgain(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := &server{stream: failUntil(2, nil, "a")}
		_, stream := s.start(t, protocol, upTo(2), retryconnect.Options{})
		req := connect.NewRequest(wrapperspb.String("first"))
		got, err := stream.CallServerStream(t.Context(), req)
		require.NoError(t, err)
		req.Msg.Value = "second" // the caller reuses its message
		require.True(t, got.Receive(), got.Err())
		require.NoError(t, got.Close())
		require.Equal(t, []string{"first", "first"}, s.messages)
	})
}

func TestATrailerOfAStreamThatWasNeverSentIsEmpty(t *testing.T) {
	bad, err := retryconnect.NewInterceptor(retry.Policy{}, retryconnect.Options{
		PolicyFor: func(string) retry.Policy { return retry.Policy{MaxAttempts: -5} },
	})
	require.NoError(t, err)
	client := connect.NewClient[text, text](nil, "http://server.test/a.B/C", connect.WithInterceptors(bad))
	stream, err := client.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
	require.NoError(t, err)
	require.False(t, stream.Receive())
	require.Error(t, stream.Err())
	require.Empty(t, stream.ResponseTrailer())
}
