package sdks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

var (
	wantSeconds  = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400}
	wantAttempts = []float64{0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 50, 100}
)

// TestMetricsAsACollectorGetsThem reads from the protocol the metrics that dashboards use.
func TestMetricsAsACollectorGetsThem(t *testing.T) {
	r := newReceiver(t)
	o, flush := r.options()
	observe, err := retryotel.Observe(o)
	require.NoError(t, err)
	ctx := t.Context()
	for range 3 {
		observe(ctx, retry.Event{Policy: "charge", Outcome: &retry.Outcome{Status: retry.Succeeded, Attempts: 1, Elapsed: 20 * time.Millisecond}})
	}
	for range 2 {
		for _, delay := range []time.Duration{10 * time.Second, time.Minute, 12 * time.Hour} {
			observe(ctx, retry.Event{Policy: "charge", Decision: retry.Decision{Status: retry.WaitingRetry, Delay: delay}})
		}
		observe(ctx, retry.Event{Policy: "charge", Outcome: &retry.Outcome{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Attempts: 4, Elapsed: 12 * time.Hour}})
	}
	observe(ctx, retry.Event{Policy: "bad \xff name", Outcome: &retry.Outcome{Status: retry.Canceled, Reason: retry.CallerCanceled}})
	_, err = retryotel.ObserveBudget(o, "payments \xff", retry.NewBudget(retry.BudgetConfig{Initial: 7}))
	require.NoError(t, err)
	flush()

	got := r.received()
	runs := got["retry.runs"].GetSum()
	require.Equal(t, metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, runs.AggregationTemporality)
	type point struct {
		attributes map[string]any
		value      int64
	}
	var points []point
	for _, p := range runs.DataPoints {
		points = append(points, point{plain(p.Attributes), p.GetAsInt()})
	}
	require.ElementsMatch(t, []point{
		{map[string]any{"retry.policy": "charge", "retry.status": "succeeded", "retry.kind": "succeeded_without_retry"}, 3},
		{map[string]any{"retry.policy": "charge", "retry.status": "dead_letter", "retry.reason": "attempts_exhausted", "retry.kind": "failed_with_retry"}, 2},
		{map[string]any{"retry.policy": "bad \uFFFD name", "retry.status": "canceled", "retry.reason": "caller_canceled", "retry.kind": "failed_without_retry"}, 1},
	}, points)

	type histogram struct {
		attributes map[string]any
		buckets    map[float64]uint64 // by their upper bound; only those that are not empty
		count      uint64
		sum        float64
	}
	histograms := func(name string, bounds []float64) (found []histogram) {
		for _, p := range got[name].GetHistogram().DataPoints {
			require.Equal(t, bounds, p.ExplicitBounds, name)
			h := histogram{plain(p.Attributes), map[float64]uint64{}, p.Count, p.GetSum()}
			for i, n := range p.BucketCounts {
				if n > 0 {
					require.Less(t, i, len(bounds), "%s: above the last bound", name)
					h.buckets[bounds[i]] = n
				}
			}
			found = append(found, h)
		}
		return found
	}
	success := map[string]any{"retry.policy": "charge", "retry.kind": "succeeded_without_retry"}
	failure := map[string]any{"retry.policy": "charge", "retry.kind": "failed_with_retry"}
	canceled := map[string]any{"retry.policy": "bad \uFFFD name", "retry.kind": "failed_without_retry"}
	require.ElementsMatch(t, []histogram{
		{success, map[float64]uint64{1: 3}, 3, 3},
		{failure, map[float64]uint64{4: 2}, 2, 8},
		{canceled, map[float64]uint64{0: 1}, 1, 0},
	}, histograms("retry.run.attempts", wantAttempts))
	require.ElementsMatch(t, []histogram{
		{success, map[float64]uint64{0.025: 3}, 3, 3 * 0.02},
		{failure, map[float64]uint64{43200: 2}, 2, 2 * 43200},
		{canceled, map[float64]uint64{0.001: 1}, 1, 0},
	}, histograms("retry.run.duration", wantSeconds))
	require.Equal(t, []histogram{
		{map[string]any{"retry.policy": "charge"}, map[float64]uint64{10: 2, 60: 2, 43200: 2}, 6, 2 * 43270},
	}, histograms("retry.delay", wantSeconds))

	tokens := got["retry.budget.tokens"].GetGauge().DataPoints
	require.Len(t, tokens, 1)
	require.Equal(t, map[string]any{"retry.budget": "payments \uFFFD"}, plain(tokens[0].Attributes))
	require.InDelta(t, 7, tokens[0].GetAsDouble(), 0)
}

// TestTracesAsACollectorGetsThem reads from the protocol the spans that a trace view shows.
func TestTracesAsACollectorGetsThem(t *testing.T) {
	r := newReceiver(t)
	o, flush := r.options()
	observe, err := retryotel.Observe(o)
	require.NoError(t, err)
	quick := retry.Policy{Name: "charge", MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 250 * time.Microsecond}, Observe: observe}
	ctx, caller := o.TracerProvider.Tracer("github.com/retrygo/retry/contrib/retryotel").Start(t.Context(), "caller")
	err = retryotel.Do(ctx, quick, o, func(context.Context) error { return errors.New("peer said \xff") })
	require.ErrorIs(t, err, retry.AttemptsExhausted)
	caller.End()
	flush()

	byName := map[string][]*wire.Span{}
	for _, span := range r.receivedSpans() {
		byName[span.Name] = append(byName[span.Name], span)
	}
	require.Len(t, byName["caller"], 1)
	require.Len(t, byName["retry.run"], 1)
	require.Len(t, byName["retry.attempt"], 2)
	run := byName["retry.run"][0]
	require.Equal(t, byName["caller"][0].SpanId, run.ParentSpanId)
	require.Equal(t, map[string]any{"retry.policy": "charge", "retry.status": "dead_letter", "retry.reason": "attempts_exhausted",
		"retry.attempts": int64(2), "error.type": "*errors.errorString"}, plain(run.Attributes))
	require.Len(t, run.Events, 2)
	require.Equal(t, map[string]any{"retry.policy": "charge", "retry.attempt": int64(1), "retry.class": "retryable",
		"retry.delay": 0.00025, "error.type": "*errors.errorString"}, plain(run.Events[0].Attributes))
	for _, span := range byName["retry.attempt"] {
		require.Equal(t, run.SpanId, span.ParentSpanId)
		require.Equal(t, wire.Status_STATUS_CODE_ERROR, span.Status.Code)
		require.Equal(t, "peer said \uFFFD", span.Status.Message)
	}
}
