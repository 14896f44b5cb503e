package toxics_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// stallTimeout is far above the tenth of a second after which a slow body moves.
const stallTimeout = time.Second

// succeededAtOnce is a run of which nothing failed.
var succeededAtOnce = run{Decision: retry.Decision{Status: retry.Succeeded}, Attempts: 1}

// TestASlowBodyArrivesComplete sends 40 kB at 20 kB/s: the headers come within a tenth of a second, and then a piece of
// the body every tenth of a second, for two seconds.
func TestASlowBodyArrivesComplete(t *testing.T) {
	t.Parallel()
	slow := strings.Repeat("0123456789", 4_000)
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, slow) })
	r.add(t, toxic{kind: "bandwidth", attributes: `{"rate": 20}`})
	client, last := r.retrying(&retryhttp.Transport{Policy: retry.Policy{AttemptTimeout: attemptTimeout}, StallTimeout: stallTimeout}, nil)

	body, err := r.get(t, client)

	require.NoError(t, err)
	require.Equal(t, slow, body)
	require.Equal(t, succeededAtOnce, *last)
}

// TestABodyThatEndsWithALateCloseArrivesComplete has a response without a length, whose end is the connection's. The
// proxy keeps that back for longer than the attempt timeout.
func TestABodyThatEndsWithALateCloseArrivesComplete(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Transfer-Encoding", "identity")
		hello(w, req)
	})
	r.add(t, toxic{kind: "slow_close", attributes: ms("delay", 2*attemptTimeout)})
	client, last := r.retrying(&retryhttp.Transport{Policy: retry.Policy{AttemptTimeout: attemptTimeout}}, nil)

	body, err := r.get(t, client)

	require.NoError(t, err)
	require.Equal(t, "hello", body)
	require.Equal(t, succeededAtOnce, *last)
}

func TestABodyThatStallsIsCutByTheStallTimeout(t *testing.T) {
	t.Parallel()
	stalled := make(chan struct{})
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Length", "10")
		hello(w, req)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-stalled:
			_, _ = io.WriteString(w, "world")
		case <-req.Context().Done():
		}
	})
	client, last := r.retrying(&retryhttp.Transport{StallTimeout: stallTimeout}, nil)

	resp, err := client.Get(r.url())
	require.NoError(t, err)
	defer resp.Body.Close()
	first := make([]byte, len("hello"))
	_, err = io.ReadFull(resp.Body, first)
	require.NoError(t, err)
	require.Equal(t, "hello", string(first))
	r.add(t, toxic{kind: "timeout", attributes: ms("timeout", 0)})
	close(stalled)
	rest, err := io.ReadAll(resp.Body)

	require.Empty(t, rest)
	require.ErrorIs(t, err, retryhttp.ErrBodyStalled)
	require.Equal(t, succeededAtOnce, *last)
	require.EqualValues(t, 1, r.hits.Load())
}

// TestABodyThatIsCutAfterA200IsTheCallersToSee: the run is over with the headers, and what was read cannot be unread.
func TestABodyThatIsCutAfterA200IsTheCallersToSee(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 100)
	for _, row := range []struct {
		name    string
		handler http.HandlerFunc
	}{
		{"with a length", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(long)))
			_, _ = io.WriteString(w, long)
		}},
		{"in chunks", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Digest") // which makes the server send chunks
			_, _ = io.WriteString(w, long)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, row.handler)
			r.add(t, toxic{kind: "limit_data", attributes: `{"bytes": 600}`})
			client, last := r.retrying(&retryhttp.Transport{
				Policy:       retry.Policy{AttemptTimeout: forever},
				StallTimeout: forever,
			}, nil)

			body, err := r.get(t, client)

			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.NotEmpty(t, body)
			require.True(t, strings.HasPrefix(long, body))
			require.Equal(t, succeededAtOnce, *last)
			require.EqualValues(t, 1, r.hits.Load())
		})
	}
}
