package retryotel_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryhttp"
)

// Everything that Base owes a Transport is passed on: httptrace, unchanged errors, the response's own body, even a
// writable one, and CloseIdleConnections.
func TestBaseKeepsItsPromises(t *testing.T) {
	s := newSDK(t)
	server, _ := answers(t, 200)
	connected := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected++ }})
	rt, err := retryotel.HTTP(&retryhttp.Transport{}, s.Options)
	require.NoError(t, err)
	get(t, ctx, rt, server.URL, 200)
	require.Equal(t, 1, connected)

	own := struct{ io.ReadWriteCloser }{}
	base := &closer{transportFunc: func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPut {
			return nil, errDown
		}
		return &http.Response{StatusCode: 101, Body: own}, nil
	}}
	rt, err = retryotel.HTTP(&retryhttp.Transport{Base: base, Policy: quickly(1)}, s.Options)
	require.NoError(t, err)
	rt.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	require.Equal(t, 1, base.closed)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	resp, err := rt.RoundTrip(req) //nolint:bodyclose // it cannot
	require.NoError(t, err)
	require.Equal(t, io.ReadCloser(own), resp.Body)
	req.Method = http.MethodPut
	_, err = rt.RoundTrip(req) //nolint:bodyclose // there is none
	var failed *retryhttp.AttemptError
	require.ErrorAs(t, err, &failed)
	require.Same(t, errDown, failed.Err)
}

type closer struct {
	transportFunc
	closed int
}

func (c *closer) CloseIdleConnections() { c.closed++ }

// A span ends with the headers: the body may be read late or never.
func TestASpanEndsWithTheHeaders(t *testing.T) {
	s := newSDK(t)
	held := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-held
		_, _ = io.WriteString(w, "late")
	}))
	t.Cleanup(server.Close)
	rt, err := retryotel.HTTP(&retryhttp.Transport{}, s.Options)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	require.Len(t, s.named("GET"), 1)
	close(held)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "late", string(body))
	require.NoError(t, resp.Body.Close())
}

func TestAPanicInBaseEndsItsSpan(t *testing.T) {
	s := newSDK(t)
	rt, err := retryotel.HTTP(&retryhttp.Transport{Base: transportFunc(func(*http.Request) (*http.Response, error) { panic("boom") })}, s.Options)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.test", nil)
	require.NoError(t, err)
	require.PanicsWithValue(t, "boom", func() { _, _ = rt.RoundTrip(req) }) //nolint:bodyclose // there is none
	aborted(t, s.span("GET"))
	aborted(t, s.span("retry.run"))
}

// closed counts the calls of its Close.
type closed struct {
	io.Reader
	n int
}

func (c *closed) Close() error { c.n++; return nil }

func TestAPanicClosesTheBody(t *testing.T) {
	for name, transport := range map[string]*retryhttp.Transport{
		"of PolicyFor": {PolicyFor: func(*http.Request) retry.Policy { panic("boom") }},
		"of Observe":   {Policy: retry.Policy{Observe: func(context.Context, retry.Event) { panic("boom") }}},
		"of Base":      {Base: transportFunc(func(*http.Request) (*http.Response, error) { panic("boom") })},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSDK(t)
			rt, err := retryotel.HTTP(transport, s.Options)
			require.NoError(t, err)
			body := &closed{Reader: strings.NewReader("body")}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://example.test", body)
			require.NoError(t, err)
			if transport.Base == nil {
				req.Method = "bad method"
			}
			require.PanicsWithValue(t, "boom", func() { _, _ = rt.RoundTrip(req) }) //nolint:bodyclose // there is none
			require.Equal(t, 1, body.n)
			for _, span := range s.named("retry.run") {
				aborted(t, span)
			}
		})
	}
}

