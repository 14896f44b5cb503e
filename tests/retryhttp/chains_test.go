package retryhttp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
	"github.com/retrygo/retry/retrytest"
)

// chainAnswer is what a situation ends in and what is made of it.
type chainAnswer struct {
	chain   string // the types that errors.Unwrap walks through; compared on Linux only
	gotConn bool
	reason  retryhttp.Reason
	unsent  bool // by the chain alone
}

// TestChains makes every way in which an http.RoundTripper is known to fail and says what the error is made of, so that
// a Go that changes one of them is noticed here.
func TestChains(t *testing.T) {
	t.Parallel()
	const (
		noConn, conn      = false, true // httptrace.GotConn
		maybeSent, unsent = false, true // by the chain alone
	)
	rows := []struct {
		name string
		fail func(*scene) error
		want chainAnswer
		or   *chainAnswer // of a situation with a race in it
	}{
		// The caller.
		{"caller ctx done: canceled", canceledBefore(nil),
			chainAnswer{`context.Canceled`, noConn, retryhttp.Canceled, maybeSent}, nil},
		{"caller ctx done: canceled with a cause", canceledBefore(errors.New("shutting down")),
			chainAnswer{`*errors.errorString(shutting down)`, noConn, retryhttp.TransportError, maybeSent}, nil},
		{"caller ctx done: deadline passed", deadlineBefore,
			chainAnswer{`context.deadlineExceededError`, noConn, retryhttp.Timeout, maybeSent}, nil},
		{"caller ctx done: req.Cancel closed", legacyCancel,
			chainAnswer{`*errors.errorString(net/http: request canceled)`, conn, retryhttp.Canceled, maybeSent}, nil},
		{"attempt timeout", canceledWaiting(retry.ErrAttemptTimeout),
			chainAnswer{`attempt.timeout`, conn, retryhttp.AttemptTimeout, maybeSent}, nil},

		// The way to the server.
		{"refused / no route / network unreachable: refused", refused,
			chainAnswer{`*net.OpError(dial) > *os.SyscallError > syscall.Errno(connection refused)`, noConn, retryhttp.ConnRefused, unsent}, nil},
		{"refused / no route / network unreachable: network unreachable", controlled(os.NewSyscallError("connect", syscall.ENETUNREACH)),
			chainAnswer{`*net.OpError(dial) > *os.SyscallError > syscall.Errno(network is unreachable)`, noConn, retryhttp.DialFailed, unsent}, nil},
		{"refused / no route / network unreachable: no route", controlled(os.NewSyscallError("connect", syscall.EHOSTUNREACH)),
			chainAnswer{`*net.OpError(dial) > *os.SyscallError > syscall.Errno(no route to host)`, noConn, retryhttp.DialFailed, unsent}, nil},
		{"dial timeout", dialTimeout,
			chainAnswer{`*net.OpError(dial) > *net.timeoutError`, noConn, retryhttp.DialTimeout, unsent}, nil},
		{"dial failed otherwise", controlled(os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)),
			chainAnswer{`*net.OpError(dial) > *os.SyscallError > syscall.Errno(cannot assign requested address)`, noConn, retryhttp.DialFailed, unsent}, nil},
		{"DNS temporary: server down", resolved(nil),
			chainAnswer{`*net.OpError(dial) > *net.DNSError`, noConn, retryhttp.DNSFailed, unsent}, nil},
		{"DNS temporary: server misbehaving", resolved(dnsAnswers(2)),
			chainAnswer{`*net.OpError(dial) > *net.DNSError`, noConn, retryhttp.DNSFailed, unsent}, nil},
		{"NXDOMAIN", resolved(dnsAnswers(3)),
			chainAnswer{`*net.OpError(dial) > *net.DNSError`, noConn, retryhttp.DNSNotFound, unsent}, nil},
		{"dialer guard veto", controlled(fmt.Errorf("%w: 127.0.0.1", ssrf.ErrBlocked)),
			chainAnswer{`*net.OpError(dial) > *fmt.wrapError(ssrf: address is blocked: 127.0.0.1) > *errors.errorString(ssrf: address is blocked)`, noConn, retryhttp.AddressBlocked, unsent}, nil},
		{"TLS handshake timeout", handshakeTimeout,
			chainAnswer{`http.tlsHandshakeTimeoutError`, noConn, retryhttp.DialTimeout, unsent}, nil},
		{"reset/EOF in handshake: reset", answered("https", retrytest.Answer{Fault: retrytest.ResetUnread}),
			chainAnswer{`*net.OpError(read) > *os.SyscallError > syscall.Errno(connection reset by peer)`, noConn, retryhttp.ConnReset, maybeSent}, nil},
		{"reset/EOF in handshake: EOF", handshake(halfClose),
			chainAnswer{`io.EOF`, noConn, retryhttp.ConnClosed, maybeSent}, nil},
		{"unknown CA / hostname / expired: unknown CA", overTLS(unknownCA),
			chainAnswer{`*tls.CertificateVerificationError > x509.UnknownAuthorityError`, noConn, retryhttp.TLSCertificate, unsent}, nil},
		{"unknown CA / hostname / expired: hostname", overTLS(otherHost),
			chainAnswer{`*tls.CertificateVerificationError > x509.HostnameError`, noConn, retryhttp.TLSCertificate, unsent}, nil},
		{"unknown CA / hostname / expired: expired", overTLS(inTheFuture),
			chainAnswer{`*tls.CertificateVerificationError > x509.CertificateInvalidError`, noConn, retryhttp.TLSCertificate, unsent}, nil},
		{"unknown CA / hostname / expired: via Client", viaClient(overTLS(unknownCA)),
			chainAnswer{`*url.Error(Get) > *tls.CertificateVerificationError > x509.UnknownAuthorityError`, noConn, retryhttp.TLSCertificate, unsent}, nil},
		{"TLS alert from peer: version", overTLS(olderTLS),
			chainAnswer{`*tls.permanentError > *net.OpError(remote error) > tls.alert(tls: protocol version not supported)`, noConn, retryhttp.TLSAlert, maybeSent}, nil},
		{"TLS alert from peer: client certificate required, TLS 1.2", overTLS(wantsCertificate(tls.VersionTLS12)),
			chainAnswer{`*tls.permanentError > *net.OpError(remote error) > tls.alert(tls: handshake failure)`, noConn, retryhttp.TLSAlert, maybeSent}, nil},
		{"TLS alert from peer: client certificate required, TLS 1.3", lateCertificate,
			chainAnswer{`*tls.permanentError > *net.OpError(remote error) > tls.alert(tls: certificate required)`, conn, retryhttp.TLSAlert, maybeSent}, nil},
		{"TLS failed on our side", noCurve,
			chainAnswer{`*errors.errorString(tls: no supported elliptic curves for ECDHE)`, noConn, retryhttp.TLSFailed, maybeSent}, nil},
		{"HTTPS to plain port", answered("https"),
			chainAnswer{`tls.RecordHeaderError`, noConn, retryhttp.TLSNotSpoken, unsent}, nil},
		{"HTTPS to plain port: via Client", viaClient(answered("https")),
			chainAnswer{`*url.Error(Get) > *errors.errorString(http: server gave HTTP response to HTTPS client)`, noConn, retryhttp.TLSNotSpoken, maybeSent}, nil},
		{"proxy refused", proxyRefused,
			chainAnswer{`*net.OpError(proxyconnect) > *net.OpError(dial) > *os.SyscallError > syscall.Errno(connection refused)`, noConn, retryhttp.ProxyConnect, unsent}, nil},
		{"proxy refused: its name is unknown", proxyUnknown,
			chainAnswer{`*net.OpError(proxyconnect) > *net.OpError(dial) > *net.DNSError`, noConn, retryhttp.ProxyConnect, unsent}, nil},
		{"proxy CONNECT non-200: 503", connectAnswer("503 Service Unavailable"),
			chainAnswer{`*errors.errorString(Service Unavailable)`, noConn, retryhttp.ProxyConnect, maybeSent}, nil},
		{"proxy CONNECT non-200: 407", connectAnswer("407 Proxy Authentication Required"),
			chainAnswer{`*errors.errorString(Proxy Authentication Required)`, noConn, retryhttp.ProxyAuth, maybeSent}, nil},
		{"proxy CONNECT non-200: its own words", connectAnswer("503 Gone Fishing"),
			chainAnswer{`*errors.errorString(Gone Fishing)`, noConn, retryhttp.TransportError, maybeSent}, nil},
		{"proxy socks refused", socksRefused,
			chainAnswer{`*net.OpError(socks connect) > *errors.errorString(unknown error connection refused)`, noConn, retryhttp.ProxyConnect, unsent}, nil},

		// After the connection.
		{"reset before response", answered("http", retrytest.Answer{Fault: retrytest.ResetRead}),
			chainAnswer{`*net.OpError(read) > *os.SyscallError > syscall.Errno(connection reset by peer)`, conn, retryhttp.ConnReset, maybeSent}, nil},
		{"closed before response", answered("http", hangUp),
			chainAnswer{`io.EOF`, conn, retryhttp.ConnClosed, maybeSent}, nil},
		{"closed before response: idle", closedIdle,
			chainAnswer{`io.EOF`, conn, retryhttp.ConnClosed, maybeSent}, // the server was first
			&chainAnswer{`*errors.errorString(http: server closed idle connection)`, conn, retryhttp.ConnClosed, maybeSent}},
		{"EPIPE / use of closed network connection: EPIPE", brokenWrite((*net.TCPConn).CloseWrite),
			chainAnswer{`http.nothingWrittenError > *net.OpError(write) > *os.SyscallError > syscall.Errno(broken pipe)`, conn, retryhttp.ConnClosed, maybeSent}, // the writer has closed the connection under the reader
			&chainAnswer{`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent}},
		{"EPIPE / use of closed network connection: closed", brokenWrite((*net.TCPConn).Close),
			chainAnswer{`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent}, // the writer was first
			&chainAnswer{`http.nothingWrittenError > *net.OpError(write) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent}},
		{"garbage / partial headers: garbage", answered("http", retrytest.Answer{Fault: retrytest.Garbage}),
			chainAnswer{`*fmt.wrapError(net/http: HTTP/1.x transport connection broken) > *errors.errorString(malformed HTTP response "garbage")`, conn, retryhttp.MalformedResponse, maybeSent}, nil},
		{"garbage / partial headers: bad header", says("HTTP/1.1 200 OK\r\n: none\r\n\r\n"),
			chainAnswer{`*fmt.wrapError(net/http: HTTP/1.x transport connection broken) > textproto.ProtocolError`, conn, retryhttp.MalformedResponse, maybeSent}, nil},
		{"garbage / partial headers: endless headers", endlessHeaders,
			chainAnswer{`*fmt.wrapError(net/http: HTTP/1.x transport connection broken) > *errors.errorString(net/http: server response headers exceeded 1024 bytes; aborted)`, conn, retryhttp.MalformedResponse, maybeSent}, nil},
		{"garbage / partial headers: partial", says("HTTP/1.1 200 OK\r\nX-Half: "),
			chainAnswer{`*fmt.wrapError(net/http: HTTP/1.x transport connection broken) > io.ErrUnexpectedEOF`, conn, retryhttp.BodyTruncated, maybeSent}, nil},
		{"response header timeout", headerTimeout,
			chainAnswer{`*http.timeoutError`, conn, retryhttp.Timeout, maybeSent}, nil},
		{"response header timeout: h2", h2(nothing, func(t *http.Transport) { t.ResponseHeaderTimeout = time.Second }),
			chainAnswer{`*http.http2httpError`, conn, retryhttp.Timeout, maybeSent}, nil},
		{"Client.Timeout", clientTimeout,
			chainAnswer{`*url.Error(Get) > *http.timeoutError`, conn, retryhttp.Timeout, maybeSent}, // the machine is so busy that it was not connected by then
			&chainAnswer{`*url.Error(Get) > *http.timeoutError`, noConn, retryhttp.Timeout, maybeSent}},
		{"h2 REFUSED_STREAM", h2(streamReset(7), nil),
			chainAnswer{`http.http2StreamError`, conn, retryhttp.StreamReset, unsent}, nil},
		{"h2 GOAWAY above LastStreamID: graceful", h2OneShot(goAway(0, 0)),
			chainAnswer{`*errors.errorString(http2: Transport: cannot retry err [http2: Transport received Server's graceful shutdown GOAWAY] after Request.Body was written; define Request.GetBody to avoid this error)`, conn, retryhttp.BodyNotReplayable, unsent}, nil}, // a request that net/http can replay goes on forever
		{"h2 GOAWAY above LastStreamID: with an error", h2(goAway(0, 11), nil),
			chainAnswer{`*errors.errorString(http2: Transport received GOAWAY from server ErrCode:ENHANCE_YOUR_CALM)`, conn, retryhttp.StreamReset, unsent}, nil},
		{"h2 GOAWAY, stream at LastStreamID", h2(goAway(1, 0), nil),
			chainAnswer{`http.http2GoAwayError`, conn, retryhttp.StreamReset, maybeSent}, nil},
		{"h2 connection lost", h2(nothing, func(t *http.Transport) {
			t.HTTP2 = &http.HTTP2Config{SendPingTimeout: time.Second, PingTimeout: time.Second}
		}),
			chainAnswer{`*errors.errorString(http2: client connection lost)`, conn, retryhttp.ConnClosed, maybeSent}, nil},
		{"h2 closed before response", h2(func(*frames, uint32) bool { return false }, nil),
			chainAnswer{`io.ErrUnexpectedEOF`, conn, retryhttp.BodyTruncated, maybeSent}, nil},
		{"h2 garbage", h2(garbage, nil),
			chainAnswer{`http.http2ConnectionError`, conn, retryhttp.MalformedResponse, maybeSent}, nil},
		{"h2 INTERNAL_ERROR / CANCEL from peer: INTERNAL_ERROR", h2(streamReset(2), nil),
			chainAnswer{`http.http2StreamError`, conn, retryhttp.StreamReset, maybeSent}, nil},
		{"h2 INTERNAL_ERROR / CANCEL from peer: CANCEL", h2(streamReset(8), nil),
			chainAnswer{`http.http2StreamError`, conn, retryhttp.StreamReset, maybeSent}, nil},
		{"truncated body after 2xx headers", answered("http", retrytest.Answer{Fault: retrytest.Truncate}),
			chainAnswer{`io.ErrUnexpectedEOF`, conn, retryhttp.BodyTruncated, maybeSent}, nil},
		{"truncated body after 2xx headers: chunked", says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf"),
			chainAnswer{`io.ErrUnexpectedEOF`, conn, retryhttp.BodyTruncated, maybeSent}, nil},

		// The request.
		{"unsupported scheme", spoiled(func(r *http.Request) { r.URL.Scheme = "gopher" }),
			chainAnswer{`*errors.errorString(unsupported protocol scheme "gopher")`, noConn, retryhttp.InvalidRequest, unsent}, nil},
		{"no host", spoiled(func(r *http.Request) { r.URL.Host = "" }),
			chainAnswer{`*errors.errorString(http: no Host in request URL)`, noConn, retryhttp.InvalidRequest, unsent}, nil},
		{"bad method", spoiled(func(r *http.Request) { r.Method = "A B" }),
			chainAnswer{`*errors.errorString(net/http: invalid method "A B")`, noConn, retryhttp.InvalidRequest, unsent}, nil},
		{"bad header", spoiled(func(r *http.Request) { r.Header["A"] = []string{"b\r\nc"} }),
			chainAnswer{`*errors.errorString(net/http: invalid header field value for "A")`, noConn, retryhttp.InvalidRequest, unsent}, nil},
		{"bad header: nil", spoiled(func(r *http.Request) { r.Header = nil }),
			chainAnswer{`*errors.errorString(http: nil Request.Header)`, noConn, retryhttp.InvalidRequest, unsent}, nil},
		{"bad header: h2", h2Request(func(r *http.Request) { r.Header["Connection"] = []string{"x"} }),
			chainAnswer{`*fmt.wrapError(http2) > *errors.errorString(invalid Connection request header: ["x"])`, conn, retryhttp.InvalidRequest, maybeSent}, nil},
		{"bad trailer", spoiled(func(r *http.Request) { r.Trailer = http.Header{"A": {"b\r\nc"}} }),
			chainAnswer{`*errors.errorString(net/http: invalid trailer field value for "A")`, noConn, retryhttp.InvalidRequest, unsent}, nil},
		{"bad host", badHost,
			chainAnswer{`http.nothingWrittenError > *errors.errorString(http: invalid Host header)`, conn, retryhttp.InvalidRequest, maybeSent}, // rare: the writer has closed the connection under the reader, whose error wins
			&chainAnswer{`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent}},                                     // without a proxy net/http sends no Host at all
		{"bad host: h2", h2Request(func(r *http.Request) { r.Host = "a b" }),
			chainAnswer{`*fmt.wrapError(http2) > *errors.errorString(invalid Host header)`, conn, retryhttp.InvalidRequest, maybeSent}, nil},
		{"bad URL", written(func(r *http.Request) { r.URL = &url.URL{Scheme: "http", Host: r.URL.Host, Opaque: "\r\n"} }),
			chainAnswer{`http.nothingWrittenError > *errors.errorString(net/http: can't write control character in Request.URL)`, conn, retryhttp.InvalidRequest, maybeSent}, // rare: the writer has closed the connection under the reader, whose error wins
			&chainAnswer{`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent}},
		{"bad URL: unparsable", func(*scene) error { _, err := http.NewRequest("GET", "http://[", nil); return err },
			chainAnswer{`*url.Error(parse) > *errors.errorString(missing ']' in host)`, noConn, retryhttp.InvalidRequest, unsent}, nil},
		{"nil URL", spoiled(func(r *http.Request) { r.URL = nil }),
			chainAnswer{`*errors.errorString(http: nil Request.URL)`, noConn, retryhttp.InvalidRequest, unsent}, nil},
		{"RequestURI set, via Client", viaClient(spoiled(func(r *http.Request) { r.RequestURI = "/" })),
			chainAnswer{`*url.Error(Get) > *errors.errorString(http: Request.RequestURI can't be set in client requests)`, noConn, retryhttp.InvalidRequest, unsent}, nil},
		{"stopped after N redirects", viaClient(redirects),
			chainAnswer{`*url.Error(Get) > *errors.errorString(stopped after 10 redirects)`, conn, retryhttp.Redirect, maybeSent}, nil},
		{"stopped after N redirects: unparsable Location", viaClient(answered("http", retrytest.Answer{Status: 302, Header: http.Header{"Location": {"http://["}}})),
			chainAnswer{`*url.Error(Get) > *errors.errorString(failed to parse Location header "http://[": parse "http://[": missing ']' in host)`, conn, retryhttp.Redirect, maybeSent}, nil},
		{"CheckRedirect error", checkRedirect,
			chainAnswer{`*url.Error(Get) > *errors.errorString(not there)`, conn, retryhttp.TransportError, maybeSent}, nil},
		{"ContentLength mismatch: short", body(10, strings.NewReader("abc")),
			chainAnswer{`http.nothingWrittenError > *errors.errorString(http: ContentLength=10 with Body length 3)`, conn, retryhttp.BodyFailed, maybeSent}, // rare: the writer has closed the connection under the reader, whose error wins
			&chainAnswer{`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent}},
		{"ContentLength mismatch: long", body(2, strings.NewReader("abc")),
			chainAnswer{`http.nothingWrittenError > *errors.errorString(http: ContentLength=2 with Body length 3)`, conn, retryhttp.BodyFailed, maybeSent}, // rare: the writer has closed the connection under the reader, whose error wins
			&chainAnswer{`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent}},
		{"ContentLength mismatch: long, h2", h2Request(func(r *http.Request) {
			r.Method, r.ContentLength, r.Body = "PUT", 2, io.NopCloser(strings.NewReader("abc"))
		}),
			chainAnswer{`*errors.errorString(http2: request body larger than specified content length)`, conn, retryhttp.BodyFailed, maybeSent}, nil},
		{"request body Read error", body(-1, failingReader{errors.New("disk on fire")}),
			chainAnswer{`*errors.errorString(disk on fire)`, conn, retryhttp.TransportError, maybeSent}, nil},
		{"cannot rewind body", cannotRewind,
			chainAnswer{`*errors.errorString(net/http: cannot rewind body after connection loss)`, noConn, retryhttp.BodyNotReplayable, maybeSent}, nil},
		{"define Request.GetBody", h2OneShot(streamReset(7)),
			chainAnswer{`*errors.errorString(http2: Transport: cannot retry err [stream error: stream ID 1; REFUSED_STREAM; received from peer] after Request.Body was written; define Request.GetBody to avoid this error)`, conn, retryhttp.BodyNotReplayable, unsent}, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := &scene{t: t, transport: &http.Transport{}}
			t.Cleanup(func() { s.transport.CloseIdleConnections() })
			err := row.fail(s)
			require.Error(t, err)
			got := chainAnswer{chainOf(err), s.gotConn.Load(), retryhttp.ReasonOf(err), unsentByChain(err)}
			want := []chainAnswer{row.want}
			if row.or != nil {
				want = append(want, *row.or)
			}
			if runtime.GOOS != "linux" {
				got.chain = ""
				for i := range want {
					want[i].chain = ""
				}
			}
			require.Contains(t, want, got, "%v", err)

			attempt := &retryhttp.AttemptError{Reason: got.reason, Err: err}
			for _, classify := range []retry.Classifier{retryhttp.Classify, retryhttp.ClassifyStrict} {
				class := classify(attempt)
				require.NotEqual(t, retry.Unknown, class, "an attempt's error gets a firm answer")
				if got.reason == retryhttp.TransportError || errors.Is(err, context.Canceled) {
					class = retry.Unknown // the error itself is left to other rules
				}
				require.Equal(t, class, classify(err))
			}
		})
	}
}

// unsentByChain reports whether a Transport knows from err alone that the request was not sent: its Base calls no trace.
func unsentByChain(err error) bool {
	silent := roundTripper(func(*http.Request) (*http.Response, error) { return nil, err })
	_, failure := (&retryhttp.Transport{Base: silent, Policy: retry.Policy{Disabled: true}}).RoundTrip(get(context.Background()))
	var attempt *retryhttp.AttemptError
	return errors.As(failure, &attempt) && attempt.Unsent
}

// chainOf writes an error's chain as text: "*net.OpError(dial) > *os.SyscallError > syscall.Errno(connection refused)".
// An error without a type of its own shows its text.
func chainOf(err error) string {
	var links []string
	for ; err != nil; err = errors.Unwrap(err) {
		link := fmt.Sprintf("%T", err)
		var op *net.OpError
		switch typed := err.(type) {
		case *net.OpError:
			op = typed
			link += "(" + op.Op + ")"
		case *url.Error:
			link += "(" + typed.Op + ")"
		case syscall.Errno:
			link += "(" + typed.Error() + ")"
		default:
			switch {
			case err == io.EOF:
				link = "io.EOF"
			case err == io.ErrUnexpectedEOF:
				link = "io.ErrUnexpectedEOF"
			case err == context.Canceled:
				link = "context.Canceled"
			case strings.HasPrefix(link, "*errors."), strings.HasPrefix(link, "*fmt."), strings.HasPrefix(link, "tls.alert"):
				text, _, _ := strings.Cut(err.Error(), ": "+textOf(errors.Unwrap(err)))
				link += "(" + text + ")"
			}
		}
		links = append(links, link)
	}
	return strings.Join(links, " > ")
}

func textOf(err error) string {
	if err == nil {
		return "\x00"
	}
	return err.Error()
}

// scene is one situation: a transport and the servers it meets.
type scene struct {
	t         *testing.T
	transport *http.Transport
	client    bool                                       // send by http.Client
	check     func(*http.Request, []*http.Request) error // its CheckRedirect
	timeout   time.Duration                              // its Timeout
	gotConn   atomic.Bool
	wrote     func() // called when the request is written
}

// get sends a GET and returns how it failed, in the body at last.
func (s *scene) get(url string) error {
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", url, nil)
	require.NoError(s.t, err)
	return s.do(req)
}

func (s *scene) do(req *http.Request) error {
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { s.gotConn.Store(true) },
		WroteRequest: func(httptrace.WroteRequestInfo) {
			if s.wrote != nil {
				s.wrote()
			}
		},
	}))
	send := s.transport.RoundTrip
	if s.client {
		send = (&http.Client{Transport: s.transport, CheckRedirect: s.check, Timeout: s.timeout}).Do
	}
	resp, err := send(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// serve starts a server that hands each connection to handle and closes it after. It returns its address. The test ends
// once every connection is closed, by the other side too.
func (s *scene) serve(handle func(*net.TCPConn)) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a hang must not be forever
				handle(conn.(*net.TCPConn))
			})
		}
	})
	s.t.Cleanup(func() {
		s.transport.CloseIdleConnections()
		require.NoError(s.t, listener.Close())
		connections.Wait()
	})
	return listener.Addr().String()
}

