package retrygrpc_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

// scripted is the interop test service with a script for each method that a test needs; it gets the number of the call.
type scripted struct {
	testgrpc.UnimplementedTestServiceServer
	unary  func(ctx context.Context, call int) (*testgrpc.SimpleResponse, error)
	output func(call int, stream testgrpc.TestService_StreamingOutputCallServer) error
	duplex func(call int, stream testgrpc.TestService_FullDuplexCallServer) error
	input  func(call int, stream testgrpc.TestService_StreamingInputCallServer) error

	calls atomic.Int64
}

func (s *scripted) next() int { return int(s.calls.Add(1)) }

func (s *scripted) UnaryCall(ctx context.Context, _ *testgrpc.SimpleRequest) (*testgrpc.SimpleResponse, error) {
	return s.unary(ctx, s.next())
}

func (s *scripted) StreamingOutputCall(_ *testgrpc.StreamingOutputCallRequest, stream testgrpc.TestService_StreamingOutputCallServer) error {
	return s.output(s.next(), stream)
}

func (s *scripted) FullDuplexCall(stream testgrpc.TestService_FullDuplexCallServer) error {
	return s.duplex(s.next(), stream)
}

func (s *scripted) StreamingInputCall(stream testgrpc.TestService_StreamingInputCallServer) error {
	return s.input(s.next(), stream)
}

// start serves the service in memory and returns a channel to it.
func start(service testgrpc.TestServiceServer, of []grpc.ServerOption, more ...grpc.DialOption) (conn *grpc.ClientConn, stop func()) {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(of...)
	testgrpc.RegisterTestServiceServer(server, service)
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///memory", append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		quickConnect,
	}, more...)...)
	if err != nil {
		panic(err)
	}
	return conn, server.Stop
}

// connect is start for an example.
func connect(service testgrpc.TestServiceServer, opts ...grpc.DialOption) (client testgrpc.TestServiceClient, stop func()) {
	conn, stopServer := start(service, nil, opts...)
	return testgrpc.NewTestServiceClient(conn), func() {
		_ = conn.Close()
		stopServer()
	}
}

// channelTo is start for a test, which closes the channel.
func channelTo(t *testing.T, service testgrpc.TestServiceServer, more ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, stop := start(service, nil, more...)
	t.Cleanup(stop)
	return conn
}

// serve runs the service in memory and returns a client with the interceptors.
func serve(t *testing.T, service testgrpc.TestServiceServer, p retry.Policy, o retrygrpc.Options, more ...grpc.DialOption) testgrpc.TestServiceClient {
	t.Helper()
	unary, err := retrygrpc.UnaryClientInterceptor(p, o)
	require.NoError(t, err)
	stream, err := retrygrpc.StreamClientInterceptor(p, o)
	require.NoError(t, err)
	conn := channelTo(t, service, append([]grpc.DialOption{grpc.WithChainUnaryInterceptor(unary), grpc.WithChainStreamInterceptor(stream)}, more...)...)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return testgrpc.NewTestServiceClient(conn)
}

// serverOf is a service whose unary and streaming calls f answers.
func serverOf(f func(context.Context) error) *scripted {
	return &scripted{
		unary: func(ctx context.Context, _ int) (*testgrpc.SimpleResponse, error) {
			return &testgrpc.SimpleResponse{}, f(ctx)
		},
		output: func(_ int, s testgrpc.TestService_StreamingOutputCallServer) error { return f(s.Context()) },
	}
}

// hangs returns when the caller has left.
func hangs(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// ask makes a unary call, or a stream.
func ask(ctx context.Context, client testgrpc.TestServiceClient, stream bool, opts ...grpc.CallOption) error {
	if !stream {
		_, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{}, opts...)
		return err
	}
	s, err := client.StreamingOutputCall(ctx, &testgrpc.StreamingOutputCallRequest{}, opts...)
	if err != nil {
		return err
	}
	if _, err = s.Recv(); err == io.EOF {
		return nil
	}
	return err
}

// quickConnect makes a channel try to connect every few milliseconds.
var quickConnect = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond},
	MinConnectTimeout: 20 * time.Second, // also on a busy machine
})

// upTo is a policy of n attempts without waits.
func upTo(attempts int) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Nanosecond}}
}

// bounded is a context for calls that must not hang.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// delays is an Observe that records the decided waits.
func delays(into *[]time.Duration) func(context.Context, retry.Event) {
	return func(_ context.Context, e retry.Event) {
		if e.Decision.Status == retry.WaitingRetry {
			*into = append(*into, e.Decision.Delay)
		}
	}
}

func always(string) bool { return true }

var unavailable = status.Error(codes.Unavailable, "no")
