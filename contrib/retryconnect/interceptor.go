package retryconnect

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"github.com/retrygo/retry"
)

// attemptsKey is the header with the number of attempts before this one (gRFC A6, "Exposed Retry Metadata"), in all
// three protocols. Only retries carry it.
const attemptsKey = "Grpc-Previous-Rpc-Attempts"

// layer is an interceptor.
type layer struct {
	policy  retry.Policy
	options Options
}

// NewInterceptor returns an interceptor for clients that makes unary calls and server streams as p says; client and
// bidirectional streams and handlers pass through. If p sets no part of a schedule, that of retry.Inline is used: see
// retry.Policy.OrSchedule. NewInterceptor validates p and o; its error names every bad field.
//
//	client := pingv1connect.NewPingServiceClient(http.DefaultClient, url, connect.WithInterceptors(interceptor))
//
// Interceptors before it in the list run once for a call, those after it once for each attempt.
//
// Policy.Classify is called with each *AttemptError before the rules of this package. Policy.AttemptTimeout is the
// deadline of one attempt, and the server of a unary call gets it too. An attempt that it ends may have taken effect,
// and is repeated only for idempotent procedures.
//
// A code such as NOT_FOUND that is not repeated is the server's answer: the call returns connect's own error, and the run
// has succeeded. The package documentation lists these codes.
//
// A run that fails returns an error in which errors.As finds the last attempt's *connect.Error, unchanged, the
// *retry.Error and the *AttemptError; connect.CodeOf returns its code. If the caller was canceled or its deadline has
// passed, also during a wait, the code is CANCELED or DEADLINE_EXCEEDED. The text of a failure that must not be
// repeated, even after retries, is connect's for the last attempt; in every other case the text of the run precedes it.
//
// A server stream is repeated up to its first message. The run, including its waits, takes place in the first Receive,
// so TTL, Elapsed and events start there. As without retries, the first attempt begins when the stream is created or,
// with a Policy.Gate, with the first Receive. ResponseHeader before the first Receive waits for the response; after it
// nothing is repeated. AttemptTimeout covers an attempt up to its first message, while connect waits for the response
// header and while the caller waits in Receive; it never ends a stream that has begun, and is not sent to the server.
// If the caller's context has ended before the first Receive there is no run, and the error is connect's own.
func NewInterceptor(p retry.Policy, o Options) (connect.Interceptor, error) {
	var bad retry.FieldErrors
	bad.Append(p.Validate())
	bad.Append(o.Validate())
	switch {
	case reflect.ValueOf(p).IsZero():
	case o.PolicyFunc != nil:
		bad.Add("retryconnect", "Options.PolicyFunc", "func", "is set together with a policy")
	case o.PolicyFor != nil:
		bad.Add("retryconnect", "Options.PolicyFor", "func", "is set together with a policy")
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	o.RetryCodes = slices.Clone(o.RetryCodes) // the caller may reuse the slice
	return &layer{p.OrSchedule(retry.Inline()), o}, nil
}

// call is one call made with retries.
type call struct {
	ctx      context.Context // the caller's
	spec     connect.Spec
	policy   retry.Policy // of the run; its Classify is classOf
	classify retry.Classifier
	optedIn  []connect.Code

	pass       bool // Options.PassAttempt
	idempotent bool
	answered   bool  // the last attempt has ended with an answer
	last       error // the answer, or the full error of a failure that was cut
}

// repeatedKey is the context key under which an attempt has its procedure. Interceptors of this package that find it
// pass the attempt through, so layers do not multiply.
type repeatedKey struct{}

// begin returns the call, or nil if it passes through.
func (l *layer) begin(ctx context.Context, spec connect.Spec) (*call, error) {
	if !spec.IsClient || ctx.Value(repeatedKey{}) == spec.Procedure {
		return nil, nil
	}
	c := &call{ctx: ctx, spec: spec, policy: l.policy, optedIn: l.options.RetryCodes, pass: l.options.PassAttempt}
	c.idempotent = spec.IdempotencyLevel != connect.IdempotencyUnknown ||
		l.options.Idempotent != nil && l.options.Idempotent(spec.Procedure)
	if l.options.PolicyFor != nil {
		c.policy = l.options.PolicyFor(spec.Procedure).OrSchedule(retry.Inline())
	} else if l.options.PolicyFunc != nil {
		c.policy = l.options.PolicyFunc().OrSchedule(retry.Inline())
	}
	c.classify = c.policy.Classify
	c.policy.Classify = classOf
	if err := c.policy.Validate(); err != nil {
		return nil, refused(err)
	}
	return c, nil
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
		err = retry.Do(ctx, c.policy, func(ctx context.Context) error {
			header := req.Header().Clone()
			c.number(retry.AttemptNumber(ctx), header)
			var err error
			resp, err = next(c.repeated(ctx), attempt{req, header})
			return c.attempted(ctx, err)
		})
		return resp, c.returned(err)
	}
}