// What a server does with a connection.

func drain(c *net.TCPConn)     { _, _ = io.Copy(io.Discard, c) }
func halfClose(c *net.TCPConn) { _ = c.CloseWrite(); drain(c) }

var hangUp = retrytest.Answer{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })}

// answered sends a GET to a server without TLS that answers so.
func answered(scheme string, answers ...retrytest.Answer) func(*scene) error {
	return func(s *scene) error {
		return s.get(scheme + strings.TrimPrefix(retrytest.NewServer(s.t, answers).URL, "http"))
	}
}

// says sends a GET to a server without TLS that answers with this text as it is, and closes the connection.
func says(text string) func(*scene) error {
	return answered("http", retrytest.Answer{Handler: socketSays(text)})
}

// handshake serves what should be TLS: one byte is read, and then answered by handle.
func handshake(handle func(*net.TCPConn)) func(*scene) error {
	return func(s *scene) error {
		return s.get("https://" + s.serve(func(c *net.TCPConn) {
			_, _ = io.ReadFull(c, make([]byte, 1))
			handle(c)
		}))
	}
}

func viaClient(fail func(*scene) error) func(*scene) error {
	return func(s *scene) error {
		s.client = true
		return fail(s)
	}
}

// The caller.

func canceledBefore(cause error) func(*scene) error {
	return func(s *scene) error {
		ctx, cancel := context.WithCancelCause(s.t.Context())
		cancel(cause)
		req, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:1", nil)
		require.NoError(s.t, err)
		return s.do(req)
	}
}

