package retrygrpc_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

func TestPolicyOfEachCall(t *testing.T) {
	fails := []answer{{err: status.Error(codes.Unavailable, "")}}
	attempts := func(t *testing.T, o retrygrpc.Options) int {
		calls, err := invoke(t, t.Context(), retry.Policy{}, o, fails)
		require.Equal(t, codes.Unavailable, status.Code(err))
		return calls
	}
	t.Run("PolicyFor is asked once for each call, with the method", func(t *testing.T) {
		var asked []string
		require.Equal(t, 2, attempts(t, retrygrpc.Options{PolicyFor: func(method string) retry.Policy {
			asked = append(asked, method)
			return upTo(2)
		}}))
		require.Equal(t, []string{"/test.Service/Method"}, asked)
	})
	t.Run("a policy that sets no schedule has that of Inline", func(t *testing.T) {
		require.Equal(t, retry.Inline().MaxAttempts, attempts(t, retrygrpc.Options{PolicyFor: func(string) retry.Policy { return retry.Policy{Rand: func() float64 { return 0 }} }}))
	})
	t.Run("PolicyFor is asked for a stream, too", func(t *testing.T) {
		service := refusing()
		client := serve(t, service, retry.Policy{}, retrygrpc.Options{PolicyFor: func(string) retry.Policy { return upTo(2) }})
		require.ErrorIs(t, ask(bounded(t), client, true), retry.AttemptsExhausted)
		require.Equal(t, int64(2), service.calls.Load())
	})
	t.Run("a policy that does not validate fails the call before any attempt", func(t *testing.T) {
		bad := retrygrpc.Options{PolicyFor: func(string) retry.Policy { return retry.Policy{TTL: -1} }}
		calls, err := invoke(t, t.Context(), retry.Policy{}, bad, fails)
		require.Zero(t, calls)
		require.Equal(t, codes.Internal, status.Code(err))
		require.EqualError(t, err, "retry: Policy.TTL -1ns is negative")

		intercept, err := retrygrpc.StreamClientInterceptor(retry.Policy{}, bad)
		require.NoError(t, err)
		s, err := intercept(t.Context(), &grpc.StreamDesc{ServerStreams: true}, nil, "/s/m", nil)
		require.Nil(t, s)
		require.Equal(t, codes.Internal, status.Code(err))
	})
	t.Run("a policy has one source", func(t *testing.T) {
		o := retrygrpc.Options{PolicyFor: func(string) retry.Policy { return upTo(2) }}
		require.NoError(t, o.Validate())
		_, err := retrygrpc.DialOptions(upTo(2), o)
		require.EqualError(t, err, "retryrpc: Options.PolicyFor func is set together with a policy")
	})
}
