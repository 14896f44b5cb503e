package retryhttp_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
	"github.com/retrygo/retry/retrytest"
)

func TestOnlyIdempotentMethodsAreRepeated(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "POST", "PATCH", "BREW"} {
		repeats := method != "POST" && method != "PATCH" && method != "BREW"
		bothProtocols(t, map[bool]string{true: "is repeated: ", false: "is not repeated: "}[repeats]+method, func(t *testing.T, h2 bool) {
			var n atomic.Int32
			peer := socketServer(t, h2, socketAnswers(&n, 503, 200))
			o, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: atOnce}, peer.request(t.Context(), method, nil))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			if repeats {
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, int32(2), n.Load())
				return
			}
			require.Equal(t, 503, resp.StatusCode)
			require.Equal(t, int32(1), n.Load())
			require.Equal(t, []string{"status_503/not_idempotent"}, reasons(o))
		})
	}
	uuid := regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`)
	bothProtocols(t, "a POST is repeated", func(t *testing.T, h2 bool) {
		for _, row := range []struct {
			name   string
			header http.Header
			tr     retryhttp.Transport
			sent   http.Header // of the two names, on each attempt; nil for a generated key
		}{
			{"with a key", http.Header{"Idempotency-Key": {`"1"`}}, retryhttp.Transport{}, http.Header{"Idempotency-Key": {`"1"`}}},
			{"with a key of the older name", http.Header{"X-Idempotency-Key": {"1"}}, retryhttp.Transport{}, http.Header{"X-Idempotency-Key": {"1"}}},
			{"with an entry without value, which is not sent", http.Header{"Idempotency-Key": nil}, retryhttp.Transport{}, http.Header{}},
			{"with such an entry of the older name", http.Header{"X-Idempotency-Key": nil}, retryhttp.Transport{}, http.Header{}},
			{"with a key of the caller's rather than a generated one", http.Header{"Idempotency-Key": {`"1"`}}, retryhttp.Transport{IdempotencyKey: retryhttp.RandomKey}, http.Header{"Idempotency-Key": {`"1"`}}},
			{"on a Transport that repeats any", nil, retryhttp.Transport{Repeat: anyFailure}, http.Header{}},
			{"with a generated key", nil, retryhttp.Transport{IdempotencyKey: retryhttp.RandomKey}, nil},
			{"with a generated key, over other headers", http.Header{"Accept": {"text/plain"}}, retryhttp.Transport{IdempotencyKey: retryhttp.RandomKey}, nil},
		} {
			t.Run(row.name, func(t *testing.T) {
				var n atomic.Int32
				seen := make(chan http.Header, 6)
				peer := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
					seen <- r.Header
					socketAnswers(&n, 503, 503, 200)(w, r)
				})
				row.tr.Base, row.tr.Policy = peer.base, atOnce
				generated := map[string]bool{}
				for range 2 {
					n.Store(0)
					req := peer.request(t.Context(), "POST", strings.NewReader("order"))
					maps.Copy(req.Header, row.header)
					before := req.Header.Clone()
					resp, err := row.tr.RoundTrip(req)
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
					require.Equal(t, 200, resp.StatusCode)
					require.Equal(t, before, req.Header, "the caller's header is untouched")
					for range 3 {
						header := <-seen
						if row.sent != nil {
							maps.DeleteFunc(header, func(name string, _ []string) bool { return !strings.Contains(name, "Idempotency") })
							require.Equal(t, row.sent, header)
							continue
						}
						require.Len(t, header["Idempotency-Key"], 1)
						require.Regexp(t, uuid, header["Idempotency-Key"][0])
						generated[header["Idempotency-Key"][0]] = true
					}
				}
				require.Len(t, generated, map[bool]int{true: 2}[row.sent == nil], "one for each call, the same on every attempt")
			})
		}
	})
	for _, method := range []string{"PUT", "DELETE"} {
		t.Run("a "+method+" on a kept connection that the server closes is repeated, which net/http does not do", func(t *testing.T) {
			server := retrytest.NewServer(t, []retrytest.Answer{{Body: "ok"}, {Handler: socketSays("")}, {Body: "ok"}})
			tr := &retryhttp.Transport{Base: server, Policy: atOnce}
			for _, text := range []string{"first", "second"} {
				resp, err := tr.RoundTrip(socketTo(t.Context(), method, server.URL, strings.NewReader(text)))
				require.NoError(t, err)
				require.Equal(t, "ok", socketRead(t, resp))
			}
			for i, want := range []retrytest.Request{{Conn: 1, Body: "first"}, {Conn: 1, Body: "second"}, {Conn: 2, Body: "second"}} {
				got := server.Requests()[i]
				require.Equal(t, want, retrytest.Request{Conn: got.Conn, Body: got.Body})
			}
		})
	}
}

func TestADiscardedBodyIsDrainedWithinLimits(t *testing.T) {
	const limit = 64 << 10
	busy := func(body http.HandlerFunc, header http.Header) []retrytest.Answer {
		return []retrytest.Answer{{Times: 2, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			maps.Copy(w.Header(), header)
			w.WriteHeader(503)
			body(w, r)
		})}, {}}
	}
	write := func(size int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) }
	}
	type body struct {
		name   string
		handle http.HandlerFunc
		length int  // Content-Length, 0 for chunked
		most   int  // bytes that are read
		keeps  bool // the connection
	}
	flood := func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	}
	stall := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for _, row := range []body{
		{"without a body keeps the connection", func(http.ResponseWriter, *http.Request) {}, 0, 0, true},
		{"of 64 KiB is read and keeps the connection", write(limit), limit, limit, true},
		{"of a few KiB, chunked, is read and keeps the connection", write(5 << 10), 0, limit, true},
		{"that says it has more is closed unread", write(limit + 1), limit + 1, 0, false},
		{"without end is read for 64 KiB and closed", flood, 0, limit, false},
		{"that stalls is closed after a while", stall, 0, limit, false},
		{"that stalls, of known length, is closed after a while", stall, 10, limit, false},
	} {
		t.Run("a discarded response "+row.name, func(t *testing.T) {
			header := http.Header{}
			if row.length > 0 {
				header.Set("Content-Length", strconv.Itoa(row.length))
			}
			server := retrytest.NewServer(t, busy(row.handle, header))
			var discarded []*trackedBody
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				resp, err := server.RoundTrip(req)
				if err == nil && resp.StatusCode == 503 {
					discarded = append(discarded, &trackedBody{ReadCloser: resp.Body})
					resp.Body = discarded[len(discarded)-1]
				}
				return resp, err
			})
			_, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, socketTo(t.Context(), "GET", server.URL, nil))
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, "", socketRead(t, resp))
			require.Len(t, discarded, 2)
			for _, body := range discarded {
				require.LessOrEqual(t, int(body.read.Load()), row.most)
				require.Positive(t, body.closes.Load())
			}
			require.Equal(t, map[bool]int{true: 1, false: 3}[row.keeps], server.Requests()[2].Conn)
		})
	}
	t.Run("a discarded response that net/http unpacks and that stalls is closed after a while", func(t *testing.T) {
		server := retrytest.NewServer(t, busy(func(w http.ResponseWriter, r *http.Request) {
			packer := gzip.NewWriter(w)
			_, _ = io.WriteString(packer, "half")
			_ = packer.Flush()
			stall(w, r)
		}, http.Header{"Content-Encoding": {"gzip"}}))
		server.Transport.DisableCompression = false
		_, resp, err := run(t, &retryhttp.Transport{Base: server, Policy: atOnce}, socketTo(t.Context(), "GET", server.URL, nil))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	})
	for _, timeout := range []time.Duration{0, time.Minute} {
		t.Run("the connection is back in the pool during the wait", func(t *testing.T) {
			server := retrytest.NewServer(t, busy(write(5<<10), nil))
			p := retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Millisecond}, AttemptTimeout: timeout}
			reused := 0
			p.Gate = func(ctx context.Context) time.Duration {
				if len(server.Requests()) == 0 {
					return 0
				}
				ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
					require.True(t, info.Reused)
					reused++
				}})
				resp, err := server.RoundTrip(socketTo(ctx, "GET", server.URL, nil))
				require.NoError(t, err)
				socketRead(t, resp)
				return 0
			}
			_, resp, err := run(t, &retryhttp.Transport{Base: server, Policy: p}, socketTo(t.Context(), "GET", server.URL, nil))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Positive(t, reused)
			require.Equal(t, 1, server.Requests()[2].Conn)
		})
	}
	t.Run("HTTP/2 keeps its connection, whatever is left unread", func(t *testing.T) {
		var n atomic.Int32
		peer := socketServer(t, true, func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) < 6 {
				w.WriteHeader(503)
				write(4<<20)(w, r)
			}
		})
		_, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: socketUntil(0)}, peer.request(t.Context(), "GET", nil))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, int32(6), n.Load())
		require.Equal(t, int32(1), peer.conns.Load())
	})
}

func TestTheRequestStaysTheCallers(t *testing.T) {
	bothProtocols(t, "the caller's request stays as it is, and is the response's", func(t *testing.T, h2 bool) {
		var n atomic.Int32
		peer := socketServer(t, h2, socketAnswers(&n, 503, 503, 200))
		body := newOneShot("stream")
		req := peer.request(t.Context(), "POST", body)
		req.Header.Set("Accept", "text/plain")
		req.Host, req.ContentLength, req.Trailer = "other.example", -1, http.Header{"X-Sum": {"1"}}
		req.TransferEncoding = []string{"chunked"}
		before, header, trailer, target := *req, req.Header.Clone(), req.Trailer.Clone(), *req.URL
		p := atOnce
		p.AttemptTimeout = time.Minute
		tr := &retryhttp.Transport{Base: peer.base, Policy: p, IdempotencyKey: retryhttp.RandomKey,
			AttemptHeader: retryhttp.AttemptHeader, BufferBody: 10}
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, "xxx", socketRead(t, resp))
		require.Same(t, req, resp.Request)
		require.Same(t, body, req.Body)
		require.True(t, before.Context() == req.Context())
		require.True(t, before.URL == req.URL)
		require.Nil(t, req.GetBody)
		require.Equal(t, target, *req.URL)
		require.Equal(t, header, req.Header)
		require.Equal(t, trailer, req.Trailer)
		before.Body, req.Body = nil, nil
		require.Equal(t, before, *req)
		body.requireClosed(t)
	})
	server := retrytest.NewServer(t, []retrytest.Answer{{Times: retrytest.Forever, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/404":
			w.WriteHeader(404)
		case "/503":
			w.WriteHeader(503)
		case "/reset":
			panic(http.ErrAbortHandler)
		}
	})}})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	blocked := roundTripper(func(*http.Request) (*http.Response, error) { panic("boom") })
	late := atOnce
	late.TTL = time.Minute
	empty := atOnce
	empty.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1, Ratio: 1})
	longWait := three
	longWait.Base = time.Hour
	soon, cancelSoon := context.WithTimeout(t.Context(), time.Minute)
	defer cancelSoon()
	for _, row := range []struct {
		name   string
		path   string
		tr     retryhttp.Transport
		change func(*http.Request)
	}{
		{name: "success", path: "/200"},
		{name: "a terminal status", path: "/404"},
		{name: "exhaustion by status", path: "/503"},
		{name: "exhaustion by fault", path: "/reset"},
		{name: "a terminal fault", tr: retryhttp.Transport{Base: ssrf.Guard{}.Transport()}},
		{name: "a server that cannot be reached", tr: retryhttp.Transport{Base: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errFault }}}},
		{name: "a caller who is gone before", change: func(r *http.Request) { *r = *r.WithContext(gone) }},
		{name: "a Request.Cancel that is closed before", change: func(r *http.Request) {
			//lint:ignore SA1019 it still has to work
			r.Cancel = gone.Done()
		}},
		{name: "a gate that ends the run", tr: retryhttp.Transport{Policy: gated(late, func(context.Context) time.Duration { return time.Hour })}},
		{name: "a budget that refuses", path: "/503", tr: retryhttp.Transport{Policy: empty}},
		{name: "a wait that would be too long", path: "/503", tr: retryhttp.Transport{Policy: longWait}, change: func(r *http.Request) { *r = *r.WithContext(soon) }},
		{name: "a request that is refused", change: func(r *http.Request) { r.Header["X"] = []string{"\n"} }},
		{name: "a request without URL", change: func(r *http.Request) { r.URL = nil }},
		{name: "a generated key that is refused", tr: retryhttp.Transport{IdempotencyKey: func(*http.Request) string { return "\n" }}, change: func(r *http.Request) { r.Method = "POST" }},
		{name: "a Policy that is refused", tr: retryhttp.Transport{Policy: retry.Policy{TTL: -1}}},
		{name: "a Transport that is refused", tr: retryhttp.Transport{StallTimeout: -1}},
		{name: "a body that fails while it is buffered", tr: retryhttp.Transport{BufferBody: 10}, change: func(r *http.Request) {
			r.Body.(*oneShot).Reader = iotest.ErrReader(errFault)
			r.ContentLength = 0
		}},
		{name: "a panic of the gate", tr: retryhttp.Transport{Policy: gated(retry.Policy{}, func(context.Context) time.Duration { panic("boom") })}},
		{name: "a panic of the key", tr: retryhttp.Transport{IdempotencyKey: func(*http.Request) string { panic("boom") }}, change: func(r *http.Request) { r.Method = "POST" }},
		{name: "a panic of PolicyFor", tr: retryhttp.Transport{PolicyFor: func(*http.Request) retry.Policy { panic("boom") }}},
		{name: "a panic of PolicyFor", tr: retryhttp.Transport{PolicyFor: func(*http.Request) retry.Policy { panic("boom") }}},
		{name: "a panic of the Base", tr: retryhttp.Transport{Base: blocked}},
	} {
		for name, getBody := range map[string]bool{"a stream": false, "a body with GetBody": true} {
			t.Run(name+" is closed, once: "+row.name, func(t *testing.T) {
				tr := row.tr
				if tr.Base == nil {
					tr.Base = server
				}
				if tr.Policy.MaxAttempts == 0 && tr.Policy.TTL == 0 {
					tr.Policy = atOnce
				}
				body := newOneShot("body")
				var later []*oneShot
				req := socketTo(t.Context(), "PUT", server.URL+row.path, body)
				req.ContentLength = 4
				if getBody {
					req.GetBody = func() (io.ReadCloser, error) {
						later = append(later, newOneShot("body"))
						return later[len(later)-1], nil
					}
				}
				if row.change != nil {
					row.change(req)
				}
				func() {
					defer func() { _ = recover() }()
					resp, err := tr.RoundTrip(req)
					if err == nil {
						_ = resp.Body.Close()
					}
				}()
				body.requireClosed(t)
				for _, body := range later {
					body.requireClosed(t)
				}
			})
		}
	}
}

func TestTheBodyOfA101IsItsConnection(t *testing.T) {
	const timeout = 50 * time.Millisecond
	for _, row := range []struct {
		name string
		tr   retryhttp.Transport
	}{
		{"plain", retryhttp.Transport{}},
		{"with an attempt timeout", retryhttp.Transport{Policy: socketUntil(timeout)}},
		{"with a stall timeout", retryhttp.Transport{StallTimeout: time.Millisecond}},
		{"with both", retryhttp.Transport{Policy: socketUntil(timeout), StallTimeout: time.Millisecond}},
	} {
		t.Run("the body of a 101 is the connection, "+row.name, func(t *testing.T) {
			base := retrytest.NewServer(t, []retrytest.Answer{{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				c, from, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return
				}
				defer func() { _ = c.Close() }()
				_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				<-time.After(timeout) // silent for longer than any of the timeouts
				_, _ = io.Copy(c, from)
			})}})
			var attempt context.Context
			row.tr.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
				attempt = req.Context()
				return base.RoundTrip(req)
			})
			client := http.Client{Transport: &row.tr}
			req := socketTo(t.Context(), "GET", base.URL, nil)
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "echo")
			resp, err := client.Do(req)
			require.NoError(t, err)
			require.Equal(t, 101, resp.StatusCode)
			conn, ok := resp.Body.(io.ReadWriteCloser)
			require.True(t, ok)
			for range 3 {
				_, err = io.WriteString(conn, "echo")
				require.NoError(t, err)
				got := make([]byte, 4)
				_, err = io.ReadFull(conn, got)
				require.NoError(t, err)
				require.Equal(t, "echo", string(got))
			}
			require.NoError(t, attempt.Err())
			require.NoError(t, conn.Close())
			if row.tr.Policy.AttemptTimeout > 0 {
				require.ErrorIs(t, attempt.Err(), context.Canceled, "the context of the attempt is released")
			}
		})
	}
}

func TestAFaultOfTheRequestBodyIsTerminal(t *testing.T) {
	var n atomic.Int32
	serve := func(t *testing.T, h2 bool) *socketPeer {
		n.Store(0)
		return socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				w.WriteHeader(400)
			} else {
				n.Add(1)             // it seems whole
				<-r.Context().Done() // an answer could overtake what the client is about to notice
			}
		})
	}
	failing := func() io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errFault)))
	}
	short := func() io.ReadCloser { return io.NopCloser(strings.NewReader("half")) }
	for _, row := range []struct {
		name    string
		body    func() io.ReadCloser
		length  int64
		reason  string
		getBody bool
		is      error
	}{
		{"a read error of a stream", failing, -1, "body_failed", false, errFault},
		{"a read error of a stream of known length", failing, 8, "body_failed", false, errFault},
		{"a read error of a body with GetBody", failing, 8, "body_failed", true, errFault},
		{"a stream that is too short", short, 8, "body_failed", false, nil},
		{"a stream that is too long", short, 2, "body_failed", false, nil},
		{"a body with GetBody that is too short", short, 8, "body_failed", true, nil},
		{"a body with GetBody that is too long", short, 2, "body_failed", true, nil},
	} {
		bothProtocols(t, "is terminal, and no fault of the transport: "+row.name, func(t *testing.T, h2 bool) {
			peer := serve(t, h2)
			req := peer.request(t.Context(), "PUT", nil)
			req.Body, req.ContentLength = row.body(), row.length
			if row.getBody {
				req.GetBody = func() (io.ReadCloser, error) { return row.body(), nil }
			}
			o, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: atOnce}, req)
			if h2 && !row.getBody && row.length == 8 && row.is == nil {
				// net/http sends it: the server notices.
				require.NoError(t, err)
				require.Equal(t, 400, resp.StatusCode)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, 1, o.Attempts)
				return
			}
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, []string{row.reason + "/" + row.reason}, reasons(o))
			require.Equal(t, row.reason, string(retryhttp.ReasonOf(err)))
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
			if row.length != 2 { // of a longer one net/http sends as much as was said, before it notices
				require.Zero(t, n.Load())
			}
		})
	}
}

func TestARefusalOfTheGuardIsTerminal(t *testing.T) {
	target := socketServer(t, false, nil)
	for _, method := range []string{"GET", "POST"} {
		t.Run("is terminal although it looks like a failed dial: "+method, func(t *testing.T) {
			base := ssrf.Guard{}.Transport()
			defer base.CloseIdleConnections()
			always := atOnce
			client := http.Client{Transport: &retryhttp.Transport{Base: base, Policy: always}}
			_, err := client.Do(target.request(t.Context(), method, strings.NewReader("order")))
			require.ErrorIs(t, err, ssrf.ErrBlocked)
			require.ErrorIs(t, err, retry.TerminalError)
			var failed *retry.Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, 1, failed.Attempts)
			require.Equal(t, retryhttp.AddressBlocked, retryhttp.ReasonOf(err))
			require.Zero(t, target.conns.Load())
		})
	}
	t.Run("an address that is allowed is reached", func(t *testing.T) {
		server := retrytest.NewServer(t, []retrytest.Answer{{Status: 503}, {Body: "reached"}})
		base := ssrf.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}.Transport()
		defer base.CloseIdleConnections()
		_, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, socketTo(t.Context(), "GET", server.URL, nil))
		require.NoError(t, err)
		require.Equal(t, "reached", socketRead(t, resp))
	})
}

func TestARequestThatCouldInjectIsRefusedUnsent(t *testing.T) {
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = []string{value} }
	}
	for _, row := range []struct {
		name   string
		change func(*http.Request)
	}{
		{"Host with CR LF, which net/http would rewrite and send", func(r *http.Request) { r.Host = "service.example\r\nX-Injected: 1" }},
		{"Host with LF", func(r *http.Request) { r.Host = "service.example\nX-Injected: 1" }},
		{"Host with a space", func(r *http.Request) { r.Host = "a b" }},
		{"Host with a path", func(r *http.Request) { r.Host = "a/b" }},
		{"method with CR LF", func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX-Injected: 1\r\n\r\nGET" }},
		{"method with a space", func(r *http.Request) { r.Method = "GET /other" }},
		{"header name with CR LF", set("X-A: 1\r\nX-Injected", "secret")},
		{"header name with a colon", set("X-Injected:", "secret")},
		{"empty header name", set("", "secret")},
		{"header value with CR LF", set("Authorization", "secret\r\nX-Injected: 1")},
		{"header value with LF", set("Authorization", "secret\nX-Injected: 1")},
		{"header value with NUL", set("Authorization", "secret\x00")},
		{"trailer name with CR LF", func(r *http.Request) { r.Trailer = http.Header{"X-A\r\nX-Injected": {"secret"}} }},
		{"trailer value with CR LF", func(r *http.Request) { r.Trailer = http.Header{"X-A": {"secret\r\nX-Injected: 1"}} }},
		{"trailer that would frame the body", func(r *http.Request) { r.Trailer = http.Header{"Transfer-Encoding": {"chunked"}} }},
		{"query with CR LF", func(r *http.Request) { r.URL.RawQuery = "token=secret HTTP/1.1\r\nX-Injected: 1" }},
		{"opaque URL with CR LF", func(r *http.Request) { r.URL.Opaque = "/secret HTTP/1.1\r\nX-Injected: 1" }},
		{"scheme", func(r *http.Request) { r.URL.Scheme = "gopher" }},
		{"empty scheme", func(r *http.Request) { r.URL.Scheme = "" }},
		{"empty host", func(r *http.Request) { r.URL.Host = "" }},
		{"URL host with CR LF", func(r *http.Request) { r.URL.Host += "\r\nX-Injected: 1" }},
		{"no URL", func(r *http.Request) { r.URL = nil }},
	} {
		bothProtocols(t, "is refused before anything is sent: "+row.name, func(t *testing.T, h2 bool) {
			peer := socketServer(t, h2, func(http.ResponseWriter, *http.Request) {})
			body := newOneShot("secret")
			req := peer.request(t.Context(), "POST", body)
			row.change(req)
			o, _, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: atOnce, Repeat: anyFailure}, req)
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, []string{"invalid_request/invalid_request"}, reasons(o))
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "\n")
			body.requireClosed(t)
			require.Zero(t, body.reads.Load())
			require.Zero(t, peer.conns.Load())
		})
	}
	t.Run("a client gets the reason too", func(t *testing.T) {
		req := socketTo(t.Context(), "GET", "http://"+closedAddress(t), nil)
		req.Host = "a\r\nb"
		_, err := retryhttp.NewClient(atOnce).Do(req)
		require.Equal(t, retryhttp.InvalidRequest, retryhttp.ReasonOf(err))
	})
}

// FuzzRefusal sends whatever passes our check and that of http.Transport through net/http's own writer, and reads back
// what was asked for.
func FuzzRefusal(f *testing.F) {
	f.Add("GET", "service.example", "", "/path", "a=1", "", "X-Name", "value", "X-Sum", "1", false)
	f.Add("POST", "service.example:80", "other.example", "/\r\n", "a b", "", "x-lower", "a\tb", "", "", true)
	f.Add("GET", "a", "b\r\nX-Injected: 1", "", "", "", "A", "", "", "", false)
	f.Add("GET", "a", "", "", "", "//b\r\n\r\nGET /", "A", "", "", "", true)
	f.Add("GET / HTTP/1.1\r\n", "[::1%25en0]", "[fe80::1%en0]:80", "*", "\n", "*", "A\n", "\r", "B", "\x00", true)
	f.Add("CONNECT", "bücher.example", "BÜCHER.example:80", "", "ä", "", "Host", "evil.example", "C", "ä", true)
	f.Add("", "a:", "", "//b", "?", "", "Transfer-Encoding", "chunked", "Content-Length", "0", true)
	f.Add("PUT", "a", "a,b", "", "", "", "Content-Length", "99", "Trailer", "X", false)
	f.Fuzz(func(t *testing.T, method, urlHost, host, path, query, opaque, name, value, trailer, sum string, proxy bool) {
		req := &http.Request{Method: method, Host: host, Header: http.Header{}, Trailer: http.Header{},
			URL: &url.URL{Scheme: "http", Host: urlHost, Path: path, RawQuery: query, Opaque: opaque}}
		if name != "" {
			req.Header[name] = []string{value}
		}
		if trailer != "" {
			req.Trailer[trailer] = []string{sum}
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader("body")), -1
		}
		var wire bytes.Buffer
		sent := false
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			probe := req.Clone(req.Context())
			probe.Body = nil
			if _, err := undialed.RoundTrip(probe); !errors.Is(err, errDialed) {
				return nil, err
			}
			write := req.Write
			if proxy {
				write = req.WriteProxy
			}
			if err := write(&wire); err != nil {
				return nil, err // nothing has reached the connection: Write checks what it has not to escape first
			}
			sent = true
			return answer(req, 200), nil
		})
		resp, err := (&retryhttp.Transport{Base: base, Policy: retry.Policy{Disabled: true}}).RoundTrip(req)
		if !sent {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)

		head, _, whole := strings.Cut(wire.String(), "\r\n\r\n")
		require.True(t, whole)
		require.NotContains(t, strings.ReplaceAll(head, "\r\n", ""), "\n")
		require.NotContains(t, strings.ReplaceAll(head, "\r\n", ""), "\r")
		lines := strings.Split(head, "\r\n")
		require.True(t, strings.HasPrefix(lines[0], orGET(method)+" "))
		require.True(t, strings.HasSuffix(lines[0], " HTTP/1.1"))
		allowed := []string{"Host", "User-Agent", "Connection", "Content-Length", "Transfer-Encoding", "Trailer", name}
		for _, line := range lines[1:] {
			field, _, ok := strings.Cut(line, ":")
			require.True(t, ok)
			require.Contains(t, allowed, field)
		}
		if strings.Contains(query+opaque, " ") {
			return // which a URL parsed from text can have, and which ReadRequest does not take
		}
		got, err := http.ReadRequest(bufio.NewReader(&wire))
		if err != nil {
			t.Skip("sent whole, and refused by the other side: ", err)
		}
		require.Equal(t, orGET(method), got.Method)
		for field := range got.Header {
			require.Contains(t, append(allowed, http.CanonicalHeaderKey(name)), field)
		}
	})
}

func orGET(method string) string {
	if method == "" {
		return "GET"
	}
	return method
}

// socketFrames serves HTTP/2 by hand at the other end of a pipe (RFC 9113, section 4.1). Reading does not wait for
// writing: a pipe holds nothing.
type socketFrames struct {
	net.Conn
	out chan []byte
}

const (
	frameHeaders = 1
	frameReset   = 3
	frameConfig  = 4
	frameGoAway  = 7
)

func (f *socketFrames) write(kind, flags byte, stream uint32, numbers ...uint32) {
	f.writeBytes(kind, flags, stream, slices.Concat(socketNumbers(numbers)...))
}

func (f *socketFrames) writeBytes(kind, flags byte, stream uint32, payload []byte) {
	header := []byte{0, 0, byte(len(payload)), kind, flags}
	f.out <- append(binary.BigEndian.AppendUint32(header, stream), payload...)
}

func socketNumbers(numbers []uint32) [][]byte {
	list := make([][]byte, len(numbers))
	for i, n := range numbers {
		list[i] = binary.BigEndian.AppendUint32(nil, n)
	}
	return list
}

// ok answers the stream with 200 and no body: the static table's entry 8 (RFC 7541, appendix A).
func (f *socketFrames) ok(stream uint32) { f.writeBytes(frameHeaders, 0x1|0x4, stream, []byte{0x88}) }

// serve calls answer for each request with its stream, until it returns false.
func (f *socketFrames) serve(answer func(f *socketFrames, stream uint32) bool) {
	f.out = make(chan []byte, 8)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer func() { _ = f.Close() }()
		for frame := range f.out {
			_, _ = f.Write(frame)
		}
	})
	defer writing.Wait()
	end := sync.OnceFunc(func() { close(f.out) })
	defer end()
	_, _ = io.CopyN(io.Discard, f, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
	f.write(frameConfig, 0, 0)
	for more := true; ; {
		var header [9]byte
		if _, err := io.ReadFull(f, header[:]); err != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, f, int64(header[0])<<16|int64(header[1])<<8|int64(header[2]))
		if header[3] == frameHeaders && more {
			if more = answer(f, binary.BigEndian.Uint32(header[5:])); !more {
				end() // and read on until what was written is through: the client may have to write before it reads
			}
		}
	}
}

// socketHTTP2 runs f as a subtest in virtual time against a server that is written by hand.
func socketHTTP2(t *testing.T, name string, answer func(f *socketFrames, stream uint32) bool, f func(*testing.T, *http.Transport)) {
	inBubble(t, name, func(t *testing.T) {
		var conns sync.WaitGroup
		base := &http.Transport{Protocols: new(http.Protocols)}
		base.Protocols.SetUnencryptedHTTP2(true)
		base.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			conns.Go(func() { (&socketFrames{Conn: server}).serve(answer) })
			return client, nil
		}
		defer conns.Wait()
		defer base.CloseIdleConnections()
		defer synctest.Wait() // for net/http to notice that its connection is idle
		f(t, base)
	})
}

func TestErrorsThatAreOnlyTextAreClassified(t *testing.T) {
	t.Run("a proxy's refusal, which is its status text and nothing else, is repeated: a POST", func(t *testing.T) {
		proxy := retrytest.NewServer(t, []retrytest.Answer{{Status: 503, Times: 3}})
		base := socketTransport(t)
		base.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
		o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, socketTo(t.Context(), "POST", "https://service.example", strings.NewReader("order")))
		require.ErrorContains(t, err, "Service Unavailable")
		require.Equal(t, []string{"proxy_connect", "proxy_connect", "proxy_connect"}, reasons(o))
	})
	t.Run("a proxy that wants credentials is told from one that does not connect", func(t *testing.T) {
		proxy := retrytest.NewServer(t, []retrytest.Answer{{Status: 407}})
		base := socketTransport(t)
		base.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
		p := atOnce
		p.Classify = retryhttp.ClassifyStrict
		o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, socketTo(t.Context(), "GET", "https://service.example", nil))
		require.ErrorIs(t, err, retry.TerminalError)
		require.Equal(t, []string{"proxy_auth"}, reasons(o))
	})
	t.Run("a kept connection that was closed: a DELETE is repeated, a POST is not", func(t *testing.T) {
		for method, conns := range map[string][]int{"DELETE": {1, 1, 2}, "POST": {1, 1}} {
			answers := []retrytest.Answer{{Status: 204}, {Handler: socketSays("")}, {Status: 204}}
			server := retrytest.NewServer(t, answers[:len(conns)])
			tr := &retryhttp.Transport{Base: server, Policy: atOnce}
			_, _, err := run(t, tr, socketTo(t.Context(), "GET", server.URL, nil))
			require.NoError(t, err)
			o, _, err := run(t, tr, socketTo(t.Context(), method, server.URL, nil))
			for i, conn := range conns {
				require.Equal(t, conn, server.Requests()[i].Conn)
			}
			if method == "POST" {
				require.ErrorIs(t, err, retry.TerminalError)
				require.Equal(t, []string{"conn_closed/not_idempotent"}, reasons(o))
				continue
			}
			require.NoError(t, err)
			require.Equal(t, []string{"conn_closed"}, reasons(o))
		}
	})
	var refusals, aways, resets atomic.Int32
	socketHTTP2(t, "HTTP/2 REFUSED_STREAM: a POST is repeated", func(f *socketFrames, stream uint32) bool {
		if refusals.Add(1) > 8 { // net/http has given up once: it makes 7 attempts
			f.ok(stream)
		} else {
			f.write(frameReset, 0, stream, 7)
		}
		return true
	}, func(t *testing.T, base *http.Transport) {
		o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: three}, request(t.Context(), "POST", strings.NewReader("order")))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, []string{"stream_reset"}, reasons(o))
	})
	socketHTTP2(t, "HTTP/2 GOAWAY below the stream, with an error: a POST is repeated", func(f *socketFrames, stream uint32) bool {
		if aways.Add(1) > 1 {
			f.ok(stream)
		} else {
			f.write(frameGoAway, 0, 0, 0, 11)
		}
		return true
	}, func(t *testing.T, base *http.Transport) {
		o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: three}, request(t.Context(), "POST", nil))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, []string{"stream_reset"}, reasons(o))
	})
	socketHTTP2(t, "HTTP/2 GOAWAY at the stream: a POST is not repeated", func(f *socketFrames, stream uint32) bool {
		f.write(frameGoAway, 0, 0, stream, 11)
		return false
	}, func(t *testing.T, base *http.Transport) {
		o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: three}, request(t.Context(), "POST", strings.NewReader("order")))
		require.ErrorIs(t, err, retry.TerminalError)
		require.Len(t, o.History, 1)
		require.Contains(t, reasons(o)[0], "/not_idempotent")
	})
	socketHTTP2(t, "HTTP/2 INTERNAL_ERROR: a PUT is repeated, a POST is not", func(f *socketFrames, stream uint32) bool {
		if resets.Add(1)%2 == 0 {
			f.ok(stream)
		} else {
			f.write(frameReset, 0, stream, 2)
		}
		return true
	}, func(t *testing.T, base *http.Transport) {
		tr := &retryhttp.Transport{Base: base, Policy: three}
		o, resp, err := run(t, tr, request(t.Context(), "PUT", strings.NewReader("order")))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, []string{"stream_reset"}, reasons(o))
		o, _, err = run(t, tr, request(t.Context(), "POST", strings.NewReader("order")))
		require.ErrorIs(t, err, retry.TerminalError)
		require.Equal(t, []string{"stream_reset/not_idempotent"}, reasons(o))
	})
}

// socketCount counts the connections that are open.
type socketCount struct {
	net.Conn
	open *sync.WaitGroup
	once sync.Once
}

func (c *socketCount) Close() error {
	c.once.Do(c.open.Done)
	return c.Conn.Close()
}

func TestAHundredGoroutinesShareOneTransport(t *testing.T) {
	const goroutines, calls = 100, 5
	flaky := func(n *atomic.Int32) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			switch n.Add(1) % 4 {
			case 0:
				w.WriteHeader(503)
				_, _ = io.WriteString(w, "busy")
			case 1:
				panic(http.ErrAbortHandler)
			default:
				_, _ = w.Write(body)
			}
		}
	}
	crowd := func(t *testing.T, base http.RoundTripper, url string) {
		var ends, successes, statuses, faults atomic.Int32
		p := socketUntil(time.Minute)
		p.MaxAttempts = 4
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Outcome != nil {
				ends.Add(1)
			}
		}
		tr := &retryhttp.Transport{Base: base, Policy: p, StallTimeout: time.Minute, AttemptHeader: retryhttp.AttemptHeader}
		var group sync.WaitGroup
		for g := range goroutines {
			group.Go(func() {
				for i := range calls {
					method := []string{"GET", "PUT", "POST"}[(g+i)%3]
					var body io.Reader = strings.NewReader(method)
					if g%2 == 0 {
						body = newOneShot(method)
					}
					req, err := http.NewRequestWithContext(retryhttp.WithOutcome(context.Background()), method, url, body)
					if err != nil {
						panic(err)
					}
					resp, err := tr.RoundTrip(req)
					o, missing := retryhttp.OutcomeOf(resp, err)
					switch {
					case missing != nil || o.Attempts < 1 || o.Attempts > 4:
						t.Errorf("outcome %v %+v", missing, o)
					case err != nil:
						faults.Add(1)
						if resp != nil || o.Status == retry.Succeeded {
							t.Errorf("%v with %v", err, o)
						}
						continue
					case o.Status == retry.Succeeded:
						successes.Add(1)
					default:
						statuses.Add(1)
					}
					got, readErr := io.ReadAll(resp.Body)
					want := map[bool]string{true: method, false: "busy"}[o.Status == retry.Succeeded]
					if readErr != nil || string(got) != want || resp.Request != req {
						t.Errorf("%q %v, want %q", got, readErr, want)
					}
					_ = resp.Body.Close()
				}
			})
		}
		group.Wait()
		require.Equal(t, int32(goroutines*calls), ends.Load())
		require.Equal(t, int32(goroutines*calls), successes.Load()+statuses.Load()+faults.Load())
		require.Positive(t, successes.Load())
		require.Positive(t, faults.Load())
	}
	bothProtocols(t, "each call ends once, and no connection is left", func(t *testing.T, h2 bool) {
		var n atomic.Int32
		peer := socketServer(t, h2, flaky(&n))
		var open sync.WaitGroup
		dial := peer.base.DialContext
		peer.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			open.Add(1)
			return &socketCount{Conn: c, open: &open}, nil
		}
		crowd(t, peer.base, peer.URL)
		peer.base.CloseIdleConnections() // which leaves an HTTP/2 connection that has not yet noticed that it is idle
		peer.Close()
		open.Wait()
	})
	for _, h2 := range []bool{false, true} {
		var n atomic.Int32
		socketBubble(t, "no goroutine is left", h2, []retrytest.Answer{{Handler: flaky(&n), Times: retrytest.Forever}}, func(t *testing.T, base *retrytest.Server) {
			crowd(t, base, "http://service.example")
			synctest.Wait()
		})
	}
}

func TestAControlIsRefusedAnywhereInAValueOrAQuery(t *testing.T) {
	tr := &retryhttp.Transport{Base: undialed, Policy: retry.Policy{Disabled: true}}
	sent := func(req *http.Request) bool {
		_, err := tr.RoundTrip(req)
		return errors.Is(err, errDialed)
	}
	for c := range 256 {
		for at := range 19 {
			value := []byte("\tab\x80\xff0123456789 ~\tz")
			value[at] = byte(c)
			req := get(t.Context())
			req.Header.Set("X-Name", string(value))
			require.Equal(t, c >= ' ' && c != 0x7f || c == '\t', sent(req), "%q", value)
			req = get(t.Context())
			req.URL.RawQuery = strings.NewReplacer("\t", "t", " ", "s").Replace(string(value[:at])) + string(value[at]) + "0123456789"
			require.Equal(t, c > ' ' && c != 0x7f, sent(req), "%q", req.URL.RawQuery)
		}
	}
}
