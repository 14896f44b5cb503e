package sdks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

// sdk is an SDK that keeps everything in memory.
type sdk struct {
	t      *testing.T
	reader *sdkmetric.ManualReader
	spans  *tracetest.InMemoryExporter
	traces *sdktrace.TracerProvider
	retryotel.Options
}

func newSDK(t *testing.T) *sdk {
	s := &sdk{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewInMemoryExporter()}
	s.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
	s.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))
	s.TracerProvider = s.traces
	return s
}

// observed returns an SDK and an observer that records with it.
func observed(t *testing.T) (*sdk, func(context.Context, retry.Event)) {
	s := newSDK(t)
	observe, err := retryotel.Observe(s.Options)
	require.NoError(t, err)
	return s, observe
}

// metric returns what was measured under a name, nil if nothing was.
func (s *sdk) metric(name string) metricdata.Aggregation {
	var all metricdata.ResourceMetrics
	require.NoError(s.t, s.reader.Collect(s.t.Context(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				return m.Data
			}
		}
	}
	return nil
}

// labels is a set of attributes as a reader of a test writes it: "retry.policy=a,retry.status=succeeded".
func labels(set attribute.Set) string { return set.Encoded(attribute.DefaultEncoder()) }

// values returns a counter or a gauge by its attributes.
func (s *sdk) values(name string) map[string]float64 { return valuesOf(s.metric(name)) }

func valuesOf(data metricdata.Aggregation) map[string]float64 {
	values := map[string]float64{}
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		for _, point := range data.DataPoints {
			values[labels(point.Attributes)] = float64(point.Value)
		}
	case metricdata.Gauge[float64]:
		for _, point := range data.DataPoints {
			values[labels(point.Attributes)] = point.Value
		}
	}
	return values
}

// recorded is a histogram's point without its buckets.
type recorded struct {
	count uint64
	sum   float64
}

// histogram returns a histogram by its attributes.
func (s *sdk) histogram(name string) map[string]recorded {
	points := map[string]recorded{}
	switch data := s.metric(name).(type) {
	case metricdata.Histogram[int64]:
		for _, point := range data.DataPoints {
			points[labels(point.Attributes)] = recorded{point.Count, float64(point.Sum)}
		}
	case metricdata.Histogram[float64]:
		for _, point := range data.DataPoints {
			points[labels(point.Attributes)] = recorded{point.Count, point.Sum}
		}
	}
	return points
}

// span returns the only ended span with that name.
func (s *sdk) span(name string) tracetest.SpanStub {
	found := s.named(name)
	require.Len(s.t, found, 1)
	return found[0]
}

// named returns the ended spans with that name, in the order in which they ended.
func (s *sdk) named(name string) []tracetest.SpanStub {
	var found []tracetest.SpanStub
	for _, stub := range s.spans.GetSpans() {
		if stub.Name == name {
			found = append(found, stub)
		}
	}
	return found
}

// set returns attributes as a map from key to value.
func set(list []attribute.KeyValue) map[string]any {
	values := map[string]any{}
	for _, pair := range list {
		values[string(pair.Key)] = pair.Value.AsInterface()
	}
	return values
}
