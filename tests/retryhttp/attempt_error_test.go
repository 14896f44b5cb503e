package retryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryslog"
)

// hugeHeader returns a header of 9 MiB.
func hugeHeader() http.Header {
	h := http.Header{"Retry-After": {"0"}}
	for i := range 9 << 10 {
		h[fmt.Sprintf("X-%d", i)] = []string{strings.Repeat("x", 1<<10)}
	}
	h["X-Request-Id"] = []string{strings.Repeat("i", 1<<20)}
	return h
}

// retained returns how many bytes are in use beyond before.
func retained(before uint64) int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first has finalized
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) - int64(before)
}

func TestWhatARunKeepsOfItsResponsesIsBounded(t *testing.T) {
	long := strings.Repeat("\x1b[31m\r", 4<<20/6)
	for _, row := range []struct {
		name string
		base roundTripper
	}{
		{"503s with 9 MiB of header", func(req *http.Request) (*http.Response, error) {
			resp := answer(req, 503)
			resp.Status, resp.Header = "503 "+strings.Clone(long), hugeHeader()
			return resp, nil
		}},
		{"a proxy's answer to CONNECT of 4 MiB", func(*http.Request) (*http.Response, error) { return nil, errors.New(strings.Clone(long)) }},
		{"4 MiB that are not HTTP", func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", errors.New("malformed HTTP response "+strings.Clone(long)))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var kept int64
			var o retry.Outcome
			before := uint64(retained(0))
			p := retry.Policy{MaxAttempts: 16, Backoff: atOnce.Backoff, Observe: func(_ context.Context, e retry.Event) {
				switch {
				case e.Attempt.Number == 15:
					kept = retained(before) // through the last wait
				case e.Outcome != nil:
					o = *e.Outcome
				}
			}}
			_, err := (&retryhttp.Transport{Base: row.base, Policy: p}).RoundTrip(get(t.Context()))
			require.Len(t, o.History, 16)
			t.Logf("15 attempts hold %d KiB", kept>>10)
			require.Less(t, kept, int64(1<<20))
			for _, a := range o.History {
				require.Less(t, len(a.String()), 2<<10)
				require.NotContains(t, a.String(), "\x1b")
			}
			require.NotContains(t, fmt.Sprint(err), "\x1b")
			if failed := o.History[0].Err.(*retryhttp.AttemptError); failed.StatusCode != 0 {
				require.Equal(t, http.Header{"Retry-After": {"0"}, "X-Request-Id": {strings.Repeat("i", 256)}}, failed.Header)
			}
		})
	}
}

func TestTheLogOfAFirstFailure(t *testing.T) {
	for _, row := range []struct {
		name   string
		tr     retryhttp.Transport
		method string
		check  bool // by CheckResponse in a run of its own
		want   string
	}{
		{name: "a POST whose 503 is not repeated", tr: retryhttp.Transport{Base: always(503)}, method: "POST",
			want: `level=ERROR msg="retry: gave up" attempts=1 status=dead_letter reason=terminal_error in_doubt=true error="retryhttp: 503 Service Unavailable (not repeated: not_idempotent)" request.method=POST request.host=example.com request.path=/ request.status=503`},
		{name: "a POST whose answer is lost", tr: retryhttp.Transport{Base: traced(true, true, io.EOF)}, method: "POST",
			want: `level=ERROR msg="retry: gave up" attempts=1 status=dead_letter reason=terminal_error in_doubt=true error="retryhttp: conn_closed: EOF (not repeated: not_idempotent)" request.method=POST request.host=example.com request.path=/ request.reason=conn_closed`},
		{name: "a POST that is answered 429", tr: retryhttp.Transport{Base: always(429)}, method: "POST",
			want: `level=WARN msg="retry: not retried" attempts=1 status=dead_letter reason=terminal_error error="retryhttp: 429 Too Many Requests (not repeated: not_idempotent)" request.method=POST request.host=example.com request.path=/ request.status=429`},
		{name: "a delivery that is refused", tr: retryhttp.Transport{Base: always(404), Delivery: true}, method: "POST",
			want: `level=WARN msg="retry: not retried" attempts=1 status=dead_letter reason=terminal_error error="retryhttp: 404 Not Found" request.method=POST request.host=example.com request.path=/ request.status=404`},
		{name: "a 404 is silent", tr: retryhttp.Transport{Base: always(404)}, method: "POST"},
		{name: "a 404 that a function returns as an error is silent", tr: retryhttp.Transport{Base: always(404)}, method: "GET", check: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log strings.Builder
			p := atOnce
			p.Observe = retryslog.Observe(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == retryslog.KeyElapsed {
					return slog.Attr{}
				}
				return a
			}})), retryslog.Options{})
			call := func(ctx context.Context) error {
				resp, err := row.tr.RoundTrip(request(ctx, row.method, nil))
				if err == nil {
					err = retryhttp.CheckResponse(resp)
				}
				return err
			}
			if row.check {
				p.Classify = retryhttp.Classify
				require.ErrorIs(t, retry.Do(t.Context(), p, call), retry.TerminalError)
			} else {
				row.tr.Policy = p
				_ = call(t.Context())
			}
			require.Equal(t, row.want, strings.TrimSpace(log.String()))
		})
	}
}
