package retrygrpc

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/retrygo/retry"
)

// attemptsKey is the header with the number of attempts before this one (gRFC A6, "Exposed Retry Metadata"). Only
// retries carry it.
const attemptsKey = "grpc-previous-rpc-attempts"

// layer is the shared part of an interceptor's calls.
type layer struct {
	policy  retry.Policy // of a call without WithPolicy
	given   retry.Policy // the constructor's arguments, for calls with WithPolicy
	options Options
}

func newLayer(p retry.Policy, o Options) (*layer, error) {
	var bad retry.FieldErrors
	bad.Append(p.Validate())
	bad.Append(o.Validate())
	switch {
	case reflect.ValueOf(p).IsZero():
	case o.PolicyFunc != nil:
		bad.Add("retrygrpc", "Options.PolicyFunc", "func", "is set together with a policy")
	case o.PolicyFor != nil:
		bad.Add("retrygrpc", "Options.PolicyFor", "func", "is set together with a policy")
	}
	o.RetryCodes = slices.Clone(o.RetryCodes) // the caller may reuse the slice
	return &layer{p.OrSchedule(retry.Inline()), p, o}, bad.Err()
}

// call is one call made with retries.
type call struct {
	layer      *layer
	ctx        context.Context // the caller's
	cc         *grpc.ClientConn
	method     string
	policy     retry.Policy // of the run; its Classify is classOf
	classify   retry.Classifier
	idempotent bool
	throttled  bool // Throttle forbids the retry
	answered   bool // the last attempt has ended with an answer

	opts     []grpc.CallOption // for the attempts
	reports  []grpc.CallOption // the caller's options that report on the last attempt
	onFinish []func(error)
	attempts int   // begun
	last     error // the answer, or the full error of a failure that was cut
}

// repeated is among the options of each attempt. Interceptors of this package that find it pass the call through, so
// layers do not multiply.
var repeated grpc.CallOption = callOption{apply: func(s *settings) { s.repeated = true }}

// begin returns the call, or nil if it passes through, with its options in that case.
func (l *layer) begin(ctx context.Context, method string, cc *grpc.ClientConn, opts []grpc.CallOption) (*call, []grpc.CallOption, error) {
	s := l.settings(method, opts)
	switch {
	case s.off:
		return nil, once(cc, method, opts), nil
	case s.repeated || l.options.YieldToServiceConfig && repeatedByGRPC(cc, method):
		return nil, opts, nil
	}
	c := &call{layer: l, ctx: ctx, cc: cc, method: method, policy: l.policy, idempotent: s.idempotent}
	if s.policy != nil || l.options.PolicyFunc != nil || l.options.PolicyFor != nil {
		var err error
		if c.policy, err = l.policyOf(method, s.policy); err != nil {
			return nil, nil, refused(err)
		}
	}
	c.classify = c.policy.Classify
	c.policy.Classify = classOf
	if l.options.Throttle != nil {
		pay := c.policy.Pay
		c.policy.Pay = func(ctx context.Context, d retry.Decision) bool {
			return (pay == nil || pay(ctx, d)) && !c.throttled
		}
	}
	c.opts = append(make([]grpc.CallOption, 0, len(opts)+1), repeated)
	for _, o := range opts {
		if finish, ok := o.(grpc.OnFinishCallOption); ok {
			c.onFinish = append(c.onFinish, finish.OnFinish) // once for the call, not for each attempt
			continue
		}
		if reported(o) {
			c.reports = append(c.reports, o)
		}
		c.opts = append(c.opts, o)
	}
	return c, nil, nil
}

// once returns options with which grpc-go does not repeat a sent request: without room to keep the request, it commits
// the attempt once the request is sent and repeats nothing that a server has received in full. A channel that is not
// ready may not know its service config yet.
func once(cc *grpc.ClientConn, method string, opts []grpc.CallOption) []grpc.CallOption {
	if cc == nil || cc.GetState() == connectivity.Ready && !repeatedByGRPC(cc, method) {
		return opts
	}
	return append(slices.Clip(opts), grpc.MaxRetryRPCBufferSize(0))
}

// reported reports whether the option returns information about the attempt.
func reported(o grpc.CallOption) bool {
	switch o.(type) {
	case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption:
		return true
	default:
		return false
	}
}

// repeatedByGRPC reports whether the service config of the channel makes grpc-go repeat the method's calls. It cannot
// detect grpc.WithDisableRetry, or a config before the first name resolution.
func repeatedByGRPC(cc *grpc.ClientConn, method string) bool {
	if cc == nil {
		return false
	}
	p := cc.GetMethodConfig(method).RetryPolicy
	return p != nil && p.MaxAttempts > 1
}

