package retryhttp_test

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
	"github.com/retrygo/retry/retrytest"
)

// mortal is a connection that can die without a word, as behind a NAT that has forgotten it: what is written is lost.
type mortal struct {
	net.Conn
	dead atomic.Bool
}

func (m *mortal) Write(b []byte) (int, error) {
	if m.dead.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// mortals makes base dial connections that can die, which it returns.
func mortals(base *http.Transport) *[]*mortal {
	var all []*mortal
	dial := base.DialContext
	base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		all = append(all, &mortal{Conn: conn})
		return all[len(all)-1], err
	}
	return &all
}

func TestDeadHTTP2Connection(t *testing.T) {
	for _, row := range []struct {
		name    string
		like    *http.Transport // whose settings of HTTP/2 are used
		idle    time.Duration   // since the connection has died
		timeout time.Duration   // of an attempt
		want    []string
		conns   int
	}{
		{
			"net/http's own: every attempt goes to it", new(http.Transport), time.Minute, 3 * time.Second,
			[]string{"attempt_timeout", "attempt_timeout", "attempt_timeout", "attempt_timeout", "attempt_timeout"}, 1,
		},
		{"idle, it is closed before the run", retryhttp.NewBase(), time.Minute, 3 * time.Second, nil, 2},
		{"in use, it is closed under an attempt", retryhttp.NewBase(), time.Second, time.Minute, []string{"conn_closed"}, 2},
		{"a second attempt of 10s is late enough", ssrf.Guard{}.Transport(), 0, 10*time.Second - 1, []string{"attempt_timeout"}, 2},
		{
			"shorter attempts are lost until it is closed", retryhttp.NewBase(), 0, 3 * time.Second,
			[]string{"attempt_timeout", "attempt_timeout", "conn_closed"}, 2,
		},
	} {
		socketBubble(t, row.name, true, []retrytest.Answer{{Times: row.conns}}, func(t *testing.T, base *retrytest.Server) {
			base.Transport.HTTP2 = row.like.HTTP2
			conns := mortals(base.Transport)
			p := three
			p.MaxAttempts, p.AttemptTimeout = 5, row.timeout
			client := &retryhttp.Transport{Base: base, Policy: p}
			_, resp, err := run(t, client, get(t.Context()))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			(*conns)[0].dead.Store(true)
			time.Sleep(row.idle)

			o, resp, err := run(t, client, get(t.Context()))
			if row.conns > 1 {
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			} else {
				require.ErrorIs(t, err, retry.AttemptsExhausted)
			}
			require.Equal(t, row.want, reasons(o))
			require.Len(t, *conns, row.conns)
		})
	}
}

func TestRefusedStreams(t *testing.T) {
	for _, row := range []struct {
		name     string
		method   string
		timeout  time.Duration
		want     []string
		requests int
		least    time.Duration
	}{
		{
			"without an attempt timeout: net/http repeats each attempt 7 times, in 1 minute",
			http.MethodGet, 0, []string{"stream_reset", "stream_reset"}, 16, 2 * 63 * time.Second,
		},
		{"an attempt timeout ends it", http.MethodGet, 10 * time.Second, []string{"attempt_timeout", "attempt_timeout"}, 10, 21 * time.Second},
		{"without an attempt timeout a POST is repeated, since it was refused", http.MethodPost, 0, []string{"stream_reset", "stream_reset"}, 16, 2 * 63 * time.Second},
		{"with one it is not, since the transport does not say so", http.MethodPost, 10 * time.Second, []string{"attempt_timeout/not_idempotent"}, 5, 10 * time.Second},
	} {
		var requests atomic.Int32
		refuse := func(f *frames, stream uint32) bool {
			requests.Add(1)
			f.write(frameReset, 0, stream, 7)
			return true
		}
		inBubble(t, row.name, func(t *testing.T) {
			overFrames(refuse, func(base *http.Transport) {
				p := three
				p.MaxAttempts, p.AttemptTimeout = 2, row.timeout
				start := time.Now()
				o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, request(t.Context(), row.method, nil))
				require.Error(t, err)
				require.Equal(t, row.want, reasons(o))
				require.EqualValues(t, row.requests, requests.Load())
				require.GreaterOrEqual(t, time.Since(start), row.least)
			})
		})
	}
}
