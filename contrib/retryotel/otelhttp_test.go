package retryotel_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryhttp"
)

// Each physical request has one CLIENT span and one duration, and the logical one has neither. Around the same
// transport, otelhttp counts one too many, or one for all.
func TestEachSendIsCountedOnceBesideOtelhttp(t *testing.T) {
	server, _ := answers(t, 503, 503, 200, 503, 503, 200, 503, 503, 200)
	clients := func(s *sdk) (n int) {
		for _, span := range s.spans.GetSpans() {
			if span.SpanKind == trace.SpanKindClient {
				n++
			}
		}
		return n
	}
	durations := func(s *sdk) (n uint64) { // of both scopes
		var all metricdata.ResourceMetrics
		require.NoError(t, s.reader.Collect(t.Context(), &all))
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				if data, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "http.client.request.duration" {
					for _, point := range data.DataPoints {
						n += point.Count
					}
				}
			}
		}
		return n
	}
	theirs := func(s *sdk, base http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(base, otelhttp.WithTracerProvider(s.TracerProvider), otelhttp.WithMeterProvider(s.MeterProvider))
	}
	for _, row := range []struct {
		name               string
		base, around       bool // with otelhttp
		clients, durations int
	}{
		{name: "alone", clients: 3, durations: 3},
		{name: "otelhttp outside", around: true, clients: 4, durations: 4},
		{name: "otelhttp inside", base: true, clients: 6, durations: 6},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSDK(t)
			transport := &retryhttp.Transport{Policy: quickly(3)}
			if row.base {
				transport.Base = theirs(s, http.DefaultTransport)
			}
			rt, err := retryotel.HTTP(transport, s.Options)
			require.NoError(t, err)
			if row.around {
				rt = theirs(s, rt)
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			require.NoError(t, err)
			resp, err := rt.RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, row.clients, clients(s))
			require.EqualValues(t, row.durations, durations(s))
		})
	}
}

// Method, status, address and port are those of otelhttp, and so are unit and bounds.
func TestTheDurationsAreThoseOfOtelhttp(t *testing.T) {
	server, _ := answers(t, 503, 200, 503, 200)
	refused := "http://127.0.0.1:1/"
	measured := func(wrap func(*sdk) http.RoundTripper) (series map[attribute.Set]uint64, bounds []float64) {
		s := newSDK(t)
		rt := wrap(s)
		for _, url := range []string{server.URL, server.URL, refused} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			require.NoError(t, err)
			if resp, err := rt.RoundTrip(req); err == nil {
				require.NoError(t, resp.Body.Close())
			}
		}
		series = map[attribute.Set]uint64{}
		for _, point := range s.metric("http.client.request.duration").(metricdata.Histogram[float64]).DataPoints {
			set, _ := point.Attributes.Filter(attribute.NewAllowKeysFilter(
				"http.request.method", "http.response.status_code", "server.address", "server.port"))
			series[set], bounds = point.Count, point.Bounds
		}
		return series, bounds
	}
	ours, bounds := measured(func(s *sdk) http.RoundTripper {
		rt, err := retryotel.HTTP(&retryhttp.Transport{Policy: quickly(1)}, s.Options)
		require.NoError(t, err)
		return rt
	})
	theirs, theirBounds := measured(func(s *sdk) http.RoundTripper {
		return otelhttp.NewTransport(http.DefaultTransport, otelhttp.WithTracerProvider(s.TracerProvider), otelhttp.WithMeterProvider(s.MeterProvider))
	})
	require.Len(t, ours, 3)
	require.Equal(t, theirs, ours)
	require.Equal(t, theirBounds, bounds)
}

func TestTheQueryCanBeShown(t *testing.T) {
	server, _ := answers(t, 200)
	s := newSDK(t)
	s.ShowQuery = func(key string) bool { return key != "sig" }
	rt, err := retryotel.HTTP(&retryhttp.Transport{}, s.Options)
	require.NoError(t, err)
	get(t, t.Context(), rt, server.URL+"/?page=2&sig=secret&bare", 200)
	require.Equal(t, server.URL+"/?page=2&sig=REDACTED&REDACTED", set(s.span("GET").Attributes)["url.full"])
}
