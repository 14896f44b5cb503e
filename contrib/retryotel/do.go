package retryotel

import (
	"context"
	"reflect"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
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

// chain links the spans of one run, each to the one before it. It belongs to one call of Do or RoundTrip, whose
// attempts do not overlap, so spans of two runs are never linked.
type chain struct {
	tracer   trace.Tracer
	previous trace.SpanContext // invalid before the first
	made     int
}

// start begins the next span, below that of ctx.
func (c *chain) start(ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	opts := []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(attributes...), nil}
	if c.previous.IsValid() {
		opts[2] = trace.WithLinks(trace.Link{SpanContext: c.previous})
	} else {
		opts = opts[:2]
	}
	c.made++
	ctx, span := c.tracer.Start(ctx, name, opts...)
	c.previous = span.SpanContext()
	return ctx, span
}

// fail marks the recording span of an attempt that failed.
func fail(span trace.Span, errorType string, err error) {
	text := textOf(err)
	span.SetAttributes(semconv.ErrorTypeKey.String(errorType))
	span.SetStatus(codes.Error, text)
	// The same attributes as RecordError, but short and in UTF-8, since the text may come from a peer.
	span.AddEvent("exception", trace.WithAttributes(
		attribute.String("exception.type", goType(err)),
		attribute.String("exception.message", text)))
}

// end ends a span. If its function has not returned, the span is an Error; only a recover could distinguish a panic
// from runtime.Goexit.
func end(span trace.Span, returned *bool) {
	if !*returned {
		span.SetAttributes(semconv.ErrorTypeKey.String(other))
		span.SetStatus(codes.Error, "panic or runtime.Goexit")
	}
	span.End()
}

// goType returns the Go type of err, as RecordError writes it.
func goType(err error) string {
	t := reflect.TypeOf(err)
	if t.PkgPath() == "" && t.Name() == "" {
		return t.String()
	}
	return t.PkgPath() + "." + t.Name()
}