// attempt is a request with its own header. connect writes the attempt's timeout into the header: a later attempt must
// not find it there, and a canceled attempt may still be reading it.
type attempt struct {
	connect.AnyRequest
	header http.Header
}

func (a attempt) Header() http.Header { return a.header }

// number sets the header to the number of attempts before the given one, if any, replacing a value from the caller.
func (c *call) number(attempt int, header http.Header) {
	header.Del(attemptsKey)
	if c.pass {
		attempt = max(attempt, retry.OuterAttempt(c.ctx))
	}
	if attempt > 1 {
		header.Set(attemptsKey, strconv.Itoa(attempt-1))
	}
}

// repeated returns an attempt's context with the mark for interceptors below.
func (c *call) repeated(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatedKey{}, c.spec.Procedure)
}

// attempted returns the run's error for an attempt that ended with err: nil for an answer.
func (c *call) attempted(attempt context.Context, err error) error {
	c.last, c.answered = nil, false
	if err == nil {
		return nil
	}
	e := newAttemptError(err)
	e.Procedure, e.Idempotent, e.Origin = c.spec.Procedure, c.idempotent, c.origin(e.Code, attempt)
	e.class = c.judge(e)
	var hint time.Duration
	e.class, hint = c.policy.Judge(retry.After(e.Hint, error(e))) // marks inside err count too
	if e.class != retry.Retryable && e.Veto == 0 && isAnswer(err, e.Code) {
		c.last, c.answered = err, true
		return nil
	}
	if short := e.short(); short != e {
		c.last, e = marked(e, hint), short
	}
	return marked(e, hint)
}

func marked(e *AttemptError, hint time.Duration) error {
	err := retry.After(hint, error(e))
	if e.Veto != 0 {
		return retry.Permanent(err)
	}
	return err
}

// origin returns the side that a failure comes from. The caller's context is checked first, since an attempt's ends
// with it. A server that knows the deadline can report that it has passed before the context's own timer fires, so the
// clock counts as well.
func (c *call) origin(code connect.Code, attempt context.Context) Origin {
	switch {
	case code != connect.CodeDeadlineExceeded && code != connect.CodeCanceled:
		return Remote
	case c.ctx.Err() != nil || code == connect.CodeDeadlineExceeded && overdue(c.ctx):
		return Caller
	case context.Cause(attempt) == retry.ErrAttemptTimeout || code == connect.CodeDeadlineExceeded && overdue(attempt):
		return AttemptTimeout
	default:
		return Remote
	}
}

// overdue reports whether the deadline of ctx has passed by the clock.
func overdue(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// judge calls the policy's Classify, then applies the rules.
func (c *call) judge(e *AttemptError) retry.Class {
	if c.classify != nil {
		if class := c.classify(e); class == retry.Retryable || class == retry.Terminal {
			return class
		}
	}
	return judge(e, c.optedIn)
}

// classOf is the Classify of every run: it returns the class in an attempt's error.
func classOf(err error) retry.Class {
	e, ok := errors.AsType[*AttemptError](err)
	if !ok {
		return retry.Terminal
	}
	return e.class
}

// returned converts the result of the run to that of the call.
func (c *call) returned(err error) error {
	switch run, ok := err.(*retry.Error); {
	case err == nil && c.answered:
		return c.last
	case err == nil:
		return nil
	case ok && run.Last != nil && c.last != nil:
		run.Last = c.last
	}
	return refused(err)
}

// WrapStreamingHandler returns next.
func (l *layer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}
