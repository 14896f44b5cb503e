package migrating_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// base is a server without a network, so that its clients run in virtual time.
type base func(n int, w http.ResponseWriter)

// exchange is the result of one request of a client.
type exchange struct {
	record
	status int  // 0 without a response
	bodies bool // the server got the whole body in every attempt
}

// transport is an http.RoundTripper that answers as b says and records in x.
type transport struct {
	b     base
	x     *exchange
	start time.Time
}

func (s transport) RoundTrip(req *http.Request) (*http.Response, error) {
	s.x.at = append(s.x.at, time.Since(s.start))
	if req.Body != nil {
		got, err := io.ReadAll(req.Body)
		s.x.bodies = s.x.bodies && err == nil && string(got) == "order"
		_ = req.Body.Close()
	}
	w := httptest.NewRecorder()
	s.b(len(s.x.at), w)
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

// send sends one request in virtual time, by a client of newClient, and returns the result.
func send(
	t *testing.T, newClient func(http.RoundTripper) *http.Client, method string, deadline time.Duration, b base,
) (x exchange) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		x.bodies = true
		start := time.Now()
		var body io.Reader
		if method == http.MethodPost {
			body = strings.NewReader("order")
		}
		req, err := http.NewRequestWithContext(ctx, method, "http://server.test/", body)
		require.NoError(t, err)
		resp, err := newClient(transport{b: b, x: &x, start: start}).Do(req)
		if x.err = err; err == nil {
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			x.status, x.value = resp.StatusCode, string(got)
		}
		x.took = time.Since(start)
	})
	return x
}

// status is a server that always answers with this status.
func status(code int, header ...string) base {
	return func(n int, w http.ResponseWriter) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "answer "+strconv.Itoa(n))
	}
}

const ages = 24 * time.Hour

func TestHTTPTheSame(t *testing.T) {
	for name, newClient := range map[string]func(http.RoundTripper) *http.Client{
		"before": httpClient, "after": afterHTTPClient,
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				x := send(t, newClient, method, ages, status(503))
				require.NoError(t, x.err)
				require.Equal(t, ms(0, 100, 300, 700), x.at)
				require.Equal(t, 503, x.status)
				require.Equal(t, "answer 4", x.value)
				require.True(t, x.bodies)
			}
			for code, attempts := range map[int]int{200: 1, 404: 1, 408: 1, 423: 4, 429: 4, 500: 4, 501: 1, 504: 4} {
				require.Len(t, send(t, newClient, http.MethodGet, ages, status(code)).at, attempts, code)
			}
			// Retry-After takes precedence over the limit of the waits.
			x := send(t, newClient, http.MethodGet, ages, status(429, "Retry-After", "10"))
			require.Equal(t, ms(0, 10000, 20000, 30000), x.at)
		})
	}
}

// plainBefore and plainAfter set nothing that the libraries do not set themselves, but the transport.
func plainBefore(base http.RoundTripper) *http.Client {
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.HTTPClient.Transport = base
	return c.StandardClient()
}

func plainAfter(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &retryhttp.Transport{
		Base: base, Policy: retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Base: time.Second, Cap: 30 * time.Second}},
	}}
}

func TestHTTPDefaults(t *testing.T) {
	require.NotNil(t, retryablehttp.NewClient().Logger) // it writes to standard error
	x := send(t, plainBefore, http.MethodGet, ages, status(503))
	require.Equal(t, ms(0, 1000, 3000, 7000, 15000), x.at)
	require.ErrorContains(t, x.err, "giving up after 5 attempt(s)")
	require.Zero(t, x.status)

	x = send(t, plainAfter, http.MethodGet, ages, status(503))
	require.Equal(t, ms(0, 1000, 3000, 7000, 15000), x.at)
	require.NoError(t, x.err)
	require.Equal(t, 503, x.status)

	require.Len(t, send(t, plainBefore, http.MethodPost, ages, status(503)).at, 5)
	require.Len(t, send(t, plainAfter, http.MethodPost, ages, status(503)).at, 1)
	for code, attempts := range map[int][2]int{408: {1, 5}, 501: {1, 5}, 505: {5, 5}, 511: {5, 5}} {
		require.Len(t, send(t, plainBefore, http.MethodGet, ages, status(code)).at, attempts[0], code)
		require.Len(t, send(t, plainAfter, http.MethodGet, ages, status(code)).at, attempts[1], code)
	}
	strict := func(base http.RoundTripper) *http.Client {
		p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Second}, Classify: retryhttp.ClassifyStrict}
		return &http.Client{Transport: &retryhttp.Transport{Base: base, Policy: p}}
	}
	for code, attempts := range map[int]int{408: 2, 500: 2, 501: 1, 505: 1, 506: 1, 508: 1, 510: 1, 511: 1} {
		require.Len(t, send(t, strict, http.MethodGet, ages, status(code)).at, attempts, code)
	}
}

// How the run behind an answer ended is on record: that of a failure is in its response, and that of a success needs a
// context that asks for it.
func TestHTTPOutcomeOfAnAnswer(t *testing.T) {
	for _, row := range []struct {
		code     int
		recorded bool
		want     string // empty means that there is no record
	}{
		{503, false, "dead_letter (attempts_exhausted) after 5 attempts"},
		{503, true, "dead_letter (attempts_exhausted) after 5 attempts"},
		{200, false, ""},
		{200, true, "succeeded after 1 attempt"},
	} {
		send(t, func(base http.RoundTripper) *http.Client {
			return &http.Client{Transport: asking{t, plainAfter(base).Transport, row.recorded, row.want}}
		}, http.MethodGet, ages, status(row.code))
	}
}

