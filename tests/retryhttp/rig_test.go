package retryhttp_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// spend lets virtual time pass.
func spend(d time.Duration) { <-time.After(d) }

// slow is a body that gives a byte at each interval, n in all.
type slow struct {
	interval time.Duration
	n        int
	closed   chan struct{}
	end      error // what follows the last byte; nil means io.EOF
}

func (s *slow) Read(b []byte) (int, error) {
	if s.n == 0 {
		return 0, cmp.Or(s.end, io.EOF)
	}
	select {
	case <-time.After(s.interval):
	case <-s.closed:
		return 0, errors.New("closed")
	}
	s.n--
	b[0] = 'x'
	return 1, nil
}

func (s *slow) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

func slowly(interval time.Duration, n int) *slow {
	return &slow{interval: interval, n: n, closed: make(chan struct{})}
}

var errDialed = errors.New("the request would be sent")

// undialed is a Base that refuses what net/http refuses, and gets no connection for the rest.
var undialed = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errDialed }}

// long ago is when the files of these tests were changed.
var longAgo = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

// noise returns n bytes that do not repeat.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// cutWriter ends the connection, or the stream of HTTP/2, after left bytes of the body.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) < w.left {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	_, _ = w.ResponseWriter.Write(p[:w.left])
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// serveFile answers with http.ServeContent, and with an ETag if that is not empty.
func serveFile(w http.ResponseWriter, r *http.Request, content []byte, etag string) {
	if etag != "" {
		w.Header().Set("Etag", etag)
	}
	http.ServeContent(w, r, "", longAgo, bytes.NewReader(content))
}

// fetched returns what a GET brings, up to the error.
func fetched(t *testing.T, rt http.RoundTripper, req *http.Request) ([]byte, *http.Response, error) {
	t.Helper()
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, resp.Body.Close())
	return body, resp, err
}

// roundTripper makes a RoundTripper of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answer returns a response to req as a transport would. The header is in pairs of name and value.
func answer(req *http.Request, status int, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Add(header[i], header[i+1])
	}
	return resp
}

// faults returns errFault for the calls with these numbers, from 1, and leaves the others to base.
func faults(base http.RoundTripper, numbers ...int) roundTripper {
	n := 0
	return func(req *http.Request) (*http.Response, error) {
		if n++; slices.Contains(numbers, n) {
			return nil, errFault
		}
		return base.RoundTrip(req)
	}
}

// anyFailure is a Transport.Repeat.
func anyFailure(*retryhttp.AttemptError) bool { return true }

var errFault = errors.New("fault")

func get(ctx context.Context) *http.Request { return request(ctx, http.MethodGet, nil) }

func request(ctx context.Context, method string, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, "http://example.com/", body)
	if err != nil {
		panic(err)
	}
	return req
}

// three is a policy of 3 attempts with waits of 1s.
var three = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}}

// atOnce is a policy of 3 attempts with waits of a nanosecond.
var atOnce = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}

// inBubble runs f as a subtest in virtual time.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// run makes one call with rt and returns its record and what the caller gets.
func run(t *testing.T, rt http.RoundTripper, req *http.Request) (retry.Outcome, *http.Response, error) {
	t.Helper()
	resp, err := rt.RoundTrip(req.WithContext(retryhttp.WithOutcome(req.Context())))
	if err != nil {
		require.Nil(t, resp)
		var failed *retry.Error
		require.ErrorAs(t, err, &failed)
		return failed.Outcome, nil, err
	}
	o, err := retryhttp.OutcomeOf(resp, nil)
	require.NoError(t, err)
	return o, resp, nil
}

// reasons returns the reasons of a history, with its vetoes.
func reasons(o retry.Outcome) []string {
	var list []string
	for _, a := range o.History {
		var failed *retryhttp.AttemptError
		if !errors.As(a.Err, &failed) {
			list = append(list, a.Err.Error())
			continue
		}
		text := string(failed.Reason)
		if failed.Veto != "" {
			text += "/" + string(failed.Veto)
		}
		list = append(list, text)
	}
	return list
}

// gated returns p with the gate.
func gated(p retry.Policy, gate func(context.Context) time.Duration) retry.Policy {
	p.Gate = gate
	return p
}

// put returns a PUT whose body is a stream: it has no GetBody.
func put(ctx context.Context, body io.Reader) *http.Request {
	req := request(ctx, http.MethodPut, nil)
	req.Body = io.NopCloser(body)
	if closer, ok := body.(io.ReadCloser); ok {
		req.Body = closer
	}
	return req
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func anyone(*http.Request) bool { return true }

// always returns a RoundTripper whose every answer is this one.
func always(status int, header ...string) roundTripper {
	return func(req *http.Request) (*http.Response, error) { return answer(req, status, header...), nil }
}

// traced fails as a transport does that has looked for a connection, and has or has not obtained one.
func traced(sought, obtained bool, err error) roundTripper {
	return func(req *http.Request) (*http.Response, error) {
		if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
			if sought {
				trace.GetConn("example.com:80")
			}
			if obtained {
				trace.GotConn(httptrace.GotConnInfo{})
			}
		}
		return nil, err
	}
}

// A policy that makes one attempt ends its run as RetriesDisabled, which says nothing of the failure.
var once = retry.Policy{Disabled: true}
