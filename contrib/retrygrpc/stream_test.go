package retrygrpc_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retryrpc"
)

func part(text string) *testgrpc.StreamingOutputCallResponse {
	return &testgrpc.StreamingOutputCallResponse{Payload: &testgrpc.Payload{Body: []byte(text)}}
}

// sends answers a stream with the texts, then err.
func sends(stream testgrpc.TestService_StreamingOutputCallServer, err error, texts ...string) error {
	for _, text := range texts {
		if failed := stream.Send(part(text)); failed != nil {
			return failed
		}
	}
	return err
}

// failUntil is a stream that is unavailable before its n-th attempt, and then sends the texts and ends with err.
func failUntil(n int, err error, texts ...string) func(int, testgrpc.TestService_StreamingOutputCallServer) error {
	return func(call int, s testgrpc.TestService_StreamingOutputCallServer) error {
		if call < n {
			return unavailable
		}
		return sends(s, err, texts...)
	}
}

// readAll reads a stream to its end and returns its error, nil for io.EOF.
func readAll(stream testgrpc.TestService_StreamingOutputCallClient) (string, error) {
	var all strings.Builder
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return all.String(), nil
		case err != nil:
			return all.String(), err
		}
		all.Write(m.GetPayload().GetBody())
	}
}

func TestServerStream(t *testing.T) {
	type stream = testgrpc.TestService_StreamingOutputCallServer
	for _, row := range []struct {
		name   string
		script func(call int, s stream) error
		calls  int64
		read   string
		code   codes.Code
		reason retry.Reason // zero: the error, if any, is gRPC's own
	}{
		{name: "a stream is repeated before an answer has come", script: failUntil(3, nil, "a", "b", "c"), calls: 3, read: "abc"},
		{name: "a stream is not repeated after a message", script: failUntil(1, unavailable, "a", "b"), calls: 1, read: "ab", code: codes.Unavailable},
		{name: "a stream is not repeated after a header", calls: 1, code: codes.Unavailable, script: func(_ int, s stream) error {
			return cmp.Or(s.SendHeader(metadata.Pairs("h", "1")), unavailable)
		}},
		{name: "a stream is repeated while it is empty", script: failUntil(2, nil), calls: 2},
		{name: "an empty stream succeeds", script: failUntil(1, nil), calls: 1},
		{name: "a stream is given up when no attempt is left", script: failUntil(9, nil), calls: 4, code: codes.Unavailable, reason: retry.AttemptsExhausted},
		{name: "a stream is not repeated for another code", script: failUntil(1, status.Error(codes.Internal, "")), calls: 1, code: codes.Internal, reason: retry.TerminalError},
		{name: "a stream is not repeated after an answer", script: failUntil(1, status.Error(codes.NotFound, "")), calls: 1, code: codes.NotFound},
		{name: "a stream is not repeated if a pushback forbids it", calls: 1, code: codes.Unavailable, reason: retry.TerminalError, script: func(_ int, s stream) error {
			s.SetTrailer(metadata.Pairs("grpc-retry-pushback-ms", "-1"))
			return unavailable
		}},
	} {
		for _, headerFirst := range []bool{false, true} {
			name := row.name
			if headerFirst {
				name += ", with Header called first"
			}
			t.Run(name, func(t *testing.T) {
				service := &scripted{output: row.script}
				client := serve(t, service, upTo(4), retrygrpc.Options{})
				s, err := client.StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{})
				require.NoError(t, err)
				if headerFirst {
					_, err := s.Header()
					require.NoError(t, err)
				}
				read, err := readAll(s)
				require.Equal(t, row.read, read)
				require.Equal(t, row.code, status.Code(err))
				require.Equal(t, row.calls, service.calls.Load())
				var run *retry.Error
				require.Equal(t, row.reason != 0, errors.As(err, &run), "whichever of Header and RecvMsg comes first")
				if row.reason != 0 {
					require.ErrorIs(t, err, row.reason)
				}
				_, again := s.Recv()
				if err == nil {
					require.Equal(t, io.EOF, again)
				} else {
					require.Equal(t, row.code, status.Code(again))
				}
				_, err = s.Header()
				require.NoError(t, err)
				require.Equal(t, row.calls, service.calls.Load(), "an end is an end")
			})
		}
	}
	t.Run("a stream sends its request again, with the number of attempts", func(t *testing.T) {
		service := &echo{failures: 2}
		client := serve(t, service, upTo(3), retrygrpc.Options{})
		request := &testgrpc.StreamingOutputCallRequest{Payload: &testgrpc.Payload{Body: bytes.Repeat([]byte("x"), 200_000)}}
		s, err := client.StreamingOutputCall(bounded(t), request)
		require.NoError(t, err)
		read, err := readAll(s)
		require.NoError(t, err)
		require.Equal(t, string(request.GetPayload().GetBody()), read)
		require.Equal(t, [][]string{nil, {"1"}, {"2"}}, service.previous)
	})
	t.Run("a stream is begun by the call, and with a gate when it is read", func(t *testing.T) {
		started := make(chan struct{}, 1)
		service := &scripted{output: func(int, stream) error { started <- struct{}{}; return nil }}
		s, err := serve(t, service, upTo(2), retrygrpc.Options{}).StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{})
		require.NoError(t, err)
		<-started
		_, err = readAll(s)
		require.NoError(t, err)

		p, asked := upTo(2), 0
		p.Gate = func(context.Context) time.Duration { asked++; return 0 }
		s, err = serve(t, service, p, retrygrpc.Options{}).StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{})
		require.NoError(t, err)
		require.Zero(t, asked)
		require.Empty(t, started)
		_, err = readAll(s)
		require.NoError(t, err)
		require.Equal(t, 1, asked)
	})
	t.Run("a stream that cannot be made is repeated", func(t *testing.T) {
		// The channel has no server to connect to.
		l, err := retrygrpc.DialOptions(upTo(3), retrygrpc.Options{})
		require.NoError(t, err)
		conn := dialNowhere(t, l...)
		s, err := testgrpc.NewTestServiceClient(conn).StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{})
		require.NoError(t, err)
		_, err = s.Recv()
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Nil(t, s.Trailer())
		require.NotNil(t, s.Context())
	})
	t.Run("a stream gives the caller's options the results of the last attempt", func(t *testing.T) {
		for _, row := range []struct {
			succeedsAt int
			err        codes.Code
			want       string
		}{{3, codes.OK, "3"}, {9, codes.Unavailable, "4"}} {
			service := &scripted{output: func(call int, s stream) error {
				s.SetTrailer(metadata.Pairs("t", string(rune('0'+call))))
				if call < row.succeedsAt {
					return unavailable
				}
				return errors.Join(s.SendHeader(metadata.Pairs("h", string(rune('0'+call)))), s.Send(part("a")))
			}}
			var header, trailer metadata.MD
			var from peer.Peer
			s, err := serve(t, service, upTo(4), retrygrpc.Options{}).StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{},
				grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from))
			require.NoError(t, err)
			_, err = readAll(s)
			require.Equal(t, row.err, status.Code(err))
			require.Equal(t, []string{row.want}, trailer.Get("t"))
			require.Equal(t, []string{row.want}, s.Trailer().Get("t"))
			require.NotNil(t, from.Addr)
			if row.err == codes.OK {
				require.Equal(t, []string{row.want}, header.Get("h"))
			}
		}
	})
}

