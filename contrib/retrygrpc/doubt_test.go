package retrygrpc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

// A call that is not safe to repeat, and has timed out or lost its answer, is made once, whatever runs are around it.
func TestDoubtOutlivesTheRun(t *testing.T) {
	type handler = func(ctx context.Context, stop func()) error
	hung := func(ctx context.Context, _ func()) error { return hangs(ctx) }
	says := func(code codes.Code) handler {
		return func(context.Context, func()) error { return status.Error(code, "no") }
	}
	with := func(code codes.Code, key, value string) handler {
		return func(ctx context.Context, _ func()) error {
			_ = grpc.SetTrailer(ctx, metadata.Pairs(key, value))
			return status.Error(code, "no")
		}
	}
	timeout, forbids := retry.Policy{AttemptTimeout: time.Second}, retry.Policy{Classify: retrygrpc.OnCode(retry.Terminal, codes.Unavailable)}
	for name, row := range map[string]struct {
		fails      handler
		policy     retry.Policy
		idempotent bool
		calls      int64 // of three outer attempts
		doubt      bool
	}{
		"the timeout of the attempt has passed": {fails: hung, policy: timeout, calls: 1, doubt: true},
		"an idempotent call may be repeated":    {fails: hung, policy: timeout, idempotent: true, calls: 3 * 2},
		"the policy repeats what times out": {
			fails: hung, policy: retry.Policy{AttemptTimeout: time.Second, Classify: retry.Otherwise(retry.Retryable)}, calls: 3 * 2,
		},
		"the server's timeout has passed": {fails: says(codes.DeadlineExceeded), calls: 1, doubt: true},
		"the answer had begun": {
			fails: func(ctx context.Context, _ func()) error {
				_ = grpc.SendHeader(ctx, metadata.Pairs("a", "b"))
				return unavailable
			},
			calls: 1, doubt: true,
		},
		"the connection is lost, and the policy forbids to repeat that": {
			fails:  func(ctx context.Context, stop func()) error { stop(); return hangs(ctx) },
			policy: forbids, calls: 1, doubt: true,
		},
		"the server says so, and the policy forbids to repeat that": {fails: says(codes.Unavailable), policy: forbids, calls: 3},
		"INTERNAL of the server":                                    {fails: says(codes.Internal), calls: 1, doubt: true},
		"a handler's plain error, which is UNKNOWN":                 {fails: func(context.Context, func()) error { return errors.New("no") }, calls: 1, doubt: true},
		"RESOURCE_EXHAUSTED, which says that nothing was done":      {fails: says(codes.ResourceExhausted), calls: 3},
		"an answer, which no run repeats":                           {fails: says(codes.NotFound), calls: 1},
		"an answer of a server that is in doubt":                    {fails: with(codes.Aborted, "retry-in-doubt", "true"), calls: 1, doubt: true},
		"UNAVAILABLE of a server that is in doubt":                  {fails: with(codes.Unavailable, "retry-in-doubt", "true"), calls: 1, doubt: true},
		"UNAVAILABLE of a server that has given up":                 {fails: with(codes.Unavailable, "grpc-retry-pushback-ms", "-1"), calls: 3},
		"the attempts are used up":                                  {fails: says(codes.Unavailable), calls: 3 * 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var stop func()
				service := &scripted{unary: func(ctx context.Context, _ int) (*testgrpc.SimpleResponse, error) {
					return nil, row.fails(ctx, func() { go stop() })
				}}
				o := retrygrpc.Options{Idempotent: func(string) bool { return row.idempotent }}
				opts, err := retrygrpc.DialOptions(upTo(2).Or(row.policy), o)
				require.NoError(t, err)
				var conn *grpc.ClientConn
				conn, stop = start(service, nil, opts...)
				defer stop()
				defer conn.Close()
				client := testgrpc.NewTestServiceClient(conn)
				err = retry.Do(bounded(t), upTo(3), func(ctx context.Context) error { return ask(ctx, client, false, grpc.WaitForReady(true)) })
				require.Equal(t, row.calls, service.calls.Load())
				require.Equal(t, row.doubt, retry.IsAmbiguous(err))
			})
		})
	}
	t.Run("a call that no server can have seen is not in doubt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			opts, err := retrygrpc.DialOptions(upTo(2).Or(timeout), retrygrpc.Options{})
			require.NoError(t, err)
			client := testgrpc.NewTestServiceClient(dialNowhere(t, opts...))
			outer := 0
			err = retry.Do(t.Context(), upTo(3), func(ctx context.Context) error {
				outer++
				return ask(ctx, client, false, grpc.WaitForReady(true))
			})
			require.Equal(t, codes.DeadlineExceeded, status.Code(err))
			require.Equal(t, 3, outer)
		})
	})
	t.Run("a call whose caller leaves is in doubt, and so is a stream without a header", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			service := serverOf(hangs)
			for _, inner := range []time.Duration{0, time.Second} { // with 0 the outer run's timeout ends the call
				client := serve(t, service, upTo(2).Or(retry.Policy{AttemptTimeout: inner}), retrygrpc.Options{})
				for _, stream := range []bool{false, true} {
					service.calls.Store(0)
					outer := upTo(3).Or(retry.Policy{AttemptTimeout: 2 * time.Second})
					err := retry.Do(t.Context(), outer, func(ctx context.Context) error { return ask(ctx, client, stream) })
					require.True(t, retry.IsAmbiguous(err))
					require.Equal(t, int64(1), service.calls.Load())

					// A job around that run, too, is a dead letter.
					verdict := upTo(3).Decide(retry.Progress{Attempt: 1}, err, 0)
					require.Equal(t, retry.Decision{Status: retry.DeadLettered, Reason: retry.TerminalError, Class: retry.Terminal}, verdict)
				}
			}
		})
	})
}