func deadlineBefore(s *scene) error {
	ctx, cancel := context.WithDeadline(s.t.Context(), time.Unix(0, 0))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:1", nil)
	require.NoError(s.t, err)
	return s.do(req)
}

// meanwhile returns the URL of a server that calls f once a request has arrived, and does not answer it.
func (s *scene) meanwhile(f func()) string {
	return retrytest.NewServer(s.t, []retrytest.Answer{{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		f()
		<-r.Context().Done()
	})}}).URL
}

func legacyCancel(s *scene) error {
	cancel := make(chan struct{})
	req, err := http.NewRequest("GET", s.meanwhile(func() { close(cancel) }), nil)
	require.NoError(s.t, err)
	//lint:ignore SA1019 http.Client still uses it
	req.Cancel = cancel
	return s.do(req)
}

func canceledWaiting(cause error) func(*scene) error {
	return func(s *scene) error {
		ctx, cancel := context.WithCancelCause(s.t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", s.meanwhile(func() { cancel(cause) }), nil)
		require.NoError(s.t, err)
		return s.do(req)
	}
}

// The way to the server.

func refused(s *scene) error { return s.get("http://" + unheard) }

// controlled fails in place of connect(2).
func controlled(err error) func(*scene) error {
	return func(s *scene) error {
		dialer := net.Dialer{Control: func(string, string, syscall.RawConn) error { return err }}
		s.transport.DialContext = dialer.DialContext
		return s.get("http://127.0.0.1:1")
	}
}

func dialTimeout(s *scene) error {
	s.transport.DialContext = (&net.Dialer{Deadline: time.Unix(1, 0)}).DialContext
	return s.get("http://127.0.0.1:1")
}

// resolved asks a name server that answers a query with answer(query), or refuses connections if answer is nil.
func resolved(answer func([]byte) []byte) func(*scene) error {
	return func(s *scene) error {
		s.resolve(answer)
		return s.get("http://missing.example.")
	}
}

func (s *scene) resolve(answer func([]byte) []byte) {
	server := "127.0.0.1:1"
	if answer != nil {
		server = s.serve(func(c *net.TCPConn) {
			for { // RFC 1035, section 4.2.2: a message over TCP has its length before it
				var size [2]byte
				if _, err := io.ReadFull(c, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(c, query); err != nil {
					return
				}
				message := answer(query)
				_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
			}
		})
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", server)
	}}
	s.transport.DialContext = (&net.Dialer{Resolver: resolver}).DialContext
}

// dnsAnswers answers a query with the response code (RFC 1035, section 4.1.1) and no records.
func dnsAnswers(code byte) func([]byte) []byte {
	return func(query []byte) []byte {
		end := 12 + bytes.IndexByte(query[12:], 0) + 5 // the question: a name, type and class
		message := bytes.Clone(query[:end])
		message[2], message[3] = 0x81, 0x80|code            // a response, recursion desired and available
		copy(message[4:12], []byte{0, 1, 0, 0, 0, 0, 0, 0}) // one question
		return message
	}
}

func handshakeTimeout(s *scene) error {
	s.transport.TLSHandshakeTimeout = time.Millisecond
	return s.get("https://" + s.serve(drain))
}

// overTLS meets a TLS server, after change has spoiled the configurations of both sides.
func overTLS(change func(server, client *tls.Config)) func(*scene) error {
	return func(s *scene) error {
		return s.get("https://" + s.serveTLS(change, func(c *net.TCPConn) net.Conn { return c }))
	}
}

// serveTLS starts a server that does its handshake over what wrap returns and waits for the client to go.
func (s *scene) serveTLS(change func(server, client *tls.Config), wrap func(*net.TCPConn) net.Conn) string {
	of := httptest.NewTLSServer(nil) // its certificate is for 127.0.0.1, until 2084
	defer of.Close()
	server := &tls.Config{Certificates: of.TLS.Certificates}
	s.transport.TLSClientConfig = of.Client().Transport.(*http.Transport).TLSClientConfig
	change(server, s.transport.TLSClientConfig)
	return s.serve(func(c *net.TCPConn) {
		_ = tls.Server(wrap(c), server).Handshake()
		drain(c)
	})
}

func unknownCA(_, client *tls.Config) { client.RootCAs = x509.NewCertPool() }
func otherHost(_, client *tls.Config) { client.ServerName = "other.example" }
func inTheFuture(_, client *tls.Config) {
	client.Time = func() time.Time { return time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) }
}
func olderTLS(server, client *tls.Config) {
	server.MinVersion, client.MaxVersion = tls.VersionTLS13, tls.VersionTLS12
}

