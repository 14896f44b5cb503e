package retryotel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry/retryhedge"
)

// hedgeResult is what hedging did for a call.
type hedgeResult uint8

const (
	hedgeNotNeeded hedgeResult = iota // the first call was over within the delay
	hedgeNotMade                      // it was too near the deadline, or a server wanted to be left alone
	hedgeRefused                      // the budget had no token for a hedge, and none was made
	hedgeLost                         // hedges were made, and the first call's result was used
	hedgeWon
	hedgeResults
)

func (r hedgeResult) String() string {
	return [...]string{"not_needed", "not_made", "refused", "lost", "won"}[r]
}

func hedgeResultOf(e *retryhedge.Event) hedgeResult {
	switch {
	case e.Won > 1:
		return hedgeWon
	case len(e.Calls) > 1:
		return hedgeLost
	case e.Refused:
		return hedgeRefused
	case e.Slow:
		return hedgeNotMade
	default:
		return hedgeNotNeeded
	}
}

// ObserveHedges returns a function for the Observe of any number of retryhedge.Policies. It counts their calls by what
// hedging did for each (retry.hedge.count) and the hedges made (retry.hedge.calls), and adds an event "retry.hedge" with
// the number of calls to the current span of a call that was slow. Errors are as for Observe.
func ObserveHedges(o Options) (func(context.Context, retryhedge.Event), error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	m := o.meter()
	counted, countErr := m.Int64Counter("retry.hedge.count",
		metric.WithUnit("{call}"), metric.WithDescription("Calls that could be hedged, by what hedging did for them."))
	made, madeErr := m.Int64Counter("retry.hedge.calls",
		metric.WithUnit("{call}"), metric.WithDescription("Hedges made: calls beside one that was slow."))
	if err := refused(countErr, madeErr); err != nil {
		return nil, err
	}
	var results [hedgeResults]attribute.KeyValue
	for r := range hedgeResults {
		results[r] = keyHedge.String(r.String())
	}
	names := newPolicies(o.maxPolicies())
	return func(ctx context.Context, e retryhedge.Event) {
		r, s := hedgeResultOf(&e), names.of(e.Policy)
		counted.Add(ctx, 1, s.option(results[r]))
		if hedges := len(e.Calls) - 1; hedges > 0 {
			made.Add(ctx, int64(hedges), s.option())
		}
		if span := trace.SpanFromContext(ctx); r != hedgeNotNeeded && span.IsRecording() {
			span.AddEvent("retry.hedge", trace.WithAttributes(results[r], keyCalls.Int(len(e.Calls))))
		}
	}, nil
}
