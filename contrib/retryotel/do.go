package retryotel

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
)

// Do is retry.Do with a span for the run and one for each attempt.
//
// The run's span, "retry.run", is a child of ctx's span. It has the attributes of the run and, if that failed, error.type
// of the last error and the status Error. If Policy.Observe is from Observe, it adds the failed attempts to the span.
//
// An attempt's span, "retry.attempt", is a child of that, linked to the span of the attempt before it, and current in
// the context that fn gets. A failure sets error.type and the status Error and records the error. If AttemptTimeout
// ended the attempt, error.type is "timeout", whatever error fn returned. A panic and runtime.Goexit pass through and
// end both spans as Errors.
//
// Do returns the error of retry.Do.
//
// There is no function that wraps only fn. Several runs may call a wrapped fn at once, and it would link attempts of
// different runs.
func Do(ctx context.Context, p retry.Policy, o Options, fn func(context.Context) error) error {
	if ctx == nil || fn == nil {
		return retry.Do(ctx, p, fn)
	}
	tracer := o.tracer()
	inner, r := startRun(ctx, tracer, p.Name)
	if r == nil {
		return retry.Do(ctx, p, fn)
	}
	defer r.end()
	var previous trace.Link // invalid before the first attempt
	return r.returned(retry.Do(inner, p, func(ctx context.Context) error {
		r.attempts++
		inner, started := tracer.Start(ctx, "retry.attempt", trace.WithLinks(previous),
			trace.WithAttributes(attemptAttributes(p.Name, retry.AttemptNumber(ctx))...))
		previous.SpanContext = started.SpanContext()
		a := span{Span: started}
		defer a.end()
		err := fn(inner)
		a.over = true
		if err != nil && a.IsRecording() {
			a.fail(ctx, err)
		}
		return err
	}))
}

// DoValue is Do for an fn that also returns a value. It is retry.DoValue with these spans.
func DoValue[T any](ctx context.Context, p retry.Policy, o Options, fn func(context.Context) (T, error)) (value T, err error) {
	if fn == nil {
		return value, Do(ctx, p, o, nil)
	}
	err = Do(ctx, p, o, func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	})
	return value, err
}

// fail marks the recording span of an attempt that failed.
func (s *span) fail(attempt context.Context, err error) {
	kind, text := errorType(err), textOf(err)
	if context.Cause(attempt) == retry.ErrAttemptTimeout {
		kind = "timeout"
	}
	s.SetAttributes(keyErrorType.String(kind))
	s.SetStatus(codes.Error, text)
	// The same attributes as RecordError, but short and in UTF-8, since the text may come from a peer.
	s.AddEvent("exception", trace.WithAttributes(
		attribute.String("exception.type", fmt.Sprintf("%T", err)),
		attribute.String("exception.message", text)))
}
