package retryconnect

import (
	"context"
	"net/http"
	"strconv"

	"connectrpc.com/connect"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
)

// The metadata of package retryrpc in the form of HTTP.
var (
	attemptsKey = http.CanonicalHeaderKey(retryrpc.AttemptsKey)
	pushbackKey = http.CanonicalHeaderKey(retryrpc.PushbackKey)
	inDoubtKey  = http.CanonicalHeaderKey(retryrpc.InDoubtKey)
)

// Options are the options of an interceptor. The zero Options also repeat DEADLINE_EXCEEDED of procedures with the
// idempotency level NO_SIDE_EFFECTS or IDEMPOTENT, set by generated code or connect.WithIdempotency. The field
// Idempotent adds others. A field named method is given the procedure.
type Options = retryrpc.Options[connect.Code]

type layer struct{ *retryrpc.Layer }

// NewInterceptor returns an interceptor for clients that makes unary calls and server streams as p says. Client and
// bidirectional streams and handlers pass through. If p sets no part of a schedule, that of retry.Inline is used (see
// retry.Policy.OrSchedule). The error names every bad field of p and o. Interceptors before it in the list of
// connect.WithInterceptors run once for a call, those after it once for each attempt.
//
// Policy.AttemptTimeout is the deadline of one attempt, and the server of a unary call gets it too. A code such as
// NOT_FOUND that is not repeated is the server's answer. The call returns connect's own error, and the run has succeeded.
// Errors of failed runs are those of package retryrpc. errors.As also finds the last attempt's *connect.Error, unchanged.
//
// A server stream is repeated up to its first message. The run, including its waits, takes place in the first Receive,
// so TTL, Elapsed and events start there. The first attempt begins when the stream is created or, with a Policy.Gate,
// with the first Receive. ResponseHeader before the first Receive waits for the response, and the request is not repeated after it.
// AttemptTimeout covers an attempt up to its first message, while connect waits for the response header and while the
// caller waits in Receive. It never ends a stream that has begun, and is not sent to the server. If the caller's
// context has ended before the first Receive there is no run, and the error is connect's own.
func NewInterceptor(p retry.Policy, o Options) (connect.Interceptor, error) {
	l, err := retryrpc.NewLayer(p, o, retryrpc.Errors{Call: func(e *retryrpc.CallError) error { return callError{e} }})
	if err != nil {
		return nil, err
	}
	return &layer{l}, nil
}

type call struct {
	retryrpc.Call
	spec connect.Spec
}

// repeatedKey is the context key under which an attempt has its procedure. Interceptors of this package that find it
// pass the attempt through, so layers do not multiply.
type repeatedKey struct{}

func (l *layer) begin(ctx context.Context, spec connect.Spec) (*call, error) {
	if !spec.IsClient || ctx.Value(repeatedKey{}) == spec.Procedure {
		return nil, nil
	}
	c := &call{spec: spec}
	c.Method = spec.Procedure
	c.Idempotent = isIdempotent(l.Layer, spec)
	return c, l.Begin(ctx, &c.Call)
}

func isIdempotent(l *retryrpc.Layer, spec connect.Spec) bool {
	return spec.IdempotencyLevel != connect.IdempotencyUnknown || l.Idempotent(spec.Procedure)
}

// WrapUnary returns next with retries.
func (l *layer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		c, err := l.begin(ctx, req.Spec())
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return next(ctx, req)
		}
		var resp connect.AnyResponse
		err = retry.Do(ctx, c.Policy, func(ctx context.Context) error {
			a := &attempt{AnyRequest: req, header: req.Header().Clone()}
			c.number(retry.AttemptNumber(ctx), a.header)
			var err error
			resp, err = next(c.repeated(ctx), a)
			return c.attempted(ctx, err, a.read)
		})
		return resp, c.Returned(err)
	}
}

// attempt is a request with its own header. connect writes the attempt's timeout into the header. A later attempt must
// not find it there, and a canceled attempt may still be reading it.
type attempt struct {
	connect.AnyRequest
	header http.Header
	read   bool // the message was asked for, so it may have been sent
}

func (a *attempt) Header() http.Header { return a.header }

func (a *attempt) Any() any {
	a.read = true
	return a.AnyRequest.Any()
}

// number sets the header to the number of attempts before the given one, if any, replacing a value from the caller.
func (c *call) number(attempt int, header http.Header) {
	header.Del(attemptsKey)
	if previous := c.Previous(attempt); previous > 0 {
		header.Set(attemptsKey, strconv.Itoa(previous))
	}
}

// repeated returns an attempt's context with the mark for interceptors below.
func (c *call) repeated(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatedKey{}, c.spec.Procedure)
}

// attempted returns the run's error for an attempt that ended with err, which is nil for a nil err and for an answer. sent reports
// whether the message may have been sent.
func (c *call) attempted(attempt context.Context, err error, sent bool) error {
	if err == nil {
		return nil
	}
	f := failureOf(err)
	f.Unsent = f.Unsent || !sent
	return c.Failed(attempt, f)
}

// WrapStreamingHandler returns next.
func (l *layer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}
