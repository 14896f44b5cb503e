package retrytest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrytest"
)

// serveFunc is NewServer or NewPipeServer.
type serveFunc = func(testing.TB, []retrytest.Answer) *retrytest.Server

// both runs f as two subtests: over pipes in virtual time, and over the loopback.
func both(t *testing.T, name string, f func(t *testing.T, serve serveFunc)) {
	bubble(t, name+", over pipes", func(t *testing.T) { f(t, retrytest.NewPipeServer) })
	t.Run(name+", over the loopback", func(t *testing.T) { f(t, retrytest.NewServer) })
}

// bothHTTP2 is both, but without virtual time before Go 1.26, whose HTTP/2 server shares channels between bubbles.
func bothHTTP2(t *testing.T, name string, f func(t *testing.T, serve serveFunc)) {
	if strings.HasPrefix(runtime.Version(), "go1.25") {
		t.Run(name+", over pipes", func(t *testing.T) { f(t, retrytest.NewPipeServer) })
		t.Run(name+", over the loopback", func(t *testing.T) { f(t, retrytest.NewServer) })
		return
	}
	both(t, name, f)
}

// requireReset fails the test unless err is a connection reset, which has its own number on Windows.
func requireReset(t *testing.T, err error) {
	const wsaeConnReset = syscall.Errno(10054)
	require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, wsaeConnReset), "%v", err)
}

// raw sends bytes over a new connection to s and returns the bytes that come back and the error at their end. It waits for
// as many as want has, and then 100ms for more.
func raw(t *testing.T, s *retrytest.Server, request, want string) (string, error) {
	c, err := s.Transport.DialContext(t.Context(), "tcp", "any.example:80")
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, _ = io.WriteString(c, request)
	got := make([]byte, len(strings.ReplaceAll(want, "Date: now", "Date: "+http.TimeFormat)))
	n, err := io.ReadFull(c, got)
	got = got[:n]
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond)) // an error of a pipe that is closed comes again
		var more []byte
		more, err = io.ReadAll(c)
		got = append(got, more...)
	}
	return regexp.MustCompile(`Date: [^\r]*`).ReplaceAllString(string(got), "Date: now"), err
}

