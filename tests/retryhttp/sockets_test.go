package retryhttp_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retrytest"
)

// socketPeer is a server on the loopback with the transport that reaches it.
type socketPeer struct {
	*httptest.Server
	base  *http.Transport
	conns atomic.Int32 // that were made
}

// socketServer starts a server, of HTTP/2 over TLS if h2 is set.
func socketServer(t *testing.T, h2 bool, handle http.HandlerFunc) *socketPeer {
	t.Helper()
	peer := &socketPeer{Server: httptest.NewUnstartedServer(handle)}
	peer.Config.ErrorLog = log.New(io.Discard, "", 0)
	peer.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			peer.conns.Add(1)
		}
	}
	if h2 {
		peer.EnableHTTP2 = true
		peer.StartTLS()
	} else {
		peer.Start()
	}
	t.Cleanup(peer.Close)
	peer.base = peer.Client().Transport.(*http.Transport)
	if peer.base.DialContext == nil { // Go 1.25
		peer.base.DialContext = (&net.Dialer{}).DialContext
	}
	return peer
}

func (p *socketPeer) request(ctx context.Context, method string, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, p.URL, body)
	if err != nil {
		panic(err)
	}
	return req
}

// bothProtocols runs f as a subtest over HTTP/1.1 and over HTTP/2.
func bothProtocols(t *testing.T, name string, f func(t *testing.T, h2 bool)) {
	t.Run(name+", HTTP/1.1", func(t *testing.T) { f(t, false) })
	t.Run(name+", HTTP/2", func(t *testing.T) { f(t, true) })
}

// socketTransport returns a transport of its own, whose connections end with the test, before its servers do.
func socketTransport(t *testing.T) *http.Transport {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return base
}

func socketTo(ctx context.Context, method, url string, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		panic(err)
	}
	return req
}

// socketBubble runs f as a subtest in virtual time, with the transport of a server in memory.
func socketBubble(t *testing.T, name string, h2 bool, answers []retrytest.Answer, f func(*testing.T, *retrytest.Server)) {
	t.Run(name, func(t *testing.T) {
		if h2 && strings.HasPrefix(runtime.Version(), "go1.25") {
			t.Skip("its HTTP/2 server takes channels of one bubble into another")
		}
		synctest.Test(t, func(t *testing.T) {
			server := retrytest.NewPipeServer(t, answers)
			server.Transport.Protocols.SetHTTP1(!h2)
			server.Transport.Protocols.SetUnencryptedHTTP2(h2)
			f(t, server)
		})
	})
}

// socketRead reads the body of resp to its end and closes it.
func socketRead(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(body)
}

// socketUntil is a policy of attempts at once until one succeeds, each with the timeout.
func socketUntil(timeout time.Duration) retry.Policy {
	return retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}, AttemptTimeout: timeout}
}

func TestAttemptTimeoutNeverCutsABody(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		answers := []retrytest.Answer{{Takes: 2 * time.Second}, {Body: "whole", Pause: time.Minute}}
		socketBubble(t, name, h2, answers, func(t *testing.T, base *retrytest.Server) {
			p := three
			p.AttemptTimeout = time.Second
			o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, []string{"attempt_timeout"}, reasons(o), "of the headers, which come too late")
			require.Equal(t, "whole", socketRead(t, resp))
		})
	}
}

