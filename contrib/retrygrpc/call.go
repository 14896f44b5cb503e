package retrygrpc

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
)

type layer struct{ *retryrpc.Layer }

func newLayer(p retry.Policy, o Options) (*layer, error) {
	l, err := retryrpc.NewLayer(p, o, retryrpc.Errors{
		Attempt: func(e *retryrpc.AttemptError) error { return attemptError{e} },
		Answer:  func(e *retryrpc.AnswerError) error { return answerError{e} },
		Call:    func(e *retryrpc.CallError) error { return callError{e} },
	})
	return &layer{l}, err
}

type call struct {
	retryrpc.Call
	cc       *grpc.ClientConn
	opts     []grpc.CallOption // for the attempts, without the reports and OnFinish
	reports  []grpc.CallOption // the caller's options that report on the last attempt
	onFinish []func(error)     // the caller's, for the end of the call
	attempts int               // begun
}

// begin returns the call, or nil if it passes through.
func (l *layer) begin(ctx context.Context, method string, cc *grpc.ClientConn, opts []grpc.CallOption) (*call, error) {
	if slices.Contains(opts, grpc.CallOption(repeated{})) {
		return nil, nil
	}
	c := &call{Call: retryrpc.Call{Method: method, Idempotent: l.isIdempotent(method, opts)}, cc: cc}
	c.opts = c.split(append(make([]grpc.CallOption, 0, len(opts)+1), repeated{}), opts)
	if err := l.Begin(ctx, &c.Call); err != nil {
		c.finish(err)
		return nil, err
	}
	return c, nil
}

// split keeps the caller's options that are about the whole call, and appends the others to rest.
func (c *call) split(rest, opts []grpc.CallOption) []grpc.CallOption {
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption:
			c.reports = append(c.reports, o)
		case grpc.OnFinishCallOption:
			c.onFinish = append(c.onFinish, o.OnFinish)
		default:
			rest = append(rest, o)
		}
	}
	return rest
}

// once returns options with which grpc-go does not repeat a sent request. Without room to keep the request, it commits
// the attempt once the request is sent, and does not repeat a request that a server has received in full. They are opts if
// the service config has no retryPolicy for the method. A channel that is not ready may not know its service config yet.
// grpc.WithDisableRetry cannot be detected.
func once(cc *grpc.ClientConn, method string, opts []grpc.CallOption) []grpc.CallOption {
	if cc == nil {
		return opts
	}
	if p := cc.GetMethodConfig(method).RetryPolicy; cc.GetState() == connectivity.Ready && (p == nil || p.MaxAttempts <= 1) {
		return opts
	}
	return append(slices.Clip(opts), grpc.MaxRetryRPCBufferSize(0))
}

// next begins another attempt and returns its options.
func (c *call) next(more ...grpc.CallOption) []grpc.CallOption {
	c.attempts++
	return once(c.cc, c.Method, append(slices.Clip(c.opts), more...))
}

// numbered returns an attempt's context with the number of attempts before it, if any, replacing a value that the
// caller passed on.
func (c *call) numbered(ctx context.Context) context.Context {
	previous := c.Previous(c.attempts)
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	switch {
	case previous > 0 && !ok:
		return metadata.AppendToOutgoingContext(ctx, retryrpc.AttemptsKey, strconv.Itoa(previous))
	case previous > 0:
		md.Set(retryrpc.AttemptsKey, strconv.Itoa(previous))
	case len(md.Get(retryrpc.AttemptsKey)) > 0:
		md.Delete(retryrpc.AttemptsKey)
	default:
		return ctx
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// failed returns the error of an attempt that ended with err, nil for an answer. f describes the attempt's stream. The
// trailer is nil if there was none.
func (c *call) failed(attempt context.Context, err error, trailer metadata.MD, f retryrpc.Failure) error {
	st, ok := status.FromError(err)
	if !ok {
		st = status.New(codes.Unknown, err.Error())
	}
	details := st.Details()
	f.Err, f.Code = err, retryrpc.Code(st.Code())
	f.Pushback, f.InDoubt = trailer.Get(retryrpc.PushbackKey), trailer.Get(retryrpc.InDoubtKey)
	f.Hint = retryInfo(details)
	f.Told = len(trailer.Get("content-type")) > 0 // which a status that comes without a header brings
	hinted := len(f.Pushback) > 0 || f.Hint > 0
	fromServer := f.Begun || f.Told || hinted
	f.Local = f.Code == retryrpc.ResourceExhausted && trailer != nil && !fromServer // grpc-go finds the message too large
	if len(st.Message()) > retryrpc.MaxRecord || len(details) > 0 && proto.Size(st.Proto()) > retryrpc.MaxRecord {
		f.Cut = status.Error(st.Code(), retryrpc.Bounded(st.Message()))
	}
	return c.Failed(attempt, f)
}

// retryInfo returns the delay of a RetryInfo, 0 if there is none.
func retryInfo(details []any) (delay time.Duration) {
	for _, detail := range details {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			delay = max(delay, info.GetRetryDelay().AsDuration())
		}
	}
	return delay
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

// finish calls the caller's OnFinish functions with the result of the call.
func (c *call) finish(err error) {
	for _, f := range c.onFinish {
		f(err)
	}
}

// attemptError is a *retryrpc.AttemptError with the unchanged status of its Err, which status.FromError finds.
type attemptError struct{ *retryrpc.AttemptError }

func (e attemptError) Unwrap() error              { return e.AttemptError }
func (e attemptError) GRPCStatus() *status.Status { return status.Convert(e.Err) }

// answerError is an answer with its unchanged status.
type answerError struct{ *retryrpc.AnswerError }

func (e answerError) Unwrap() error              { return e.AnswerError }
func (e answerError) GRPCStatus() *status.Status { return status.Convert(e.Err) }

type callError struct{ *retryrpc.CallError }

func (e callError) Unwrap() error { return e.CallError }

// GRPCStatus returns the status of the last attempt, with its details, or that of the caller's context or policy.
func (e callError) GRPCStatus() *status.Status {
	if e.Last != nil {
		return status.Convert(e.Last)
	}
	return status.New(codes.Code(e.Code), e.Err.Error())
}

// reset restores a message to its state before an attempt filled it, so a reply never combines two attempts.
func reset(message any) {
	switch m := message.(type) {
	case proto.Message:
		proto.Reset(m)
	case interface{ Reset() }:
		m.Reset()
	default: // of another codec
		if p := reflect.ValueOf(message); p.Kind() == reflect.Pointer && !p.IsNil() {
			p.Elem().SetZero()
		}
	}
}