func wantsCertificate(version uint16) func(server, client *tls.Config) {
	return func(server, _ *tls.Config) {
		server.ClientAuth, server.MinVersion, server.MaxVersion = tls.RequireAnyClientCert, version, version
	}
}

// noCurve has no key exchange to offer.
func noCurve(s *scene) error {
	s.transport.TLSClientConfig = &tls.Config{CurvePreferences: []tls.CurveID{99}}
	return s.get("https://" + s.serve(drain))
}

// lateCertificate meets a server of TLS 1.3 that wants a client's certificate, which it can say only after the client has
// begun to send. Here it waits until the whole request is written.
func lateCertificate(s *scene) error {
	written := make(chan struct{})
	s.wrote = sync.OnceFunc(func() { close(written) })
	return s.get("https://" + s.serveTLS(wantsCertificate(tls.VersionTLS13), func(c *net.TCPConn) net.Conn {
		return &answeredConn{Conn: c, next: written}
	}))
}

// answeredConn reads nothing more, once it has written, before next is closed.
type answeredConn struct {
	net.Conn
	wrote bool
	next  <-chan struct{}
}

func (c *answeredConn) Write(p []byte) (int, error) {
	c.wrote = true
	return c.Conn.Write(p)
}

func (c *answeredConn) Read(p []byte) (int, error) {
	if c.wrote {
		<-c.next
	}
	return c.Conn.Read(p)
}

