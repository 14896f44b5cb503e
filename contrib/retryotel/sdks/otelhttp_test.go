package sdks_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryhttp"
)

// answers returns a server that answers with one code after the other, the last one again and again, and the
// Traceparent of each request.
func answers(t *testing.T, statuses ...int) (server *httptest.Server, parents *[]string) {
	parents = new([]string)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		status := statuses[min(len(*parents), len(statuses)-1)]
		*parents = append(*parents, req.Header.Get("Traceparent"))
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server, parents
}

func get(t *testing.T, ctx context.Context, rt http.RoundTripper, url string, status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, status, resp.StatusCode)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

func quickly(attempts int) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}
}

// otelhttpFor is the transport of otelhttp, with the SDK.
func otelhttpFor(s *sdk, base http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(base, otelhttp.WithTracerProvider(s.TracerProvider), otelhttp.WithMeterProvider(s.MeterProvider),
		otelhttp.WithPropagators(propagation.TraceContext{}))
}

// With otelhttp as the Base of a Transport each request that is sent has one CLIENT span, below that of the run, and one
// duration. Around the Transport it counts all of them as one.
func TestOtelhttpBelowTheTransportCountsEachSend(t *testing.T) {
	for _, row := range []struct {
		name          string
		below, around bool
		sends         int
	}{
		{name: "below", below: true, sends: 3},
		{name: "around", around: true, sends: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, observe := observed(t)
			server, parents := answers(t, 503, 503, 200)
			p := quickly(3)
			p.Name, p.Observe = "orders", observe
			transport := &retryhttp.Transport{Policy: p}
			if row.below {
				transport.Base = otelhttpFor(s, http.DefaultTransport)
			}
			rt := http.RoundTripper(transport)
			if row.around {
				rt = otelhttpFor(s, rt)
			}
			require.NoError(t, retryotel.Run(t.Context(), s.Options, func(ctx context.Context) error {
				get(t, ctx, rt, server.URL, 200)
				return nil
			}))
			sent := s.named("HTTP GET")
			require.Len(t, sent, row.sends)
			run := s.span("retry.run")
			for _, span := range sent {
				require.Equal(t, trace.SpanKindClient, span.SpanKind)
				require.Equal(t, run.SpanContext.SpanID(), span.Parent.SpanID())
			}
			var durations uint64
			for _, point := range s.metric("http.client.request.duration").(metricdata.Histogram[float64]).DataPoints {
				durations += point.Count
			}
			require.EqualValues(t, row.sends, durations)
			require.Len(t, *parents, 3)
			if row.below { // each server span is below its own send
				for i, span := range sent {
					require.Contains(t, (*parents)[i], span.SpanContext.SpanID().String())
				}
				require.Equal(t, map[string]any{"retry.policy": "orders", "retry.status": "succeeded", "retry.attempts": int64(3)}, set(run.Attributes))
				require.Len(t, run.Events, 2)
			}
		})
	}
}

// A response is not an error of RoundTrip, but the run has failed.
func TestARunThatReturnsAResponseHasItsOutcome(t *testing.T) {
	s, observe := observed(t)
	server, _ := answers(t, 503)
	p := quickly(2)
	p.Name, p.Observe = "orders", observe
	require.NoError(t, retryotel.Run(t.Context(), s.Options, func(ctx context.Context) error {
		get(t, ctx, &retryhttp.Transport{Policy: p}, server.URL, 503)
		return nil
	}))
	run := s.span("retry.run")
	require.Equal(t, map[string]any{"retry.policy": "orders", "retry.status": "dead_letter", "retry.reason": "attempts_exhausted",
		"retry.attempts": int64(2), "error.type": "503"}, set(run.Attributes))
	require.Equal(t, codes.Error, run.Status.Code)
	require.Contains(t, run.Status.Description, "gave up after 2 attempts")
}