// The bytes of each answer and each fault of HTTP/1.1.
func TestWire(t *testing.T) {
	const (
		post    = "POST /orders?n=1 HTTP/1.1\r\nHost: api.example\r\nX-Retry-Attempt: 2\r\nContent-Length: 3\r\nConnection: close\r\n\r\none"
		headers = "Date: now\r\n"
		ok      = "HTTP/1.1 200 OK\r\n"
		closes  = "Connection: close\r\n\r\n"
	)
	for _, row := range []struct {
		name   string
		answer retrytest.Answer
		want   string
		end    error // nil: the connection is closed
	}{
		{"the zero answer", retrytest.Answer{}, ok + "Date: now\r\nContent-Length: 0\r\n" + closes, nil},
		{"a status with headers and a body", retrytest.Answer{Status: 503, Header: http.Header{"X-A": {"1", "2"}}, Body: "busy"},
			"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nX-A: 1\r\nX-A: 2\r\n" + headers + closes + "busy", nil},
		{"Retry-After in seconds", retrytest.Answer{Status: 429, RetryAfter: 1500 * time.Millisecond},
			"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nDate: now\r\nContent-Length: 0\r\n" + closes, nil},
		{"Retry-After that is malformed", retrytest.Answer{Status: 429, Header: http.Header{"Retry-After": {"soon"}}},
			"HTTP/1.1 429 Too Many Requests\r\nRetry-After: soon\r\nDate: now\r\nContent-Length: 0\r\n" + closes, nil},
		{"a redirect", retrytest.Answer{Status: 302, Header: http.Header{"Location": {"/elsewhere"}}},
			"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nDate: now\r\nContent-Length: 0\r\n" + closes, nil},
		{"101", retrytest.Answer{Status: 101, Body: "hello"},
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello", os.ErrDeadlineExceeded},
		{"a wait before the headers", retrytest.Answer{Takes: time.Hour}, "", os.ErrDeadlineExceeded},
		{"a pause after the headers", retrytest.Answer{Body: "hello", Pause: time.Hour},
			ok + "Content-Length: 5\r\nDate: now\r\n" + closes, os.ErrDeadlineExceeded},
		{"reset unread", retrytest.Answer{Fault: retrytest.ResetUnread}, "", syscall.ECONNRESET},
		{"reset read", retrytest.Answer{Fault: retrytest.ResetRead}, "", syscall.ECONNRESET},
		{"hang before the headers", retrytest.Answer{Fault: retrytest.HangHeaders}, "", os.ErrDeadlineExceeded},
		{"hang after the headers", retrytest.Answer{Fault: retrytest.HangBody, Body: "123456"},
			ok + "Content-Length: 6\r\n" + headers + closes + "123", os.ErrDeadlineExceeded},
		{"a truncated body", retrytest.Answer{Fault: retrytest.Truncate, Body: "123456"},
			ok + "Content-Length: 6\r\n" + headers + closes + "123", nil},
		{"a truncated body of its own", retrytest.Answer{Fault: retrytest.Truncate},
			ok + "Content-Length: 33\r\n" + headers + closes + "a body that does", nil},
		{"garbage", retrytest.Answer{Fault: retrytest.Garbage}, "garbage\r\n\r\n", nil},
	} {
		both(t, row.name, func(t *testing.T, serve serveFunc) {
			s := serve(t, []retrytest.Answer{row.answer})
			got, err := raw(t, s, post, row.want)
			require.Equal(t, row.want, got)
			if row.end == syscall.ECONNRESET {
				requireReset(t, err)
			} else {
				require.ErrorIs(t, err, row.end)
			}
			want := retrytest.Request{Conn: 1}
			if row.answer.Fault != retrytest.ResetUnread {
				want = retrytest.Request{
					Conn: 1, Proto: "HTTP/1.1", Method: "POST", Host: "api.example", URL: "/orders?n=1", Body: "one",
					Header: http.Header{"X-Retry-Attempt": {"2"}, "Content-Length": {"3"}, "Connection": {"close"}},
				}
			}
			requests := s.Requests()
			requests[0].At = 0
			require.Equal(t, []retrytest.Request{want}, requests)
		})
	}
	both(t, "the protocol after 101 is an echo", func(t *testing.T, serve serveFunc) {
		s := serve(t, []retrytest.Answer{{Status: 101, Header: http.Header{"Upgrade": {"chat"}}}})
		resp, err := send(t, s, "GET", s.URL, "", "Connection", "Upgrade", "Upgrade", "chat")
		require.NoError(t, err)
		require.Equal(t, "chat", resp.Header.Get("Upgrade"))
		conn := resp.Body.(io.ReadWriteCloser)
		_, err = io.WriteString(conn, "hello")
		require.NoError(t, err)
		echo := make([]byte, 5)
		_, err = io.ReadFull(conn, echo)
		require.NoError(t, err)
		require.Equal(t, "hello", string(echo))
		require.NoError(t, conn.Close())
	})
	both(t, "a connection under 101 ends with the test", func(t *testing.T, serve serveFunc) {
		r := recorder{TB: t}
		s := serve(&r, []retrytest.Answer{{Status: 101}})
		c, err := s.Transport.DialContext(t.Context(), "tcp", "")
		require.NoError(t, err)
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, len("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")))
		require.NoError(t, err)
		require.Empty(t, r.ended())
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, c.Close())
	})
}

// frame returns a frame of HTTP/2 (RFC 9113, section 4.1).
func frame(kind, flags byte, stream uint32, payload string) string {
	header := []byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return string(binary.BigEndian.AppendUint32(header, stream)) + payload
}

