package retryconnect

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"github.com/retrygo/retry"
)

// NewHandlerInterceptor returns an interceptor for handlers that make calls with retries. It does two things.
//
// First, if a retry of the call would only repeat retries that have already failed below, or could do harm, the client
// gets the metadata grpc-retry-pushback-ms: -1, which this package and gRPC's own retries honor. That is the case if
// retry.GivenUp reports true for the handler's error, if its run ended as retry.TerminalError, and if it is marked
// retry.Permanent or retry.Ambiguous. A run of one attempt, as under retry.OneAttempt, does not count: its caller
// retries. For any other error with a hint (see retry.After) the metadata is the hint. The code is that of the error.
// To give up because of another kind of error, return connect.NewError with CodeUnavailable around it.
//
// Second, if a trusted client repeats a call, the handler's own calls make one attempt: its context is that of
// retry.RemoteAttempt. A client marks a retry with the header grpc-previous-rpc-attempts. trust reports whether to
// believe it, and is called only for retries. A trusted client can disable the server's retries. Nil means that no
// client is trusted. In clients the interceptor does nothing.
func NewHandlerInterceptor(trust func(connect.Peer, http.Header) bool) connect.Interceptor {
	return handlerLayer{trust}
}

type handlerLayer struct {
	trust func(connect.Peer, http.Header) bool
}

// WrapUnary implements connect.Interceptor.
func (l handlerLayer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		resp, err := next(l.believed(ctx, req.Peer(), req.Header()), req)
		return resp, withPushback(err)
	}
}

// WrapStreamingClient returns next.
func (handlerLayer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (l handlerLayer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return withPushback(next(l.believed(ctx, conn.Peer(), conn.RequestHeader()), conn))
	}
}

// believed returns ctx with the attempt number of a trusted client's retry.
func (l handlerLayer) believed(ctx context.Context, peer connect.Peer, header http.Header) context.Context {
	if l.trust == nil {
		return ctx
	}
	values := header[attemptsKey]
	if len(values) != 1 {
		return ctx
	}
	previous, err := strconv.ParseUint(values[0], 10, 32)
	if err != nil || previous == 0 || !l.trust(peer, header) {
		return ctx
	}
	return retry.RemoteAttempt(ctx, int(min(previous, math.MaxInt32-1))+1)
}

// withPushback returns err with its pushback in the metadata. It does not modify err, which may be shared, and does not
// pass on metadata that another server has sent.
func withPushback(err error) error {
	value := pushbackFor(err)
	if value == "" {
		return err
	}
	failed, ok := errors.AsType[*connect.Error](err)
	if !ok {
		failed = connect.NewError(newAttemptError(err).Code, err)
	}
	told := connect.NewError(failed.Code(), failed.Unwrap())
	for _, detail := range failed.Details() {
		told.AddDetail(detail)
	}
	if !connect.IsWireError(failed) {
		for name, values := range failed.Meta() {
			told.Meta()[name] = values
		}
	}
	told.Meta().Set(pushbackKey, value)
	return told
}

// pushbackFor returns the pushback for the error of a handler, or "" for none.
func pushbackFor(err error) string {
	if err == nil {
		return ""
	}
	class, hint := retry.Policy{Classify: retry.Otherwise(retry.Retryable)}.Judge(err) // Terminal only because of a mark
	if run, ok := errors.AsType[*retry.Error](err); ok {
		hint = max(hint, run.Hint())
	}
	switch {
	case class == retry.Terminal || retry.GivenUp(err) || errors.Is(err, retry.TerminalError):
		return "-1"
	case hint > 0:
		ms := min((hint-1)/time.Millisecond+1, math.MaxInt32) // rounded up, so a retry does not come earlier
		return strconv.FormatInt(int64(ms), 10)
	default:
		return ""
	}
}
