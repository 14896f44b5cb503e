package migrating_test

import (
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

func grpcMiddleware() grpc.UnaryClientInterceptor {
	return retry.UnaryClientInterceptor(
		retry.WithMax(3), // calls, the first included
		retry.WithBackoff(retry.BackoffExponentialWithJitterBounded(
			100*time.Millisecond, 0, time.Second)),
		retry.WithPerRetryTimeout(2*time.Second))
}

// grpcMiddlewareStream is grpcMiddleware for streams.
func grpcMiddlewareStream() grpc.StreamClientInterceptor {
	return retry.StreamClientInterceptor(retry.WithMax(3), retry.WithBackoff(retry.BackoffExponential(100*time.Millisecond)))
}

// grpcMiddlewareCodes repeats these codes alone.
func grpcMiddlewareCodes(of ...codes.Code) grpc.UnaryClientInterceptor {
	return retry.UnaryClientInterceptor(retry.WithMax(3), retry.WithCodes(of...), retry.WithBackoff(retry.BackoffExponential(100*time.Millisecond)))
}

// grpcMiddlewareDefault is theirs without an option.
func grpcMiddlewareDefault() grpc.UnaryClientInterceptor { return retry.UnaryClientInterceptor() }
