package retryotel_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryhttp"
)

// sent are the requests that a server got.
type sent struct {
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func (s *sent) all() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *sent) methods() (methods []string) {
	for _, req := range s.all() {
		methods = append(methods, req.Method)
	}
	return methods
}

// answers returns a server that answers with one code after the other, the last one again and again, and "body".
func answers(t *testing.T, statuses ...int) (*httptest.Server, *sent) {
	seen := &sent{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if err != nil {
			t.Errorf("body: %v", err)
		}
		status := statuses[min(len(seen.requests), len(statuses)-1)]
		seen.requests = append(seen.requests, req)
		seen.bodies = append(seen.bodies, string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "body")
	}))
	t.Cleanup(server.Close)
	return server, seen
}

func get(t *testing.T, ctx context.Context, rt http.RoundTripper, url string, status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, status, resp.StatusCode)
	require.Same(t, req, resp.Request)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "body", string(body))
	require.NoError(t, resp.Body.Close())
}

func quickly(attempts int) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}
}

func addressOf(t *testing.T, server *httptest.Server) (host string, port int64) {
	host, text, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	port, err = strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return host, port
}

func TestEachSendHasAClientSpan(t *testing.T) {
	s := newSDK(t)
	s.Propagator = propagation.TraceContext{}
	server, seen := answers(t, 503, 429, 200)
	host, port := addressOf(t, server)
	p := quickly(5)
	p.Name = "orders"
	rt, err := retryotel.HTTP(&retryhttp.Transport{Policy: p, AttemptHeader: retryhttp.AttemptHeader}, s.Options)
	require.NoError(t, err)
	ctx, caller := s.traces.Tracer("").Start(t.Context(), "caller")
	url := strings.Replace(server.URL, "//", "//user:secret@", 1) + "/orders/7?sig=secret&x=1&bare#part"
	get(t, ctx, rt, url, 200)
	caller.End()

	spans := s.named("GET")
	require.Len(t, spans, 3)
	linked(t, s.runBelow(caller.SpanContext()).SpanContext, spans)
	for i, span := range spans {
		require.Equal(t, trace.SpanKindClient, span.SpanKind)
		status := []int64{503, 429, 200}[i]
		want := map[string]any{
			"http.request.method":       "GET",
			"url.full":                  strings.Replace(server.URL, "//", "//REDACTED:REDACTED@", 1) + "/orders/7?sig=REDACTED&x=REDACTED&REDACTED",
			"server.address":            host,
			"server.port":               port,
			"retry.attempt":             int64(i + 1),
			"retry.policy":              "orders",
			"http.response.status_code": status,
			"network.protocol.version":  "1.1",
		}
		if i > 0 {
			want["http.request.resend_count"] = int64(i)
		}
		wantStatus := sdktrace.Status{}
		if i < 2 {
			want["error.type"] = strconv.FormatInt(status, 10)
			wantStatus.Code = codes.Error
		}
		require.Equal(t, want, set(span.Attributes))
		require.Equal(t, wantStatus, span.Status)
		require.Empty(t, span.Events)
		// The server receives the context of exactly this send.
		header := seen.all()[i].Header
		require.Equal(t, "00-"+span.SpanContext.TraceID().String()+"-"+span.SpanContext.SpanID().String()+"-01", header.Get("Traceparent"))
		require.Equal(t, strconv.Itoa(i+1), header.Get("Retry-Attempt"))
	}
}

