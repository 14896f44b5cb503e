package retrygrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

// flaky refuses two of three calls to the published test service before the service sees them.
type flaky struct{ calls atomic.Int64 }

func (f *flaky) refuse() error {
	if n := f.calls.Add(1); n%3 != 0 {
		return status.Errorf(codes.Unavailable, "call %d", n)
	}
	return nil
}

func (f *flaky) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := f.refuse(); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if !info.IsClientStream {
				if err := f.refuse(); err != nil {
					return err
				}
			}
			return handler(srv, ss)
		}),
	}
}

// listen serves the service on a loopback address, "" for a new one.
func listen(t *testing.T, at string, service testgrpc.TestServiceServer, opts ...grpc.ServerOption) (*grpc.Server, string) {
	t.Helper()
	if at == "" {
		at = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", at)
	require.NoError(t, err)
	server := grpc.NewServer(opts...)
	testgrpc.RegisterTestServiceServer(server, service)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return server, listener.Addr().String()
}

func dial(t *testing.T, at string, p retry.Policy, o retrygrpc.Options) testgrpc.TestServiceClient {
	t.Helper()
	opts, err := retrygrpc.DialOptions(p, o)
	require.NoError(t, err)
	conn, err := grpc.NewClient("passthrough:///"+at, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()), quickConnect)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return testgrpc.NewTestServiceClient(conn)
}

// The published client checks sizes, orders, codes, metadata and cancellation, and ends the process if one is wrong.
func TestPublishedInteropCases(t *testing.T) {
	for name, run := range map[string]func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption){
		"empty_unary": interop.DoEmptyUnaryCall, "large_unary": interop.DoLargeUnaryCall,
		"client_streaming": interop.DoClientStreaming, "server_streaming": interop.DoServerStreaming,
		"ping_pong": interop.DoPingPong, "empty_stream": interop.DoEmptyStream,
		"timeout_on_sleeping_server":  interop.DoTimeoutOnSleepingServer,
		"cancel_after_first_response": interop.DoCancelAfterFirstResponse,
		"custom_metadata":             interop.DoCustomMetadata, "status_code_and_message": interop.DoStatusCodeAndMessage,
		"special_status_message": interop.DoSpecialStatusMessage,
	} {
		t.Run(name, func(t *testing.T) {
			_, at := listen(t, "", interop.NewTestServer(), new(flaky).options()...)
			run(bounded(t), dial(t, at, upTo(5), retrygrpc.Options{}))
		})
	}
}

// The published case cancel_after_begin also ends the sending, so that the server's answer can win: in 5 of 40,000 plain calls.
func TestAStreamCanceledAfterItBegan(t *testing.T) {
	_, at := listen(t, "", interop.NewTestServer(), new(flaky).options()...)
	ctx, cancel := context.WithCancel(bounded(t))
	stream, err := dial(t, at, upTo(5), retrygrpc.Options{}).StreamingInputCall(ctx)
	require.NoError(t, err)
	cancel()
	require.Equal(t, codes.Canceled, status.Code(stream.RecvMsg(new(testgrpc.StreamingInputCallResponse))))
}

func TestHundredCallsAtOnce(t *testing.T) {
	refusals := new(flaky)
	_, at := listen(t, "", interop.NewTestServer(), refusals.options()...)
	client := dial(t, at, upTo(retry.Unlimited), retrygrpc.Options{})
	const calls, messages = 100, 5
	var all sync.WaitGroup
	errs := make(chan error, 2*calls)
	for i := range calls {
		size := int32(i + 1)
		all.Go(func() {
			reply, err := client.UnaryCall(bounded(t), &testgrpc.SimpleRequest{ResponseSize: size})
			if err != nil || len(reply.GetPayload().GetBody()) != int(size) {
				errs <- fmt.Errorf("unary call %d: %d bytes, %w", i, len(reply.GetPayload().GetBody()), err)
			}
		})
		all.Go(func() {
			request := new(testgrpc.StreamingOutputCallRequest)
			for range messages {
				request.ResponseParameters = append(request.ResponseParameters, &testgrpc.ResponseParameters{Size: size})
			}
			s, err := client.StreamingOutputCall(bounded(t), request)
			if err != nil {
				errs <- err
				return
			}
			if read, err := readAll(s); err != nil || len(read) != messages*int(size) {
				errs <- fmt.Errorf("stream %d: %d bytes, %w", i, len(read), err)
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, refusals.calls.Load(), int64(3*2*calls-2))
}

func TestServerRestart(t *testing.T) {
	for name, stop := range map[string]func(*grpc.Server){"Stop": (*grpc.Server).Stop, "GracefulStop": (*grpc.Server).GracefulStop} {
		t.Run(name, func(t *testing.T) {
			server, at := listen(t, "", interop.NewTestServer())
			p := retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 5 * time.Millisecond, Jitter: retry.FullJitter}}
			var retries atomic.Int64
			p.Observe = func(_ context.Context, e retry.Event) {
				if e.Decision.Status == retry.WaitingRetry {
					retries.Add(1)
				}
			}
			// A server that dies may have begun an answer; then only idempotent calls are repeated.
			client := dial(t, at, p, retrygrpc.Options{Idempotent: always})
			ctx := bounded(t)
			stopped, served := make(chan struct{}), make(chan error, 8)
			var again, made atomic.Int64
			for range cap(served) {
				go func() {
					for {
						_, err := client.EmptyCall(ctx, &testgrpc.Empty{})
						made.Add(1)
						if err != nil {
							served <- err
							return
						}
						select {
						case <-stopped:
							if again.Add(1) > 200 {
								served <- nil
								return
							}
						default:
						}
					}
				}()
			}
			require.Eventually(t, func() bool { return made.Load() > 100 }, 20*time.Second, time.Millisecond)
			stop(server)
			require.Eventually(t, func() bool { return retries.Load() > 20 }, 20*time.Second, time.Millisecond, "calls meet a server that is gone")
			_, _ = listen(t, at, interop.NewTestServer())
			close(stopped)
			for range cap(served) {
				require.NoError(t, <-served)
			}
			t.Logf("%d calls, %d retries", made.Load(), retries.Load())
		})
	}
	t.Run("a stream whose server dies in its midst is not repeated", func(t *testing.T) {
		server, at := listen(t, "", interop.NewTestServer())
		client := dial(t, at, upTo(5), retrygrpc.Options{Idempotent: always})
		s, err := client.StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{ResponseParameters: []*testgrpc.ResponseParameters{
			{Size: 1}, {Size: 1, IntervalUs: int32(time.Minute.Microseconds())},
		}})
		require.NoError(t, err)
		_, err = s.Recv()
		require.NoError(t, err)
		server.Stop()
		_, err = s.Recv()
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.False(t, errors.As(err, new(*retry.Error)))
	})
}
