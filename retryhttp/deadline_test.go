package retryhttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

// timesLeft returns a RoundTripper that takes so long, answers 503 and records the header.
func timesLeft(takes time.Duration, got *[]string) roundTripper {
	return func(req *http.Request) (*http.Response, error) {
		*got = append(*got, req.Header.Get(retryhttp.EnvoyTimeLeftHeader))
		select {
		case <-time.After(takes):
			return answer(req, 503), nil
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
}

func TestTimeLeft(t *testing.T) {
	const ms = time.Millisecond
	example := map[string]string{"Example.com": retryhttp.EnvoyTimeLeftHeader}
	for _, row := range []struct {
		name     string
		timeLeft map[string]string
		timeout  time.Duration // of an attempt
		deadline time.Duration // of the caller; 0 means none
		takes    time.Duration // an attempt; between them is a second
		want     []string
	}{
		{"an attempt timeout, anew for each attempt", example, 2 * time.Second, 0, 1500 * ms, []string{"2000", "2000", "2000"}},
		{"a deadline, which comes nearer", example, 0, 10 * time.Second, 500 * ms, []string{"10000", "8500", "7000"}},
		{"the earlier of both", example, 2 * time.Second, 4500 * ms, 500 * ms, []string{"2000", "2000", "1500"}},
		{"a part of a millisecond is left out", example, 1999 * time.Microsecond, 0, 0, []string{"1", "1", "1"}},
		{"less than a millisecond is 1, since 0 is no limit", example, time.Microsecond, 0, 0, []string{"1", "1", "1"}},
		{"no limit", example, 0, 0, 0, []string{"", "", ""}},
		{"another host", map[string]string{"example.org": retryhttp.EnvoyTimeLeftHeader, "example.com:8080": retryhttp.EnvoyTimeLeftHeader},
			time.Second, 0, 0, []string{"", "", ""}},
		{"another header", map[string]string{"example.com": "X-Deadline"}, time.Second, 0, 0, []string{"", "", ""}},
		{"none", nil, time.Second, 0, 0, []string{"", "", ""}},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			ctx := t.Context()
			if row.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.deadline)
				defer cancel()
			}
			p := three
			p.AttemptTimeout = row.timeout
			var got []string
			tr := &retryhttp.Transport{Base: timesLeft(row.takes, &got), Policy: p, TimeLeftHeaders: row.timeLeft}
			req := request(ctx, http.MethodGet, nil)
			_, _, _ = run(t, tr, req)
			require.Equal(t, row.want, got)
			require.Empty(t, req.Header)
		})
	}
	inBubble(t, "in place of the caller's own, if there is a limit", func(t *testing.T) {
		for timeout, want := range map[time.Duration]http.Header{
			time.Second: {"X-Envoy-Expected-Rq-Timeout-Ms": {"1000"}}, 0: {"x-envoy-expected-RQ-timeout-ms": {"7"}},
		} {
			req := request(t.Context(), http.MethodGet, nil)
			req.Header["x-envoy-expected-RQ-timeout-ms"] = []string{"7"}
			tr := &retryhttp.Transport{TimeLeftHeaders: example, Policy: retry.Policy{AttemptTimeout: timeout}, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				require.Equal(t, want, req.Header)
				return answer(req, 200), nil
			})}
			_, err := tr.RoundTrip(req)
			require.NoError(t, err)
		}
	})
	inBubble(t, "a hedge has less left, and a resumption its own", func(t *testing.T) {
		var got []string
		base := &parts{answers: []reply{
			func(req *http.Request) *http.Response { <-req.Context().Done(); return nil },
			half, theRest}}
		tr := &retryhttp.Transport{Base: base, TimeLeftHeaders: example, Resume: true,
			Policy: retry.Policy{AttemptTimeout: 3 * time.Second, MaxAttempts: 3, Backoff: three.Backoff},
			Hedge:  &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: time.Second}}}
		body, _, err := fetched(t, tr, request(t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		require.Equal(t, alphabet, string(body))
		for _, req := range base.got {
			got = append(got, req.Header.Get(retryhttp.EnvoyTimeLeftHeader))
		}
		require.Equal(t, []string{"3000", "2000", "3000"}, got)
		require.Zero(t, base.open.Load())
	})
	bad := &retryhttp.Transport{TimeLeftHeaders: map[string]string{"a": "", "b": "X Y", "c": "host", "d": "X-Fine"}}
	_, err := bad.RoundTrip(request(t.Context(), http.MethodGet, nil))
	require.EqualError(t, err, `retryhttp: Transport.TimeLeftHeaders["a"] "" is not a field name; `+
		`Transport.TimeLeftHeaders["b"] "X Y" is not a field name; Transport.TimeLeftHeaders["c"] "Host" has a meaning of its own`)
}

