package retryhttp_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
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
	class   retry.Class
	strict  retry.Class
}

// chainRow is one row of the table. A situation with a race in it has several answers.
type chainRow struct {
	name string
	fail func(*scene) error
	want []chainAnswer
}

// TestChains makes every way in which an http.RoundTripper is known to fail and says what the error is made of, so that
// a Go that changes one of them is noticed here.
func TestChains(t *testing.T) {
	t.Parallel()
	const (
		unknown   = retry.Unknown
		retryable = retry.Retryable
		terminal  = retry.Terminal

		noConn, conn      = false, true // httptrace.GotConn
		maybeSent, unsent = false, true // by the chain alone
	)
	type answers = []chainAnswer
	rows := []chainRow{
		// The caller.
		{"caller ctx done: canceled", canceledBefore(nil), answers{{
			`context.Canceled`, noConn, retryhttp.Canceled, maybeSent, unknown, unknown,
		}}},
		{"caller ctx done: canceled with a cause", canceledBefore(errors.New("shutting down")), answers{{
			`*errors.errorString(shutting down)`, noConn, retryhttp.TransportError, maybeSent, unknown, unknown,
		}}},
		{"caller ctx done: deadline passed", deadlineBefore, answers{{
			`context.deadlineExceededError`, noConn, retryhttp.Timeout, maybeSent, retryable, retryable,
		}}},
		{"caller ctx done: req.Cancel closed", legacyCancel, answers{{
			`*errors.errorString(net/http: request canceled)`, conn, retryhttp.Canceled, maybeSent, terminal, terminal,
		}}},
		{"attempt timeout", canceledWaiting(retry.ErrAttemptTimeout), answers{{
			`attempt.timeout`, conn, retryhttp.AttemptTimeout, maybeSent, retryable, retryable,
		}}},

		// The way to the server.
		{"refused / no route / network unreachable: refused", refused, answers{{
			`*net.OpError(dial) > *os.SyscallError > syscall.Errno(connection refused)`, noConn, retryhttp.ConnRefused, unsent, retryable, retryable,
		}}},
		{"refused / no route / network unreachable: network unreachable", controlled(os.NewSyscallError("connect", syscall.ENETUNREACH)), answers{{
			`*net.OpError(dial) > *os.SyscallError > syscall.Errno(network is unreachable)`, noConn, retryhttp.DialFailed, unsent, retryable, retryable,
		}}},
		{"refused / no route / network unreachable: no route", controlled(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), answers{{
			`*net.OpError(dial) > *os.SyscallError > syscall.Errno(no route to host)`, noConn, retryhttp.DialFailed, unsent, retryable, retryable,
		}}},
		{"dial timeout", dialTimeout, answers{{
			`*net.OpError(dial) > *net.timeoutError`, noConn, retryhttp.DialTimeout, unsent, retryable, retryable,
		}}},
		{"dial failed otherwise", controlled(os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)), answers{{
			`*net.OpError(dial) > *os.SyscallError > syscall.Errno(cannot assign requested address)`, noConn, retryhttp.DialFailed, unsent, retryable, retryable,
		}}},
		{"DNS temporary: server down", resolved(nil), answers{{
			`*net.OpError(dial) > *net.DNSError`, noConn, retryhttp.DNSFailed, unsent, retryable, retryable,
		}}},
		{"DNS temporary: server misbehaving", resolved(dnsAnswers(2)), answers{{
			`*net.OpError(dial) > *net.DNSError`, noConn, retryhttp.DNSFailed, unsent, retryable, retryable,
		}}},
		{"NXDOMAIN", resolved(dnsAnswers(3)), answers{{
			`*net.OpError(dial) > *net.DNSError`, noConn, retryhttp.DNSNotFound, unsent, retryable, terminal,
		}}},
		{"dialer guard veto", controlled(fmt.Errorf("%w: 127.0.0.1", ssrf.ErrBlocked)), answers{{
			`*net.OpError(dial) > *fmt.wrapError(ssrf: address is blocked: 127.0.0.1) > *errors.errorString(ssrf: address is blocked)`, noConn, retryhttp.AddressBlocked, unsent, terminal, terminal,
		}}},
		{"TLS handshake timeout", handshakeTimeout, answers{{
			`http.tlsHandshakeTimeoutError`, noConn, retryhttp.DialTimeout, unsent, retryable, retryable,
		}}},
		{"reset/EOF in handshake: reset", answered("https", retrytest.Answer{Fault: retrytest.ResetUnread}), answers{{
			`*net.OpError(read) > *os.SyscallError > syscall.Errno(connection reset by peer)`, noConn, retryhttp.ConnReset, maybeSent, retryable, retryable,
		}}},
		{"reset/EOF in handshake: EOF", handshake(halfClose), answers{{
			`io.EOF`, noConn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}}},
		{"unknown CA / hostname / expired: unknown CA", untrusted("127.0.0.1", time.Hour, false), answers{{
			`*tls.CertificateVerificationError > x509.UnknownAuthorityError`, noConn, retryhttp.TLSCertificate, unsent, retryable, terminal,
		}}},
		{"unknown CA / hostname / expired: hostname", untrusted("other.example", time.Hour, true), answers{{
			`*tls.CertificateVerificationError > x509.HostnameError`, noConn, retryhttp.TLSCertificate, unsent, retryable, terminal,
		}}},
		{"unknown CA / hostname / expired: expired", untrusted("127.0.0.1", -time.Hour, true), answers{{
			`*tls.CertificateVerificationError > x509.CertificateInvalidError`, noConn, retryhttp.TLSCertificate, unsent, retryable, terminal,
		}}},
		{"unknown CA / hostname / expired: via Client", viaClient(untrusted("127.0.0.1", time.Hour, false)), answers{{
			`*url.Error(Get) > *tls.CertificateVerificationError > x509.UnknownAuthorityError`, noConn, retryhttp.TLSCertificate, unsent, retryable, terminal,
		}}},
		{"TLS alert from peer: version", versionAlert, answers{{
			`*tls.permanentError > *net.OpError(remote error) > tls.alert(tls: protocol version not supported)`, noConn, retryhttp.TLSAlert, maybeSent, retryable, terminal,
		}}},
		{"TLS alert from peer: client certificate required, TLS 1.2", certificateRequired(tls.VersionTLS12), answers{{
			`*tls.permanentError > *net.OpError(remote error) > tls.alert(tls: handshake failure)`, noConn, retryhttp.TLSAlert, maybeSent, retryable, terminal,
		}}},
		{"TLS alert from peer: client certificate required, TLS 1.3", certificateRequired(tls.VersionTLS13), answers{{
			`*tls.permanentError > *net.OpError(remote error) > tls.alert(tls: certificate required)`, conn, retryhttp.TLSAlert, maybeSent, retryable, terminal,
		}}},
		{"TLS failed on our side", noCurve, answers{{
			`*errors.errorString(tls: no supported elliptic curves for ECDHE)`, noConn, retryhttp.TLSFailed, maybeSent, retryable, retryable,
		}}},
		{"HTTPS to plain port", answered("https"), answers{{
			`tls.RecordHeaderError`, noConn, retryhttp.TLSNotSpoken, unsent, retryable, terminal,
		}}},
		{"HTTPS to plain port: via Client", viaClient(answered("https")), answers{{
			`*url.Error(Get) > *errors.errorString(http: server gave HTTP response to HTTPS client)`, noConn, retryhttp.TLSNotSpoken, maybeSent, retryable, terminal,
		}}},
		{"proxy refused", proxyRefused, answers{{
			`*net.OpError(proxyconnect) > *net.OpError(dial) > *os.SyscallError > syscall.Errno(connection refused)`, noConn, retryhttp.ProxyConnect, unsent, retryable, retryable,
		}}},
		{"proxy refused: its name is unknown", proxyUnknown, answers{{
			`*net.OpError(proxyconnect) > *net.OpError(dial) > *net.DNSError`, noConn, retryhttp.ProxyConnect, unsent, retryable, retryable,
		}}},
		{"proxy CONNECT non-200: 503", connectAnswer("503 Service Unavailable"), answers{{
			`*errors.errorString(Service Unavailable)`, noConn, retryhttp.ProxyConnect, maybeSent, retryable, retryable,
		}}},
		{"proxy CONNECT non-200: 407", connectAnswer("407 Proxy Authentication Required"), answers{{
			`*errors.errorString(Proxy Authentication Required)`, noConn, retryhttp.ProxyAuth, maybeSent, retryable, terminal,
		}}},
		{"proxy CONNECT non-200: its own words", connectAnswer("503 Gone Fishing"), answers{{
			`*errors.errorString(Gone Fishing)`, noConn, retryhttp.TransportError, maybeSent, unknown, unknown,
		}}},
		{"proxy socks refused", socksRefused, answers{{
			`*net.OpError(socks connect) > *errors.errorString(unknown error connection refused)`, noConn, retryhttp.ProxyConnect, unsent, retryable, retryable,
		}}},

		// After the connection.
		{"reset before response", answered("http", retrytest.Answer{Fault: retrytest.ResetRead}), answers{{
			`*net.OpError(read) > *os.SyscallError > syscall.Errno(connection reset by peer)`, conn, retryhttp.ConnReset, maybeSent, retryable, retryable,
		}}},
		{"closed before response", answered("http", hangUp), answers{{
			`io.EOF`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}}},
		{"closed before response: idle", closedIdle, answers{{
			`io.EOF`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}, { // the server was first
			`*errors.errorString(http: server closed idle connection)`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}}},
		{"EPIPE / use of closed network connection: EPIPE", brokenWrite((*net.TCPConn).CloseWrite), answers{{
			`http.nothingWrittenError > *net.OpError(write) > *os.SyscallError > syscall.Errno(broken pipe)`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}, { // the writer has closed the connection under the reader
			`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}}},
		{"EPIPE / use of closed network connection: closed", brokenWrite((*net.TCPConn).Close), answers{{
			`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}, { // the writer was first
			`http.nothingWrittenError > *net.OpError(write) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}}},
		{"garbage / partial headers: garbage", answered("http", retrytest.Answer{Fault: retrytest.Garbage}), answers{{
			`*fmt.wrapError(net/http: HTTP/1.x transport connection broken) > *errors.errorString(malformed HTTP response "garbage")`, conn, retryhttp.MalformedResponse, maybeSent, retryable, retryable,
		}}},
		{"garbage / partial headers: bad header", afterRequest(says("HTTP/1.1 200 OK\r\n: none\r\n\r\n")), answers{{
			`*fmt.wrapError(net/http: HTTP/1.x transport connection broken) > textproto.ProtocolError`, conn, retryhttp.MalformedResponse, maybeSent, retryable, retryable,
		}}},
		{"garbage / partial headers: endless headers", endlessHeaders, answers{{
			`*fmt.wrapError(net/http: HTTP/1.x transport connection broken) > *errors.errorString(net/http: server response headers exceeded 1024 bytes; aborted)`, conn, retryhttp.MalformedResponse, maybeSent, retryable, retryable,
		}}},
		{"garbage / partial headers: partial", afterRequest(says("HTTP/1.1 200 OK\r\nX-Half: ")), answers{{
			`*fmt.wrapError(net/http: HTTP/1.x transport connection broken) > io.ErrUnexpectedEOF`, conn, retryhttp.BodyTruncated, maybeSent, retryable, retryable,
		}}},
		{"response header timeout", headerTimeout, answers{{
			`*http.timeoutError`, conn, retryhttp.Timeout, maybeSent, retryable, retryable,
		}}},
		{"response header timeout: h2", h2(nothing, func(t *http.Transport) { t.ResponseHeaderTimeout = time.Second }), answers{{
			`*http.http2httpError`, conn, retryhttp.Timeout, maybeSent, retryable, retryable,
		}}},
		{"Client.Timeout", clientTimeout, answers{{
			`*url.Error(Get) > *http.timeoutError`, conn, retryhttp.Timeout, maybeSent, retryable, retryable,
		}, { // the machine is so busy that it was not connected by then
			`*url.Error(Get) > *http.timeoutError`, noConn, retryhttp.Timeout, maybeSent, retryable, retryable,
		}}},
		{"h2 REFUSED_STREAM", h2(streamReset(7), nil), answers{{
			`http.http2StreamError`, conn, retryhttp.StreamReset, unsent, retryable, retryable,
		}}},
		{"h2 GOAWAY above LastStreamID: graceful", h2OneShot(goAway(0, 0)), answers{{
			`*errors.errorString(http2: Transport: cannot retry err [http2: Transport received Server's graceful shutdown GOAWAY] after Request.Body was written; define Request.GetBody to avoid this error)`, conn, retryhttp.BodyNotReplayable, unsent, terminal, terminal,
		}}}, // a request that net/http can replay goes on forever
		{"h2 GOAWAY above LastStreamID: with an error", h2(goAway(0, 11), nil), answers{{
			`*errors.errorString(http2: Transport received GOAWAY from server ErrCode:ENHANCE_YOUR_CALM)`, conn, retryhttp.StreamReset, unsent, retryable, retryable,
		}}},
		{"h2 GOAWAY, stream at LastStreamID", h2(goAway(1, 0), nil), answers{{
			`http.http2GoAwayError`, conn, retryhttp.StreamReset, maybeSent, retryable, retryable,
		}}},
		{"h2 connection lost", h2(nothing, func(t *http.Transport) {
			t.HTTP2 = &http.HTTP2Config{SendPingTimeout: time.Second, PingTimeout: time.Second}
		}), answers{{
			`*errors.errorString(http2: client connection lost)`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}}},
		{"h2 closed before response", h2(func(*http2Peer) bool { return false }, nil), answers{{
			`io.ErrUnexpectedEOF`, conn, retryhttp.BodyTruncated, maybeSent, retryable, retryable,
		}}},
		{"h2 garbage", h2(func(p *http2Peer) bool { p.frame(1, 4, 0, []byte("garbage")); return true }, nil), answers{{
			`http.http2ConnectionError`, conn, retryhttp.MalformedResponse, maybeSent, retryable, retryable,
		}}},
		{"h2 INTERNAL_ERROR / CANCEL from peer: INTERNAL_ERROR", h2(streamReset(2), nil), answers{{
			`http.http2StreamError`, conn, retryhttp.StreamReset, maybeSent, retryable, retryable,
		}}},
		{"h2 INTERNAL_ERROR / CANCEL from peer: CANCEL", h2(streamReset(8), nil), answers{{
			`http.http2StreamError`, conn, retryhttp.StreamReset, maybeSent, retryable, retryable,
		}}},
		{"truncated body after 2xx headers", answered("http", retrytest.Answer{Fault: retrytest.Truncate}), answers{{
			`io.ErrUnexpectedEOF`, conn, retryhttp.BodyTruncated, maybeSent, retryable, retryable,
		}}},
		{"truncated body after 2xx headers: chunked", afterRequest(says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf")), answers{{
			`io.ErrUnexpectedEOF`, conn, retryhttp.BodyTruncated, maybeSent, retryable, retryable,
		}}},

		// The request.
		{"unsupported scheme", spoiled(func(r *http.Request) { r.URL.Scheme = "gopher" }), answers{{
			`*errors.errorString(unsupported protocol scheme "gopher")`, noConn, retryhttp.InvalidRequest, unsent, terminal, terminal,
		}}},
		{"no host", spoiled(func(r *http.Request) { r.URL.Host = "" }), answers{{
			`*errors.errorString(http: no Host in request URL)`, noConn, retryhttp.InvalidRequest, unsent, terminal, terminal,
		}}},
		{"bad method", spoiled(func(r *http.Request) { r.Method = "A B" }), answers{{
			`*errors.errorString(net/http: invalid method "A B")`, noConn, retryhttp.InvalidRequest, unsent, terminal, terminal,
		}}},
		{"bad header", spoiled(func(r *http.Request) { r.Header["A"] = []string{"b\r\nc"} }), answers{{
			`*errors.errorString(net/http: invalid header field value for "A")`, noConn, retryhttp.InvalidRequest, unsent, terminal, terminal,
		}}},
		{"bad header: nil", spoiled(func(r *http.Request) { r.Header = nil }), answers{{
			`*errors.errorString(http: nil Request.Header)`, noConn, retryhttp.InvalidRequest, unsent, terminal, terminal,
		}}},
		{"bad header: h2", h2Request(func(r *http.Request) { r.Header["Connection"] = []string{"x"} }), answers{{
			`*fmt.wrapError(http2) > *errors.errorString(invalid Connection request header: ["x"])`, conn, retryhttp.InvalidRequest, maybeSent, terminal, terminal,
		}}},
		{"bad trailer", spoiled(func(r *http.Request) { r.Trailer = http.Header{"A": {"b\r\nc"}} }), answers{{
			`*errors.errorString(net/http: invalid trailer field value for "A")`, noConn, retryhttp.InvalidRequest, unsent, terminal, terminal,
		}}},
		{"bad host", badHost, answers{{
			`http.nothingWrittenError > *errors.errorString(http: invalid Host header)`, conn, retryhttp.InvalidRequest, maybeSent, terminal, terminal,
		}, { // rare: the writer has closed the connection under the reader, whose error wins
			`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}}}, // without a proxy net/http sends no Host at all
		{"bad host: h2", h2Request(func(r *http.Request) { r.Host = "a b" }), answers{{
			`*fmt.wrapError(http2) > *errors.errorString(invalid Host header)`, conn, retryhttp.InvalidRequest, maybeSent, terminal, terminal,
		}}},
		{"bad URL", written(func(r *http.Request) { r.URL = &url.URL{Scheme: "http", Host: r.URL.Host, Opaque: "\r\n"} }), answers{{
			`http.nothingWrittenError > *errors.errorString(net/http: can't write control character in Request.URL)`, conn, retryhttp.InvalidRequest, maybeSent, terminal, terminal,
		}, { // rare: the writer has closed the connection under the reader, whose error wins
			`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}}},
		{"bad URL: unparsable", func(*scene) error { _, err := http.NewRequest("GET", "http://[", nil); return err }, answers{{
			`*url.Error(parse) > *errors.errorString(missing ']' in host)`, noConn, retryhttp.InvalidRequest, unsent, terminal, terminal,
		}}},
		{"nil URL", spoiled(func(r *http.Request) { r.URL = nil }), answers{{
			`*errors.errorString(http: nil Request.URL)`, noConn, retryhttp.InvalidRequest, unsent, terminal, terminal,
		}}},
		{"RequestURI set, via Client", viaClient(spoiled(func(r *http.Request) { r.RequestURI = "/" })), answers{{
			`*url.Error(Get) > *errors.errorString(http: Request.RequestURI can't be set in client requests)`, noConn, retryhttp.InvalidRequest, unsent, terminal, terminal,
		}}},
		{"stopped after N redirects", viaClient(redirects), answers{{
			`*url.Error(Get) > *errors.errorString(stopped after 10 redirects)`, conn, retryhttp.Redirect, maybeSent, terminal, terminal,
		}}},
		{"stopped after N redirects: unparsable Location", viaClient(answered("http", retrytest.Answer{Status: 302, Header: http.Header{"Location": {"http://["}}})), answers{{
			`*url.Error(Get) > *errors.errorString(failed to parse Location header "http://[": parse "http://[": missing ']' in host)`, conn, retryhttp.Redirect, maybeSent, terminal, terminal,
		}}},
		{"CheckRedirect error", checkRedirect(errors.New("not there")), answers{{
			`*url.Error(Get) > *errors.errorString(not there)`, conn, retryhttp.TransportError, maybeSent, unknown, unknown,
		}}},
		{"http.ErrUseLastResponse", checkRedirect(http.ErrUseLastResponse), answers{{
			`*retryhttp.AttemptError`, conn, "status_302", maybeSent, terminal, terminal,
		}}},
		{"ContentLength mismatch: short", body(10, strings.NewReader("abc")), answers{{
			`http.nothingWrittenError > *errors.errorString(http: ContentLength=10 with Body length 3)`, conn, retryhttp.BodyFailed, maybeSent, terminal, terminal,
		}, { // rare: the writer has closed the connection under the reader, whose error wins
			`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}}},
		{"ContentLength mismatch: long", body(2, strings.NewReader("abc")), answers{{
			`http.nothingWrittenError > *errors.errorString(http: ContentLength=2 with Body length 3)`, conn, retryhttp.BodyFailed, maybeSent, terminal, terminal,
		}, { // rare: the writer has closed the connection under the reader, whose error wins
			`*net.OpError(read) > poll.errNetClosing`, conn, retryhttp.ConnClosed, maybeSent, retryable, retryable,
		}}},
		{"ContentLength mismatch: long, h2", h2Request(func(r *http.Request) {
			r.Method, r.ContentLength, r.Body = "PUT", 2, io.NopCloser(strings.NewReader("abc"))
		}), answers{{
			`*errors.errorString(http2: request body larger than specified content length)`, conn, retryhttp.BodyFailed, maybeSent, terminal, terminal,
		}}},
		{"request body Read error", body(-1, failingReader{errors.New("disk on fire")}), answers{{
			`*errors.errorString(disk on fire)`, conn, retryhttp.TransportError, maybeSent, unknown, unknown,
		}}},
		{"cannot rewind body", cannotRewind, answers{{
			`*errors.errorString(net/http: cannot rewind body after connection loss)`, noConn, retryhttp.BodyNotReplayable, maybeSent, terminal, terminal,
		}}},
		{"define Request.GetBody", h2OneShot(streamReset(7)), answers{{
			`*errors.errorString(http2: Transport: cannot retry err [stream error: stream ID 1; REFUSED_STREAM; received from peer] after Request.Body was written; define Request.GetBody to avoid this error)`, conn, retryhttp.BodyNotReplayable, unsent, terminal, terminal,
		}}},
		{"net.Error.Temporary()", func(s *scene) error {
			err := refused(s)
			var netErr net.Error
			require.ErrorAs(s.t, err, &netErr)
			//lint:ignore SA1019 this is why nothing here uses it
			require.False(s.t, netErr.Temporary(), "it says that a refused connection is forever")
			return err
		}, answers{{
			`*net.OpError(dial) > *os.SyscallError > syscall.Errno(connection refused)`, noConn, retryhttp.ConnRefused, unsent, retryable, retryable,
		}}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := &scene{t: t, transport: &http.Transport{}}
			t.Cleanup(func() { s.transport.CloseIdleConnections() })
			err := row.fail(s)
			require.Error(t, err)
			got := chainAnswer{
				chainOf(err), s.gotConn.Load(), retryhttp.ReasonOf(err), unsentByChain(err), retryhttp.Classify(err), retryhttp.ClassifyStrict(err),
			}
			want := row.want
			if runtime.GOOS != "linux" {
				want = slices.Clone(want)
				got.chain = ""
				for i := range want {
					want[i].chain = ""
				}
			}
			require.Contains(t, want, got, "%v", err)
			wrapped := &retryhttp.AttemptError{Reason: got.reason, Err: err}
			require.NotEqual(t, retry.Unknown, retryhttp.Classify(wrapped), "an attempt's error gets a firm answer")
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
	if resp.StatusCode != http.StatusOK {
		return &retryhttp.AttemptError{Reason: retryhttp.Reason("status_" + strconv.Itoa(resp.StatusCode)), StatusCode: resp.StatusCode}
	}
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

func says(text string) func(*net.TCPConn) {
	return func(c *net.TCPConn) { _, _ = io.WriteString(c, text) }
}

var hangUp = retrytest.Answer{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })}

// answered sends a GET to a server without TLS that answers so.
func answered(scheme string, answers ...retrytest.Answer) func(*scene) error {
	return func(s *scene) error {
		return s.get(scheme + strings.TrimPrefix(retrytest.NewServer(s.t, answers).URL, "http"))
	}
}

// afterRequest serves plain HTTP: a request is read, and then answered by handle.
func afterRequest(handle func(*net.TCPConn)) func(*scene) error {
	return func(s *scene) error {
		return s.get("http://" + s.serve(func(c *net.TCPConn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				handle(c)
			}
		}))
	}
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

// refused asks port 1, on which no server listens. A port that was just closed could be another test's by now.
func refused(s *scene) error { return s.get("http://127.0.0.1:1") }

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

// certificate returns a new certificate that signs itself.
func certificate(t *testing.T, host string, valid time.Duration) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-2 * time.Hour),
		NotAfter:              time.Now().Add(valid),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// secure starts a TLS server that does its handshake and waits for the client to go.
func (s *scene) secure(config *tls.Config) string {
	return s.serve(func(c *net.TCPConn) {
		_ = tls.Server(c, config).Handshake()
		drain(c)
	})
}

func untrusted(host string, valid time.Duration, trusted bool) func(*scene) error {
	return func(s *scene) error {
		cert := certificate(s.t, host, valid)
		roots := x509.NewCertPool()
		if trusted {
			roots.AddCert(cert.Leaf)
		}
		s.transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		return s.get("https://" + s.secure(&tls.Config{Certificates: []tls.Certificate{cert}}))
	}
}

func versionAlert(s *scene) error {
	cert := certificate(s.t, "127.0.0.1", time.Hour)
	s.transport.TLSClientConfig = &tls.Config{MaxVersion: tls.VersionTLS12}
	return s.get("https://" + s.secure(&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}))
}

// noCurve has no key exchange to offer.
func noCurve(s *scene) error {
	s.transport.TLSClientConfig = &tls.Config{CurvePreferences: []tls.CurveID{99}}
	return s.get("https://" + s.serve(drain))
}

// certificateRequired meets a server that wants a client's certificate. With TLS 1.3 it can say so only after the client
// has begun to send; here it waits until the whole request is written.
func certificateRequired(version uint16) func(*scene) error {
	return func(s *scene) error {
		cert := certificate(s.t, "127.0.0.1", time.Hour)
		roots := x509.NewCertPool()
		roots.AddCert(cert.Leaf)
		s.transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		written := make(chan struct{})
		if version == tls.VersionTLS13 {
			s.wrote = sync.OnceFunc(func() { close(written) })
		} else {
			close(written)
		}
		config := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert, MinVersion: version, MaxVersion: version}
		return s.get("https://" + s.serve(func(c *net.TCPConn) {
			_ = tls.Server(&answeredConn{Conn: c, next: written}, config).Handshake()
			drain(c)
		}))
	}
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
		s.proxy("http://" + s.serve(func(c *net.TCPConn) {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, "HTTP/1.1 "+status+"\r\n\r\n")
			drain(c)
		}))
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
	return afterRequest(func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 10<<10))
		drain(c)
	})(s)
}

func headerTimeout(s *scene) error {
	s.transport.ResponseHeaderTimeout = time.Millisecond
	return answered("http", retrytest.Answer{Fault: retrytest.HangHeaders, Times: retrytest.Forever})(s)
}

func clientTimeout(s *scene) error {
	s.timeout = 20 * time.Millisecond
	return viaClient(answered("http", retrytest.Answer{Fault: retrytest.HangHeaders, Times: retrytest.Forever}))(s)
}

// http2Peer is the server's side of an HTTP/2 connection, frames by hand (RFC 9113, section 4.1).
type http2Peer struct {
	net.Conn
	stream uint32      // of the frame that was read last
	frames chan []byte // to write: a pipe holds nothing, so the goroutine that reads cannot wait for a write
}

func (p *http2Peer) frame(kind, flags byte, stream uint32, payload []byte) {
	header := []byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	p.frames <- append(binary.BigEndian.AppendUint32(header, stream), payload...)
}

// next returns the kind and stream of the next frame.
func (p *http2Peer) next() (kind byte, stream uint32, err error) {
	var header [9]byte
	if _, err = io.ReadFull(p, header[:]); err != nil {
		return 0, 0, err
	}
	size := int64(header[0])<<16 | int64(header[1])<<8 | int64(header[2])
	_, err = io.CopyN(io.Discard, p, size)
	return header[3], binary.BigEndian.Uint32(header[5:]), err
}

// serve answers each request, hangs up if answer returns false, and reads on until the connection is closed.
func (p *http2Peer) serve(answer func(*http2Peer) bool) {
	const headers, settings = 1, 4
	p.frames = make(chan []byte, 8)
	var writing sync.WaitGroup
	writing.Go(func() {
		for frame := range p.frames {
			_, _ = p.Write(frame)
		}
		_ = p.Close()
	})
	defer writing.Wait()
	hangUp := sync.OnceFunc(func() { close(p.frames) })
	defer hangUp()
	_, _ = io.CopyN(io.Discard, p, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
	p.frame(settings, 0, 0, nil)
	for {
		kind, stream, err := p.next()
		if err != nil {
			return
		}
		p.stream = stream
		if kind == headers && !answer(p) {
			hangUp()
		}
	}
}

func nothing(*http2Peer) bool { return true }

func streamReset(code uint32) func(*http2Peer) bool {
	return func(p *http2Peer) bool {
		p.frame(3, 0, p.stream, binary.BigEndian.AppendUint32(nil, code)) // RST_STREAM
		return true
	}
}

// goAway answers with GOAWAY. The connection stays open if the stream is above last; otherwise it is closed.
func goAway(last, code uint32) func(*http2Peer) bool {
	return func(p *http2Peer) bool {
		p.frame(7, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code))
		return last == 0
	}
}

// h2 serves HTTP/2 without TLS. It is the one kind of server that is not on the loopback: net/http repeats a refused
// stream six times by itself, for a minute, which only a fake clock makes short, and that goes with pipes only.
func h2(answer func(*http2Peer) bool, with func(*http.Transport)) func(*scene) error {
	return func(s *scene) error { return s.h2(answer, with, func(*http.Request) {}) }
}

func h2Request(change func(*http.Request)) func(*scene) error {
	return func(s *scene) error { return s.h2(nothing, nil, change) }
}

// h2OneShot sends a body without GetBody.
func h2OneShot(answer func(*http2Peer) bool) func(*scene) error {
	return func(s *scene) error {
		return s.h2(answer, nil, func(r *http.Request) {
			r.Method, r.ContentLength, r.Body = "PUT", 3, io.NopCloser(strings.NewReader("abc"))
		})
	}
}

func (s *scene) h2(answer func(*http2Peer) bool, with func(*http.Transport), change func(*http.Request)) (err error) {
	synctest.Test(s.t, func(t *testing.T) {
		var connections sync.WaitGroup
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			connections.Go(func() { (&http2Peer{Conn: server}).serve(answer) })
			return client, nil
		}
		if with != nil {
			with(transport)
		}
		inside := &scene{t: t, transport: transport}
		req, reqErr := http.NewRequest("GET", "http://service.example", nil)
		require.NoError(t, reqErr)
		change(req)
		err = inside.do(req)
		s.gotConn.Store(inside.gotConn.Load())
		synctest.Wait() // the connection is idle only when net/http has noticed
		transport.CloseIdleConnections()
		connections.Wait()
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

func checkRedirect(err error) func(*scene) error {
	return func(s *scene) error {
		s.check = func(*http.Request, []*http.Request) error { return err }
		return viaClient(redirects)(s)
	}
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
