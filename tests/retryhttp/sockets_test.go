package retryhttp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
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

// socketAnswers answers with one status after the other, and with its number as the body; the last one repeats.
func socketAnswers(n *atomic.Int32, statuses ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		i := int(n.Add(1))
		w.WriteHeader(statuses[min(i, len(statuses))-1])
		_, _ = io.WriteString(w, strings.Repeat("x", i))
	}
}

// socketUntil is a policy of attempts at once until one succeeds, each with the timeout.
func socketUntil(timeout time.Duration) retry.Policy {
	return retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}, AttemptTimeout: timeout}
}

// socketParent is a context that counts what hangs on it.
type socketParent struct {
	context.Context
	children atomic.Int32
}

func (p *socketParent) Done() <-chan struct{} { return p.Context.Done() }

// Value hides the context inside from package context, which would hang children on that.
func (p *socketParent) Value(any) any { return nil }

func (p *socketParent) AfterFunc(f func()) (stop func() bool) {
	p.children.Add(1)
	inner := context.AfterFunc(p.Context, f)
	var once sync.Once
	return func() bool {
		once.Do(func() { p.children.Add(-1) })
		return inner()
	}
}

func TestAttemptTimeoutNeverCutsABody(t *testing.T) {
	const timeout = 50 * time.Millisecond
	bothProtocols(t, "a body that takes longer than the attempt timeout arrives whole", func(t *testing.T, h2 bool) {
		peer := socketServer(t, h2, func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				_, _ = io.WriteString(w, "third")
				w.(http.Flusher).Flush()
				<-time.After(timeout) // the client's timer is older
			}
		})
		_, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: socketUntil(timeout)}, peer.request(t.Context(), "GET", nil))
		require.NoError(t, err)
		require.Equal(t, "thirdthirdthird", socketRead(t, resp))
	})
	bothProtocols(t, "headers that come too late are retried", func(t *testing.T, h2 bool) {
		var n atomic.Int32
		peer := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) == 1 {
				<-r.Context().Done() // the attempt has been given up
				return
			}
			_, _ = io.WriteString(w, "whole")
		})
		o, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: socketUntil(timeout)}, peer.request(t.Context(), "GET", nil))
		require.NoError(t, err)
		require.Equal(t, "whole", socketRead(t, resp))
		require.Equal(t, "attempt_timeout", reasons(o)[0])
	})
	for _, h2 := range []bool{false, true} {
		slow := []retrytest.Answer{{Takes: time.Second, Body: "late"}, {Body: "whole"}}
		socketBubble(t, "a response that comes with the timer is closed and retried", h2, slow, func(t *testing.T, base *retrytest.Server) {
			p := three
			p.AttemptTimeout = time.Second
			var first trackedBody
			late := roundTripper(func(req *http.Request) (*http.Response, error) {
				resp, err := base.RoundTrip(req)
				if err == nil && first.ReadCloser == nil {
					first.ReadCloser, resp.Body = resp.Body, &first
				}
				return resp, err
			})
			start := time.Now()
			o, resp, err := run(t, &retryhttp.Transport{Base: late, Policy: p}, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, []string{"attempt_timeout"}, reasons(o))
			require.Equal(t, 2*time.Second, time.Since(start))
			require.Equal(t, "whole", socketRead(t, resp))
			require.Equal(t, int32(1), first.closes.Load())
		})
	}
	bothProtocols(t, "the context of the attempt is released", func(t *testing.T, h2 bool) {
		peer := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/204":
				w.WriteHeader(204)
			case "/cut":
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, "half")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			case "/stalls":
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			default:
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
			}
		})
		all := func(t *testing.T, body io.ReadCloser) {
			_, err := io.Copy(io.Discard, body)
			require.NoError(t, err)
		}
		for _, row := range []struct {
			name, path string
			tr         retryhttp.Transport
			end        func(*testing.T, io.ReadCloser)
		}{
			{"by Close", "/", retryhttp.Transport{}, func(t *testing.T, body io.ReadCloser) { require.NoError(t, body.Close()) }},
			{"by EOF, without Close", "/", retryhttp.Transport{}, all},
			{"by a read error, without Close", "/cut", retryhttp.Transport{}, func(t *testing.T, body io.ReadCloser) {
				_, err := io.Copy(io.Discard, body)
				require.Error(t, err)
			}},
			{"by a stall, without Close", "/stalls", retryhttp.Transport{StallTimeout: time.Millisecond}, func(t *testing.T, body io.ReadCloser) {
				_, err := io.Copy(io.Discard, body)
				require.ErrorIs(t, err, retryhttp.ErrBodyStalled)
			}},
		} {
			t.Run(row.name, func(t *testing.T) {
				parent := &socketParent{Context: t.Context()}
				row.tr.Base, row.tr.Policy = peer.base, socketUntil(time.Minute)
				resp, err := row.tr.RoundTrip(socketTo(parent, "GET", peer.URL+row.path, nil))
				require.NoError(t, err)
				require.Equal(t, int32(1), parent.children.Load(), "it lives as long as the body")
				row.end(t, resp.Body)
				require.Zero(t, parent.children.Load())
				require.NoError(t, resp.Body.Close())
			})
		}
		t.Run("at once where there is no body", func(t *testing.T) {
			parent := &socketParent{Context: t.Context()}
			resp, err := (&retryhttp.Transport{Base: peer.base, Policy: socketUntil(time.Minute)}).RoundTrip(socketTo(parent, "GET", peer.URL+"/204", nil))
			require.NoError(t, err)
			require.Equal(t, 204, resp.StatusCode)
			if h2 { // whose empty body is not http.NoBody
				require.NoError(t, resp.Body.Close())
			}
			require.Zero(t, parent.children.Load())
		})
	})
	bothProtocols(t, "without one the context and the body are what they were", func(t *testing.T, h2 bool) {
		var n atomic.Int32
		peer := socketServer(t, h2, socketAnswers(&n, 200))
		var seen context.Context
		var body io.ReadCloser
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			seen = req.Context()
			resp, err := peer.base.RoundTrip(req)
			if err == nil {
				body = resp.Body
			}
			return resp, err
		})
		req := peer.request(t.Context(), "GET", nil)
		resp, err := (&retryhttp.Transport{Base: base}).RoundTrip(req)
		require.NoError(t, err)
		require.True(t, seen == req.Context())
		require.True(t, body == resp.Body)
		require.Equal(t, "x", socketRead(t, resp))
	})
}

