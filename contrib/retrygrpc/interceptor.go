package retrygrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryshell"
)

// UnaryClientInterceptor returns an interceptor that makes unary calls as p says. If p sets no part of a schedule, that
// of retry.Inline is used (see retry.Policy.OrSchedule). The error names every bad field of p and o.
//
// Policy.AttemptTimeout is the deadline of one attempt, and the server gets it too. A status such as NOT_FOUND that is not
// repeated is the server's answer. The call returns gRPC's own error, and the run has succeeded. Errors of failed runs are
// those of package retryrpc. status.FromError returns the status of the last attempt, unchanged.
//
// The reply is cleared before each retry. The caller's grpc.Header, grpc.Trailer and grpc.Peer options are set by the
// last attempt, and grpc.OnFinish is called once, at the end of the call. Interceptors further down the chain see every
// attempt.
func UnaryClientInterceptor(p retry.Policy, o Options) (grpc.UnaryClientInterceptor, error) {
	l, err := newLayer(p, o)
	if err != nil {
		return nil, err
	}
	return l.unary, nil
}

// StreamClientInterceptor returns an interceptor that makes server streams, of one request and many answers, as p says,
// until the server begins to answer. Once its header has arrived, which is never later than the first message, the request
// is not repeated, and the stream ends with gRPC's own error. Client and bidirectional streams pass through, since their messages
// cannot be sent again without keeping them all. p, o and errors are as for UnaryClientInterceptor.
//
// The first attempt begins when the stream is created or, with a Policy.Gate, when it is first read. The run, including
// its waits, takes place in the first RecvMsg or Header, so TTL, Elapsed and events start there. An earlier failure is
// returned there. The run succeeds with the header, with the end of an empty stream, or with an answer. If the caller's
// context ends before that, the error has the attempt that was begun, but the events do not. The stream's Context is that
// of the attempt being read, without the attempt's number.
//
// Policy.AttemptTimeout covers an attempt up to its header, while the caller waits for it. It never ends a stream that
// has begun, and is not sent to the server. Failed attempts are canceled. As with any stream of gRPC, the caller must
// read to the end or cancel its context.
func StreamClientInterceptor(p retry.Policy, o Options) (grpc.StreamClientInterceptor, error) {
	l, err := newLayer(p, o)
	if err != nil {
		return nil, err
	}
	return l.stream, nil
}

// DialOptions returns the options of a channel with retries, which are both interceptors, after those given earlier, and
// grpc.WithDisableRetry, so that a service config does not multiply the attempts. grpc-go still repeats calls that no
// server has seen.
func DialOptions(p retry.Policy, o Options) ([]grpc.DialOption, error) {
	l, err := newLayer(p, o)
	if err != nil {
		return nil, err
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(l.unary),
		grpc.WithChainStreamInterceptor(l.stream),
		grpc.WithDisableRetry(),
	}, nil
}

func (l *layer) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c, err := l.begin(ctx, method, cc, opts)
	switch {
	case err != nil:
		return err
	case c == nil:
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	c.opts = append(c.opts, c.reports...) // not for a stream: grpc-go writes them when it ends, at any time
	err = c.Returned(retry.Do(ctx, c.Policy, func(ctx context.Context) error {
		if c.attempts > 0 {
			reset(reply)
			c.report(nil, nil, &peer.Peer{}) // this attempt may not set them
		}
		var said struct{ header, trailer metadata.MD }
		opts := c.next(grpc.Header(&said.header), grpc.Trailer(&said.trailer))
		err := invoker(c.numbered(ctx), method, req, reply, cc, opts...)
		if err == nil {
			return nil
		}
		// The header is nil for an answer with trailers only, gRPC's Trailers-Only, and both if no stream was made.
		return c.failed(ctx, err, said.trailer, retryrpc.Failure{
			Begun: said.header != nil, Unsent: said.header == nil && said.trailer == nil,
		})
	}))
	c.finish(err)
	return err
}

func (l *layer) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if desc.ClientStreams || !desc.ServerStreams {
		if retryshell.IsOneAttempt(ctx) {
			opts = once(cc, method, opts)
		}
		return streamer(ctx, desc, cc, method, opts...)
	}
	c, err := l.begin(ctx, method, cc, opts)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return streamer(ctx, desc, cc, method, opts...)
	}
	return newServerStream(c, desc, streamer), nil
}