// The request's own trace context is replaced, and the request is not modified.
func TestTheRequestIsNotChanged(t *testing.T) {
	s := newSDK(t)
	s.Propagator = propagation.TraceContext{}
	server, seen := answers(t, 503, 200)
	rt, err := retryotel.HTTP(&retryhttp.Transport{Policy: quickly(2), Repeat: func(*retryhttp.AttemptError) bool { return true }}, s.Options)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("order 7"))
	require.NoError(t, err)
	const old = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	req.Header.Set("Traceparent", old)
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.Header{"Traceparent": {old}}, req.Header)
	require.Equal(t, []string{"order 7", "order 7"}, seen.bodies)
	for i, got := range seen.all() {
		require.Contains(t, got.Header.Get("Traceparent"), s.named("POST")[i].SpanContext.SpanID().String())
	}

	// In any spelling, headers of another trace are not sent.
	req.Header = http.Header{"traceparent": {old}, "TRACESTATE": {"vendor=of-another"}, "Tracestate": {"x=y"}, "baggage": {"k=v"}, "X-Kept": {"1"}}
	given := req.Header.Clone()
	both := s.Options
	both.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	var header http.Header
	seeing := transportFunc(func(req *http.Request) (*http.Response, error) {
		header = req.Header
		return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
	})
	again, err := retryotel.HTTP(&retryhttp.Transport{Base: seeing}, both)
	require.NoError(t, err)
	get := func(ctx context.Context, rt http.RoundTripper) {
		resp, err := rt.RoundTrip(req.Clone(ctx))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	req.Body, req.ContentLength, req.Method = nil, 0, http.MethodGet
	get(t.Context(), again)
	require.Equal(t, given, req.Header)
	sent := s.span("GET").SpanContext
	require.Equal(t, http.Header{"X-Kept": {"1"}, "Traceparent": {"00-" + sent.TraceID().String() + "-" + sent.SpanID().String() + "-01"}}, header)
	member, err := baggage.NewMember("tenant", "7")
	require.NoError(t, err)
	carried, err := baggage.New(member)
	require.NoError(t, err)
	get(baggage.ContextWithBaggage(t.Context(), carried), again)
	require.Equal(t, []string{"tenant=7"}, header["Baggage"])
	require.NotContains(t, header, "baggage")
	both.TracerProvider = tracenoop.NewTracerProvider()
	without, err := retryotel.HTTP(&retryhttp.Transport{Base: seeing}, both)
	require.NoError(t, err)
	get(t.Context(), without) // without a trace to replace them
	require.Equal(t, given, header)
	req.Method = http.MethodPost

	bare := req.Clone(t.Context())
	bare.Header, bare.Body, bare.ContentLength = nil, nil, 0
	resp, err = rt.RoundTrip(bare)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Nil(t, bare.Header)
}

// transportFunc is an http.RoundTripper.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestFailuresWithoutAResponse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	nobody := "http://" + listener.Addr().String()
	for _, row := range []struct {
		name      string
		base      http.RoundTripper
		timeout   time.Duration
		errorType string
		text      string
	}{
		{name: "nobody listens", errorType: "conn_refused", text: "refused"},
		{name: "the attempt's time runs out", timeout: time.Millisecond, errorType: "attempt_timeout", text: "attempt timeout",
			base: transportFunc(func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, context.Cause(req.Context())
			})},
		{name: "whatever Base makes of that", timeout: time.Millisecond, errorType: "attempt_timeout", text: "down",
			base: transportFunc(func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, errDown
			})},
		{name: "no word for it", errorType: "*errors.errorString", text: "down",
			base: transportFunc(func(*http.Request) (*http.Response, error) { return nil, errDown })},
		{name: "neither response nor error", errorType: "_OTHER", text: "the RoundTripper returned neither a response nor an error",
			base: transportFunc(func(*http.Request) (*http.Response, error) { return nil, nil })},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSDK(t)
			p := quickly(2)
			p.AttemptTimeout = row.timeout
			rt, err := retryotel.HTTP(&retryhttp.Transport{Base: row.base, Policy: p}, s.Options)
			require.NoError(t, err)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, nobody, nil)
			require.NoError(t, err)
			_, err = rt.RoundTrip(req) //nolint:bodyclose // there is none
			require.ErrorIs(t, err, retry.AttemptsExhausted)
			spans := s.named("PUT")
			require.Len(t, spans, 2)
			run := s.runBelow(trace.SpanContext{})
			require.Equal(t, codes.Error, run.Status.Code)
			require.Equal(t, "attempts_exhausted", set(run.Attributes)["retry.reason"])
			linked(t, run.SpanContext, spans)
			for _, span := range spans {
				require.Equal(t, row.errorType, set(span.Attributes)["error.type"])
				require.Equal(t, codes.Error, span.Status.Code)
				require.Contains(t, span.Status.Description, row.text)
				require.Equal(t, "exception", span.Events[0].Name)
				require.NotContains(t, set(span.Attributes), "http.response.status_code")
			}
		})
	}
}