// trackedBody counts what happens to a body.
type trackedBody struct {
	io.ReadCloser
	read, closes atomic.Int32
}

func (b *trackedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int32(n))
	return n, err
}

func (b *trackedBody) Close() error {
	b.closes.Add(1)
	return b.ReadCloser.Close()
}

func TestTheReasonNamesTheTimerThatFired(t *testing.T) {
	why := errors.New("why")
	for _, row := range []struct {
		name    string
		change  func(*http.Transport, *retry.Policy)
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		want    []string      // reasons; nil if either timer may fire first
		elapsed time.Duration // with waits of 1s
		ended   error         // nil if the second attempt succeeds
		is      []error
	}{
		{
			name:    "the transport's ResponseHeaderTimeout, with the caller alive: retried",
			change:  func(base *http.Transport, _ *retry.Policy) { base.ResponseHeaderTimeout = time.Second },
			want:    []string{"timeout"},
			elapsed: 2 * time.Second,
		},
		{
			name:    "the attempt timeout: retried",
			change:  func(_ *http.Transport, p *retry.Policy) { p.AttemptTimeout = time.Second },
			want:    []string{"attempt_timeout"},
			elapsed: 2 * time.Second,
			is:      []error{retry.ErrAttemptTimeout, context.DeadlineExceeded},
		},
		{
			name: "the caller's deadline ends the run",
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
			want:    []string{"deadline_passed"},
			elapsed: time.Second,
			ended:   retry.DeadlinePassed,
			is:      []error{context.DeadlineExceeded},
		},
		{
			name: "the caller's deadline with a cause ends the run",
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, time.Second, why)
			},
			want:    []string{"deadline_passed"},
			elapsed: time.Second,
			ended:   retry.DeadlinePassed,
			is:      []error{context.DeadlineExceeded, why},
		},
		{
			name:   "the caller's deadline, which comes with the attempt timeout, ends the run",
			change: func(_ *http.Transport, p *retry.Policy) { p.AttemptTimeout = time.Second },
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
			elapsed: time.Second,
			ended:   retry.DeadlinePassed,
			is:      []error{context.DeadlineExceeded},
		},
		{
			name: "the caller's cancel with a cause ends the run",
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Second, func() { cancel(why) })
				return ctx, func() { cancel(nil) }
			},
			want:    []string{"canceled"},
			elapsed: time.Second,
			ended:   retry.CallerCanceled,
			is:      []error{context.Canceled, why},
		},
	} {
		for name, h2 := range map[string]bool{", HTTP/1.1": false, ", HTTP/2": true} {
			hangs := []retrytest.Answer{{Fault: retrytest.HangHeaders}}
			if row.ended == nil {
				hangs = append(hangs, retrytest.Answer{})
			}
			socketBubble(t, row.name+name, h2, hangs, func(t *testing.T, base *retrytest.Server) {
				p, ctx := three, t.Context()
				if row.change != nil {
					row.change(base.Transport, &p)
				}
				if row.ctx != nil {
					var cancel context.CancelFunc
					ctx, cancel = row.ctx(ctx)
					defer cancel()
				}
				start := time.Now()
				o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, get(ctx))
				require.Equal(t, row.elapsed, time.Since(start))
				if row.want != nil {
					require.Equal(t, row.want, reasons(o))
				}
				if row.ended == nil {
					require.NoError(t, err)
					require.Equal(t, 200, resp.StatusCode)
					require.NoError(t, resp.Body.Close())
					err = o.History[0].Err
					// The error of HTTP/1's ResponseHeaderTimeout is one as well, and must not be taken for the
					// caller's.
					require.Equal(t, !h2 || p.AttemptTimeout > 0, errors.Is(err, context.DeadlineExceeded))
				} else {
					require.ErrorIs(t, err, row.ended)
				}
				for _, target := range row.is {
					require.ErrorIs(t, err, target)
				}
			})
		}
	}
}

