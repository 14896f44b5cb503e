package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// shown are the printed attributes, in this order. URLs, ports and the texts of errors are not printed.
var shown = []attribute.Key{
	"retry.policy", "retry.attempt", "http.request.resend_count", "http.response.status_code", "error.type",
	"retry.class", "retry.delay", "retry.run.policy", "retry.status", "retry.reason", "retry.attempts",
}

// tree returns the spans in the order in which they started, each below its parent. A star is an event.
func tree(spans tracetest.SpanStubs) string {
	slices.SortFunc(spans, func(a, b tracetest.SpanStub) int {
		x, y := a.SpanContext.SpanID(), b.SpanContext.SpanID() // numbered
		return bytes.Compare(x[:], y[:])
	})
	below := map[trace.SpanID]tracetest.SpanStubs{}
	for _, s := range spans {
		below[s.Parent.SpanID()] = append(below[s.Parent.SpanID()], s)
	}
	var b strings.Builder
	for _, root := range below[trace.SpanID{}] {
		fmt.Fprintf(&b, "trace %s\n", root.SpanContext.TraceID())
		branch(&b, root, below, 1)
	}
	return b.String()
}

func branch(b *strings.Builder, s tracetest.SpanStub, below map[trace.SpanID]tracetest.SpanStubs, depth int) {
	indent := strings.Repeat("    ", depth)
	fmt.Fprintf(b, "%s#%d %s%s", indent, number(s.SpanContext), s.Name, list(s.Attributes))
	for _, link := range s.Links {
		fmt.Fprintf(b, "  -> #%d", number(link.SpanContext))
	}
	fmt.Fprintln(b)
	for _, e := range s.Events {
		if e.Name != "exception" { // its attributes are a Go type and a text
			fmt.Fprintf(b, "%s    * %s%s\n", indent, e.Name, list(e.Attributes))
		}
	}
	for _, child := range below[s.SpanContext.SpanID()] {
		branch(b, child, below, depth+1)
	}
}

func number(s trace.SpanContext) uint64 {
	id := s.SpanID()
	return binary.BigEndian.Uint64(id[:])
}

// list returns the shown attributes that are not empty.
func list(attributes []attribute.KeyValue) string {
	values := attribute.NewSet(attributes...)
	var b strings.Builder
	for _, key := range shown {
		if v, ok := values.Value(key); ok && v.String() != "" {
			fmt.Fprintf(&b, "  %s=%s", key, v.String())
		}
	}
	return b.String()
}
