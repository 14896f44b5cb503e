package retrygrpc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retryrpc"
)

// said is a server's answer to an attempt.
type said struct {
	code    codes.Code
	refuses bool // with a pushback of -1
}

var (
	fine    = said{code: codes.OK}
	busy    = said{code: codes.Unavailable}
	broken  = said{code: codes.Internal}
	refused = said{code: codes.Unavailable, refuses: true}
)

// results returns the number of attempts and the code of each call, whose attempts get the given answers.
func results(t *testing.T, calls [][]said, opts ...grpc.DialOption) (list []string) {
	t.Helper()
	var answers []said
	attempts := 0
	service := &scripted{unary: func(ctx context.Context, _ int) (*testgrpc.SimpleResponse, error) {
		says := answers[attempts]
		attempts++
		if says.refuses {
			if err := grpc.SetTrailer(ctx, metadata.Pairs(retryrpc.PushbackKey, "-1")); err != nil {
				return nil, err
			}
		}
		return &testgrpc.SimpleResponse{}, status.Error(says.code, "no")
	}}
	conn := channelTo(t, service, opts...)
	defer conn.Close()
	client := testgrpc.NewTestServiceClient(conn)
	ready(t, client)
	for _, call := range calls {
		answers, attempts = call, 0
		code := status.Code(ask(bounded(t), client, false))
		list = append(list, fmt.Sprintf("%d %s", attempts, code))
	}
	return list
}

// byGRPC returns the results of grpc-go's own retries and throttle.
func byGRPC(t *testing.T, calls [][]said, tokens, ratio float64) []string {
	config := fmt.Sprintf(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.000000001s",
		"maxBackoff": "0.000000001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}],
		"retryThrottling": {"maxTokens": %v, "tokenRatio": %v}}`, tokens, ratio)
	return results(t, calls, grpc.WithDefaultServiceConfig(config))
}

// byPay returns the results of the interceptor with a throttle.
func byPay(t *testing.T, calls [][]said, tokens, ratio float64) []string {
	throttle := &throttle{max: tokens, ratio: ratio, tokens: tokens}
	p := upTo(4)
	p.Pay, p.Observe = throttle.pay, throttle.observe
	unary, err := retrygrpc.UnaryClientInterceptor(p, retrygrpc.Options{})
	require.NoError(t, err)
	return results(t, calls, grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(unary))
}

// Every call of a random outage is repeated as often as by grpc-go, so the tokens are the same at each.
func TestAThrottleByPayAgreesWithThatOfGRPCOnRandomOutages(t *testing.T) {
	for seed, row := range []struct{ tokens, ratio float64 }{{10, 0.1}, {10, 0.5}, {5, 0.3}, {4, 1}, {3, 0.125}, {1, 0.1}} {
		t.Run(fmt.Sprintf("%v tokens and a ratio of %v", row.tokens, row.ratio), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 0))
			calls := make([][]said, 300)
			for i := range calls {
				healthy := i/50%2 == 0
				for range 4 {
					says := []said{busy, busy, busy, fine, broken, refused}[rnd.IntN(6)]
					if healthy && rnd.IntN(5) > 0 {
						says = fine
					}
					calls[i] = append(calls[i], says)
				}
			}
			want := byGRPC(t, calls, row.tokens, row.ratio)
			got := byPay(t, calls, row.tokens, row.ratio)
			t.Log("the first three, to be checked by hand:", calls[:3], want[:3])
			require.Equal(t, want, got)
			require.Subset(t, want, []string{"1 OK", "1 Unavailable", "1 Internal"})
		})
	}
}

// A retry that would come too late is a failure that takes a token, although Pay is not asked.
func TestAThrottleByPayCountsARetryThatIsNotMade(t *testing.T) {
	throttle := &throttle{max: 10, ratio: 0.1, tokens: 10}
	p := upTo(4)
	p.Pay, p.Observe = throttle.pay, throttle.observe
	p.TTL = 1
	p.Base = 2
	_, err := invoke(t, t.Context(), p, retrygrpc.Options{}, []answer{{err: status.Error(codes.Unavailable, "busy")}})
	require.ErrorIs(t, err, retry.TTLElapsed)
	require.Equal(t, 9.0, throttle.add(0))
}