// socketLate is a context whose deadline has passed a moment before it notices, as a context's timer may.
type socketLate struct {
	context.Context
	deadline time.Time
}

func (l socketLate) Deadline() (time.Time, bool) { return l.deadline, true }

func TestADeadlineAndAnAttemptTimeoutAtOnceAreADeadline(t *testing.T) {
	inBubble(t, "the attempt's reason is the run's", func(t *testing.T) {
		p := three
		p.AttemptTimeout = time.Second
		slow := roundTripper(func(req *http.Request) (*http.Response, error) {
			spend(2 * time.Second)
			return nil, context.Cause(req.Context())
		})
		o, _, err := run(t, &retryhttp.Transport{Base: slow, Policy: p}, get(socketLate{t.Context(), time.Now().Add(2 * time.Second)}))
		require.ErrorIs(t, err, retry.DeadlinePassed)
		require.Equal(t, []string{"deadline_passed"}, reasons(o))
	})
}

func TestClientTimeoutBoundsTheRun(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		four := []retrytest.Answer{{Status: 503, Body: "x", Times: 3}, {Status: 503, Body: "the last"}}
		socketBubble(t, "a wait that would outlive it is not begun: the last response comes at once, readable", h2, four, func(t *testing.T, base *retrytest.Server) {
			p := three
			p.MaxAttempts, p.AttemptTimeout = retry.Unlimited, time.Minute
			client := http.Client{Timeout: 3500 * time.Millisecond, Transport: &retryhttp.Transport{Base: base, Policy: p}}
			start := time.Now()
			resp, err := client.Do(get(retryhttp.WithOutcome(t.Context())))
			require.NoError(t, err)
			require.Equal(t, 3*time.Second, time.Since(start))
			require.Equal(t, 503, resp.StatusCode)
			o, err := retryhttp.OutcomeOf(resp, nil)
			require.NoError(t, err)
			require.Equal(t, retry.DeadlineTooNear, o.Reason)
			require.Equal(t, 4, o.Attempts)
			require.Equal(t, "the last", socketRead(t, resp))
		})
		hang := []retrytest.Answer{{Status: 503}, {Fault: retrytest.HangHeaders}}
		for _, timeout := range []time.Duration{0, time.Minute} {
			socketBubble(t, "that is over during an attempt is a timeout, of all attempts and waits together", h2, hang, func(t *testing.T, base *retrytest.Server) {
				p := three
				p.AttemptTimeout = timeout
				client := http.Client{Timeout: 3500 * time.Millisecond, Transport: &retryhttp.Transport{Base: base, Policy: p}}
				start := time.Now()
				_, err := client.Do(get(t.Context()))
				require.Equal(t, 3500*time.Millisecond, time.Since(start))
				var failed *url.Error
				require.ErrorAs(t, err, &failed)
				require.True(t, failed.Timeout())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				// Of our error http.Client keeps the text only.
				require.ErrorContains(t, err, "gave up after 2 attempts in 3.5s (deadline_passed)")
			})
		}
		slow := []retrytest.Answer{{Fault: retrytest.HangBody, Body: "halfhalf"}}
		socketBubble(t, "still cuts a body, as without retries", h2, slow, func(t *testing.T, base *retrytest.Server) {
			client := http.Client{Timeout: time.Second, Transport: &retryhttp.Transport{Base: base, Policy: three}}
			start := time.Now()
			resp, err := client.Do(get(t.Context()))
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.Equal(t, "half", string(got))
			require.Equal(t, time.Second, time.Since(start))
			var timeout net.Error
			require.ErrorAs(t, err, &timeout)
			require.True(t, timeout.Timeout())
			_ = resp.Body.Close() // HTTP/2's may say once more what happened
		})
		busy := []retrytest.Answer{{Status: 503, Body: "x", Times: 2}}
		for _, timeout := range []time.Duration{0, time.Hour} {
			socketBubble(t, "a Request.Cancel that is closed during a wait ends the run at once, as canceled", h2, busy, func(t *testing.T, base *retrytest.Server) {
				client := http.Client{Timeout: timeout, Transport: &retryhttp.Transport{Base: base, Policy: three}}
				cancel := make(chan struct{})
				timer := time.AfterFunc(1500*time.Millisecond, func() { close(cancel) })
				req := get(t.Context())
				//lint:ignore SA1019 it still has to work
				req.Cancel = cancel
				start := time.Now()
				_, err := client.Do(req)
				require.Equal(t, 1500*time.Millisecond, time.Since(start))
				require.ErrorIs(t, err, retry.CallerCanceled)
				require.ErrorIs(t, err, context.Canceled)
				var failed *url.Error
				require.ErrorAs(t, err, &failed)
				require.False(t, failed.Timeout())
				timer.Stop()
			})
		}
	}
}

