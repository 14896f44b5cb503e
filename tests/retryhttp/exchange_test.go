package retryhttp_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
	"github.com/retrygo/retry/retrytest"
)

func TestADeclaredKeyWithoutValueIsNotSent(t *testing.T) {
	server := retrytest.NewServer(t, []retrytest.Answer{{Status: 503}, {}})
	req := socketTo(t.Context(), "POST", server.URL, nil)
	req.Header["Idempotency-Key"] = nil
	_, resp, err := run(t, &retryhttp.Transport{Base: server, Policy: atOnce}, req)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode, "it is repeated")
	require.NoError(t, resp.Body.Close())
	for _, sent := range server.Requests() {
		require.NotContains(t, sent.Header, "Idempotency-Key")
	}
}

// How much of a body is read is in TestDiscard of the package.
func TestADiscardedResponseKeepsItsConnectionIfItIsShort(t *testing.T) {
	const limit = 64 << 10
	busy := func(size int) retrytest.Answer { return retrytest.Answer{Status: 503, Body: strings.Repeat("x", size)} }
	chunks := func(body func(io.Writer)) retrytest.Answer {
		return retrytest.Answer{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			_ = http.NewResponseController(w).Flush()
			body(w)
		})}
	}
	for _, row := range []struct {
		name   string
		answer retrytest.Answer
		keeps  bool
	}{
		{"without a body", busy(0), true},
		{"of 64 KiB", busy(limit), true},
		{"that says it has more", busy(limit + 1), false},
		{"that stalls", retrytest.Answer{Status: 503, Body: "halfhalf", Fault: retrytest.HangBody}, false},
		{"of a few KiB, in chunks", chunks(func(w io.Writer) { _, _ = w.Write(make([]byte, 5<<10)) }), true},
		{"without end", chunks(func(w io.Writer) {
			for {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		}), false},
		{"that net/http unpacks and that stalls", retrytest.Answer{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(503)
			packer := gzip.NewWriter(w)
			_, _ = io.WriteString(packer, "half")
			_ = packer.Flush()
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})}, false},
	} {
		t.Run("one "+row.name, func(t *testing.T) {
			row.answer.Times = 2
			server := retrytest.NewServer(t, []retrytest.Answer{row.answer, {}})
			server.Transport.DisableCompression = false
			_, resp, err := run(t, &retryhttp.Transport{Base: server, Policy: atOnce}, socketTo(t.Context(), "GET", server.URL, nil))
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, map[bool]int{true: 1, false: 3}[row.keeps], server.Requests()[2].Conn)
		})
	}
	t.Run("the connection is back in the pool before the wait", func(t *testing.T) {
		server := retrytest.NewServer(t, []retrytest.Answer{busy(5 << 10), busy(0), {}})
		reused := 0
		p := atOnce
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
	})
	t.Run("HTTP/2 keeps it, whatever is left unread", func(t *testing.T) {
		var n atomic.Int32
		peer := socketServer(t, true, func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1) < 6 {
				w.WriteHeader(503)
				_, _ = w.Write(make([]byte, 4<<20))
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

func TestTheBodyOfARequestIsClosedOnce(t *testing.T) {
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
	gate := func(wait func() time.Duration) retry.Policy {
		return retry.Policy{TTL: time.Minute, Gate: func(context.Context) time.Duration { return wait() }}
	}
	empty := retry.NewBudget(retry.BudgetConfig{Initial: -1, Ratio: 1})
	soon, cancelSoon := context.WithTimeout(t.Context(), time.Minute)
	defer cancelSoon()
	for _, row := range []struct {
		name   string
		path   string
		tr     retryhttp.Transport
		change func(*http.Request)
	}{
		{name: "a success", path: "/200"},
		{name: "a terminal status", path: "/404"},
		{name: "attempts that are used up, by a status", path: "/503"},
		{name: "attempts that are used up, by a fault", path: "/reset"},
		{name: "a terminal fault", tr: retryhttp.Transport{Base: ssrf.Guard{}.Transport()}},
		{name: "a server that cannot be reached", tr: retryhttp.Transport{Base: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errFault }}}},
		{name: "a caller who is gone before", change: func(r *http.Request) { *r = *r.WithContext(gone) }},
		{name: "a Request.Cancel that is closed before", change: func(r *http.Request) {
			//lint:ignore SA1019 it still has to work
			r.Cancel = gone.Done()
		}},
		{name: "a gate that ends the run", tr: retryhttp.Transport{Policy: gate(func() time.Duration { return time.Hour })}},
		{name: "a budget that refuses", path: "/503", tr: retryhttp.Transport{Policy: retry.Policy{Budget: empty}}},
		{name: "a wait that would be too long", path: "/503", tr: retryhttp.Transport{Policy: retry.Policy{Backoff: retry.Backoff{Base: time.Hour}}}, change: func(r *http.Request) { *r = *r.WithContext(soon) }},
		{name: "a request that is refused", change: func(r *http.Request) { r.Header["X"] = []string{"\n"} }},
		{name: "a request without URL", change: func(r *http.Request) { r.URL = nil }},
		{name: "a generated key that is refused", tr: retryhttp.Transport{IdempotencyKey: func(*http.Request) string { return "\n" }}, change: func(r *http.Request) { r.Method = "POST" }},
		{name: "a Policy that is refused", tr: retryhttp.Transport{Policy: retry.Policy{TTL: -1}}},
		{name: "a Transport that is refused", tr: retryhttp.Transport{StallTimeout: -1}},
		{name: "a body that fails while it is buffered", tr: retryhttp.Transport{BufferBody: 10}, change: func(r *http.Request) {
			r.Body.(*oneShot).Reader = iotest.ErrReader(errFault)
			r.ContentLength = 0
		}},
		{name: "a panic of the gate", tr: retryhttp.Transport{Policy: gate(func() time.Duration { panic("boom") })}},
		{name: "a panic of the key", tr: retryhttp.Transport{IdempotencyKey: func(*http.Request) string { panic("boom") }}, change: func(r *http.Request) { r.Method = "POST" }},
		{name: "a panic of PolicyFor", tr: retryhttp.Transport{PolicyFor: func(*http.Request) retry.Policy { panic("boom") }}},
		{name: "a panic of the Base", tr: retryhttp.Transport{Base: blocked}},
	} {
		for name, getBody := range map[string]bool{"a stream": false, "a body with GetBody": true} {
			t.Run(name+" after "+row.name, func(t *testing.T) {
				tr := row.tr
				if tr.Base == nil {
					tr.Base = server
				}
				tr.Policy = tr.Policy.Or(atOnce)
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

func TestAFaultOfTheRequestBodyIsTerminal(t *testing.T) {
	failing := func() io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errFault)))
	}
	half := func() io.ReadCloser { return io.NopCloser(strings.NewReader("half")) }
	for _, row := range []struct {
		name    string
		body    func() io.ReadCloser
		length  int64
		getBody bool
		is      error
	}{
		{"a read error of a stream", failing, -1, false, errFault},
		{"a read error of a body with GetBody", failing, 8, true, errFault},
		{"a stream that is too short", half, 8, false, nil},
		{"a stream that is too long", half, 2, false, nil},
		{"a body with GetBody that is too short", half, 8, true, nil},
	} {
		bothProtocols(t, row.name, func(t *testing.T, h2 bool) {
			var whole atomic.Int32
			peer := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					w.WriteHeader(400)
				} else {
					whole.Add(1)
					<-r.Context().Done() // an answer could overtake what the client is about to notice
				}
			})
			req := peer.request(t.Context(), "PUT", nil)
			req.Body, req.ContentLength = row.body(), row.length
			if row.getBody {
				req.GetBody = func() (io.ReadCloser, error) { return row.body(), nil }
			}
			o, resp, err := run(t, &retryhttp.Transport{Base: peer.base, Policy: atOnce}, req)
			if h2 && !row.getBody && row.length == 8 {
				// net/http sends it: the server notices.
				require.NoError(t, err)
				require.Equal(t, 400, resp.StatusCode)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, 1, o.Attempts)
				return
			}
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, []string{"body_failed/body_failed"}, reasons(o))
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
			if row.length != 2 { // of a longer one net/http sends as much as was said, before it notices
				require.Zero(t, whole.Load())
			}
		})
	}
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