func TestTheReasonNamesTheTimerThatFired(t *testing.T) {
	why := errors.New("why")
	for _, row := range []struct {
		name                              string
		headers, attempt, deadline, leave time.Duration // when each timer fires; 0 means never
		want                              string        // the reason, "" if either timer may fire first
		retried                           bool
		is                                []error
	}{
		{"the transport's ResponseHeaderTimeout, with the caller alive", time.Second, 0, 0, 0, "timeout", true, nil},
		{"the attempt timeout", 0, time.Second, 0, 0, "attempt_timeout", true,
			[]error{retry.ErrAttemptTimeout, context.DeadlineExceeded}},
		{"the caller's deadline with a cause", 0, 0, time.Second, 0, "deadline_passed", false,
			[]error{retry.DeadlinePassed, context.DeadlineExceeded, why}},
		{"the caller's deadline, which comes with the attempt timeout", 0, time.Second, time.Second, 0, "", false,
			[]error{retry.DeadlinePassed, context.DeadlineExceeded, why}},
		{"the caller's cancel with a cause", 0, 0, 0, time.Second, "canceled", false,
			[]error{retry.CallerCanceled, context.Canceled, why}},
	} {
		for name, h2 := range map[string]bool{", HTTP/1.1": false, ", HTTP/2": true} {
			hangs := []retrytest.Answer{{Fault: retrytest.HangHeaders}, {}}
			if !row.retried {
				hangs = hangs[:1]
			}
			socketBubble(t, row.name+name, h2, hangs, func(t *testing.T, base *retrytest.Server) {
				p := three
				p.AttemptTimeout = row.attempt
				base.Transport.ResponseHeaderTimeout = row.headers
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if row.leave > 0 {
					time.AfterFunc(row.leave, func() { cancel(why) })
				}
				if row.deadline > 0 {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeoutCause(ctx, row.deadline, why)
					defer stop()
				}
				start := time.Now()
				o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, get(ctx))
				if row.want != "" {
					require.Equal(t, []string{row.want}, reasons(o))
				}
				if row.retried {
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
					require.Equal(t, 2*time.Second, time.Since(start), "with a wait of 1s")
					err = o.History[0].Err
					// The error of HTTP/1's ResponseHeaderTimeout is one as well, and must not be taken for the caller's.
					require.Equal(t, !h2 || row.attempt > 0, errors.Is(err, context.DeadlineExceeded))
				} else {
					require.Equal(t, time.Second, time.Since(start))
				}
				for _, target := range row.is {
					require.ErrorIs(t, err, target)
				}
			})
		}
	}
}

func TestEachAttemptSendsTheWholeBody(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB
	for name, early := range map[string]bool{"after answers to all of it": false, "after answers that come while it is being sent": true} {
		bothProtocols(t, name, func(t *testing.T, h2 bool) {
			var n atomic.Int32
			var got socketLog
			peer := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
				last := n.Add(1) == 3
				if early && !last {
					w.WriteHeader(503) // and the connection is closed, or the stream reset, under the rest
					return
				}
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				got.add(string(body))
				w.WriteHeader(map[bool]int{true: 200, false: 503}[last])
			})
			_, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: socketUntil(0)}, peer.request(t.Context(), "PUT", strings.NewReader(large)))
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
			require.Len(t, got.all(), map[bool]int{true: 1, false: 3}[early])
			for _, body := range got.all() {
				require.True(t, body == large)
			}
		})
	}
}

// socketLog is a list that a server writes.
type socketLog struct {
	mu   sync.Mutex
	list []string
}

func (l *socketLog) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, text)
}

func (l *socketLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// oneShot is a body without GetBody that says what happens to it.
type oneShot struct {
	io.Reader
	reads, closes atomic.Int32
	closed        chan struct{}
}

func newOneShot(text string) *oneShot {
	return &oneShot{Reader: strings.NewReader(text), closed: make(chan struct{})}
}

func (s *oneShot) Read(p []byte) (int, error) {
	s.reads.Add(1)
	return s.Reader.Read(p)
}

func (s *oneShot) Close() error {
	if s.closes.Add(1) == 1 {
		close(s.closed)
	}
	return nil
}

// requireClosed waits for the Close, which a transport may do after it has answered.
func (s *oneShot) requireClosed(t *testing.T) {
	t.Helper()
	<-s.closed
	require.Equal(t, int32(1), s.closes.Load())
}

// unheard is an address on which no server listens. A port that was just closed could be another test's by now.
const unheard = "127.0.0.1:1"

func TestAStreamIsRepeatedOnlyWhileUnread(t *testing.T) {
	text := strings.Repeat("stream", 1<<15) // 192 KiB
	whole := func(t *testing.T, h2 bool, early int32, got *socketLog) *socketPeer {
		var n atomic.Int32
		return socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) <= early {
				w.WriteHeader(503)
				return
			}
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			got.add(string(body))
		})
	}
	bothProtocols(t, "after refused connections a POST sends the same stream, whole", func(t *testing.T, h2 bool) {
		var got socketLog
		peer := whole(t, h2, 0, &got)
		body := newOneShot(text)
		dials := 0
		dial := peer.base.DialContext
		peer.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			require.Zero(t, body.reads.Load(), "nothing is buffered")
			if dials++; dials <= 2 {
				addr = unheard
			}
			return dial(ctx, network, addr)
		}
		o, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: atOnce}, peer.request(t.Context(), "POST", body))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, []string{"conn_refused", "conn_refused"}, reasons(o))
		require.Equal(t, []string{text}, got.all())
		body.requireClosed(t)
	})
	bothProtocols(t, "with Expect: 100-continue an early 503 costs no byte of it", func(t *testing.T, h2 bool) {
		var got socketLog
		peer := whole(t, h2, 2, &got)
		peer.base.ExpectContinueTimeout = time.Minute
		body := newOneShot(text)
		req := peer.request(t.Context(), "PUT", body)
		req.Header.Set("Expect", "100-continue")
		o, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: atOnce}, req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, []string{"status_503", "status_503"}, reasons(o))
		require.Equal(t, []string{text}, got.all())
		body.requireClosed(t)
	})
}