// socketSeeker is a body that must not be rewound: the transport may still be reading it.
type socketSeeker struct {
	*strings.Reader
	t *testing.T
}

func (s socketSeeker) Seek(int64, int) (int64, error) {
	s.t.Error("Seek on a body")
	return 0, nil
}
func (socketSeeker) Close() error { return nil }

func TestEachAttemptSendsTheWholeBody(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 1<<14) // 256 KiB
	serve := func(t *testing.T, h2 bool, got *socketLog, statuses ...int) *socketPeer {
		return socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			w.WriteHeader(statuses[min(got.add(string(body)), len(statuses))-1])
			_, _ = io.WriteString(w, "answer")
		})
	}
	fresh := func(t *testing.T) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return socketSeeker{strings.NewReader(text), t}, nil }
	}
	bothProtocols(t, "every attempt sends the whole body", func(t *testing.T, h2 bool) {
		for name, body := range map[string]func(*socketPeer) *http.Request{
			"in memory": func(p *socketPeer) *http.Request { return p.request(t.Context(), "PUT", strings.NewReader(text)) },
			"from GetBody": func(p *socketPeer) *http.Request {
				req := p.request(t.Context(), "PUT", nil)
				req.Body, req.GetBody, req.ContentLength = socketSeeker{strings.NewReader(text), t}, fresh(t), int64(len(text))
				return req
			},
			"from GetBody, of unknown length": func(p *socketPeer) *http.Request {
				req := p.request(t.Context(), "PUT", nil)
				req.Body, req.GetBody, req.ContentLength = socketSeeker{strings.NewReader(text), t}, fresh(t), -1
				return req
			},
		} {
			t.Run(name, func(t *testing.T) {
				var got socketLog
				peer := serve(t, h2, &got, 503, 503, 200)
				_, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: atOnce}, body(peer))
				require.NoError(t, err)
				require.Equal(t, "answer", socketRead(t, resp))
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, []string{text, text, text}, got.all())
			})
		}
	})
	bothProtocols(t, "a buffer", func(t *testing.T, h2 bool) {
		for _, row := range []struct {
			name   string
			buffer int64
			want   []string
			vetoes []string
		}{
			{"larger than the body: sent again", 1 << 20, []string{text, text}, []string{"status_503"}},
			{"as large as the body: sent again", int64(len(text)), []string{text, text}, []string{"status_503"}},
			{"a byte smaller: sent whole and once", int64(len(text)) - 1, []string{text}, []string{"status_503/body_not_replayable"}},
			{"of one byte: sent whole and once", 1, []string{text}, []string{"status_503/body_not_replayable"}},
		} {
			t.Run(row.name, func(t *testing.T) {
				var got socketLog
				peer := serve(t, h2, &got, 503, 200)
				req := peer.request(t.Context(), "PUT", nil)
				req.Body = socketSeeker{strings.NewReader(text), t}
				o, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: atOnce, BufferBody: row.buffer}, req)
				require.NoError(t, err)
				require.Equal(t, "answer", socketRead(t, resp))
				require.Equal(t, row.want, got.all())
				require.Equal(t, row.vetoes, reasons(o))
			})
		}
	})
	bothProtocols(t, "an answer that comes while the body is being sent does not spoil the next one", func(t *testing.T, h2 bool) {
		large := strings.Repeat(text, 16) // 4 MiB
		var n atomic.Int32
		var got socketLog
		peer := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) < 3 {
				w.WriteHeader(503) // and the connection is closed, or the stream reset, under the rest
				return
			}
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			got.add(string(body))
		})
		req := peer.request(t.Context(), "PUT", nil)
		req.GetBody = func() (io.ReadCloser, error) { return socketSeeker{strings.NewReader(large), t}, nil }
		req.Body, req.ContentLength = socketSeeker{strings.NewReader(large), t}, int64(len(large))
		_, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: socketUntil(0)}, req)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		require.True(t, len(got.all()) == 1 && got.all()[0] == large)
	})
}