// echo answers with the request's payload after n failures.
type echo struct {
	testgrpc.UnimplementedTestServiceServer
	failures int
	previous [][]string
}

func (e *echo) StreamingOutputCall(request *testgrpc.StreamingOutputCallRequest, s testgrpc.TestService_StreamingOutputCallServer) error {
	md, _ := metadata.FromIncomingContext(s.Context())
	e.previous = append(e.previous, md.Get("grpc-previous-rpc-attempts"))
	if len(e.previous) <= e.failures {
		return unavailable
	}
	return s.Send(part(string(request.GetPayload().GetBody())))
}

func TestAttemptTimeoutOfAStream(t *testing.T) {
	type stream = testgrpc.TestService_StreamingOutputCallServer
	p := upTo(2)
	p.AttemptTimeout = time.Second
	t.Run("the timeout ends an attempt without a header", func(t *testing.T) {
		for _, idempotent := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{}, 2)
				service := &scripted{output: func(call int, s stream) error {
					if call == 1 {
						<-s.Context().Done()
						ended <- struct{}{}
						return s.Context().Err()
					}
					return sends(s, nil, "a")
				}}
				s, err := serve(t, service, p, retrygrpc.Options{Idempotent: func(string) bool { return idempotent }}).StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{})
				require.NoError(t, err)
				read, err := readAll(s)
				<-ended
				if idempotent {
					require.NoError(t, err)
					require.Equal(t, "a", read)
					return
				}
				require.Equal(t, codes.DeadlineExceeded, status.Code(err))
				var failed *retryrpc.AttemptError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, retryrpc.AttemptTimeout, failed.Origin)
			})
		}
	})
	t.Run("the timeout does not cut a stream that has begun, or one that is not read yet", func(t *testing.T) {
		for _, first := range []string{"read", "header", "unread"} {
			synctest.Test(t, func(t *testing.T) {
				proceed := make(chan struct{})
				service := &scripted{output: func(call int, s stream) error {
					if call == 1 && first != "unread" {
						return unavailable
					}
					if err := s.SendHeader(nil); err != nil {
						return err
					}
					select {
					case <-proceed:
					case <-s.Context().Done():
						return s.Context().Err()
					}
					return sends(s, nil, "a")
				}}
				s, err := serve(t, service, p, retrygrpc.Options{}).StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{})
				require.NoError(t, err)
				if first == "header" {
					_, err = s.Header()
					require.NoError(t, err)
				}
				time.AfterFunc(3*p.AttemptTimeout, func() { close(proceed) })
				if first == "unread" {
					<-proceed
				}
				read, err := readAll(s)
				require.NoError(t, err, first)
				require.Equal(t, "a", read)
			})
		}
	})
}

