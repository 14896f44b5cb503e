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
// If a handler returns an error for which a retry of the call would only repeat in vain what was repeated below, or
// could do harm, the client gets the trailer grpc-retry-pushback-ms: -1, which this package and grpc-go's own retries
// obey. That is so if retry.GivenUp reports it of the error, if its run ended as retry.TerminalError, and if it is
// marked retry.Permanent or retry.Ambiguous. A run of one attempt, as under retry.OneAttempt, is none of these: its
// caller holds the retries. For any other error with a hint (see retry.After) the trailer is the hint. The status is
// that of the error: see Unavailable. A handler must not set the trailer itself, since two values mean that there must
// be no retry.
//
// If the client of a retry is trusted, what the handler calls is made once: the context is then one of
// retry.RemoteAttempt. A client says that a call is a retry by grpc-previous-rpc-attempts. trust reports whether it is
// believed, for example because its certificate, which peer.FromContext finds, is one of our own services. A trusted
// client can switch off our retries. trust is asked about retries alone. Nil means that no client is trusted.
func UnaryServerInterceptor(trust func(context.Context) bool) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(believed(ctx, trust), req)
		if trailer := pushbackFor(err); trailer != nil {
			_ = grpc.SetTrailer(ctx, trailer) // fails outside a server only
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

// ClientAttempt returns the number of the client's attempt that the metadata of an incoming call says: 1 for a first
// attempt, for junk and outside a server. It is the client's word: good for logs, metrics and shedding retries first,
// and for nothing that must be correct.
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

// believed returns ctx, with the number of a retry of a trusted client.
func believed(ctx context.Context, trust func(context.Context) bool) context.Context {
	if number := ClientAttempt(ctx); number > 1 && trust != nil && trust(ctx) {
		return retry.RemoteAttempt(ctx, number)
	}
	return ctx
}

// pushbackFor returns the trailer for the error of a handler, nil for none.
func pushbackFor(err error) metadata.MD {
	if err == nil {
		return nil
	}
	class, hint := retry.Policy{Classify: retry.Otherwise(retry.Retryable)}.Judge(err) // Terminal by a mark alone
	if run, ok := errors.AsType[*retry.Error](err); ok {
		hint = max(hint, run.Hint())
	}
	switch {
	case class == retry.Terminal || retry.GivenUp(err) || errors.Is(err, retry.TerminalError):
		return metadata.Pairs(pushbackKey, "-1")
	case hint > 0:
		ms := min((hint-1)/time.Millisecond+1, math.MaxInt32) // rounded up, so that no retry comes earlier
		return metadata.Pairs(pushbackKey, strconv.FormatInt(int64(ms), 10))
	default:
		return nil
	}
}

// Unavailable returns err with the status UNAVAILABLE, for a handler that gives up because of an error that has no
// status of its own, such as that of a database: gRPC's UNKNOWN would say nothing. The client does not get the text of
// err, and an interceptor of this package still finds in it what a client has to know. Unavailable(nil) is nil.
//
// A client may repeat UNAVAILABLE also for a method that is not idempotent. If the work may have taken effect, err has
// to say so (see retry.Ambiguous), as the errors of retrysql do.
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
