package scenario

import (
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// clients are those that retry, the one written by hand among them.
func clients() []httpPeer { return append([]httpPeer{handHTTP}, retryingHTTP...) }

// TestPeersRetry keeps a peer that is set up wrongly out of the table: each must do what is measured.
func TestPeersRetry(t *testing.T) {
	for _, attemptTimeout := range []time.Duration{0, time.Minute} {
		for _, p := range clients() {
			t.Run(p.name+" with attempt timeout "+attemptTimeout.String(), func(t *testing.T) {
				server := &inMemory{failures: httpAttempts - 1, body: smallBody}
				require.NoError(t, get(p.client(server, attemptTimeout), newGet("http://peer.test/"), len(smallBody)))
				require.Equal(t, httpAttempts, server.hits)
			})
		}
	}
}

func TestPeersGiveUp(t *testing.T) {
	for _, p := range clients() {
		t.Run(p.name, func(t *testing.T) {
			server := &inMemory{failures: httpAttempts}
			require.Error(t, get(p.client(server, 0), newGet("http://peer.test/"), 0))
			require.Equal(t, httpAttempts, server.hits)
		})
	}
}

// TestPeersTimeAttemptsOut shows that each peer's timeout is one of an attempt: it ends the first, and a second follows.
func TestPeersTimeAttemptsOut(t *testing.T) {
	for _, p := range clients() {
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, server := time.Now(), &hangOnce{}
				req := newGet("http://peer.test/").WithContext(t.Context())
				require.NoError(t, get(p.client(server, time.Minute), req, 0))
				require.Equal(t, 2, server.hits)
				require.Equal(t, time.Minute, time.Since(start))
			})
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

// TestExchangesAreWhatIsMeasured runs each loop, which checks its responses and attempts itself.
func TestExchangesAreWhatIsMeasured(t *testing.T) {
	for _, s := range HTTP() {
		for _, c := range s.Contenders {
			t.Run(s.Name+"/"+c.Name, func(*testing.T) {
				loop := c.New()
				loop(1)
				loop(10)
			})
		}
	}
}

// TestLoopbackKeepsItsConnection shows that nobody measures how a connection is made.
func TestLoopbackKeepsItsConnection(t *testing.T) {
	l := loopback()
	for _, path := range []string{"/200", "/503-503-200"} {
		for _, p := range clients() {
			t.Run(p.name+path, func(t *testing.T) {
				opened := 0
				req := newGet(l.url + path)
				req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
					GotConn: func(info httptrace.GotConnInfo) {
						if !info.Reused {
							opened++
						}
					},
				}))
				send := p.client(l.transport, 0)
				require.NoError(t, get(send, req, len(smallBody)))
				opened = 0
				require.NoError(t, get(send, req, len(smallBody)))
				require.Zero(t, opened)
			})
		}
	}
}
