package retryotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// runKey is the context key of the span of a run.
type runKey struct{}

// startRun begins the span of a run, below that of ctx.
func startRun(ctx context.Context, tracer trace.Tracer, policy string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if policy != "" {
		opts = append(opts, trace.WithAttributes(policyAttribute(policy)))
	}
	ctx, span := tracer.Start(ctx, "retry.run", opts...)
	return ofRun(ctx, span), span
}

// ofRun returns ctx with the span of a run as the current one.
func ofRun(ctx context.Context, span trace.Span) context.Context {
	return context.WithValue(trace.ContextWithSpan(ctx, span), runKey{}, span)
}

// hasSpan reports whether the run of ctx, whose Observe was called, has its own span.
func hasSpan(ctx context.Context) bool {
	run, ok := ctx.Value(runKey{}).(trace.Span)
	return ok && run.SpanContext().SpanID() == trace.SpanContextFromContext(ctx).SpanID() // or ctx is an attempt's of that run
}

// ended adds the end of a run to its span.
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

// tellAttempt adds the event of a failed attempt to a span.
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
