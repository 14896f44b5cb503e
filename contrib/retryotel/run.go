package retryotel

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// Run is a span, "retry.run", for the run that fn makes by other means than Do, such as a call of a gRPC client whose
// interceptor is contrib/retrygrpc's:
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
	inner, span := o.tracer().Start(ctx, "retry.run")
	if !traces(ctx, span) {
		return fn(ctx)
	}
	run := &run{Span: span, observed: true}
	returned := false
	defer end(span, &returned)
	err := fn(context.WithValue(inner, runKey{}, run))
	if err != nil && !run.told.Load() && span.IsRecording() {
		if gaveUp, ok := errors.AsType[*retry.Error](err); ok {
			ended(span, &gaveUp.Outcome, err)
		} else {
			failed(span, err)
		}
	}
	returned = true
	return err
}

// traces reports whether span, which was started below ctx, is one of its own: without an SDK, it is ctx's or invalid.
func traces(ctx context.Context, span trace.Span) bool {
	sc := span.SpanContext()
	return sc.IsValid() && sc.SpanID() != trace.SpanContextFromContext(ctx).SpanID()
}

type runKey struct{}

type run struct {
	trace.Span
	observed bool // the observer adds the end of the run, since Run does not know it
	told     atomic.Bool
}

// startRun begins the span of a run, below that of ctx. See ofRun.
func startRun(ctx context.Context, tracer trace.Tracer, policy string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if policy != "" {
		opts = append(opts, trace.WithAttributes(policyAttribute(policy)))
	}
	return tracer.Start(ctx, "retry.run", opts...)
}

// ofRun returns ctx with the span of a run as the current one.
func ofRun(ctx context.Context, span trace.Span) context.Context {
	return context.WithValue(trace.ContextWithSpan(ctx, span), runKey{}, &run{Span: span})
}

// runOf returns the run of ctx, whose Observe was called, if it has its own span, and otherwise nil.
func runOf(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil || r.SpanContext().SpanID() != trace.SpanContextFromContext(ctx).SpanID() { // ctx is an attempt's of that run
		return nil
	}
	return r
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
	span.SetAttributes(semconv.ErrorTypeKey.String(errorType(last)))
	span.SetStatus(codes.Error, textOf(err))
}

// job creates the span of a job's run, or of a run within its handler that does not have one. A job runs in steps,
// perhaps in several processes, so its span can only be created at the end.
func (w *observer) job(ctx context.Context, info retryjob.AttemptInfo, e *retry.Event) {
	now := time.Now()
	_, span := startRun(ctx, w.tracer, e.Policy, trace.WithTimestamp(now.Add(-e.Outcome.Elapsed)),
		trace.WithAttributes(keyJob.String(bounded(info.JobID, maxName))))
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
	list = append(list, keyClass.String(a.Class.String()), semconv.ErrorTypeKey.String(errorType(a.Err)))
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
