package retrygrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
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

// refusing is a service whose calls all fail, a bidirectional stream once it has a message.
func refusing() *scripted {
	service := serverOf(func(context.Context) error { return unavailable })
	service.duplex = func(_ int, s testgrpc.TestService_FullDuplexCallServer) error {
		if _, err := s.Recv(); err != nil {
			return err
		}
		return unavailable
	}
	return service
}

// ready makes the channel resolve its service config.
func ready(t *testing.T, client testgrpc.TestServiceClient) {
	t.Helper()
	_, err := client.EmptyCall(bounded(t), &testgrpc.Empty{}, grpc.WaitForReady(true))
	require.Equal(t, codes.Unimplemented, status.Code(err))
}

func TestLayersDoNotMultiply(t *testing.T) {
	own := serviceConfig(5, `"UNAVAILABLE"`)
	for _, row := range []struct {
		name   string
		more   []grpc.DialOption
		once   bool
		want   int64 // attempts of a unary call and of a server stream
		duplex int64 // of a bidirectional stream, which is left to grpc-go
	}{
		{name: "the interceptor alone makes its attempts", want: 3, duplex: 1},
		{name: "OneAttempt makes one attempt", once: true, want: 1, duplex: 1},
		{name: "OneAttempt makes one attempt of grpc-go's, too", more: []grpc.DialOption{own}, once: true, want: 1, duplex: 1},
		{name: "grpc-go's own retries do not multiply", more: []grpc.DialOption{own}, want: 3, duplex: 5},
		{name: "a single retry of grpc-go's own does not multiply", more: []grpc.DialOption{serviceConfig(2, `"UNAVAILABLE"`)}, want: 3, duplex: 2},
		{name: "grpc-go's own retries can be disabled", more: []grpc.DialOption{own, grpc.WithDisableRetry()}, want: 3, duplex: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			service := refusing()
			client := serve(t, service, upTo(3), retrygrpc.Options{}, row.more...)
			ready(t, client)
			ctx := bounded(t)
			if row.once {
				ctx = retry.OneAttempt(ctx)
			}
			for _, stream := range []bool{false, true} {
				require.Equal(t, codes.Unavailable, status.Code(ask(ctx, client, stream)))
				require.Equal(t, row.want, service.calls.Swap(0), "of a stream: %t", stream)
			}
			require.Equal(t, codes.Unavailable, status.Code(askDuplex(ctx, client)))
			require.Equal(t, row.duplex, service.calls.Load())
		})
	}
	t.Run("two interceptors: the outer one repeats, and tells the server", func(t *testing.T) {
		service := refusing()
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
		for _, stream := range []bool{false, true} {
			require.Equal(t, codes.Unavailable, status.Code(ask(bounded(t), client, stream)))
			require.Equal(t, int64(2), service.calls.Swap(0))
		}
		require.Equal(t, [][]string{nil, {"1"}}, previous)
	})
	t.Run("DialOptions turns grpc-go's own retries off, for calls that pass through as well", func(t *testing.T) {
		service := refusing()
		opts, err := retrygrpc.DialOptions(upTo(2), retrygrpc.Options{})
		require.NoError(t, err)
		client, stop := connect(service, append(opts, own)...)
		defer stop()
		ready(t, client)
		require.Equal(t, codes.Unavailable, status.Code(askDuplex(bounded(t), client)))
		require.Equal(t, int64(1), service.calls.Load())
	})
	t.Run("the first call of a channel does not multiply either", func(t *testing.T) {
		service := refusing()
		client := serve(t, service, upTo(3), retrygrpc.Options{}, own)
		require.Equal(t, codes.Unavailable, status.Code(ask(bounded(t), client, false, grpc.WaitForReady(true))))
		require.Equal(t, int64(3), service.calls.Load())
	})
}

// askDuplex makes a bidirectional stream of one message.
func askDuplex(ctx context.Context, client testgrpc.TestServiceClient) error {
	s, err := client.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(&testgrpc.StreamingOutputCallRequest{}); err != nil {
		return err
	}
	_, err = s.Recv()
	return err
}

// grpc-go's own retries are the reference for the requests that a failing server gets: the same codes, the same
// pushbacks.
func TestAgreesWithGRPC(t *testing.T) {
	chosen := []codes.Code{codes.Unavailable, codes.Aborted, codes.Internal, codes.DeadlineExceeded}
	others := []codes.Code{codes.ResourceExhausted, codes.Unknown, codes.DataLoss, codes.NotFound, codes.InvalidArgument, codes.Unauthenticated}
	var code codes.Code
	var pushback []string
	service := serverOf(func(ctx context.Context) error {
		if pushback != nil {
			if err := grpc.SetTrailer(ctx, metadata.MD{"grpc-retry-pushback-ms": pushback}); err != nil {
				return err
			}
		}
		return status.Error(code, "no")
	})
	ours := serve(t, service, upTo(5), retrygrpc.Options{Idempotent: always, RetryCodes: chosen})
	theirs, stop := connect(service, serviceConfig(5, `"UNAVAILABLE", "ABORTED", "INTERNAL", "DEADLINE_EXCEEDED"`))
	defer stop()
	calls := func(client testgrpc.TestServiceClient) (made [2]int64) {
		for i, stream := range []bool{false, true} {
			require.Equal(t, code, status.Code(ask(bounded(t), client, stream, grpc.WaitForReady(true))))
			made[i] = service.calls.Swap(0)
		}
		return made
	}
	ready(t, ours)
	ready(t, theirs)
	for _, each := range slices.Concat(chosen, others) {
		code = each
		want := [2]int64{1, 1}
		if slices.Contains(chosen, code) {
			want = [2]int64{5, 5}
		}
		require.Equal(t, want, calls(theirs), "theirs %v", code)
		require.Equal(t, want, calls(ours), "ours %v", code)
	}
	code = codes.Unavailable
	for _, each := range [][]string{{"0"}, {"3"}, {"-1"}, {""}, {"many"}, {"1", "1"}} {
		pushback = each
		require.Equal(t, calls(theirs), calls(ours), pushback)
	}
}

func TestWaitForReadyIsBoundByTheAttemptsTimeout(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := upTo(3)
			p.AttemptTimeout = time.Second
			opts, err := retrygrpc.DialOptions(p, retrygrpc.Options{Idempotent: always})
			require.NoError(t, err)
			client := testgrpc.NewTestServiceClient(dialNowhere(t, opts...))
			start := time.Now()
			err = ask(t.Context(), client, stream, grpc.WaitForReady(true))
			require.Equal(t, codes.DeadlineExceeded, status.Code(err))
			require.ErrorIs(t, err, retry.AttemptsExhausted)
			require.Equal(t, 3*time.Second+2, time.Since(start))
		})
	}
}