func (s *scene) proxy(address string) {
	proxy, err := url.Parse(address)
	require.NoError(s.t, err)
	s.transport.Proxy = http.ProxyURL(proxy)
}

func proxyRefused(s *scene) error {
	s.proxy("http://127.0.0.1:1")
	return s.get("https://service.example")
}

func proxyUnknown(s *scene) error {
	s.resolve(dnsAnswers(3))
	s.proxy("http://proxy.example.:3128")
	return s.get("http://service.example")
}

func connectAnswer(status string) func(*scene) error {
	return func(s *scene) error {
		s.proxy(retrytest.NewServer(s.t, []retrytest.Answer{{Handler: socketSays("HTTP/1.1 " + status + "\r\n\r\n")}}).URL)
		return s.get("https://service.example")
	}
}

// socksRefused meets a SOCKS5 proxy that answers "connection refused" (RFC 1928, section 6).
func socksRefused(s *scene) error {
	s.proxy("socks5://" + s.serve(func(c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 3))
		_, _ = c.Write([]byte{5, 0})
		_, _ = io.ReadFull(c, make([]byte, 1))
		_, _ = c.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
		drain(c)
	}))
	return s.get("http://service.example")
}

// After the connection.

// closedIdle meets a server that answers once and closes the connection when the second request is on its way.
func closedIdle(s *scene) error {
	url := retrytest.NewServer(s.t, []retrytest.Answer{{}, hangUp}).URL
	require.NoError(s.t, s.get(url))
	req, err := http.NewRequest("PUT", url, http.NoBody)
	require.NoError(s.t, err)
	return s.do(req)
}

