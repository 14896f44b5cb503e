package retrygrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

// dialNowhere returns a channel whose connections are all refused.
func dialNowhere(t *testing.T, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///nowhere", append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

// serviceConfig makes grpc-go make up to that many attempts for the given codes.
func serviceConfig(attempts int, names string) grpc.DialOption {
	return grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": %d,
		"initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": [%s]}}]}`, attempts, names))
}

func TestLayersDoNotMultiply(t *testing.T) {
	fails := func() *scripted {
		return &scripted{
			unary: func(context.Context, int) (*testgrpc.SimpleResponse, error) {
				return nil, status.Error(codes.Unavailable, "no")
			},
			output: func(int, testgrpc.TestService_StreamingOutputCallServer) error {
				return status.Error(codes.Unavailable, "no")
			},
		}
	}
	// reach makes a call of each kind and returns the number that arrived.
	reach := func(t *testing.T, ctx context.Context, service *scripted, client testgrpc.TestServiceClient) (unary, stream int64) {
		t.Helper()
		_, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{})
		require.Equal(t, codes.Unavailable, status.Code(err))
		unary = service.calls.Swap(0)
		s, err := client.StreamingOutputCall(ctx, &testgrpc.StreamingOutputCallRequest{})
		require.NoError(t, err)
		_, err = s.Recv()
		require.Equal(t, codes.Unavailable, status.Code(err))
		return unary, service.calls.Swap(0)
	}
	// ready makes the channel resolve its service config.
	ready := func(t *testing.T, service *scripted, client testgrpc.TestServiceClient) {
		t.Helper()
		_, err := client.EmptyCall(bounded(t), &testgrpc.Empty{}, grpc.WaitForReady(true))
		require.Equal(t, codes.Unimplemented, status.Code(err))
		service.calls.Store(0)
	}
	for _, row := range []struct {
		name string
		more []grpc.DialOption
		once bool
		want int64
	}{
		{name: "the interceptor alone makes its attempts", want: 3},
		{name: "OneAttempt makes one attempt", once: true, want: 1},
		{name: "grpc-go's own retries do not multiply", more: []grpc.DialOption{serviceConfig(5, `"UNAVAILABLE"`)}, want: 3},
		{name: "a single retry of grpc-go's own does not multiply", more: []grpc.DialOption{serviceConfig(2, `"UNAVAILABLE"`)}, want: 3},
		{name: "grpc-go's own retries can be disabled", more: []grpc.DialOption{serviceConfig(5, `"UNAVAILABLE"`), grpc.WithDisableRetry()}, want: 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			service := fails()
			client := serve(t, service, upTo(3), retrygrpc.Options{}, row.more...)
			ready(t, service, client)
			ctx := bounded(t)
			if row.once {
				ctx = retry.OneAttempt(ctx)
			}
			unary, stream := reach(t, ctx, service, client)
			require.Equal(t, row.want, unary, "unary")
			require.Equal(t, row.want, stream, "stream")
		})
	}
	t.Run("two interceptors: the outer one repeats, and tells the server", func(t *testing.T) {
		service := fails()
		var previous [][]string
		fail := service.unary
		service.unary = func(ctx context.Context, call int) (*testgrpc.SimpleResponse, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			previous = append(previous, md.Get("grpc-previous-rpc-attempts"))
			return fail(ctx, call)
		}
		inner, err := retrygrpc.UnaryClientInterceptor(upTo(7), retrygrpc.Options{})
		require.NoError(t, err)
		innerStream, err := retrygrpc.StreamClientInterceptor(upTo(7), retrygrpc.Options{})
		require.NoError(t, err)
		client := serve(t, service, upTo(2), retrygrpc.Options{}, grpc.WithChainUnaryInterceptor(inner), grpc.WithChainStreamInterceptor(innerStream))
		unary, stream := reach(t, bounded(t), service, client)
		require.Equal(t, int64(2), unary)
		require.Equal(t, int64(2), stream)
		require.Equal(t, [][]string{nil, {"1"}}, previous)
	})
	t.Run("DialOptions turns grpc-go's own retries off, for calls that pass through as well", func(t *testing.T) {
		service := fails()
		service.duplex = func(int, testgrpc.TestService_FullDuplexCallServer) error {
			return status.Error(codes.Unavailable, "no")
		}
		opts, err := retrygrpc.DialOptions(upTo(2), retrygrpc.Options{})
		require.NoError(t, err)
		client, stop := connect(service, append(opts, serviceConfig(5, `"UNAVAILABLE"`))...)
		defer stop()
		ready(t, service, client)
		duplex, err := client.FullDuplexCall(bounded(t))
		require.NoError(t, err)
		_, err = duplex.Recv()
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, int64(1), service.calls.Load())
	})
	t.Run("what is made once is not repeated by grpc-go's own layer", func(t *testing.T) {
		for _, row := range []struct {
			name         string
			once         bool
			want, duplex int64
		}{
			{name: "OneAttempt makes one attempt", once: true, want: 1, duplex: 1},
			{name: "a bidirectional stream is grpc-go's", want: 3, duplex: 5},
		} {
			service := fails()
			service.duplex = func(_ int, s testgrpc.TestService_FullDuplexCallServer) error {
				if _, err := s.Recv(); err != nil {
					return err
				}
				return status.Error(codes.Unavailable, "no")
			}
			client := serve(t, service, upTo(3), retrygrpc.Options{}, serviceConfig(5, `"UNAVAILABLE"`))
			ready(t, service, client)
			ctx := bounded(t)
			if row.once {
				ctx = retry.OneAttempt(ctx)
			}
			unary, stream := reach(t, ctx, service, client)
			require.Equal(t, row.want, unary, row.name)
			require.Equal(t, row.want, stream, row.name)
			duplex, err := client.FullDuplexCall(ctx)
			require.NoError(t, err)
			require.NoError(t, duplex.Send(&testgrpc.StreamingOutputCallRequest{Payload: &testgrpc.Payload{Body: []byte("x")}}))
			_, err = duplex.Recv()
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.Equal(t, row.duplex, service.calls.Load(), row.name)
		}
	})
	t.Run("the first call of a channel does not multiply either", func(t *testing.T) {
		service := fails()
		client := serve(t, service, upTo(3), retrygrpc.Options{}, serviceConfig(5, `"UNAVAILABLE"`))
		_, err := client.UnaryCall(bounded(t), &testgrpc.SimpleRequest{}, grpc.WaitForReady(true))
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, int64(3), service.calls.Load())
	})
}

// grpc-go's own retries are the reference for the requests that a failing server gets: the same codes, the same
// pushbacks.
func TestAgreesWithGRPC(t *testing.T) {
	names := map[codes.Code]string{
		codes.Unavailable: "UNAVAILABLE", codes.ResourceExhausted: "RESOURCE_EXHAUSTED", codes.Aborted: "ABORTED",
		codes.Internal: "INTERNAL", codes.Unknown: "UNKNOWN", codes.DataLoss: "DATA_LOSS", codes.NotFound: "NOT_FOUND",
		codes.InvalidArgument: "INVALID_ARGUMENT", codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.Unauthenticated: "UNAUTHENTICATED",
	}
	chosen := []codes.Code{codes.Unavailable, codes.Aborted, codes.Internal, codes.DeadlineExceeded}
	list := ""
	for i, code := range chosen {
		if i > 0 {
			list += ", "
		}
		list += `"` + names[code] + `"`
	}
	var code codes.Code
	var pushback []string
	service := &scripted{
		unary: func(ctx context.Context, _ int) (*testgrpc.SimpleResponse, error) {
			if pushback != nil {
				if err := grpc.SetTrailer(ctx, metadata.MD{"grpc-retry-pushback-ms": pushback}); err != nil {
					return nil, err
				}
			}
			return nil, status.Error(code, "no")
		},
		output: func(_ int, s testgrpc.TestService_StreamingOutputCallServer) error {
			if pushback != nil {
				s.SetTrailer(metadata.MD{"grpc-retry-pushback-ms": pushback})
			}
			return status.Error(code, "no")
		},
	}
	o := retrygrpc.Options{Idempotent: always, RetryCodes: chosen}
	ours := serve(t, service, upTo(5), o)
	theirs, stop := connect(service, serviceConfig(5, list))
	defer stop()
	ask := func(client testgrpc.TestServiceClient) (calls [2]int64) {
		_, err := client.UnaryCall(bounded(t), &testgrpc.SimpleRequest{}, grpc.WaitForReady(true))
		require.Equal(t, code, status.Code(err))
		calls[0] = service.calls.Swap(0)
		s, err := client.StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{}, grpc.WaitForReady(true))
		require.NoError(t, err)
		_, err = s.Recv()
		require.Equal(t, code, status.Code(err))
		calls[1] = service.calls.Swap(0)
		return calls
	}
	for _, client := range []testgrpc.TestServiceClient{ours, theirs} { // so that both know their service config
		_, err := client.EmptyCall(bounded(t), &testgrpc.Empty{}, grpc.WaitForReady(true))
		require.Equal(t, codes.Unimplemented, status.Code(err))
	}
	for code = range names {
		want := [2]int64{1, 1}
		if slices.Contains(chosen, code) {
			want = [2]int64{5, 5}
		}
		pushback = nil
		require.Equal(t, want, ask(theirs), "theirs %v", code)
		require.Equal(t, want, ask(ours), "ours %v", code)
	}
	code = codes.Unavailable
	for _, pushback = range [][]string{{"0"}, {"3"}, {"-1"}, {""}, {"many"}, {"1", "1"}} {
		require.Equal(t, ask(theirs), ask(ours), pushback)
	}
}

func TestWaitForReadyIsBoundByTheAttemptsTimeout(t *testing.T) {
	p := upTo(3)
	p.AttemptTimeout = 20 * time.Millisecond
	opts, err := retrygrpc.DialOptions(p, retrygrpc.Options{Idempotent: always})
	require.NoError(t, err)
	client := testgrpc.NewTestServiceClient(dialNowhere(t, opts...))
	_, err = client.UnaryCall(bounded(t), &testgrpc.SimpleRequest{}, grpc.WaitForReady(true))
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.ErrorIs(t, err, retry.AttemptsExhausted)
	s, err := client.StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	_, err = s.Recv()
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.ErrorIs(t, err, retry.AttemptsExhausted)
}
