package retryotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// Observe returns a function for the Policy.Observe of any number of policies, also that of a retryhttp.Transport. An
// error is that of the MeterProvider.
//
// It records the metrics that the package documentation lists. retry.delay is recorded when a wait is decided, before
// it begins. So its count includes retries that a canceled caller or a gate later prevents.
//
// It adds events to the current span of the context, if that is recording. In Do and Run that is the run's span,
// otherwise the caller's. Each failed attempt is an event "retry.attempt.failed". On a caller's span the end of the run
// sets retry.status, retry.attempts, retry.reason and retry.run.policy, the last two possibly empty. Of several
// runs under one span they are those of the last to end. Their keys differ from an attempt's. For a run inside an
// attempt of Do, retry.policy and retry.attempt of the span stay those of the attempt. The status of the span is
// not changed.
//
// For a job of package retryjob it creates the span of the run, "retry.run", when the job has ended. The span begins
// when the job was first due, and has retry.job, the attributes of Do's span and an event for each failed attempt. A
// run within the handler of a job also has such a span, unless Do or Run has created one.
//
// The function is safe for concurrent use. If the span is not recording it does not allocate by itself.
func Observe(o Options) (func(context.Context, retry.Event), error) {
	made, err := newInstruments(o.meter())
	if err != nil {
		return nil, err
	}
	w := &observer{made, o.tracer(), newSeries()}
	return w.observe, nil
}

type observer struct {
	instruments
	tracer trace.Tracer // of the runs of jobs
	series *series
}

func (w *observer) observe(ctx context.Context, e retry.Event) {
	own := runOf(ctx)
	if e.Outcome == nil {
		w.attempt(ctx, e.Policy, classOf(e.Attempt.Class), e.Attempt.Duration)
		if e.Decision.Status == retry.WaitingRetry {
			w.delay.Record(ctx, e.Decision.Delay.Seconds(), w.series.of(labels{policy: e.Policy}).record...)
		}
	} else {
		end, kind := endingOf(e.Outcome), labels{policy: e.Policy, kind: kindOf(e.Outcome)}
		end.policy, end.kind = kind.policy, kind.kind
		w.runs.Add(ctx, 1, w.series.of(end).add...)
		w.runAttempts.Record(ctx, int64(e.Outcome.Attempts), w.series.of(kind).record...)
		w.runDuration.Record(ctx, e.Outcome.Elapsed.Seconds(), w.series.of(kind).record...)
		if e.Outcome.Status == retry.Succeeded { // which has no event of its own
			w.attempt(ctx, e.Policy, success, lastOf(e.Outcome))
		}
		if job, ok := retryjob.AttemptFrom(ctx); ok && own == nil {
			w.job(ctx, job, &e)
		}
	}
	span := trace.SpanFromContext(ctx)
	switch {
	case !span.IsRecording():
	case e.Outcome == nil || own == nil:
		tell(span, &e)
	default:
		own.told.Store(true)
		if e.Policy != "" {
			span.SetAttributes(policyAttribute(e.Policy))
		}
		ended(span, e.Outcome, e.Err)
	}
}

func (w *observer) attempt(ctx context.Context, policy, class string, lasted time.Duration) {
	o := w.series.of(labels{policy: policy, class: class})
	w.attempts.Add(ctx, 1, o.add...)
	w.attemptDuration.Record(ctx, lasted.Seconds(), o.record...)
}

// lastOf returns the duration of the successful attempt, from when it was due.
func lastOf(o *retry.Outcome) time.Duration {
	n := len(o.History)
	if n == 0 {
		return o.Elapsed
	}
	failed := &o.History[n-1]
	return min(max(time.Since(failed.Start.Add(failed.Duration+failed.Delay)), 0), o.Elapsed)
}

func tell(span trace.Span, e *retry.Event) {
	if e.Outcome != nil {
		// All four, since an attribute of an earlier run cannot be removed.
		end := endingOf(e.Outcome)
		span.SetAttributes(keyOfRun.String(nameOf(e.Policy)), keyStatus.String(end.status),
			keyReason.String(end.reason), keyMade.Int(e.Outcome.Attempts))
		return
	}
	tellAttempt(span, e.Policy, &e.Attempt, e.Decision.Status == retry.WaitingRetry)
}