func TestAConnectionThatWasKeptAndIsClosed(t *testing.T) {
	for _, row := range []struct {
		name   string
		method string
		conns  []int // of the requests
		want   string
	}{
		{"a PUT is repeated, which net/http does not do", "PUT", []int{1, 1, 2}, "conn_closed"},
		{"a DELETE is", "DELETE", []int{1, 1, 2}, "conn_closed"},
		{"a POST is not", "POST", []int{1, 1}, "conn_closed/not_idempotent"},
	} {
		t.Run(row.name, func(t *testing.T) {
			answers := []retrytest.Answer{{Status: 204}, {Handler: socketSays("")}, {Status: 204}}
			server := retrytest.NewServer(t, answers[:len(row.conns)])
			tr := &retryhttp.Transport{Base: server, Policy: atOnce}
			_, _, err := run(t, tr, socketTo(t.Context(), "GET", server.URL, nil))
			require.NoError(t, err)
			o, _, err := run(t, tr, socketTo(t.Context(), row.method, server.URL, strings.NewReader("order")))
			require.Equal(t, len(row.conns) == 3, err == nil)
			require.Equal(t, []string{row.want}, reasons(o))
			for i, conn := range row.conns {
				got := server.Requests()[i]
				require.Equal(t, conn, got.Conn)
				require.Equal(t, i > 0, got.Body == "order")
			}
		})
	}
}

