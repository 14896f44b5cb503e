package main

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
)

// numberedSpans gives IDs 1, 2, 3, ... in the order in which traces and spans start.
type numberedSpans struct {
	traces, spans atomic.Uint64
}

// NewIDs returns the IDs of a new trace and its first span.
func (n *numberedSpans) NewIDs(ctx context.Context) (id trace.TraceID, _ trace.SpanID) {
	binary.BigEndian.PutUint64(id[8:], n.traces.Add(1))
	return id, n.NewSpanID(ctx, id)
}

// NewSpanID returns the ID of a new span.
func (n *numberedSpans) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], n.spans.Add(1))
	return id
}