// The frames of the HTTP/2 faults.
func TestWireHTTP2(t *testing.T) {
	const (
		headers, rst, settings = 1, 3, 4
		get                    = "\x82\x86\x84\x41\x01x" // GET http / with the authority x (RFC 7541, appendix A)
	)
	request := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(settings, 0, 0, "") + frame(headers, 0x5 /* the end */, 1, get)
	for _, row := range []struct {
		name  string
		fault retrytest.HTTPFault
		kind  byte
		want  string // the last frame, except pings and window updates
		end   error
	}{
		{"RST_STREAM with INTERNAL_ERROR for what is truncated", retrytest.Truncate, rst, frame(rst, 0, 1, "\x00\x00\x00\x02"), os.ErrDeadlineExceeded},
		{"reset read", retrytest.ResetRead, 0, "", syscall.ECONNRESET},
		{"reset unread, as read", retrytest.ResetUnread, 0, "", syscall.ECONNRESET},
	} {
		bothHTTP2(t, row.name, func(t *testing.T, serve serveFunc) {
			s := serve(t, []retrytest.Answer{{Fault: row.fault}})
			c, err := s.Transport.DialContext(t.Context(), "tcp", "")
			require.NoError(t, err)
			defer func() { _ = c.Close() }()
			require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
			go func() { _, _ = io.WriteString(c, request+frame(settings, 1, 0, "")) }() // a pipe does not buffer
			var got string
			for {
				if got != "" { // nothing more comes
					_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond)) // an error of a pipe that is closed comes again
				}
				header := make([]byte, 9)
				if _, err = io.ReadFull(c, header); err != nil {
					break
				}
				payload := make([]byte, int(header[1])<<8|int(header[2]))
				if _, err = io.ReadFull(c, payload); err != nil {
					break
				}
				if header[3] == row.kind {
					got = string(header) + string(payload)
				}
			}
			require.Equal(t, row.want, got)
			if row.end == syscall.ECONNRESET {
				requireReset(t, err)
			} else {
				require.ErrorIs(t, err, row.end)
			}
			require.Equal(t, "HTTP/2.0", s.Requests()[0].Proto)
		})
	}
}

