package retrygrpc_test

import (
	"context"
	"net"
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

// cutting is a TCP listener whose connections can be cut.
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
			_ = conn.(*net.TCPConn).SetLinger(0)
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
		"its timeout has passed": {
			fails: func(ctx context.Context, _ func()) error { return hangs(ctx) }, policy: retry.Policy{AttemptTimeout: 100 * time.Millisecond},
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
		"its connection is lost, and the policy forbids to repeat that": {
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
		"a failure of the server that is not repeated": {
			fails: func(context.Context, func()) error { return status.Error(codes.Internal, "no") },
			calls: 3,
		},
		"its attempts are used up": {
			fails: func(context.Context, func()) error { return status.Error(codes.Unavailable, "no") },
			calls: 3 * 2,
		},
		"it may be repeated": {
			fails: func(ctx context.Context, _ func()) error { return hangs(ctx) }, policy: retry.Policy{AttemptTimeout: 20 * time.Millisecond},
			idempotent: true, calls: 3 * 2,
		},
		"the policy repeats what times out": {
			fails:  func(ctx context.Context, _ func()) error { return hangs(ctx) },
			policy: retry.Policy{AttemptTimeout: 20 * time.Millisecond, Classify: retry.Otherwise(retry.Retryable)}, calls: 3 * 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tcp, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			listener := cutting{tcp, make(chan net.Conn, 100)}
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
			conn, err := grpc.NewClient(tcp.Addr().String(), append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
			require.NoError(t, err)
			defer conn.Close()
			client := testgrpc.NewTestServiceClient(conn)
			err = retry.Do(bounded(t), upTo(3), func(ctx context.Context) error {
				_, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{}, grpc.WaitForReady(true))
				return err
			})
			require.Equal(t, row.calls, service.calls.Load())
			class, _ := retry.Policy{Classify: retry.Otherwise(retry.Retryable)}.Judge(err)
			require.Equal(t, row.doubt, class == retry.Terminal)
		})
	}
	t.Run("not that of a call which no server can have seen", func(t *testing.T) {
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
	t.Run("that of a caller who leaves", func(t *testing.T) {
		service := &scripted{unary: func(ctx context.Context, _ int) (*testgrpc.SimpleResponse, error) { return nil, hangs(ctx) }}
		client := serve(t, service, upTo(2), retrygrpc.Options{})
		p := upTo(3)
		p.AttemptTimeout = 100 * time.Millisecond // of the outer run
		err := retry.Do(bounded(t), p, func(ctx context.Context) error {
			_, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{})
			return err
		})
		require.Error(t, err)
		require.Equal(t, int64(1), service.calls.Load())
	})
	t.Run("of a stream without a header", func(t *testing.T) {
		service := &scripted{output: func(_ int, s testgrpc.TestService_StreamingOutputCallServer) error { return hangs(s.Context()) }}
		p := upTo(2)
		p.AttemptTimeout = 100 * time.Millisecond
		client := serve(t, service, p, retrygrpc.Options{})
		err := retry.Do(bounded(t), upTo(3), func(ctx context.Context) error {
			s, err := client.StreamingOutputCall(ctx, &testgrpc.StreamingOutputCallRequest{})
			if err != nil {
				return err
			}
			_, err = s.Recv()
			return err
		})
		require.Error(t, err)
		require.Equal(t, int64(1), service.calls.Load())
	})
}
