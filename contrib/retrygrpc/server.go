package retrygrpc

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
)

// UnaryServerInterceptor returns an interceptor for a server whose handlers make calls with retries. It does two
// things.
//
// First, if a retry of the call would only repeat retries that have already failed below, or could do harm, the client
// gets the trailer grpc-retry-pushback-ms: -1, which this package and grpc-go's own retries honor. That is the case if
// retry.GivenUp reports true for the handler's error, if its run ended as retry.TerminalError, and if it is marked
// retry.Permanent or retry.Ambiguous. A run of one attempt, as under retry.OneAttempt, does not count: its caller
// retries. For any other error with a hint (see retry.After) the trailer is the hint. The status is that of the error:
// see Unavailable. A handler must not set the trailer itself, since two values forbid a retry.
//
// Second, if a trusted client repeats a call, the handler's own calls make one attempt: its context is that of
// retry.RemoteAttempt. A client marks a retry with grpc-previous-rpc-attempts. trust reports whether to believe it, for
// example because the client's certificate, which peer.FromContext returns, belongs to one of your own services. trust
// is called only for retries. A trusted client can disable the server's retries. Nil means that no client is trusted.
func UnaryServerInterceptor(trust func(context.Context) bool) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(believed(ctx, trust), req)
		if trailer := pushbackFor(err); trailer != nil {
			_ = grpc.SetTrailer(ctx, trailer) // fails only outside a server
		}
		return resp, err
	}
}

// StreamServerInterceptor is UnaryServerInterceptor for streams.
func StreamServerInterceptor(trust func(context.Context) bool) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		inner := stream
		if trust != nil {
			inner = &believedStream{stream, believed(stream.Context(), trust)}
		}
		err := handler(srv, inner)
		if trailer := pushbackFor(err); trailer != nil {
			stream.SetTrailer(trailer)
		}
		return err
	}
}

// believedStream is a stream with the context of a retry.
type believedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *believedStream) Context() context.Context { return s.ctx }

// ClientAttempt returns the number of the client's attempt in the metadata of an incoming call: 1 for a first attempt,
// for invalid metadata and outside a server. The client can send any number: use it for logs, metrics and shedding
// retries first, but not for anything that must be correct.
func ClientAttempt(ctx context.Context) int {
	values := metadata.ValueFromIncomingContext(ctx, attemptsKey)
	if len(values) != 1 {
		return 1
	}
	previous, err := strconv.ParseUint(values[0], 10, 32)
	if err != nil {
		return 1
	}
	return int(min(previous, math.MaxInt32-1)) + 1
}

// believed returns ctx with the attempt number of a trusted client's retry.
func believed(ctx context.Context, trust func(context.Context) bool) context.Context {
	if number := ClientAttempt(ctx); number > 1 && trust != nil && trust(ctx) {
		return retry.RemoteAttempt(ctx, number)
	}
	return ctx
}

// pushbackFor returns the trailer for the error of a handler, or nil for none.
func pushbackFor(err error) metadata.MD {
	if err == nil {
		return nil
	}
	class, hint := retry.Policy{Classify: retry.Otherwise(retry.Retryable)}.Judge(err) // Terminal only because of a mark
	if run, ok := errors.AsType[*retry.Error](err); ok {
		hint = max(hint, run.Hint())
	}
	switch {
	case class == retry.Terminal || retry.GivenUp(err) || errors.Is(err, retry.TerminalError):
		return metadata.Pairs(pushbackKey, "-1")
	case hint > 0:
		ms := min((hint-1)/time.Millisecond+1, math.MaxInt32) // rounded up, so a retry does not come earlier
		return metadata.Pairs(pushbackKey, strconv.FormatInt(int64(ms), 10))
	default:
		return nil
	}
}

// Unavailable returns err with the status UNAVAILABLE, for a handler that gives up because of an error without a
// status, such as that of a database, for which gRPC would send UNKNOWN. The client does not get the text of err, but
// the server interceptors of this package still find err's marks and hints. Unavailable(nil) is nil.
//
// A client may repeat UNAVAILABLE even for a method that is not idempotent. If the work may have taken effect, err must
// be marked so (see retry.Ambiguous), as the errors of retrysql are.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &unavailable{err}
}

type unavailable struct{ err error }

func (e *unavailable) Error() string { return e.err.Error() }
func (e *unavailable) Unwrap() error { return e.err }

// GRPCStatus returns UNAVAILABLE.
func (e *unavailable) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, "the service is unavailable")
}