// next begins another attempt and returns its options.
func (c *call) next(more ...grpc.CallOption) []grpc.CallOption {
	c.attempts++
	return once(c.cc, c.method, append(slices.Clip(c.opts), more...))
}

// numbered returns an attempt's context with the number of attempts before it, if any, replacing a value that the
// caller passed on.
func (c *call) numbered(ctx context.Context) context.Context {
	previous := c.attempts - 1
	if c.layer.options.PassAttempt {
		previous = max(previous, retry.OuterAttempt(c.ctx)-1)
	}
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	switch {
	case previous > 0 && !ok:
		md = metadata.Pairs(attemptsKey, strconv.Itoa(previous))
	case previous > 0:
		md.Set(attemptsKey, strconv.Itoa(previous))
	case len(md.Get(attemptsKey)) > 0:
		md.Delete(attemptsKey)
	default:
		return ctx
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// failed returns the error of an attempt that ended with err, marked according to the server's hints. If err is an
// answer, it sets c.answered, and the attempt is a success. begun means that a call that is not idempotent has received
// a header.
func (c *call) failed(attempt context.Context, err error, trailer metadata.MD, begun bool) error {
	st := status.Convert(err)
	details := st.Details()
	says := adviceOf(trailer, details)
	e := &AttemptError{
		Method: c.method, Code: st.Code(), Origin: c.origin(st.Code(), attempt), Idempotent: c.idempotent,
		Hint: max(says.delay, 0), Err: err, given: says.given,
	}
	if says.stop {
		e.Veto = Pushback
	}
	e.class = c.judge(e)
	var hint time.Duration
	e.class, hint = c.policy.Judge(retry.After(e.Hint, error(e))) // marks inside err count too
	c.last = nil
	switch {
	case e.Veto == Pushback, e.class == retry.Retryable && !begun:
		c.throttled = !c.layer.options.Throttle.fail(c.target())
	case e.class == retry.Retryable:
		e.Veto = AnswerBegun
	case isAnswer(e.Code):
		c.last, c.answered = err, true
	}
	if len(st.Message()) > maxStatus || len(details) > 0 && proto.Size(st.Proto()) > maxStatus {
		if !c.answered {
			c.last = marked(e, hint)
		}
		cut := *e
		cut.Err = status.Error(e.Code, line(st.Message()))
		e = &cut
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

// isAnswer reports whether a healthy server answers with the code. The others are the codes that OpenTelemetry's
// conventions for gRPC count as errors of the server, RESOURCE_EXHAUSTED and CANCELED.
func isAnswer(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.Unauthenticated,
		codes.FailedPrecondition, codes.Aborted, codes.OutOfRange:
		return true
	default:
		return false
	}
}

// origin returns the side that a failure comes from. The caller's context is checked first, since an attempt's ends
// with it. A server that knows the deadline can report that it has passed before the context's own timer fires, so the
// clock counts as well.
func (c *call) origin(code codes.Code, attempt context.Context) Origin {
	switch {
	case code != codes.DeadlineExceeded && code != codes.Canceled:
		return Remote
	case c.ctx.Err() != nil || code == codes.DeadlineExceeded && overdue(c.ctx):
		return Caller
	case context.Cause(attempt) == retry.ErrAttemptTimeout || code == codes.DeadlineExceeded && overdue(attempt):
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
	return judge(e, c.layer.options.RetryCodes)
}

// classOf is the Classify of every run: it returns the class in an attempt's error.
func classOf(err error) retry.Class {
	e, ok := errors.AsType[*AttemptError](err)
	if !ok {
		return retry.Terminal
	}
	return e.class
}

// succeeded credits Throttle with an OK.
func (c *call) succeeded() { c.layer.options.Throttle.succeed(c.target()) }

func (c *call) target() string {
	if c.cc == nil {
		return ""
	}
	return c.cc.Target()
}

// finish calls the caller's OnFinish functions.
func (c *call) finish(err error) {
	for _, f := range c.onFinish {
		f(err)
	}
}

// forget clears the results of an earlier attempt in the caller's options, because the next one may not set them.
func (c *call) forget() {
	c.report(nil, nil, &peer.Peer{})
}

// report sets the results that the caller's options ask for. A nil peer is unknown.
func (c *call) report(header, trailer metadata.MD, from *peer.Peer) {
	for _, o := range c.reports {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = header
		case grpc.TrailerCallOption:
			*o.TrailerAddr = trailer
		case grpc.PeerCallOption:
			if from != nil {
				*o.PeerAddr = *from
			}
		}
	}
}

// timedOut is the error of a stream's attempt that got no header within the AttemptTimeout.
func timedOut(after time.Duration) error {
	return status.Errorf(codes.DeadlineExceeded, "no header within %v", after)
}