// send sends a request through s. The body of a response is closed with the test.
func send(t *testing.T, s *retrytest.Server, method, url, body string, header ...string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.RoundTrip(req)
	if err == nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

// get sends a GET through s and returns the status, or the error.
func get(t *testing.T, s *retrytest.Server, url string) (int, error) {
	t.Helper()
	resp, err := send(t, s, "GET", url, "")
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, nil
}

func TestServer(t *testing.T) {
	both(t, "a connection is kept, and closed before a reset, which net/http would repeat", func(t *testing.T, serve serveFunc) {
		s := serve(t, []retrytest.Answer{{Times: 2}, {Body: "x"}, {Fault: retrytest.ResetRead}, {}, {Fault: retrytest.ResetUnread}, {}})
		var got []any
		for range 7 {
			status, err := get(t, s, "http://api.example/")
			if err != nil {
				requireReset(t, err)
				got = append(got, "reset")
			} else {
				got = append(got, status)
			}
		}
		require.Equal(t, []any{200, 200, 200, "reset", 200, "reset", 200}, got)
		var conns []int
		for _, r := range s.Requests() {
			conns = append(conns, r.Conn)
		}
		require.Equal(t, []int{1, 1, 1, 2, 3, 4, 5}, conns)
	})
	bubble(t, "time passes before and after the headers", func(t *testing.T) {
		s := retrytest.NewPipeServer(t, []retrytest.Answer{
			{Takes: time.Minute, Pause: time.Hour, Body: "late", RetryDate: 90 * time.Second}, {Takes: time.Second, Fault: retrytest.ResetUnread},
		})
		began := time.Now()
		resp, err := send(t, s, "GET", "https://api.example/", "")
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, began.Add(time.Minute+90*time.Second).UTC().Format(http.TimeFormat), resp.Header.Get("Retry-After"))
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "late", string(body))
		require.Equal(t, time.Minute+time.Hour, time.Since(began))
		require.NoError(t, resp.Body.Close())
		_, err = get(t, s, "http://api.example/")
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, time.Minute+time.Hour+time.Second, time.Since(began))
		require.Equal(t, []time.Duration{0, time.Minute + time.Hour}, []time.Duration{s.Requests()[0].At, s.Requests()[1].At})
	})
	bubble(t, "a date that is not a whole second is rounded up", func(t *testing.T) {
		s := retrytest.NewPipeServer(t, []retrytest.Answer{{RetryDate: time.Second}})
		time.Sleep(time.Millisecond)
		began := time.Now()
		resp, err := send(t, s, "GET", s.URL, "")
		require.NoError(t, err)
		require.Equal(t, began.Truncate(time.Second).Add(2*time.Second).UTC().Format(http.TimeFormat), resp.Header.Get("Retry-After"))
	})
	both(t, "a handler answers, also while the script goes on", func(t *testing.T, serve serveFunc) {
		echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
		s := serve(t, []retrytest.Answer{{Status: 503}, {Fault: retrytest.ResetRead}, {Handler: echo, Times: retrytest.Forever}})
		for _, want := range []string{"503 ", "reset", "200 order"} {
			resp, err := send(t, s, "POST", s.URL, "order")
			if want == "reset" {
				requireReset(t, err)
				continue
			}
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, want, resp.Status[:4]+string(body))
		}
		require.Equal(t, "order", s.Requests()[2].Body)
	})
	both(t, "a caller who leaves frees the server", func(t *testing.T, serve serveFunc) {
		for _, a := range []retrytest.Answer{{Takes: time.Hour}, {Fault: retrytest.HangHeaders}, {Fault: retrytest.HangBody}, {Body: "x", Pause: time.Hour}} {
			s := serve(t, []retrytest.Answer{a})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answers := a.Fault == retrytest.HangBody || a.Pause > 0 // with headers, after which the caller leaves
			go func() {
				for !answers && len(s.Requests()) == 0 {
					runtime.Gosched() // until the server has the request
				}
				if !answers {
					cancel()
				}
			}()
			req, err := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
			require.NoError(t, err)
			resp, err := s.RoundTrip(req)
			require.Equal(t, answers, err == nil)
			if answers {
				cancel()
				_, err = io.ReadAll(resp.Body)
				require.NoError(t, resp.Body.Close())
			}
			require.ErrorIs(t, err, context.Canceled)
		}
	})
	both(t, "the test ends while a caller waits", func(t *testing.T, serve serveFunc) {
		for _, fault := range []retrytest.HTTPFault{retrytest.HangHeaders, retrytest.ResetUnread} {
			r := recorder{TB: t}
			s := serve(&r, []retrytest.Answer{{Fault: fault, Takes: time.Hour}})
			ended := make(chan error)
			go func() {
				_, err := get(t, s, s.URL)
				ended <- err
			}()
			for len(s.Requests()) == 0 {
				runtime.Gosched() // until the server has the request
			}
			require.Empty(t, r.ended())
			require.Error(t, <-ended)
			_, err := get(t, s, s.URL)
			require.ErrorContains(t, err, "refused")
		}
	})
	bothHTTP2(t, "what fails the test", func(t *testing.T, serve serveFunc) {
		r := recorder{TB: t}
		s := serve(&r, nil)
		status, err := get(t, s, s.URL)
		require.NoError(t, err)
		require.Equal(t, 400, status)
		require.Len(t, r.ended(), 1)
		require.Contains(t, r.messages[0], "call 1, GET /, is beyond the last of 0 rows; no call was made")

		r = recorder{TB: t}
		s = serve(&r, []retrytest.Answer{{Body: "open"}})
		req, err := http.NewRequest("GET", s.URL+"/leak", nil)
		require.NoError(t, err)
		_, err = s.RoundTrip(req)
		require.NoError(t, err)
		require.Len(t, r.ended(), 1)
		require.Contains(t, r.messages[0], "the body of the response to GET "+s.URL+"/leak is not closed")
	})
	bothHTTP2(t, "101 does not go with HTTP/2", func(t *testing.T, serve serveFunc) {
		s := serve(t, []retrytest.Answer{{Status: 101}})
		s.Transport.Protocols.SetHTTP1(false)
		s.Transport.Protocols.SetUnencryptedHTTP2(true)
		_, err := get(t, s, s.URL)
		require.ErrorContains(t, err, "INTERNAL_ERROR")
	})
	bubble(t, "a dial that is given up", func(t *testing.T) {
		s := retrytest.NewPipeServer(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 { // a ready listener may be faster
			c, err := s.Transport.DialContext(ctx, "tcp", "")
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				return
			}
			require.NoError(t, c.Close())
			synctest.Wait()
		}
	})
	t.Run("no goroutine is left", func(t *testing.T) {
		var r recorder
		pipe, tcp := retrytest.Statuses(&r, 200, 503), retrytest.NewServer(&r, []retrytest.Answer{{}, {Fault: retrytest.Truncate}})
		for range 2 {
			_, err := get(t, pipe, pipe.URL)
			require.NoError(t, err)
			_, err = get(t, tcp, tcp.URL)
			require.NoError(t, err)
		}
		require.Empty(t, r.ended())
		stacks := make([]byte, 1<<20)
		require.Eventually(t, func() bool { // net/http's client ends its goroutines when they see the end of the connection
			all := stacks[:runtime.Stack(stacks, true)]
			for _, s := range bytes.Split(all, []byte("\n\n")) {
				if bytes.Contains(s, []byte("net/http.(*")) && bytes.Contains(s, []byte("retrytest")) && !bytes.Contains(s, []byte("_test.go")) {
					return false
				}
			}
			return true
		}, 10*time.Second, time.Millisecond)
	})
}

