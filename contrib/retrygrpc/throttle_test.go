package retrygrpc_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

func newThrottle(t *testing.T, most int, ratio float64) *retrygrpc.Throttle {
	t.Helper()
	throttle, err := retrygrpc.NewThrottle(most, ratio)
	require.NoError(t, err)
	return throttle
}

// The vectors are those of gRFC A6 for maxTokens 10 and tokenRatio 0.1.
func TestThrottleCountsAsGRPCDoes(t *testing.T) {
	failure, success := answer{err: status.Error(codes.Unavailable, "")}, answer{}
	throttle := newThrottle(t, 10, 0.1)
	o := retrygrpc.Options{Throttle: throttle}
	// step makes a call of one attempt, or of two if the first fails and a retry is allowed; both then fail.
	single := func(says answer) {
		_, _ = invoke(t, t.Context(), upTo(1), o, []answer{says})
	}
	for i, want := range []float64{9, 8, 7, 6, 5} {
		single(failure)
		require.Equal(t, want, throttle.Tokens(""), i)
	}
	refused := func(want float64) {
		t.Helper()
		calls, err := invoke(t, t.Context(), upTo(2), o, []answer{failure})
		require.Equal(t, 1, calls)
		require.ErrorIs(t, err, retry.BudgetExhausted)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, want, throttle.Tokens(""))
	}
	single(success)
	require.Equal(t, 5.1, throttle.Tokens(""))
	refused(4.1)
	for range 9 {
		single(success)
	}
	require.Equal(t, 5.0, throttle.Tokens(""))
	for range 11 {
		single(success)
	}
	require.Equal(t, 6.1, throttle.Tokens(""))
	calls, err := invoke(t, t.Context(), upTo(2), o, []answer{failure, success})
	require.NoError(t, err, "5.1 are more than half")
	require.Equal(t, 2, calls)
	require.Equal(t, 5.2, throttle.Tokens(""))
	for range 100 {
		single(success)
	}
	require.Equal(t, 10.0, throttle.Tokens(""), "never more")
	for range 20 {
		single(failure)
	}
	require.Equal(t, 0.0, throttle.Tokens(""), "never less than none")
	refused(0)
}

