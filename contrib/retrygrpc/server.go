package retrygrpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryshell"
)

// UnaryServerInterceptor returns an interceptor for a server whose handlers make calls with retries (see package
// retryrpc). A handler must not set the trailer grpc-retry-pushback-ms itself, since two values forbid a retry. An error
// with a status of its own, and one that is not a run's, is sent as it is (see Unavailable).
//
// trust reports whether to believe a client that marks a retry, for example because the client's certificate, which
// peer.FromContext returns, belongs to one of your own services. It is called only for retries. Nil means that no client
// is trusted.
func UnaryServerInterceptor(trust func(context.Context) bool) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(believed(ctx, trust), req)
		trailer, err := answered(err)
		if trailer != nil {
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
		trailer, err := answered(handler(srv, inner))
		if trailer != nil {
			stream.SetTrailer(trailer)
		}
		return err
	}
}

type believedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *believedStream) Context() context.Context { return s.ctx }

// ClientAttempt returns the number of the client's attempt in the metadata of an incoming call, 1 for a first attempt,
// for invalid metadata and outside a server. The client can send any number. Use it for logs, metrics and shedding
// retries first, but not for decisions that must be correct.
func ClientAttempt(ctx context.Context) int {
	return retryrpc.ParseAttempt(metadata.ValueFromIncomingContext(ctx, retryrpc.AttemptsKey))
}

// believed returns ctx with the attempt number of a trusted client's retry.
func believed(ctx context.Context, trust func(context.Context) bool) context.Context {
	if number := ClientAttempt(ctx); number > 1 && trust != nil && trust(ctx) {
		return retryshell.WithRemoteAttempt(ctx, number)
	}
	return ctx
}

// answered returns the trailer for the error of a handler, which can be nil, and the error with its client's status.
func answered(err error) (metadata.MD, error) {
	var trailer metadata.MD
	if says := retryrpc.MetadataFor(err); says != nil {
		trailer = metadata.New(says)
	}
	code, text, ok := retryrpc.ForClient(err)
	if _, chosen := err.(withStatus); chosen || !ok {
		return trailer, err
	}
	var inner withStatus
	if errors.As(err, &inner) {
		return trailer, &statusError{err, inner.GRPCStatus()}
	}
	return trailer, &statusError{err, status.New(codes.Code(code), text)}
}

// Unavailable returns err with the status UNAVAILABLE, for a handler that gives up because of an error without a
// status and without a run, for which gRPC would send UNKNOWN. The client does not get the text of err, but the server
// interceptors of this package still find err's marks and hints. Unavailable(nil) is nil.
//
// A client may repeat UNAVAILABLE even for a method that is not idempotent. If the work may have taken effect, err must
// be marked so (see retry.Ambiguous), as the errors of retrysql are.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{err, status.New(codes.Unavailable, "the service is unavailable")}
}

type withStatus interface {
	error
	GRPCStatus() *status.Status
}

// statusError is an error whose client gets another status.
type statusError struct {
	err error
	st  *status.Status
}

func (e *statusError) Error() string              { return e.err.Error() }
func (e *statusError) Unwrap() error              { return e.err }
func (e *statusError) GRPCStatus() *status.Status { return e.st }