func TestWhatAnHTTP2ServerSaysOfAStream(t *testing.T) {
	for _, row := range []struct {
		name     string
		method   string
		fails    func(f *frames, stream uint32) bool
		repeated bool
		want     string
	}{
		{"a POST above the last stream of a GOAWAY with an error is repeated", "POST", goAway(0, 11), true, "stream_reset"},
		{"a POST that is the last stream of a GOAWAY is not", "POST", goAway(1, 11), false, "/not_idempotent"}, // or the end of the connection is seen first,
		{"a PUT after an INTERNAL_ERROR is repeated", "PUT", streamReset(2), true, "stream_reset"},
		{"a POST after an INTERNAL_ERROR is not", "POST", streamReset(2), false, "stream_reset/not_idempotent"},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			var requests atomic.Int32
			answer := func(f *frames, stream uint32) bool {
				if requests.Add(1) == 1 {
					return row.fails(f, stream)
				}
				f.ok(stream)
				return true
			}
			overFrames(answer, func(base *http.Transport) {
				req := request(t.Context(), row.method, strings.NewReader("order"))
				o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: three}, req)
				require.Equal(t, row.repeated, err == nil)
				require.Len(t, o.History, 1)
				require.Contains(t, reasons(o)[0], row.want)
				if row.repeated {
					require.Equal(t, 200, resp.StatusCode)
					require.NoError(t, resp.Body.Close())
				}
			})
		})
	}
}

// A connection or a goroutine that is left would make the bubble panic.
func TestAHundredGoroutinesShareOneTransport(t *testing.T) {
	const goroutines, calls = 100, 5
	var n atomic.Int32
	flaky := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch n.Add(1) % 4 {
		case 0:
			w.WriteHeader(503)
			_, _ = io.WriteString(w, "busy")
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			time.Sleep(10 * time.Millisecond) // longer than until a hedge
			_, _ = w.Write(body)
		default:
			_, _ = w.Write(body)
		}
	}
	call := func(tr *retryhttp.Transport, method string, body io.Reader) error {
		req := request(retryhttp.WithOutcome(context.Background()), method, body)
		resp, err := tr.RoundTrip(req)
		o, missing := retryhttp.OutcomeOf(resp, err)
		switch {
		case missing != nil || o.Attempts < 1 || o.Attempts > 4:
			return fmt.Errorf("outcome %v %+v", missing, o)
		case err != nil && (resp != nil || o.Status == retry.Succeeded):
			return fmt.Errorf("%w with %v", err, o)
		case err != nil:
			return nil
		}
		got, err := io.ReadAll(resp.Body)
		want := map[bool]string{true: method, false: "busy"}[o.Status == retry.Succeeded]
		if err != nil || string(got) != want || resp.Request != req {
			return fmt.Errorf("%q %w, want %q", got, err, want)
		}
		return resp.Body.Close()
	}
	hedge := &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: 5 * time.Millisecond}}
	for name, row := range map[string]struct {
		h2    bool
		hedge *retryhttp.Hedge
	}{
		"HTTP/1.1": {false, nil}, "HTTP/2": {true, nil}, "HTTP/1.1, hedged": {false, hedge}, "HTTP/2, hedged": {true, hedge},
	} {
		answers := []retrytest.Answer{{Handler: http.HandlerFunc(flaky), Times: retrytest.Forever}}
		socketBubble(t, name, row.h2, answers, func(t *testing.T, base *retrytest.Server) {
			var succeeded, failed atomic.Int32
			p := socketUntil(time.Minute)
			p.MaxAttempts = 4
			p.Observe = func(_ context.Context, e retry.Event) {
				switch {
				case e.Outcome == nil:
				case e.Outcome.Status == retry.Succeeded:
					succeeded.Add(1)
				default:
					failed.Add(1)
				}
			}
			tr := &retryhttp.Transport{Base: base, Policy: p, StallTimeout: time.Minute, AttemptHeader: retryhttp.AttemptHeader, Hedge: row.hedge}
			var group sync.WaitGroup
			for g := range goroutines {
				group.Go(func() {
					for i := range calls {
						method := []string{"GET", "PUT", "POST"}[(g+i)%3]
						var body io.Reader = strings.NewReader(method)
						if g%2 == 0 {
							body = newOneShot(method)
						}
						if err := call(tr, method, body); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			synctest.Wait()
			require.Equal(t, int32(goroutines*calls), succeeded.Load()+failed.Load(), "each call ends once")
			require.Positive(t, succeeded.Load())
			require.Positive(t, failed.Load())
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
