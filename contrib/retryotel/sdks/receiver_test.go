package sdks_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/retrygo/retry/contrib/retryotel"
)

// receiver accepts OTLP over HTTP like a collector, and keeps what arrives.
type receiver struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	metrics []*metrics.ResourceMetrics
	spans   []*trace.ResourceSpans
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, req *http.Request) {
		var body collectormetrics.ExportMetricsServiceRequest
		if r.decode(w, req, &body) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.metrics = append(r.metrics, body.ResourceMetrics...)
		}
	})
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, req *http.Request) {
		var body collectortrace.ExportTraceServiceRequest
		if r.decode(w, req, &body) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.spans = append(r.spans, body.ResourceSpans...)
		}
	})
	r.server = httptest.NewServer(mux)
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) decode(w http.ResponseWriter, req *http.Request, into proto.Message) bool {
	data, err := io.ReadAll(req.Body)
	if err == nil {
		err = proto.Unmarshal(data, into)
	}
	if err != nil {
		r.t.Errorf("%s: %v", req.URL.Path, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	return err == nil
}

// options send to the receiver; flush does so now.
func (r *receiver) options() (o retryotel.Options, flush func()) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	r.t.Cleanup(cancel)
	toMetrics, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(r.server.URL+"/v1/metrics"))
	require.NoError(r.t, err)
	toTraces, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(r.server.URL+"/v1/traces"))
	require.NoError(r.t, err)
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(toMetrics, sdkmetric.WithInterval(time.Hour))))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(toTraces))
	return retryotel.Options{MeterProvider: meters, TracerProvider: tracers}, func() {
		require.NoError(r.t, meters.Shutdown(ctx))
		require.NoError(r.t, tracers.Shutdown(ctx))
	}
}

// received returns the metrics by name. Each must have come once.
func (r *receiver) received() map[string]*metrics.Metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]*metrics.Metric{}
	for _, resource := range r.metrics {
		for _, scope := range resource.ScopeMetrics {
			require.Equal(r.t, "github.com/retrygo/retry/contrib/retryotel", scope.Scope.Name)
			require.Contains(r.t, scope.SchemaUrl, "https://opentelemetry.io/schemas/")
			for _, m := range scope.Metrics {
				require.NotContains(r.t, found, m.Name)
				found[m.Name] = m
			}
		}
	}
	return found
}

// receivedSpans returns all spans in the order in which they began.
func (r *receiver) receivedSpans() []*trace.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*trace.Span
	for _, resource := range r.spans {
		for _, scope := range resource.ScopeSpans {
			found = append(found, scope.Spans...)
		}
	}
	return found
}

// plain returns attributes as a map from key to value.
func plain(list []*common.KeyValue) map[string]any {
	values := map[string]any{}
	for _, pair := range list {
		switch value := pair.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			values[pair.Key] = value.StringValue
		case *common.AnyValue_IntValue:
			values[pair.Key] = value.IntValue
		case *common.AnyValue_DoubleValue:
			values[pair.Key] = value.DoubleValue
		default:
			values[pair.Key] = pair.Value
		}
	}
	return values
}