// A request that was not sent has no span: it was invalid, or its body cannot be read again.
func TestOnlySendsHaveSpans(t *testing.T) {
	s := newSDK(t)
	server, seen := answers(t, 503)
	rt, err := retryotel.HTTP(&retryhttp.Transport{Policy: quickly(3), Repeat: func(*retryhttp.AttemptError) bool { return true }}, s.Options)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, io.NopCloser(strings.NewReader("once")))
	require.NoError(t, err)
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Len(t, seen.all(), 1)
	require.Len(t, s.named("POST"), 1)

	bad := req.Clone(t.Context())
	bad.Method = "GET\n"
	_, err = rt.RoundTrip(bad) //nolint:bodyclose // there is none
	require.ErrorContains(t, err, "Request.Method")
	_, err = rt.RoundTrip(nil) //nolint:bodyclose,staticcheck // there is none
	require.EqualError(t, err, "retryhttp: RoundTrip: Request is nil")
	require.Len(t, s.named("retry.run"), 2)
	require.Len(t, s.spans.GetSpans(), 3)
}

func TestMethodsAndPorts(t *testing.T) {
	base := transportFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 204, ProtoMajor: 2, Body: http.NoBody}, nil
	})
	for _, row := range []struct {
		method, url string
		name        string
		want        map[string]any
	}{
		{"CONNECT", "http://example.test", "CONNECT", map[string]any{"http.request.method": "CONNECT", "server.address": "example.test", "server.port": int64(80)}},
		{"DELETE", "http://example.test", "DELETE", map[string]any{"http.request.method": "DELETE", "server.address": "example.test", "server.port": int64(80)}},
		{"HEAD", "http://example.test", "HEAD", map[string]any{"http.request.method": "HEAD", "server.address": "example.test", "server.port": int64(80)}},
		{"OPTIONS", "http://example.test", "OPTIONS", map[string]any{"http.request.method": "OPTIONS", "server.address": "example.test", "server.port": int64(80)}},
		{"POST", "http://example.test", "POST", map[string]any{"http.request.method": "POST", "server.address": "example.test", "server.port": int64(80)}},
		{"PUT", "http://example.test", "PUT", map[string]any{"http.request.method": "PUT", "server.address": "example.test", "server.port": int64(80)}},
		{"TRACE", "http://example.test", "TRACE", map[string]any{"http.request.method": "TRACE", "server.address": "example.test", "server.port": int64(80)}},
		{"", "http://example.test/", "GET", map[string]any{"http.request.method": "GET", "server.address": "example.test", "server.port": int64(80)}},
		{"PATCH", "https://example.test", "PATCH", map[string]any{"http.request.method": "PATCH", "server.address": "example.test", "server.port": int64(443)}},
		{"PURGE", "https://[::1]:8443/", "HTTP", map[string]any{"http.request.method": "_OTHER", "http.request.method_original": "PURGE", "server.address": "::1", "server.port": int64(8443)}},
		{"get", "http://example.test", "HTTP", map[string]any{"http.request.method": "_OTHER", "http.request.method_original": "get", "server.address": "example.test", "server.port": int64(80)}},
	} {
		s := newSDK(t)
		rt, err := retryotel.HTTP(&retryhttp.Transport{Base: base}, s.Options)
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), row.method, row.url, nil)
		require.NoError(t, err)
		req.Method = row.method
		resp, err := rt.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		row.want["url.full"], row.want["retry.attempt"] = row.url, int64(1)
		row.want["http.response.status_code"], row.want["network.protocol.version"] = int64(204), "2"
		require.Equal(t, row.want, set(s.span(row.name).Attributes))
	}
}

