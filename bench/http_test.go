package bench_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inMemory is a server without a network: it fails the first attempts of each run of requests and then answers 200.
type inMemory struct {
	body     []byte // of the 200; empty gives http.NoBody
	failures int    // 503s before each 200
	hits     int    // requests so far
}

func (m *inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	m.hits++
	if m.hits%(m.failures+1) != 0 {
		return response(req, http.StatusServiceUnavailable, nil), nil
	}
	return response(req, http.StatusOK, m.body), nil
}

var (
	noHeader  = http.Header{}
	smallBody = []byte(strings.Repeat("x", 512))
)

var statusLine = map[int]string{
	http.StatusOK:                 "200 OK",
	http.StatusServiceUnavailable: "503 Service Unavailable",
}

// response returns what http.Transport would. It is new each time, as some clients write to it.
func response(req *http.Request, code int, body []byte) *http.Response {
	resp := &http.Response{
		Status:        statusLine[code],
		StatusCode:    code,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        noHeader,
		Body:          http.NoBody,
		ContentLength: int64(len(body)),
		Request:       req,
	}
	if len(body) > 0 {
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	return resp
}

// BenchmarkHTTPFirstTry is what a client costs where nothing fails: a GET that gets its 200 at once.
func BenchmarkHTTPFirstTry(b *testing.B) {
	for _, p := range all() {
		b.Run(p.name, func(b *testing.B) { benchGet(b, p, 0, &inMemory{}) })
	}
}

// BenchmarkHTTPFirstTryWithBody is the same with a response of 512 bytes, which are read.
func BenchmarkHTTPFirstTryWithBody(b *testing.B) {
	for _, p := range all() {
		b.Run(p.name, func(b *testing.B) { benchGet(b, p, 0, &inMemory{body: smallBody}) })
	}
}

// BenchmarkHTTPAttemptTimeout is BenchmarkHTTPFirstTry with a timeout of each attempt, which is never reached.
func BenchmarkHTTPAttemptTimeout(b *testing.B) {
	for _, p := range all() {
		b.Run(p.name, func(b *testing.B) { benchGet(b, p, time.Minute, &inMemory{}) })
	}
}

// BenchmarkHTTPAttemptTimeoutWithBody is the same with a response of 512 bytes, which are read.
func BenchmarkHTTPAttemptTimeoutWithBody(b *testing.B) {
	for _, p := range all() {
		b.Run(p.name, func(b *testing.B) { benchGet(b, p, time.Minute, &inMemory{body: smallBody}) })
	}
}

// BenchmarkHTTPTwo503 is what two retries cost: a GET that gets a 503, another and a 200, without a wait.
func BenchmarkHTTPTwo503(b *testing.B) {
	for _, p := range retrying {
		b.Run(p.name, func(b *testing.B) { benchGet(b, p, 0, &inMemory{failures: 2}) })
	}
}

// benchGet measures one GET of p from server. The request is made once, as making it costs the same for all.
func benchGet(b *testing.B, p peer, attemptTimeout time.Duration, server *inMemory) {
	client := p.client(server, attemptTimeout)
	req := newGet(b)
	b.ReportAllocs()
	calls := 0
	for b.Loop() {
		calls++
		if err := get(client, req, len(server.body)); err != nil {
			b.Fatal(err)
		}
	}
	if want := calls * (server.failures + 1); server.hits != want {
		b.Fatalf("%d calls made %d attempts, want %d", calls, server.hits, want)
	}
}

// newGet returns a GET whose context can be cancelled, as that of every request in a server can.
func newGet(tb testing.TB) *http.Request {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://peer.test/", nil)
	require.NoError(tb, err)
	return req
}

// get does req and reads the response to its end, which must be a 200 with a body of so many bytes.
func get(client *http.Client, req *http.Request, size int) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || n != int64(size) {
		return errors.New("got " + resp.Status)
	}
	return nil
}

// TestPeersRetry keeps a peer that is set up wrongly out of the table: each must do what is measured.
func TestPeersRetry(t *testing.T) {
	for _, attemptTimeout := range []time.Duration{0, time.Minute} {
		for _, p := range retrying {
			t.Run(p.name+" with attempt timeout "+attemptTimeout.String(), func(t *testing.T) {
				server := &inMemory{failures: maxAttempts - 1, body: smallBody}
				require.NoError(t, get(p.client(server, attemptTimeout), newGet(t), len(smallBody)))
				require.Equal(t, maxAttempts, server.hits)
			})
		}
	}
}

func TestPeersGiveUp(t *testing.T) {
	for _, p := range retrying {
		t.Run(p.name, func(t *testing.T) {
			server := &inMemory{failures: maxAttempts}
			require.Error(t, get(p.client(server, 0), newGet(t), 0))
			require.Equal(t, maxAttempts, server.hits)
		})
	}
}

// TestPeersTimeAttemptsOut shows that each peer's timeout is one of an attempt: it ends the first, and a second follows.
func TestPeersTimeAttemptsOut(t *testing.T) {
	for _, p := range retrying {
		t.Run(p.name, func(t *testing.T) {
			server := &hangOnce{}
			require.NoError(t, get(p.client(server, 10*time.Millisecond), newGet(t), 0))
			require.Equal(t, 2, server.hits)
		})
	}
}

// hangOnce answers no attempt but the second.
type hangOnce struct{ hits int }

func (h *hangOnce) RoundTrip(req *http.Request) (*http.Response, error) {
	if h.hits++; h.hits == 2 {
		return response(req, http.StatusOK, nil), nil
	}
	<-req.Context().Done()
	return nil, req.Context().Err()
}
