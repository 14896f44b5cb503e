package retryotel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
)

// Observe returns a function for Policy.Observe, also of any number of policies and of a retryhttp.Transport's. Its
// error is one of o or of the MeterProvider.
//
// It records the metrics that the package documentation lists. retry.delay is recorded when a wait is decided, before
// it begins: its count is that of the retries decided, those included that a canceled caller or a gate still prevents.
//
// It adds to the current span of the caller's context, if that is recording, for each failed attempt the event
// "retry.attempt.failed"; for an attempt whose time ran out, as errors.Is(err, context.DeadlineExceeded) says if it
// was not the caller's, "retry.attempt.timeout" before that; and at the end of the run sets retry.status, retry.attempts,
// retry.reason and retry.run.policy, the last two empty if there is none. Of several runs under one span they are those of
// the last to end. They are keys of their own: if that span is one of an attempt of Do or HTTP, as it is for a
// run inside an attempt, its retry.policy and retry.attempt stay those of the attempt. The span's status is left to whom it
// belongs.
//
// The function is safe for concurrent use. If the span is not recording it allocates nothing of its own.
func Observe(o Options) (func(context.Context, retry.Event), error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	made, err := newInstruments(o.meter())
	if err != nil {
		return nil, err
	}
	w := &observer{made, newPolicies(o.maxPolicies())}
	return w.observe, nil
}

type observer struct {
	instruments
	policies *policies
}

func (w *observer) observe(ctx context.Context, e retry.Event) {
	s := w.policies.of(e.Policy)
	switch {
	case e.Outcome != nil:
		end := endingOf(e.Outcome)
		w.runs.Add(ctx, 1, s.ended(end)...)
		w.attempts.Record(ctx, int64(e.Outcome.Attempts), s.kinds[end.kind]...)
		w.duration.Record(ctx, e.Outcome.Elapsed.Seconds(), s.kinds[end.kind]...)
	case e.Decision.Status == retry.Waiting:
		w.delay.Record(ctx, e.Decision.Delay.Seconds(), s.delay...)
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		tell(span, &e)
	}
}

// tell adds e to a span.
func tell(span trace.Span, e *retry.Event) {
	if e.Outcome != nil {
		// All four, since an attribute that an earlier run has set cannot be taken away.
		end := endingOf(e.Outcome)
		span.SetAttributes(keyOfRun.String(valid(e.Policy)), keyStatus.String(end.statusText()),
			keyReason.String(end.reason.Error()), keyMade.Int(e.Outcome.Attempts))
		return
	}
	list := make([]attribute.KeyValue, 0, 5)
	if e.Policy != "" {
		list = append(list, policyAttribute(e.Policy))
	}
	list = append(list, keyAttempt.Int(e.Attempt.Number))
	if timedOut(e.Attempt.Err) && e.Decision.Reason != retry.DeadlinePassed {
		span.AddEvent("retry.attempt.timeout", trace.WithAttributes(list...))
	}
	list = append(list, keyClass.String(e.Attempt.Class.String()), semconv.ErrorTypeKey.String(errorType(e.Attempt.Err)))
	if e.Decision.Status == retry.Waiting {
		list = append(list, keyDelay.Float64(e.Decision.Delay.Seconds()))
	}
	span.AddEvent("retry.attempt.failed", trace.WithAttributes(list...))
}
