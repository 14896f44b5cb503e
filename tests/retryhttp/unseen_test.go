package retryhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// A kept connection of HTTP/1 may have been closed by the server already, so net/http repeats what is safe to repeat when
// one breaks before an answer, in one call of its RoundTrip.
func TestNetHTTPRepeatsUnseenOnAKeptConnection(t *testing.T) {
	for _, row := range []struct {
		name, method, key string
		repeated          bool
	}{
		{"a GET", http.MethodGet, "", true},
		{"a POST with a key", http.MethodPost, "k", true},
		{"and no POST without a key", http.MethodPost, "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if requests.Add(1) == 2 {
					panic(http.ErrAbortHandler)
				}
			}))
			t.Cleanup(server.Close)
			base := retryhttp.NewBase()
			t.Cleanup(base.CloseIdleConnections)
			tr := &retryhttp.Transport{Base: base, Policy: retry.Policy{MaxAttempts: 1}}
			call := func(method string) retry.Outcome {
				req, err := http.NewRequestWithContext(retryhttp.WithOutcome(t.Context()), method, server.URL, nil)
				require.NoError(t, err)
				if row.key != "" {
					req.Header.Set("Idempotency-Key", row.key)
				}
				resp, err := tr.RoundTrip(req)
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					require.NoError(t, resp.Body.Close())
				}
				o, missing := retryhttp.OutcomeOf(resp, err)
				require.NoError(t, missing)
				return o
			}
			require.Equal(t, 1, call(http.MethodGet).Attempts, "it leaves its connection")
			o := call(row.method)
			require.Equal(t, 1, o.Attempts)
			require.Equal(t, row.repeated, requests.Load() == 3)
			require.Equal(t, row.repeated, o.Status == retry.Succeeded, "%v", o)
		})
	}
}