// With sampling off the caller's trace goes on in the headers, marked as not sampled.
func TestUnsampledSendsStillCarryTheTrace(t *testing.T) {
	s := newSDK(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	s.Propagator = propagation.TraceContext{}
	server, seen := answers(t, 503, 200)
	rt, err := retryotel.HTTP(&retryhttp.Transport{Policy: quickly(2)}, s.Options)
	require.NoError(t, err)
	ctx, caller := s.traces.Tracer("").Start(t.Context(), "caller")
	get(t, ctx, rt, server.URL, 200)
	caller.End()
	require.Empty(t, s.spans.GetSpans())
	for _, req := range seen.all() {
		parent := req.Header.Get("Traceparent")
		require.True(t, strings.HasPrefix(parent, "00-"+caller.SpanContext().TraceID().String()+"-"), parent)
		require.True(t, strings.HasSuffix(parent, "-00"), parent)
	}
}

// Observe adds to the span of the run, which is below the caller's.
func TestObserveAddsToTheRunsSpan(t *testing.T) {
	s := newSDK(t)
	observe, err := retryotel.Observe(s.Options)
	require.NoError(t, err)
	server, _ := answers(t, 503, 429)
	p := quickly(2)
	p.Name, p.Observe = "orders", observe
	rt, err := retryotel.HTTP(&retryhttp.Transport{Policy: p}, s.Options)
	require.NoError(t, err)
	ctx, caller := s.traces.Tracer("").Start(t.Context(), "caller")
	get(t, ctx, rt, server.URL, 429)
	caller.End()
	require.Empty(t, s.span("caller").Attributes)
	span := s.runBelow(caller.SpanContext())
	require.Equal(t, map[string]any{"retry.policy": "orders", "retry.status": "dead_letter",
		"retry.reason": "attempts_exhausted", "retry.attempts": int64(2), "error.type": "429"}, set(span.Attributes))
	var types []any
	for _, e := range span.Events {
		types = append(types, set(e.Attributes)["error.type"])
	}
	require.Equal(t, []any{"503", "429"}, types)
	require.Equal(t, map[string]int64{"retry.kind=failed_with_retry,retry.policy=orders,retry.reason=attempts_exhausted,retry.status=dead_letter": 1}, s.sums("retry.runs"))
}

// The conventions call a 404 an error of the send, whatever the run makes of it.
func TestASendThatIsAnsweredHasTheStatus(t *testing.T) {
	s := newSDK(t)
	server, _ := answers(t, 404)
	rt, err := retryotel.HTTP(&retryhttp.Transport{}, s.Options)
	require.NoError(t, err)
	get(t, t.Context(), rt, server.URL, 404)
	span := s.span("GET")
	require.Equal(t, int64(404), set(span.Attributes)["http.response.status_code"])
	require.Equal(t, "404", set(span.Attributes)["error.type"])
	require.Equal(t, codes.Error, span.Status.Code)
}

// A canceled caller ends the send that is under way.
func TestACancelledSendIsAnError(t *testing.T) {
	s := newSDK(t)
	ctx, cancel := context.WithCancel(t.Context())
	base := transportFunc(func(req *http.Request) (*http.Response, error) {
		cancel()
		return nil, req.Context().Err()
	})
	rt, err := retryotel.HTTP(&retryhttp.Transport{Base: base}, s.Options)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.test", nil)
	require.NoError(t, err)
	_, err = rt.RoundTrip(req) //nolint:bodyclose // there is none
	require.True(t, errors.Is(err, retry.CallerCanceled))
	require.Equal(t, "canceled", set(s.span("GET").Attributes)["error.type"])
}
