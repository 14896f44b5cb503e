package migrating_test

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

func afterGRPCMiddleware() (grpc.UnaryClientInterceptor, error) {
	return retrygrpc.UnaryClientInterceptor(retry.Policy{
		MaxAttempts:    3,
		Backoff:        retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second},
		AttemptTimeout: 2 * time.Second,
	}, retrygrpc.Options{
		// Without it an attempt that timed out is not repeated.
		Idempotent: func(method string) bool { return true },
		RetryCodes: []codes.Code{codes.ResourceExhausted},
	})
}
