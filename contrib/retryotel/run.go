package retryotel

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// Run is a span, "retry.run", for the run that fn makes by other means than Do, such as a request of an http.Client
// with a retryhttp.Transport, or a call of a gRPC client whose interceptor is contrib/retrygrpc's:
//
//	grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
//		invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
//		return retryotel.Run(ctx, o, func(ctx context.Context) error {
//			return invoke(ctx, method, req, reply, conn, opts...)
//		})
//	}, retries)
//
// The span is a child of ctx's span. If Policy.Observe of that run is from Observe, it adds the failed attempts and the
// end of the run, with the attributes of Do's span. Run calls fn once and returns its error.
func Run(ctx context.Context, o Options, fn func(context.Context) error) error {
	inner, r := startRun(ctx, o.tracer(), "")
	if r == nil {
		return fn(ctx)
	}
	defer r.end()
	return r.returned(fn(inner))
}

// run is the span of a run.
type run struct {
	span
	told     atomic.Bool // the observer has added the end of the run
	attempts int         // that Do has made
}

type runKey struct{}

// startRun begins the span of a run below that of ctx. The run is nil if there is no SDK. The new span is then that of
// ctx, or invalid.
func startRun(ctx context.Context, tracer trace.Tracer, policy string) (context.Context, *run) {
	inner, started := tracer.Start(ctx, "retry.run")
	sc := started.SpanContext()
	if !sc.IsValid() || sc.SpanID() == trace.SpanContextFromContext(ctx).SpanID() {
		return ctx, nil
	}
	if policy != "" {
		started.SetAttributes(policyAttribute(policy))
	}
	r := &run{span: span{Span: started}}
	return context.WithValue(inner, runKey{}, r), r
}

// runOf returns the run of ctx, whose Observe was called, if it has its own span, and otherwise nil.
func runOf(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil || r.SpanContext().SpanID() != trace.SpanContextFromContext(ctx).SpanID() { // ctx is an attempt's of that run
		return nil
	}
	return r
}

// returned adds the end of a run that returned err, unless the observer has done so, and returns err.
func (r *run) returned(err error) error {
	r.over = true
	if r.told.Load() || !r.IsRecording() {
		return err
	}
	var gaveUp *retry.Error
	switch {
	case errors.As(err, &gaveUp):
		ended(r.Span, &gaveUp.Outcome, err)
	case err != nil: // such as that of a policy that does not validate
		failed(r.Span, err)
	case r.attempts > 0:
		ended(r.Span, &retry.Outcome{Status: retry.Succeeded, Attempts: r.attempts}, nil)
	}
	return err
}

// span is a span that is an Error if its function does not return. Only a recover could distinguish a panic from
// runtime.Goexit.
type span struct {
	trace.Span
	over bool // the function has returned
}

func (s *span) end() {
	if !s.over {
		s.SetAttributes(keyErrorType.String(other))
		s.SetStatus(codes.Error, "panic or runtime.Goexit")
	}
	s.End()
}

func ended(span trace.Span, o *retry.Outcome, err error) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(append(endingOf(o).attributes(), keyMade.Int(o.Attempts))...)
	if err != nil {
		failed(span, err)
	}
}

// failed marks the recording span of a run that ended with err. Its attempts have the exceptions.
func failed(span trace.Span, err error) {
	last := err
	if run, ok := err.(*retry.Error); ok && run.Last != nil {
		last = run.Last
	}
	span.SetAttributes(keyErrorType.String(errorType(last)))
	span.SetStatus(codes.Error, textOf(err))
}

// job creates the span of a job's run, or of a run within its handler that does not have one. A job runs in steps,
// perhaps in several processes, so its span can only be created at the end.
func (w *observer) job(ctx context.Context, info retryjob.AttemptInfo, e *retry.Event) {
	now := time.Now()
	attributes := []attribute.KeyValue{keyJob.String(bounded(info.JobID, maxName))}
	if e.Policy != "" {
		attributes = append(attributes, policyAttribute(e.Policy))
	}
	_, span := w.tracer.Start(ctx, "retry.run",
		trace.WithTimestamp(now.Add(-e.Outcome.Elapsed)), trace.WithAttributes(attributes...))
	for _, a := range e.Outcome.History {
		if span.IsRecording() {
			tellAttempt(span, e.Policy, &a, a.Delay > 0, trace.WithTimestamp(a.Start.Add(a.Duration)))
		}
	}
	ended(span, e.Outcome, e.Err)
	span.End(trace.WithTimestamp(now))
}

func tellAttempt(span trace.Span, policy string, a *retry.Attempt, retried bool, at ...trace.EventOption) {
	list := append(make([]attribute.KeyValue, 0, 5), attemptAttributes(policy, a.Number)...)
	list = append(list, keyClass.String(a.Class.String()), keyErrorType.String(errorType(a.Err)))
	if retried {
		list = append(list, keyDelay.Float64(a.Delay.Seconds()))
	}
	span.AddEvent("retry.attempt.failed", append(at, trace.WithAttributes(list...))...)
}

// attemptAttributes are retry.attempt and, if the policy has a name, retry.policy.
func attemptAttributes(policy string, number int) []attribute.KeyValue {
	if policy == "" {
		return []attribute.KeyValue{keyAttempt.Int(number)}
	}
	return []attribute.KeyValue{policyAttribute(policy), keyAttempt.Int(number)}
}