func TestHandlerObeysTheTimeLeft(t *testing.T) {
	for _, row := range []struct {
		name   string
		values []string
		trust  bool
		server time.Duration // the deadline that the request has already; 0 means none
		want   time.Duration // -1: none
	}{
		{"trusted", []string{"1500"}, true, 0, 1500 * time.Millisecond},
		{"not trusted", []string{"1500"}, false, 0, -1},
		{"later than the server's own", []string{"1500"}, true, time.Second, time.Second},
		{"earlier than that", []string{"1500"}, true, time.Minute, 1500 * time.Millisecond},
		{"the least", []string{"1"}, true, 0, time.Millisecond},
		{"the most", []string{"86400000"}, true, 0, 24 * time.Hour},
		{"absurd", []string{"86400001"}, true, 0, -1},
		{"beyond 64 bits", []string{"99999999999999999999"}, true, 0, -1},
		{"0", []string{"0"}, true, 0, -1},
		{"negative", []string{"-5"}, true, 0, -1},
		{"signed", []string{"+5"}, true, 0, -1},
		{"a fraction", []string{"1.5"}, true, 0, -1},
		{"a unit", []string{"5s"}, true, 0, -1},
		{"empty", []string{""}, true, 0, -1},
		{"twice", []string{"5", "5"}, true, 0, -1},
		{"absent", nil, true, 0, -1},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			got := time.Duration(0)
			var inside context.Context
			handler := retryhttp.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				inside, got = r.Context(), -1
				if deadline, ok := r.Context().Deadline(); ok {
					got = time.Until(deadline)
				}
				require.Equal(t, 1, retry.AttemptNumber(r.Context()))
			}), retryhttp.HandlerOptions{Trust: func(*http.Request) bool { return row.trust }})
			ctx := t.Context()
			if row.server > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.server)
				defer cancel()
			}
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
			for _, value := range row.values {
				r.Header.Add(retryhttp.EnvoyTimeLeftHeader, value)
			}
			handler.ServeHTTP(httptest.NewRecorder(), r)
			require.Equal(t, row.want, got)
			require.Equal(t, row.want >= 0, inside.Err() != nil, "nothing is left behind")
		})
	}
}

// A run in a handler ends when its wait would outlast the client, and the service below hears of less time.
func TestARunInsideEndsWithItsClient(t *testing.T) {
	inBubble(t, "over two services", func(t *testing.T) {
		var below []string
		var err error
		inner := &retryhttp.Transport{Base: timesLeft(200*time.Millisecond, &below), Policy: three,
			TimeLeftHeaders: map[string]string{"example.com": retryhttp.EnvoyTimeLeftHeader}}
		handler := retryhttp.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var resp *http.Response
			if resp, err = inner.RoundTrip(request(r.Context(), http.MethodGet, nil)); err == nil {
				var o retry.Outcome
				o, err = retryhttp.OutcomeOf(resp, nil)
				require.NoError(t, err)
				require.Equal(t, retry.DeadlineTooNear, o.Reason)
				err = retryhttp.CheckResponse(resp)
			}
			retryhttp.WriteError(w, err)
		}), retryhttp.HandlerOptions{Trust: anyone})
		outer := &retryhttp.Transport{Policy: retry.Policy{MaxAttempts: 1, AttemptTimeout: 2 * time.Second},
			TimeLeftHeaders: map[string]string{"example.com": retryhttp.EnvoyTimeLeftHeader},
			Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				r := httptest.NewRequestWithContext(context.WithoutCancel(req.Context()), http.MethodGet, "/", nil) // as through a proxy that keeps on
				r.Header = req.Header.Clone()
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				return w.Result(), nil
			})}
		began := time.Now()
		resp, err := outer.RoundTrip(request(t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, []string{"2000", "800"}, below)
		require.Equal(t, 1400*time.Millisecond, time.Since(began))
	})
}
