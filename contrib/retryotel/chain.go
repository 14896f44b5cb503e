package retryotel

import (
	"context"
	"reflect"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

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
