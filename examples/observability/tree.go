package main

import (
	"cmp"
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
	"retry.policy", "retry.attempt", "http.response.status_code", "error.type",
	"retry.class", "retry.delay", "retry.run.policy", "retry.status", "retry.reason", "retry.attempts",
}

// tree returns the spans in the order in which they started, each below its parent. A star is an event.
func tree(spans tracetest.SpanStubs) string {
	slices.SortFunc(spans, func(a, b tracetest.SpanStub) int { return cmp.Compare(number(a.SpanContext), number(b.SpanContext)) })
	var b strings.Builder
	indents := map[uint64]string{}
	for _, s := range spans {
		if !s.Parent.IsValid() {
			fmt.Fprintf(&b, "trace %s\n", s.SpanContext.TraceID())
		}
		n, indent := number(s.SpanContext), indents[number(s.Parent)]+"    "
		indents[n] = indent
		fmt.Fprintf(&b, "%s#%d %s%s", indent, n, s.Name, list(s.Attributes))
		for _, link := range s.Links {
			fmt.Fprintf(&b, "  -> #%d", number(link.SpanContext))
		}
		fmt.Fprintln(&b)
		for _, e := range s.Events {
			if e.Name != "exception" { // its attributes are a Go type and a text
				fmt.Fprintf(&b, "%s    * %s%s\n", indent, e.Name, list(e.Attributes))
			}
		}
	}
	return b.String()
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
