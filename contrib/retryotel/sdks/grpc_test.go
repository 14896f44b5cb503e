package sdks_test

import (
	"cmp"
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

// health is a server that answers with one code after the other.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	codes []grpccodes.Code
}

func (h *health) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	code := h.codes[0]
	h.codes = h.codes[1:]
	return &grpc_health_v1.HealthCheckResponse{}, status.Error(code, "no")
}

// The interceptor of Run's comment gives the runs of another one their span: here of one that stands on retry.Do, as
// contrib/retrygrpc's does.
func TestARunOfGRPCHasASpan(t *testing.T) {
	for name, row := range map[string]struct {
		codes    []grpccodes.Code
		observed bool
		want     map[string]any
		events   int
		status   codes.Code
	}{
		"a success after two failures": {[]grpccodes.Code{grpccodes.Unavailable, grpccodes.Unavailable, grpccodes.OK}, true, map[string]any{
			"retry.policy": "health", "retry.status": "succeeded", "retry.attempts": int64(3)}, 2, codes.Unset},
		"attempts are used up": {[]grpccodes.Code{grpccodes.Unavailable, grpccodes.Unavailable, grpccodes.Unavailable}, true, map[string]any{
			"retry.policy": "health", "retry.status": "dead_letter", "retry.reason": "attempts_exhausted",
			"retry.attempts": int64(3), "error.type": "UNAVAILABLE"}, 3, codes.Error},
		"an answer is a success of the run": {[]grpccodes.Code{grpccodes.NotFound}, true, map[string]any{
			"retry.policy": "health", "retry.status": "succeeded", "retry.attempts": int64(1)}, 0, codes.Unset},
		"without Observe the error alone": {[]grpccodes.Code{grpccodes.NotFound}, false, map[string]any{"error.type": "NOT_FOUND"}, 0, codes.Error},
		"without Observe a run's error": {[]grpccodes.Code{grpccodes.Unavailable, grpccodes.Unavailable, grpccodes.Unavailable}, false, map[string]any{
			"retry.status": "dead_letter", "retry.reason": "attempts_exhausted", "retry.attempts": int64(3), "error.type": "UNAVAILABLE"}, 0, codes.Error},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSDK(t)
			p := quickly(3)
			p.Name = "health"
			if row.observed {
				observe, err := retryotel.Observe(s.Options)
				require.NoError(t, err)
				p.Observe = observe
			}
			retries := func(
				ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
			) (answer error) {
				err := retry.Do(ctx, p, func(ctx context.Context) error {
					err := invoke(ctx, method, req, reply, conn, opts...)
					if status.Code(err) == grpccodes.NotFound {
						answer, err = err, nil
					}
					return err
				})
				return cmp.Or(err, answer)
			}
			runs := func(
				ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
			) error {
				return retryotel.Run(ctx, s.Options, func(ctx context.Context) error {
					return invoke(ctx, method, req, reply, conn, opts...)
				})
			}
			listener := bufconn.Listen(1 << 16)
			server := grpc.NewServer()
			grpc_health_v1.RegisterHealthServer(server, &health{codes: row.codes})
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(server.Stop)
			conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
				grpc.WithChainUnaryInterceptor(runs, retries))
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })

			ctx, caller := s.traces.Tracer("").Start(t.Context(), "caller")
			_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
			require.Equal(t, row.codes[len(row.codes)-1], status.Code(err))
			caller.End()
			span := s.runBelow(caller.SpanContext())
			require.Equal(t, row.want, set(span.Attributes))
			require.Equal(t, row.status, span.Status.Code)
			require.Len(t, span.Events, row.events)
		})
	}
}

func TestRunWithoutAnSDKIsItsFunction(t *testing.T) {
	o := retryotel.Options{TracerProvider: tracenoop.NewTracerProvider()}
	outer := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
	for _, ctx := range []context.Context{t.Context(), outer} {
		down := retry.Permanent(errDown)
		same := func(inner context.Context) error { require.Equal(t, ctx, inner); return down }
		require.Equal(t, down, retryotel.Run(ctx, o, same))
		require.ErrorIs(t, retryotel.Do(ctx, retry.Policy{}, o, same), errDown)
	}
}
