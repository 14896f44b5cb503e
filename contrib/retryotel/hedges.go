package retryotel

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry/retryhedge"
)

// hedgeOf returns the value of retry.hedge for a call.
func hedgeOf(e *retryhedge.Event) string {
	switch {
	case e.Won > 1:
		return "won"
	case len(e.Calls) > 1: // the first call's result was used
		return "lost"
	case e.Refused: // the budget had no token
		return "refused"
	case e.Slow: // it was too near the deadline, or a server wanted to be left alone
		return "not_made"
	default: // the first call was over within the delay
		return "not_needed"
	}
}

// ObserveHedges returns a function for the Observe of any number of retryhedge.Policies. It counts their calls by the
// effect of hedging (retry.hedge.count) and the hedges made (retry.hedge.calls), and adds an event "retry.hedge" with
// the number of calls to the current span of a call that was slow. Errors are as for Observe.
func ObserveHedges(o Options) (func(context.Context, retryhedge.Event), error) {
	m := o.meter()
	counted, countErr := m.Int64Counter("retry.hedge.count",
		metric.WithUnit("{call}"), metric.WithDescription("Calls that could be hedged, by what hedging did for them."))
	made, madeErr := m.Int64Counter("retry.hedge.calls",
		metric.WithUnit("{call}"), metric.WithDescription("Hedges made: calls beside one that was slow."))
	if err := refused(countErr, madeErr); err != nil {
		return nil, err
	}
	s := newSeries()
	return func(ctx context.Context, e retryhedge.Event) {
		hedge := hedgeOf(&e)
		counted.Add(ctx, 1, s.of(labels{policy: e.Policy, hedge: hedge}).add...)
		if hedges := len(e.Calls) - 1; hedges > 0 {
			made.Add(ctx, int64(hedges), s.of(labels{policy: e.Policy}).add...)
		}
		if span := trace.SpanFromContext(ctx); hedge != "not_needed" && span.IsRecording() {
			span.AddEvent("retry.hedge", trace.WithAttributes(keyHedge.String(hedge), keyCalls.Int(len(e.Calls))))
		}
	}, nil
}