// Which errors of net/http say that nothing was sent is in TestChains.
func TestAPOSTIsRepeatedOnlyIfItWasNotSent(t *testing.T) {
	secure := func(url string) string { return "https" + strings.TrimPrefix(url, "http") }
	scripted := func(answers ...retrytest.Answer) func(*testing.T, *http.Transport) string {
		return func(t *testing.T, _ *http.Transport) string { return retrytest.NewServer(t, answers).URL }
	}
	for _, row := range []struct {
		name     string
		to       func(*testing.T, *http.Transport) string
		want     string
		repeated bool
	}{
		{"a refused connection", func(t *testing.T, _ *http.Transport) string { return "http://" + unheard }, "conn_refused", true},
		{"a reset in the TLS handshake", func(t *testing.T, _ *http.Transport) string {
			return secure(retrytest.NewServer(t, []retrytest.Answer{{Fault: retrytest.ResetUnread, Times: 3}}).URL)
		}, "conn_reset", true},
		{"a proxy that does not connect", func(t *testing.T, base *http.Transport) string {
			proxy := retrytest.NewServer(t, []retrytest.Answer{{On: "CONNECT", Status: 503, Times: 3}})
			base.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
			return "https://service.example"
		}, "proxy_connect", true},
		{"a reset after it was read", scripted(retrytest.Answer{Fault: retrytest.ResetRead}), "conn_reset", false},
		{"an answer that is not HTTP", scripted(retrytest.Answer{Fault: retrytest.Garbage}), "malformed_response", false},
		{"an answer that ends within its headers", scripted(retrytest.Answer{Handler: socketSays("HTTP/1.1 200 OK\r\nX-Half: ")}), "body_truncated", false},
		{"no answer", scripted(retrytest.Answer{Handler: socketSays("")}), "conn_closed", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			base := socketTransport(t)
			o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, socketTo(t.Context(), "POST", row.to(t, base), strings.NewReader("order")))
			if row.repeated {
				require.ErrorIs(t, err, retry.AttemptsExhausted)
				require.Equal(t, []string{row.want, row.want, row.want}, reasons(o))
			} else {
				require.ErrorIs(t, err, retry.TerminalError)
				require.Equal(t, []string{row.want + "/not_idempotent"}, reasons(o))
			}
			var failed *retryhttp.AttemptError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, row.repeated, failed.Unsent)
		})
	}
	for name, h2 := range map[string]bool{", HTTP/1.1": false, ", HTTP/2": true} {
		p := three
		p.AttemptTimeout = time.Second
		socketBubble(t, "the attempt timeout passes while dialing"+name, h2, []retrytest.Answer{{}}, func(t *testing.T, base *retrytest.Server) {
			var dials atomic.Int32
			dial, over := base.Transport.DialContext, make(chan struct{})
			defer close(over)
			base.Transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) <= 2 {
					select {
					case <-ctx.Done():
					case <-over: // net/http lets a dial outlive its request
					}
					return nil, errFault
				}
				return dial(ctx, network, addr)
			}
			o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, request(t.Context(), "POST", strings.NewReader("order")))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, []string{"attempt_timeout", "attempt_timeout"}, reasons(o))
		})
		hang := []retrytest.Answer{{Fault: retrytest.HangHeaders}}
		socketBubble(t, "the attempt timeout passes after it was sent"+name, h2, hang, func(t *testing.T, base *retrytest.Server) {
			o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, request(t.Context(), "POST", strings.NewReader("order")))
			require.ErrorIs(t, err, retry.ErrAttemptTimeout)
			require.Equal(t, []string{"attempt_timeout/not_idempotent"}, reasons(o))
		})
	}
}

// socketSays answers with this text as it is, and closes the connection.
func socketSays(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, text)
			_ = c.Close()
		}
	}
}