// Requests at the same time through one RoundTripper are runs of their own, below the spans of their callers.
func TestConcurrentRequestsDoNotMeet(t *testing.T) {
	s := newSDK(t)
	s.Propagator = propagation.TraceContext{}
	base := transportFunc(func(req *http.Request) (*http.Response, error) {
		status := 503
		if req.Header.Get("Retry-Attempt") == "3" {
			status = 200
		}
		return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(nil)), Header: http.Header{}}, nil
	})
	transport := &retryhttp.Transport{Base: base, Policy: quickly(3), AttemptHeader: retryhttp.AttemptHeader}
	rt, err := retryotel.HTTP(transport, s.Options)
	require.NoError(t, err)
	transport.Base = nil // it was copied
	var all sync.WaitGroup
	parents := make([]trace.SpanContext, 30)
	for i := range parents {
		all.Go(func() {
			ctx, caller := s.traces.Tracer("").Start(t.Context(), "caller")
			defer caller.End()
			parents[i] = caller.SpanContext()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.test", nil)
			if err == nil {
				var resp *http.Response
				if resp, err = rt.RoundTrip(req); err == nil {
					err = resp.Body.Close()
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	byParent := map[trace.SpanID][]tracetest.SpanStub{}
	for _, span := range s.named("GET") {
		byParent[span.Parent.SpanID()] = append(byParent[span.Parent.SpanID()], span)
	}
	for _, parent := range parents {
		run := s.runBelow(parent).SpanContext
		require.Len(t, byParent[run.SpanID()], 3)
		linked(t, run, byParent[run.SpanID()])
	}
}

// A hop that a client follows is a RoundTrip, and so a run.
func TestRedirectsAreRunsOfTheirOwn(t *testing.T) {
	s := newSDK(t)
	base := transportFunc(func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/old" {
			return &http.Response{StatusCode: 302, Header: http.Header{"Location": {"/new"}}, Body: http.NoBody}, nil
		}
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	})
	rt, err := retryotel.HTTP(&retryhttp.Transport{Base: base}, s.Options)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.test/old", nil)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: rt}).Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
	runs, sends := s.named("retry.run"), s.named("GET")
	require.Len(t, runs, 2)
	require.Len(t, sends, 2)
	for i, send := range sends {
		require.Equal(t, runs[i].SpanContext, send.Parent)
		require.Empty(t, send.Links)
	}
}

// A response that comes after AttemptTimeout is a failure, of the span as of the run. The timeout of a run around it is
// the caller's deadline.
func TestAResponseThatComesTooLate(t *testing.T) {
	for _, row := range []struct {
		name          string
		inner, outer  time.Duration
		status        sdktrace.Status
		errorType     any
		wantExhausted bool
	}{
		{"of its own timeout", time.Second, 0, sdktrace.Status{Code: codes.Error, Description: "attempt timeout"}, "attempt_timeout", true},
		{"of an outer run's", 0, time.Second, sdktrace.Status{}, nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSDK(t)
				observe, err := retryotel.Observe(s.Options)
				require.NoError(t, err)
				base := transportFunc(func(req *http.Request) (*http.Response, error) {
					<-req.Context().Done()
					return &http.Response{StatusCode: 200, ProtoMajor: 2, Body: http.NoBody}, nil
				})
				p := retry.Policy{MaxAttempts: 1, AttemptTimeout: row.inner, Observe: observe}
				rt, err := retryotel.HTTP(&retryhttp.Transport{Base: base, Policy: p}, s.Options)
				require.NoError(t, err)
				err = retry.Do(t.Context(), retry.Policy{MaxAttempts: 1, AttemptTimeout: row.outer}, func(ctx context.Context) error {
					ctx, caller := s.traces.Tracer("").Start(ctx, "caller")
					defer caller.End()
					req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.test", nil)
					require.NoError(t, err)
					resp, err := rt.RoundTrip(req)
					if err == nil {
						require.NoError(t, resp.Body.Close())
					}
					return err
				})
				require.Equal(t, row.wantExhausted, errors.Is(err, retry.AttemptsExhausted))
				span := s.span("GET")
				require.Equal(t, row.status, span.Status)
				require.Equal(t, row.errorType, set(span.Attributes)["error.type"])
				require.Equal(t, int64(200), set(span.Attributes)["http.response.status_code"])
				for _, e := range s.span("retry.run").Events { // both say the same of one attempt
					if e.Name == "retry.attempt.failed" {
						require.Equal(t, row.errorType, set(e.Attributes)["error.type"])
					}
				}
			})
		})
	}
}
