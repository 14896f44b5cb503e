package retrygrpc_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/retrygo/retry/contrib/retrygrpc"
)

// The interceptor's overhead on a call that takes no time.
func BenchmarkUnary(b *testing.B) {
	unary, err := retrygrpc.UnaryClientInterceptor(upTo(3), retrygrpc.Options{})
	require.NoError(b, err)
	reply := new(testgrpc.SimpleResponse)
	for name, failures := range map[string]int{"first try": 0, "one retry": 1} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				calls := 0
				_ = unary(b.Context(), "/s/m", nil, reply, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					if calls++; calls <= failures {
						return unavailable
					}
					return nil
				})
			}
		})
	}
}
