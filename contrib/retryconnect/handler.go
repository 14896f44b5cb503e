package retryconnect

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"github.com/retrygo/retry/retryrpc"
	"github.com/retrygo/retry/retryshell"
)

// NewHandlerInterceptor returns an interceptor for handlers that make calls with retries. It does three things.
//
// First, if a retry of the call would only repeat retries that have already failed below, or could do harm, the client
// gets the metadata grpc-retry-pushback-ms: -1, which this package and gRPC's own retries honor. For any other error
// with a hint (see retry.After) the metadata is the hint. retryrpc.PushbackFor has the rule.
//
// Second, if the handler returns the error of a run, such as that of retry.Do, the client gets the *connect.Error in
// it, and UNAVAILABLE if there is none (DEADLINE_EXCEEDED or CANCELED for an error of a context), without the text of
// the run: the name of the policy, the number of attempts and an inner error's text stay in the server. To give up
// because of another kind of error, return connect.NewError with CodeUnavailable around it.
//
// Third, if a trusted client repeats a call, the handler's own calls make one attempt: its context is that of
// retryshell.WithRemoteAttempt. A client marks a retry with the header grpc-previous-rpc-attempts. trust reports
// whether to believe it, and is called only for retries. A trusted client can disable the server's retries. Nil means
// that no client is trusted. In clients the interceptor does nothing.
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
		return resp, answered(err)
	}
}

// WrapStreamingClient returns next.
func (handlerLayer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (l handlerLayer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return answered(next(l.believed(ctx, conn.Peer(), conn.RequestHeader()), conn))
	}
}

// believed returns ctx with the attempt number of a trusted client's retry.
func (l handlerLayer) believed(ctx context.Context, peer connect.Peer, header http.Header) context.Context {
	if l.trust == nil {
		return ctx
	}
	number := retryrpc.ParseAttempt(header[attemptsKey])
	if number == 1 || !l.trust(peer, header) {
		return ctx
	}
	return retryshell.WithRemoteAttempt(ctx, number)
}

// answered returns the error of a handler as its client gets it, with its pushback in the metadata. It does not modify
// err, which may be shared, and does not pass on metadata that another server has sent.
func answered(err error) error {
	value := retryrpc.PushbackFor(err)
	code, text, ofRun := retryrpc.ForClient(err)
	failed, ok := errors.AsType[*connect.Error](err)
	switch {
	case value == "" && (ok || !ofRun):
		return err
	case ok:
	case ofRun:
		failed = connect.NewError(connect.Code(code), &told{text, err})
	default:
		failed = connect.NewError(connect.Code(failureOf(err).Code), err)
	}
	if value == "" {
		return failed
	}
	copied := connect.NewError(failed.Code(), failed.Unwrap())
	for _, detail := range failed.Details() {
		copied.AddDetail(detail)
	}
	if !connect.IsWireError(failed) {
		for name, values := range failed.Meta() {
			copied.Meta()[name] = values
		}
	}
	copied.Meta().Set(pushbackKey, value)
	return copied
}

// told is an error of which the client gets another text.
type told struct {
	text string
	err  error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.err }