// socketLog is a list that a server writes.
type socketLog struct {
	mu   sync.Mutex
	list []string
}

// add returns the length of the list.
func (l *socketLog) add(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, text)
	return len(l.list)
}

func (l *socketLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.list...)
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

func TestAStreamIsRepeatedOnlyWhileUnread(t *testing.T) {
	text := strings.Repeat("stream", 1<<15) // 192 KiB
	whole := func(t *testing.T, h2 bool, early int, got *socketLog) *socketPeer {
		var n atomic.Int32
		return socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			if int(n.Add(1)) <= early {
				w.WriteHeader(503)
				return
			}
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			got.add(string(body))
		})
	}
	for _, method := range []string{"PUT", "POST"} {
		bothProtocols(t, "after refused connections a "+method+" sends the same stream, whole", func(t *testing.T, h2 bool) {
			var got socketLog
			peer := whole(t, h2, 0, &got)
			body := newOneShot(text)
			var dials atomic.Int32
			dial := peer.base.DialContext
			peer.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				require.Zero(t, body.reads.Load(), "nothing is buffered")
				if dials.Add(1) <= 2 {
					addr = closedAddress(t)
				}
				return dial(ctx, network, addr)
			}
			o, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: atOnce}, peer.request(t.Context(), method, body))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, []string{"conn_refused", "conn_refused"}, reasons(o))
			require.Equal(t, []string{text}, got.all())
			body.requireClosed(t)
		})
	}
	t.Run("after a certificate that did not verify a POST sends the same stream, whole", func(t *testing.T) {
		var got socketLog
		peer := whole(t, true, 0, &got)
		bad := socketTransport(t)
		n := 0
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return bad.RoundTrip(req)
			}
			return peer.base.RoundTrip(req)
		})
		body := newOneShot(text)
		o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, peer.request(t.Context(), "POST", body))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, []string{"tls_certificate"}, reasons(o))
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
	bothProtocols(t, "one that was read is sent once: the response comes back, readable", func(t *testing.T, h2 bool) {
		var n atomic.Int32
		peer := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadFull(r.Body, make([]byte, 1))
			socketAnswers(&n, 503)(w, r)
		})
		body := newOneShot(text)
		o, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: atOnce}, peer.request(t.Context(), "PUT", body))
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, "x", socketRead(t, resp))
		require.Equal(t, retry.TerminalError, o.Reason)
		require.Equal(t, []string{"status_503/body_not_replayable"}, reasons(o))
		require.Equal(t, int32(1), n.Load())
	})
}

