package retryconnect

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryshell"
)

// NewHandlerInterceptor returns an interceptor for handlers that make calls with retries (see package retryrpc). The
// status of a run's last attempt is the *connect.Error in it. To give up because of another kind of error, return
// connect.NewError with CodeUnavailable around it.
//
// trust reports whether to believe a client that marks a retry, and is called only for retries. Nil means that no client
// is trusted. In clients the interceptor has no effect.
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

// answered returns the error of a handler as its client gets it, with the metadata of retryrpc.MetadataFor. It does not
// modify err, which may be shared, and does not pass on metadata that another server has sent.
func answered(err error) error {
	says := retryrpc.MetadataFor(err)
	code, text, ofRun := retryrpc.ForClient(err)
	failed, ok := errors.AsType[*connect.Error](err)
	switch {
	case says == nil && (ok || !ofRun):
		return err
	case ok:
	case ofRun:
		failed = connect.NewError(connect.Code(code), &told{text, err})
	default:
		failed = connect.NewError(connect.Code(failureOf(err).Code), err)
	}
	if says == nil {
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
	for name, value := range says {
		copied.Meta().Set(name, value)
	}
	return copied
}

// told is an error whose text for the client is another.
type told struct {
	text string
	err  error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.err }