// brokenWrite fails the first write, as if the other side or we had shut the connection.
func brokenWrite(shut func(*net.TCPConn) error) func(*scene) error {
	return func(s *scene) error {
		s.transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &brokenConn{conn, shut}, nil
		}
		return s.get("http://" + s.serve(func(*net.TCPConn) { <-s.t.Context().Done() })) // as a server that hangs
	}
}

type brokenConn struct {
	net.Conn
	shut func(*net.TCPConn) error
}

func (c *brokenConn) Write(p []byte) (int, error) {
	_ = c.shut(c.Conn.(*net.TCPConn))
	return c.Conn.Write(p)
}

func endlessHeaders(s *scene) error {
	s.transport.MaxResponseHeaderBytes = 1 << 10
	return says("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 10<<10))(s)
}

func headerTimeout(s *scene) error {
	s.transport.ResponseHeaderTimeout = time.Millisecond
	return answered("http", retrytest.Answer{Fault: retrytest.HangHeaders, Times: retrytest.Forever})(s)
}

func clientTimeout(s *scene) error {
	s.timeout = 20 * time.Millisecond
	return viaClient(answered("http", retrytest.Answer{Fault: retrytest.HangHeaders, Times: retrytest.Forever}))(s)
}

func nothing(*frames, uint32) bool { return true }

func garbage(f *frames, _ uint32) bool {
	f.writeBytes(frameHeaders, 4, 0, []byte("garbage"))
	return true
}

func streamReset(code uint32) func(*frames, uint32) bool {
	return func(f *frames, stream uint32) bool {
		f.write(frameReset, 0, stream, code)
		return true
	}
}

// goAway answers with GOAWAY. The connection stays open if the stream is above last; otherwise it is closed.
func goAway(last, code uint32) func(*frames, uint32) bool {
	return func(f *frames, _ uint32) bool {
		f.write(frameGoAway, 0, 0, last, code)
		return last == 0
	}
}

// h2 serves HTTP/2 without TLS. It is the one kind of server that is not on the loopback: net/http repeats a refused
// stream six times by itself, for a minute, which only a fake clock makes short, and that goes with pipes only.
func h2(answer func(*frames, uint32) bool, with func(*http.Transport)) func(*scene) error {
	return func(s *scene) error { return s.h2(answer, with, func(*http.Request) {}) }
}

func h2Request(change func(*http.Request)) func(*scene) error {
	return func(s *scene) error { return s.h2(nothing, nil, change) }
}

// h2OneShot sends a body without GetBody.
func h2OneShot(answer func(*frames, uint32) bool) func(*scene) error {
	return func(s *scene) error {
		return s.h2(answer, nil, func(r *http.Request) {
			r.Method, r.ContentLength, r.Body = "PUT", 3, io.NopCloser(strings.NewReader("abc"))
		})
	}
}

func (s *scene) h2(answer func(*frames, uint32) bool, with func(*http.Transport), change func(*http.Request)) (err error) {
	synctest.Test(s.t, func(t *testing.T) {
		overFrames(answer, func(transport *http.Transport) {
			if with != nil {
				with(transport)
			}
			inside := &scene{t: t, transport: transport}
			req, reqErr := http.NewRequest("GET", "http://service.example", nil)
			require.NoError(t, reqErr)
			change(req)
			err = inside.do(req)
			s.gotConn.Store(inside.gotConn.Load())
		})
	})
	return err
}

// The request.

// spoiled sends a GET, changed by change, to an address without a server.
func spoiled(change func(*http.Request)) func(*scene) error {
	return func(s *scene) error {
		req, err := http.NewRequest("GET", "http://127.0.0.1:1", nil)
		require.NoError(s.t, err)
		change(req)
		return s.do(req)
	}
}

// written sends a GET that change has spoiled to a server that waits.
func written(change func(*http.Request)) func(*scene) error {
	return func(s *scene) error {
		req, err := http.NewRequest("GET", "http://"+s.serve(drain), nil)
		require.NoError(s.t, err)
		change(req)
		return s.do(req)
	}
}

func badHost(s *scene) error {
	s.proxy("http://" + s.serve(drain))
	return spoiled(func(r *http.Request) { r.Host = "a b" })(s)
}

// body sends a PUT with a body.
func body(length int64, r io.Reader) func(*scene) error {
	return written(func(req *http.Request) {
		req.Method, req.ContentLength, req.Body = "PUT", length, io.NopCloser(r)
	})
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func redirects(s *scene) error {
	return answered("http", retrytest.Answer{Status: 302, Header: http.Header{"Location": {"/"}}, Times: retrytest.Forever})(s)
}

func checkRedirect(s *scene) error {
	s.check = func(*http.Request, []*http.Request) error { return errors.New("not there") }
	return viaClient(redirects)(s)
}

// cannotRewind reads the body before the connection is chosen.
func cannotRewind(s *scene) error {
	s.transport.RegisterProtocol("http", readsBody{})
	return body(3, strings.NewReader("abc"))(s)
}

type readsBody struct{}

func (readsBody) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	return nil, http.ErrSkipAltProtocol
}