// closedAddress returns an address on which no server listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func TestAPOSTIsRepeatedOnlyIfItWasNotSent(t *testing.T) {
	post := func(t *testing.T, tr *retryhttp.Transport, url string) (retry.Outcome, error) {
		t.Helper()
		o, resp, err := run(t, tr, socketTo(t.Context(), "POST", url, strings.NewReader("order")))
		if resp != nil {
			require.NoError(t, resp.Body.Close())
		}
		return o, err
	}
	thrice := func(reason string) []string { return []string{reason, reason, reason} }
	secure := func(t *testing.T) string {
		return socketServer(t, true, func(http.ResponseWriter, *http.Request) {}).URL
	}
	for _, row := range []struct {
		name string
		make func(*testing.T, *http.Transport) string
		want []string
	}{
		{"a refused connection", func(t *testing.T, _ *http.Transport) string { return "http://" + closedAddress(t) }, thrice("conn_refused")},
		{"a name server that fails", func(_ *testing.T, base *http.Transport) string {
			base.DialContext = (&net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, errFault
			}}}).DialContext
			return "http://service.example"
		}, thrice("dns_failed")},
		{"a certificate that does not verify", func(t *testing.T, _ *http.Transport) string { return secure(t) }, thrice("tls_certificate")},
		{"a server without TLS", func(t *testing.T, _ *http.Transport) string {
			return "https" + strings.TrimPrefix(retrytest.NewServer(t, nil).URL, "http")
		}, thrice("tls_not_spoken")},
		{"a reset in the TLS handshake", func(t *testing.T, _ *http.Transport) string {
			return "https" + strings.TrimPrefix(retrytest.NewServer(t, []retrytest.Answer{{Fault: retrytest.ResetUnread, Times: 3}}).URL, "http")
		}, thrice("conn_reset")},
		{"a proxy that is not there", func(t *testing.T, base *http.Transport) string {
			base.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: closedAddress(t)})
			return "http://service.example"
		}, thrice("proxy_connect")},
		{"a proxy that does not connect", func(t *testing.T, base *http.Transport) string {
			proxy := retrytest.NewServer(t, []retrytest.Answer{{Times: 3, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				require.Equal(t, "CONNECT", r.Method)
				w.WriteHeader(503)
			})}})
			base.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
			return "https://service.example"
		}, thrice("proxy_connect")},
	} {
		t.Run("nothing was sent, it is repeated: "+row.name, func(t *testing.T) {
			base := socketTransport(t)
			o, err := post(t, &retryhttp.Transport{Base: base, Policy: atOnce}, row.make(t, base))
			require.ErrorIs(t, err, retry.AttemptsExhausted)
			require.Equal(t, row.want, reasons(o))
			var failed *retryhttp.AttemptError
			require.ErrorAs(t, err, &failed)
			require.True(t, failed.Unsent)
		})
	}
	t.Run("a reset after it was sent: not repeated", func(t *testing.T) {
		server := retrytest.NewServer(t, []retrytest.Answer{{Fault: retrytest.ResetRead}})
		o, err := post(t, &retryhttp.Transport{Base: server, Policy: atOnce}, server.URL)
		require.ErrorIs(t, err, retry.TerminalError)
		require.Equal(t, []string{"conn_reset/not_idempotent"}, reasons(o))
		require.Equal(t, "order", server.Requests()[0].Body)
	})
	t.Run("an answer that says nothing of what was done: not repeated", func(t *testing.T) {
		for name, says := range map[string]string{"malformed_response": "garbage\r\n\r\n", "body_truncated": "HTTP/1.1 200 OK\r\nX-Half: ", "conn_closed": ""} {
			server := retrytest.NewServer(t, []retrytest.Answer{{Handler: socketSays(says)}})
			o, err := post(t, &retryhttp.Transport{Base: server, Policy: atOnce}, server.URL)
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, []string{name + "/not_idempotent"}, reasons(o))
			require.Equal(t, "order", server.Requests()[0].Body)
		}
	})
	for _, h2 := range []bool{false, true} {
		socketBubble(t, "the attempt timeout passes while dialling: repeated", h2, []retrytest.Answer{{Body: "x"}}, func(t *testing.T, base *retrytest.Server) {
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
			p := three
			p.AttemptTimeout = time.Second
			start := time.Now()
			o, err := post(t, &retryhttp.Transport{Base: base, Policy: p}, "http://service.example")
			require.NoError(t, err)
			require.Equal(t, 4*time.Second, time.Since(start))
			require.Equal(t, []string{"attempt_timeout", "attempt_timeout"}, reasons(o))
		})
		hang := []retrytest.Answer{{Fault: retrytest.HangHeaders}}
		socketBubble(t, "the attempt timeout passes after it was sent: not repeated", h2, hang, func(t *testing.T, base *retrytest.Server) {
			p := three
			p.AttemptTimeout = time.Second
			o, err := post(t, &retryhttp.Transport{Base: base, Policy: p}, "http://service.example")
			require.ErrorIs(t, err, retry.ErrAttemptTimeout)
			require.Equal(t, []string{"attempt_timeout/not_idempotent"}, reasons(o))
		})
	}
	t.Run("a transport that tells no trace and says nothing: not repeated", func(t *testing.T) {
		o, err := post(t, &retryhttp.Transport{Base: faults(nil, 1), Policy: atOnce}, "http://service.example")
		require.ErrorIs(t, err, retry.TerminalError)
		require.Equal(t, []string{"transport_error/not_idempotent"}, reasons(o))
	})
	t.Run("a transport that tells no trace, but whose error does: repeated", func(t *testing.T) {
		blind := roundTripper(func(req *http.Request) (*http.Response, error) {
			return http.DefaultTransport.RoundTrip(req.WithContext(t.Context()))
		})
		o, err := post(t, &retryhttp.Transport{Base: blind, Policy: atOnce}, "http://"+closedAddress(t))
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, thrice("conn_refused"), reasons(o))
	})
	t.Run("a server that wants a certificate says so after it was sent: not repeated", func(t *testing.T) {
		strict := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		strict.Config.ErrorLog = log.New(io.Discard, "", 0)
		strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
		strict.StartTLS()
		defer strict.Close()
		o, err := post(t, &retryhttp.Transport{Base: strict.Client().Transport, Policy: atOnce}, strict.URL)
		require.ErrorIs(t, err, retry.TerminalError)
		require.Len(t, o.History, 1)
		require.Contains(t, reasons(o)[0], "/not_idempotent")
	})
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
