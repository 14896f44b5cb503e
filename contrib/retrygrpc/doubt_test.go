package retrygrpc_test

import (
	"context"
	"errors"
	"net"
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
	"google.golang.org/grpc/test/bufconn"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

// cutting is a listener whose connections can be cut.
type cutting struct {
	net.Listener
	conns chan net.Conn
}

func (c cutting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.conns <- conn
	}
	return conn, err
}

// cut closes the connections that have come so far.
func (c cutting) cut() {
	for {
		select {
		case conn := <-c.conns:
			_ = conn.Close()
		default:
			return
		}
	}
}

// A call that is not safe to repeat, and has timed out or lost its answer, is made once, whatever runs are around it.
func TestDoubtOutlivesTheRun(t *testing.T) {
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, row := range map[string]struct {
		fails      func(ctx context.Context, cut func()) error // in the handler
		policy     retry.Policy
		options    retrygrpc.Options
		idempotent bool
		calls      int64 // of three outer attempts
		doubt      bool
	}{
		"the timeout of the attempt has passed": {
			fails: func(ctx context.Context, _ func()) error { return hangs(ctx) }, policy: retry.Policy{AttemptTimeout: time.Second},
			calls: 1, doubt: true,
		},
		"the server's timeout has passed": {
			fails: func(context.Context, func()) error { return status.Error(codes.DeadlineExceeded, "mine") },
			calls: 1, doubt: true,
		},
		"the answer had begun": {
			fails: func(ctx context.Context, _ func()) error {
				_ = grpc.SendHeader(ctx, metadata.Pairs("a", "b"))
				return status.Error(codes.Unavailable, "no")
			},
			calls: 1, doubt: true,
		},
		"the connection is lost, and the policy forbids to repeat that": {
			fails:  func(ctx context.Context, cut func()) error { cut(); return hangs(ctx) },
			policy: retry.Policy{Classify: retrygrpc.OnCode(retry.Terminal, codes.Unavailable)},
			calls:  1, doubt: true,
		},
		"the server says so, and the policy forbids to repeat that": {
			fails:  func(context.Context, func()) error { return status.Error(codes.Unavailable, "no") },
			policy: retry.Policy{Classify: retrygrpc.OnCode(retry.Terminal, codes.Unavailable)},
			calls:  3,
		},
		"INTERNAL is to be repeated, but not if it may have taken effect": {
			fails:   func(context.Context, func()) error { return status.Error(codes.Internal, "no") },
			options: retrygrpc.Options{RetryCodes: []codes.Code{codes.Internal}},
			calls:   1, doubt: true,
		},
		"INTERNAL of the server": {
			fails: func(context.Context, func()) error { return status.Error(codes.Internal, "no") },
			calls: 1, doubt: true,
		},
		"a handler's plain error, which is UNKNOWN": {
			fails: func(context.Context, func()) error { return errors.New("no") },
			calls: 1, doubt: true,
		},
		"DATA_LOSS of the server": {
			fails: func(context.Context, func()) error { return status.Error(codes.DataLoss, "no") },
			calls: 1, doubt: true,
		},
		"CANCELED of the server": {
			fails: func(context.Context, func()) error { return status.Error(codes.Canceled, "no") },
			calls: 1, doubt: true,
		},
		"INTERNAL of the server, idempotent": {
			fails: func(context.Context, func()) error { return status.Error(codes.Internal, "no") },
			calls: 3, idempotent: true,
		},
		"RESOURCE_EXHAUSTED, which says that nothing was done": {
			fails: func(context.Context, func()) error { return status.Error(codes.ResourceExhausted, "no") },
			calls: 3,
		},
		"an answer, which no run repeats": {
			fails: func(context.Context, func()) error { return status.Error(codes.NotFound, "no") },
			calls: 1,
		},
		"an answer of a server that is in doubt": {
			fails: func(ctx context.Context, _ func()) error {
				_ = grpc.SetTrailer(ctx, metadata.Pairs("retry-in-doubt", "true"))
				return status.Error(codes.Aborted, "no")
			},
			calls: 1, doubt: true,
		},
		"UNAVAILABLE of a server that is in doubt": {
			fails: func(ctx context.Context, _ func()) error {
				_ = grpc.SetTrailer(ctx, metadata.Pairs("retry-in-doubt", "true"))
				return status.Error(codes.Unavailable, "no")
			},
			calls: 1, doubt: true,
		},
		"UNAVAILABLE of a server that has given up": {
			fails: func(ctx context.Context, _ func()) error {
				_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "-1"))
				return status.Error(codes.Unavailable, "no")
			},
			calls: 3,
		},
		"the attempts are used up": {
			fails: func(context.Context, func()) error { return status.Error(codes.Unavailable, "no") },
			calls: 3 * 2,
		},
		"an idempotent call may be repeated": {
			fails: func(ctx context.Context, _ func()) error { return hangs(ctx) }, policy: retry.Policy{AttemptTimeout: time.Second},
			idempotent: true, calls: 3 * 2,
		},
		"the policy repeats what times out": {
			fails:  func(ctx context.Context, _ func()) error { return hangs(ctx) },
			policy: retry.Policy{AttemptTimeout: time.Second, Classify: retry.Otherwise(retry.Retryable)}, calls: 3 * 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := bufconn.Listen(1 << 16)
				listener := cutting{memory, make(chan net.Conn, 100)}
				service := &scripted{unary: func(ctx context.Context, _ int) (*testgrpc.SimpleResponse, error) {
					return nil, row.fails(ctx, listener.cut)
				}}
				server := grpc.NewServer()
				testgrpc.RegisterTestServiceServer(server, service)
				go func() { _ = server.Serve(listener) }()
				defer server.Stop()
				row.options.Idempotent = func(string) bool { return row.idempotent }
				opts, err := retrygrpc.DialOptions(upTo(2).Or(row.policy), row.options)
				require.NoError(t, err)
				conn, err := grpc.NewClient("passthrough:///memory", append(opts,
					grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return memory.DialContext(ctx) }))...)
				require.NoError(t, err)
				defer conn.Close()
				client := testgrpc.NewTestServiceClient(conn)
				err = retry.Do(t.Context(), upTo(3), func(ctx context.Context) error {
					_, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{}, grpc.WaitForReady(true))
					return err
				})
				require.Equal(t, row.calls, service.calls.Load())
				require.Equal(t, row.doubt, retry.IsAmbiguous(err))
			})
		})
	}
	t.Run("a call that no server can have seen is not in doubt", func(t *testing.T) {
		p := upTo(2)
		p.AttemptTimeout = 20 * time.Millisecond
		opts, err := retrygrpc.DialOptions(p, retrygrpc.Options{})
		require.NoError(t, err)
		client := testgrpc.NewTestServiceClient(dialNowhere(t, opts...))
		outer := 0
		err = retry.Do(bounded(t), upTo(3), func(ctx context.Context) error {
			outer++
			_, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{}, grpc.WaitForReady(true))
			return err
		})
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.Equal(t, 3, outer)
	})
	t.Run("a call whose caller leaves is in doubt, and so is a stream without a header", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			service := serverOf(hangs)
			listener := bufconn.Listen(1 << 16)
			server := grpc.NewServer()
			testgrpc.RegisterTestServiceServer(server, service)
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			for _, inner := range []time.Duration{0, time.Second} { // with 0 the outer run's timeout ends the call
				opts, err := retrygrpc.DialOptions(upTo(2).Or(retry.Policy{AttemptTimeout: inner}), retrygrpc.Options{})
				require.NoError(t, err)
				conn, err := grpc.NewClient("passthrough:///memory", append(opts,
					grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
				require.NoError(t, err)
				for _, stream := range []bool{false, true} {
					service.calls.Store(0)
					outer := upTo(3).Or(retry.Policy{AttemptTimeout: 2 * time.Second})
					err := retry.Do(t.Context(), outer, func(ctx context.Context) error {
						return ask(ctx, testgrpc.NewTestServiceClient(conn), stream)
					})
					require.True(t, retry.IsAmbiguous(err))
					require.Equal(t, int64(1), service.calls.Load())

					// A job around that run, too, is a dead letter.
					verdict := upTo(3).Decide(retry.Progress{Attempt: 1}, err, 0)
					require.Equal(t, retry.Decision{Status: retry.DeadLettered, Reason: retry.TerminalError, Class: retry.Terminal}, verdict)
				}
				require.NoError(t, conn.Close())
			}
		})
	})
}