// A reset over pipes looks like one over TCP.
func TestPipeReset(t *testing.T) {
	s := retrytest.NewPipeServer(t, []retrytest.Answer{{Fault: retrytest.ResetRead}})
	_, err := get(t, s, s.URL)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, op)
}

func TestAConnectionThatIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := retrytest.NewPipeServer(t, []retrytest.Answer{
			{Fault: retrytest.RefuseDial}, {Fault: retrytest.NoHost, Takes: time.Second}, {Fault: retrytest.FailTLS}, {}, {Fault: retrytest.RefuseDial}, {},
		})
		start := time.Now()
		get := func() error {
			_, err := get(t, server, "https://api.example.com/")
			return err
		}
		require.ErrorIs(t, get(), syscall.ECONNREFUSED)
		var host *net.DNSError
		require.ErrorAs(t, get(), &host)
		require.Equal(t, "api.example.com", host.Name)
		require.Equal(t, time.Second, time.Since(start))
		var alert tls.AlertError
		require.ErrorAs(t, get(), &alert)
		require.NoError(t, get())
		require.ErrorIs(t, get(), syscall.ECONNREFUSED, "the answer before closes its connection")
		require.NoError(t, get())
		require.Len(t, server.Requests(), 2)
	})
}

func TestRowsForARequest(t *testing.T) {
	server := retrytest.NewPipeServer(t, []retrytest.Answer{
		{On: "POST /orders", Status: 503}, {On: "POST", Status: 201}, {On: "/price", OnHeader: "X-Region: eu", Status: 404},
		{Status: 204, Times: retrytest.Forever},
	})
	for _, row := range []struct {
		method, path, region string
		want                 int
	}{
		{"GET", "/price", "us", 204},
		{"GET", "/price", "eu", 404},
		{"GET", "/price", "eu", 204}, // a row that is used up is not used again
		{"POST", "/orders", "", 503},
		{"POST", "/orders", "", 201},
		{"POST", "/orders", "", 204},
	} {
		resp, err := send(t, server, row.method, "http://x"+row.path, "", "X-Region", row.region)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, row.want, resp.StatusCode, row)
	}

	var r recorder
	other := retrytest.NewPipeServer(&r, []retrytest.Answer{{On: "POST", Status: 503}})
	_, err := get(t, other, "http://x/price")
	require.NoError(t, err)
	require.Contains(t, r.ended()[0], `call 1, GET /price, has no row: row 1 of 1, {Status: 503, On: "POST"}, is for another`)
}

func TestDripSendsABodyByteByByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := retrytest.NewPipeServer(t, []retrytest.Answer{
			{Body: "0123456789", Drip: 10 * time.Second}, {Body: "0123", Drip: 4 * time.Second, Fault: retrytest.Truncate},
		})
		start := time.Now()
		resp, err := send(t, server, "GET", "http://x/", "")
		require.NoError(t, err)
		for b, read := make([]byte, 1), time.Duration(1); ; read++ {
			_, err := io.ReadFull(resp.Body, b)
			require.Equal(t, min(read, 10)*time.Second, time.Since(start))
			if read > 10 {
				require.Equal(t, io.EOF, err)
				break
			}
			require.NoError(t, err)
		}
		require.NoError(t, resp.Body.Close())
		resp, err = send(t, server, "GET", "http://x/", "")
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, "01", string(got))
		require.Equal(t, 12*time.Second, time.Since(start))
	})
}
