package retryotel

import (
	"context"

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
// There is no function that wraps only fn: several runs may call a wrapped fn at once, and it would link attempts of
// different runs.
func Do(ctx context.Context, p retry.Policy, o Options, fn func(context.Context) error) error {
	if ctx == nil || fn == nil {
		return retry.Do(ctx, p, fn)
	}
	tracer := o.tracer()
	inner, span := startRun(ctx, tracer, p.Name)
	if !traces(ctx, span) {
		return retry.Do(ctx, p, fn)
	}
	c := &chain{tracer: tracer}
	returned := false
	defer end(span, &returned)
	err := retry.Do(ofRun(inner, span), p, func(ctx context.Context) error { return c.attempt(ctx, p.Name, fn) })
	if run, ok := err.(*retry.Error); ok {
		ended(span, &run.Outcome, err)
	} else if err == nil {
		ended(span, &retry.Outcome{Status: retry.Succeeded, Attempts: c.made}, nil)
	} else if span.IsRecording() { // a policy that does not validate
		failed(span, err)
	}
	returned = true
	return err
}

// DoValue is Do for an fn that also returns a value: retry.DoValue with these spans.
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

func (c *chain) attempt(ctx context.Context, policy string, fn func(context.Context) error) error {
	inner, span := c.start(ctx, "retry.attempt", trace.SpanKindInternal, attemptAttributes(policy, retry.AttemptNumber(ctx))...)
	returned := false
	defer end(span, &returned)
	err := fn(inner)
	if err != nil && span.IsRecording() {
		cause := errorType(err)
		if context.Cause(ctx) == retry.ErrAttemptTimeout {
			cause = "timeout"
		}
		fail(span, cause, err)
	}
	returned = true
	return err
}