func TestThrottle(t *testing.T) {
	failure := status.Error(codes.Unavailable, "")
	t.Run("ends a run in its midst", func(t *testing.T) {
		throttle := newThrottle(t, 6, 1)
		calls, err := invoke(t, t.Context(), upTo(9), retrygrpc.Options{Throttle: throttle}, []answer{{err: failure}})
		require.Equal(t, 3, calls, "6: 5 and 4 are above 3, and 3 is not")
		require.ErrorIs(t, err, retry.BudgetExhausted)
	})
	for _, row := range []struct {
		name string
		says answer
		want float64
	}{
		{"a failure that is not retryable costs nothing", answer{err: status.Error(codes.Internal, "")}, 9},
		{"an answer costs nothing and adds nothing, as in grpc-go", answer{err: status.Error(codes.NotFound, "")}, 9},
		{"a pushback that forbids costs one", answer{err: failure, pushback: []string{"-1"}}, 8},
		{"so it does if the code is not retryable", answer{err: status.Error(codes.NotFound, ""), pushback: []string{"-1"}}, 8},
		{"a mark inside costs nothing", answer{err: retry.Permanent(failure)}, 9},
		{"a success adds one", answer{}, 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			throttle := newThrottle(t, 10, 1)
			for _, says := range []answer{{err: failure}, row.says} { // 9 after the first
				_, _ = invoke(t, t.Context(), upTo(1), retrygrpc.Options{Throttle: throttle}, []answer{says})
			}
			require.Equal(t, row.want, throttle.Tokens(""))
		})
	}
	t.Run("keeps three decimals of the ratio", func(t *testing.T) {
		for ratio, want := range map[float64]float64{0.001: 7.001, 1.001: 8.001, 0.1239: 7.123, 0.0019999: 7.001, 5: 10, 1e300: 10} {
			throttle := newThrottle(t, 10, ratio)
			o := retrygrpc.Options{Throttle: throttle}
			for range 3 {
				_, _ = invoke(t, t.Context(), upTo(1), o, []answer{{err: failure}})
			}
			_, _ = invoke(t, t.Context(), upTo(1), o, []answer{{}})
			require.Equal(t, want, throttle.Tokens(""), ratio)
		}
	})
	t.Run("refuses what gRPC refuses", func(t *testing.T) {
		_, err := retrygrpc.NewThrottle(0, 0)
		require.EqualError(t, err, "retrygrpc: maxTokens 0 is outside 1 to 1000; tokenRatio 0 is not a number of at least 0.001")
		for _, ratio := range []float64{-1, math.NaN(), math.Inf(1), 0.0009} {
			_, err = retrygrpc.NewThrottle(1000, ratio)
			require.Error(t, err, ratio)
		}
		_, err = retrygrpc.NewThrottle(1001, 1)
		require.Error(t, err)
	})
	t.Run("that is zero refuses every retry", func(t *testing.T) {
		calls, err := invoke(t, t.Context(), upTo(3), retrygrpc.Options{Throttle: new(retrygrpc.Throttle)}, []answer{{err: failure}})
		require.Equal(t, 1, calls)
		require.ErrorIs(t, err, retry.BudgetExhausted)
	})
	t.Run("is asked after Budget and Pay, and a refusal gives the Budget its token back", func(t *testing.T) {
		throttle := newThrottle(t, 6, 1)
		p, paid := upTo(9), 0
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 5, Ratio: -1})
		p.Pay = func(context.Context, retry.Decision) bool { paid++; return true }
		calls, err := invoke(t, t.Context(), p, retrygrpc.Options{Throttle: throttle}, []answer{{err: failure}})
		require.Equal(t, 3, calls, "6: 5 and 4 are above 3, and 3 is not")
		require.ErrorIs(t, err, retry.BudgetExhausted)
		require.Equal(t, 3, paid)
		require.Equal(t, 3.0, p.Budget.Tokens())

		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1})
		calls, _ = invoke(t, t.Context(), p, retrygrpc.Options{Throttle: newThrottle(t, 6, 1)}, []answer{{err: failure}})
		require.Equal(t, 1, calls)
		require.Equal(t, 3, paid, "Budget goes first")

		p.Budget, p.Pay = nil, func(context.Context, retry.Decision) bool { return false }
		calls, err = invoke(t, t.Context(), p, retrygrpc.Options{Throttle: newThrottle(t, 6, 1)}, []answer{{err: failure}})
		require.Equal(t, 1, calls, "Pay can refuse as well")
		require.ErrorIs(t, err, retry.BudgetExhausted)
	})
	t.Run("counts a call of two interceptors once", func(t *testing.T) {
		throttle := newThrottle(t, 10, 1)
		service := &scripted{unary: func(context.Context, int) (*testgrpc.SimpleResponse, error) { return nil, failure }}
		o := retrygrpc.Options{Throttle: throttle}
		p := upTo(1)
		p.Observe = func(context.Context, retry.Event) { t.Error("a run of the inner one") }
		inner, err := retrygrpc.UnaryClientInterceptor(p, o)
		require.NoError(t, err)
		_, err = serve(t, service, upTo(2), o, grpc.WithChainUnaryInterceptor(inner)).UnaryCall(bounded(t), &testgrpc.SimpleRequest{})
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, 8.0, throttle.Tokens("passthrough:///"+t.Name()))
	})
	t.Run("that is nil bounds nothing", func(t *testing.T) {
		require.Equal(t, math.Inf(1), (*retrygrpc.Throttle)(nil).Tokens("any"))
	})
	t.Run("counts a stream that has begun when it succeeds, whichever of Header and RecvMsg comes first", func(t *testing.T) {
		for _, headerFirst := range []bool{false, true} {
			throttle := newThrottle(t, 10, 0.5)
			service := &scripted{output: func(call int, s testgrpc.TestService_StreamingOutputCallServer) error {
				switch call {
				case 1: // takes a token
					return status.Error(codes.Unavailable, "")
				case 2, 3:
					if err := s.SendHeader(nil); err != nil {
						return err
					}
				}
				if call == 2 { // takes and gives nothing
					return status.Error(codes.Unavailable, "")
				}
				return sends(s, nil, "a", "b") // gives half a token
			}}
			client := serve(t, service, upTo(1), retrygrpc.Options{Throttle: throttle})
			for i, want := range []float64{9, 9, 9.5} {
				s, err := client.StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{}, grpc.WaitForReady(true))
				require.NoError(t, err)
				if headerFirst {
					_, err = s.Header()
					require.NoError(t, err)
				}
				_, _ = readAll(s)
				require.Equal(t, want, throttle.Tokens("passthrough:///"+t.Name()), "stream %d, Header first %v", i+1, headerFirst)
			}
		}
	})
	t.Run("counts a stream with its first message, and once", func(t *testing.T) {
		throttle := newThrottle(t, 10, 0.5)
		service := &scripted{output: func(call int, s testgrpc.TestService_StreamingOutputCallServer) error {
			if call == 1 {
				return status.Error(codes.Unavailable, "")
			}
			return sends(s, nil, "a", "b")
		}}
		s, err := serve(t, service, upTo(2), retrygrpc.Options{Throttle: throttle}).StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{})
		require.NoError(t, err)
		for range 2 {
			_, err = s.Recv()
			require.NoError(t, err)
			require.Equal(t, 9.5, throttle.Tokens("passthrough:///"+t.Name()))
		}
		_, err = s.Recv()
		require.Equal(t, io.EOF, err)
		require.Equal(t, 9.5, throttle.Tokens("passthrough:///"+t.Name()))
	})
	t.Run("counts a stream that is empty with its header", func(t *testing.T) {
		throttle := newThrottle(t, 10, 0.5)
		service := &scripted{output: func(call int, _ testgrpc.TestService_StreamingOutputCallServer) error {
			if call == 1 {
				return status.Error(codes.Unavailable, "")
			}
			return nil
		}}
		s, err := serve(t, service, upTo(2), retrygrpc.Options{Throttle: throttle}).StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{})
		require.NoError(t, err)
		_, err = s.Header()
		require.NoError(t, err)
		require.Equal(t, 9.5, throttle.Tokens("passthrough:///"+t.Name()))
	})
	t.Run("holds a bounded number of targets, and is safe for concurrent use", func(t *testing.T) {
		throttle := newThrottle(t, 10, 0.1)
		var all sync.WaitGroup
		for worker := range 4 {
			all.Go(func() {
				for i := range 1000 {
					if throttle.Tokens(fmt.Sprint(worker, "/", i)) != 10 {
						t.Error("not full")
					}
				}
			})
		}
		all.Wait()
	})
}