func TestOtherStreamsPassThrough(t *testing.T) {
	service := &scripted{
		input:  func(int, testgrpc.TestService_StreamingInputCallServer) error { return unavailable },
		duplex: func(int, testgrpc.TestService_FullDuplexCallServer) error { return unavailable },
	}
	p := upTo(3)
	p.Observe = func(context.Context, retry.Event) { t.Error("a run") }
	client := serve(t, service, p, retrygrpc.Options{})
	in, err := client.StreamingInputCall(bounded(t))
	require.NoError(t, err)
	_, err = in.CloseAndRecv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.NotErrorIs(t, err, retry.TerminalError)
	duplex, err := client.FullDuplexCall(bounded(t))
	require.NoError(t, err)
	_, err = duplex.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, int64(2), service.calls.Load())
}

func TestStreamsLeaveNothingBehind(t *testing.T) {
	hang := make(chan struct{})
	service := &scripted{output: func(call int, s testgrpc.TestService_StreamingOutputCallServer) error {
		if call%2 == 1 {
			return unavailable
		}
		if err := sends(s, nil, "a"); err != nil {
			return err
		}
		select {
		case <-s.Context().Done():
		case <-hang:
		}
		return s.Context().Err()
	}}
	p := upTo(2)
	p.AttemptTimeout = time.Minute // so that there are timers
	client := serve(t, service, p, retrygrpc.Options{})
	round := func() {
		ctx, cancel := context.WithCancel(bounded(t))
		defer cancel()
		var ends atomic.Int64
		s, err := client.StreamingOutputCall(ctx, &testgrpc.StreamingOutputCallRequest{}, grpc.OnFinish(func(error) { ends.Add(1) }))
		require.NoError(t, err)
		_, err = s.Recv()
		require.NoError(t, err)
		cancel()
		require.Eventually(t, func() bool { return ends.Load() == 1 }, 10*time.Second, time.Millisecond)
	}
	round()
	before := runtime.NumGoroutine()
	for range 50 {
		round()
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 20*time.Second, 5*time.Millisecond)
}