// asking is an http.RoundTripper that asks for the outcome of each request.
type asking struct {
	t        *testing.T
	base     http.RoundTripper
	recorded bool
	want     string
}

func (a asking) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if a.recorded {
		ctx = retryhttp.WithOutcome(ctx)
	}
	resp, err := a.base.RoundTrip(req.WithContext(ctx))
	require.NoError(a.t, err)
	outcome, err := retryhttp.OutcomeOf(resp, err)
	require.Equal(a.t, a.want != "", err == nil)
	if a.want != "" {
		text, _, _ := strings.Cut(outcome.String(), " in ")
		require.Equal(a.t, a.want, text)
	}
	return resp, nil
}

func TestHTTPRetryAfter(t *testing.T) {
	for _, row := range []struct {
		name          string
		b             base
		before, after []time.Duration
	}{
		{name: "shorter than the backoff", b: status(503, "Retry-After", "1"),
			before: ms(0, 1000, 2000, 3000, 4000), after: ms(0, 1000, 3000, 7000, 15000)},
		{name: "0 seconds", b: status(503, "Retry-After", "0"),
			before: ms(0, 0, 0, 0, 0), after: ms(0, 1000, 3000, 7000, 15000)},
		{name: "with a 500", b: status(500, "Retry-After", "20"),
			before: ms(0, 1000, 3000, 7000, 15000), after: ms(0, 20000, 40000, 60000, 80000)},
		{name: "two hours", b: status(503, "Retry-After", "7200"),
			before: ms(0, 7200e3, 14400e3, 21600e3, 28800e3), after: ms(0)},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.before, send(t, plainBefore, http.MethodGet, ages, row.b).at)
			require.Equal(t, row.after, send(t, plainAfter, http.MethodGet, ages, row.b).at)
		})
	}
}

func TestHTTPDeadline(t *testing.T) {
	x := send(t, plainBefore, http.MethodGet, 5*time.Second, status(503)) // attempts at 0s, 1s, 3s, then at 7s
	require.Len(t, x.at, 3)
	require.Equal(t, 5*time.Second, x.took)
	require.ErrorIs(t, x.err, context.DeadlineExceeded)

	x = send(t, plainAfter, http.MethodGet, 5*time.Second, status(503))
	require.Len(t, x.at, 3)
	require.Equal(t, 3*time.Second, x.took)
	require.NoError(t, x.err)
	require.Equal(t, 503, x.status)
}

// slow is a body that takes a minute to read.
type slow struct{ ctx context.Context }

func (s slow) Read([]byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	case <-time.After(time.Minute):
		return 0, io.EOF
	}
}

func (s slow) Close() error { return nil }

type slowServer struct{}

func (slowServer) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: slow{req.Context()}, Request: req}, nil
}

// The limit of an attempt is 10s for both.
func TestHTTPABodyThatTakesAMinute(t *testing.T) {
	read := func(newClient func(http.RoundTripper) *http.Client) (took time.Duration, err error) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			resp, getErr := newClient(slowServer{}).Get("http://server.test/")
			require.NoError(t, getErr)
			_, err = io.ReadAll(resp.Body)
			require.NoError(t, resp.Body.Close())
			took = time.Since(start)
		})
		return took, err
	}
	took, err := read(httpClient)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 10*time.Second, took)
	took, err = read(afterHTTPClient)
	require.NoError(t, err)
	require.Equal(t, time.Minute, took)
}

// The hooks of a client whose request is answered 503 four times.
func TestHTTPHooks(t *testing.T) {
	var requests, responses, prepared, errorHandled int
	before := func(base http.RoundTripper) *http.Client {
		c := retryablehttp.NewClient()
		c.HTTPClient.Transport, c.RetryMax, c.Logger = base, 3, nil
		c.RequestLogHook = func(retryablehttp.Logger, *http.Request, int) { requests++ }
		c.ResponseLogHook = func(retryablehttp.Logger, *http.Response) { responses++ }
		c.PrepareRetry = func(*http.Request) error { prepared++; return nil }
		c.ErrorHandler = func(resp *http.Response, err error, tries int) (*http.Response, error) {
			errorHandled = tries
			return resp, err
		}
		return c.StandardClient()
	}
	require.Len(t, send(t, before, http.MethodGet, ages, status(503)).at, 4)
	require.Equal(t, []int{4, 4, 3, 4}, []int{requests, responses, prepared, errorHandled})

	var signed, attempts, ended int
	after := func(base http.RoundTripper) *http.Client {
		return &http.Client{Transport: &retryhttp.Transport{
			Base: roundTripper(func(req *http.Request) (*http.Response, error) { // in place of the hooks
				signed++
				return base.RoundTrip(req)
			}),
			Policy: retry.Policy{MaxAttempts: 4, Observe: func(_ context.Context, e retry.Event) {
				switch e.Outcome {
				case nil:
					attempts++
				default:
					ended = e.Outcome.Attempts
				}
			}},
		}}
	}
	require.Len(t, send(t, after, http.MethodGet, ages, status(503)).at, 4)
	require.Equal(t, []int{4, 4, 4}, []int{signed, attempts, ended})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
