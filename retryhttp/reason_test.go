package retryhttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp/ssrf"
)

// TestFault says which of two rules wins, and has the errors of other systems and other transports. Those that net/http
// makes are in tests/retryhttp: TestChains.
func TestFault(t *testing.T) {
	t.Parallel()
	const maybeSent, unsent = false, true
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	read := func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} }
	get := func(err error) error { return &url.Error{Op: "Get", URL: "http://service.example", Err: err} }
	windows := func(errno syscall.Errno) error { return os.NewSyscallError("wsarecv", errno) }
	rows := []struct {
		name   string
		err    error
		reason Reason
		unsent bool
	}{
		{"nil has none", nil, "", maybeSent},
		{"an unknown error is a transport error", errors.New("boom"), TransportError, maybeSent},
		{"an error without a text is a transport error", errors.New(""), TransportError, maybeSent},

		{"a guard's veto wins over the dial around it", get(dial(&ssrf.BlockedError{Address: "127.0.0.1:80", Rule: "loopback"})), AddressBlocked, unsent},
		{"an attempt's timeout wins over other timeouts", fmt.Errorf("%w: %w", retry.ErrAttemptTimeout, dial(os.ErrDeadlineExceeded)), AttemptTimeout, maybeSent},
		{"a cancelled look-up is cancelled", dial(&net.DNSError{Err: "operation was canceled", UnwrapErr: context.Canceled}), Canceled, maybeSent},
		{"a timeout that says canceled first is a timeout", get(textTimeout("net/http: request canceled (Client.Timeout exceeded while awaiting headers)")), Timeout, maybeSent},
		{"a look-up that timed out is not a dial timeout", dial(&net.DNSError{Err: "i/o timeout", IsTimeout: true, UnwrapErr: context.DeadlineExceeded}), DNSFailed, unsent},
		{"a look-up wins over the dial around it", get(dial(&net.DNSError{IsNotFound: true})), DNSNotFound, unsent},
		{"a look-up that is neither missing nor temporary has failed", dial(&net.DNSError{Err: "cannot unmarshal DNS message"}), DNSFailed, unsent},
		{"a look-up without a dial is one", &net.DNSError{IsTemporary: true}, DNSFailed, unsent},
		{"the proxy wins over the look-up of its name", &net.OpError{Op: "proxyconnect", Err: dial(&net.DNSError{IsNotFound: true})}, ProxyConnect, unsent},
		{"the proxy's certificate wins over the proxy", &net.OpError{Op: "proxyconnect", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, TLSCertificate, unsent},
		{"a dial that was reset is not a reset of a request", dial(syscall.ECONNRESET), ConnReset, unsent},
		{"a dial that the system has timed out is a dial timeout", dial(syscall.ETIMEDOUT), DialTimeout, unsent},
		{"a dial of no known kind has failed", dial(errors.New("no free port")), DialFailed, unsent},
		{"a refused read may follow a write", read(syscall.ECONNREFUSED), ConnRefused, maybeSent},
		{"an aborted connection is reset", read(syscall.ECONNABORTED), ConnReset, maybeSent},
		{"a read that the system has timed out is a timeout", read(syscall.ETIMEDOUT), Timeout, maybeSent},
		{"a read's deadline is a timeout, below wrappings too", get(fmt.Errorf("body: %w", read(os.ErrDeadlineExceeded))), Timeout, maybeSent},
		{"the timeout that ended a run is a timeout", &retry.Error{Last: read(os.ErrDeadlineExceeded)}, Timeout, maybeSent},
		{"an errno without a word is a transport error", read(syscall.EINVAL), TransportError, maybeSent},
		{"a local alert is our failure", &net.OpError{Op: "local error", Err: errors.New("tls: bad record MAC")}, TLSFailed, maybeSent},
		{"a bare x509 error is a certificate's", x509.HostnameError{Certificate: &x509.Certificate{}}, TLSCertificate, unsent},
		{"the lack of roots is a certificate's", x509.SystemRootsError{}, TLSCertificate, unsent},
		{"a request that a Transport below has refused", &retry.Error{Last: refuse("Request.Host", "a b", "has the byte 0x20 at 1")}, InvalidRequest, unsent},
		{"a URL that does not parse", &url.Error{Op: "parse", URL: "http://[", Err: errors.New("missing ']' in host")}, InvalidRequest, unsent},
		{"a proxy for SOCKS that does not connect", &net.OpError{Op: "socks connect", Err: errors.New("general failure")}, ProxyConnect, unsent},
		{"an alert of the server may follow a write", &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, TLSAlert, maybeSent},
		{"a refused stream was not processed", streamError{StreamID: 1, Code: refusedStream}, StreamReset, unsent},
		{"a stream that was reset for another cause may have been", streamError{StreamID: 1, Code: 2}, StreamReset, maybeSent},
		{"a plain answer to the handshake", tls.RecordHeaderError{Conn: new(net.TCPConn)}, TLSNotSpoken, unsent},
		{"a record after the handshake may follow a write", tls.RecordHeaderError{Msg: "oversized record received"}, TLSNotSpoken, maybeSent},
		{"http.Client's word for a plain port does not say when", get(http.ErrSchemeMismatch), TLSNotSpoken, maybeSent},

		{"Windows: refused", dial(windows(10061)), ConnRefused, unsent},
		{"Windows: reset", read(windows(10054)), ConnReset, maybeSent},
		{"Windows: aborted", read(windows(10053)), ConnReset, maybeSent},
		{"Windows: shut down", read(windows(10058)), ConnClosed, maybeSent},
		{"Windows: network down", dial(windows(10050)), DialFailed, unsent},
		{"Windows: network unreachable", dial(windows(10051)), DialFailed, unsent},
		{"Windows: host unreachable", dial(windows(10065)), DialFailed, unsent},
		{"an HTTP/2 frame that is too large", errors.New("http2: frame too large"), MalformedResponse, maybeSent},
		{"a route that is lost", read(syscall.EHOSTUNREACH), DialFailed, maybeSent},
		{"Windows: timed out", dial(windows(10060)), DialTimeout, unsent},

		{"trailers that end too soon", errors.New("http: unexpected EOF reading trailer"), BodyTruncated, maybeSent},
		{"trailers without an end", errors.New("http: suspiciously long trailer after chunked body"), MalformedResponse, maybeSent},
		{"HTTP/2 without GetBody after a protocol error", errors.New("http2: Transport: cannot retry err [stream error: stream ID 1; PROTOCOL_ERROR; " +
			"received from peer] after Request.Body was written; define Request.GetBody to avoid this error"), BodyNotReplayable, maybeSent},

		{"a pipe that was closed is closed", io.ErrClosedPipe, ConnClosed, maybeSent},
		{"EOF below a broken connection is closed", fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", io.EOF), ConnClosed, maybeSent},
		{"x/net/http2: refused stream", errors.New("stream error: stream ID 5; REFUSED_STREAM; received from peer"), StreamReset, unsent},
		{"x/net/http2: stream error", errors.New("stream error: stream ID 5; CANCEL"), StreamReset, maybeSent},
		{"x/net/http2: the goaway that net/http replays", errors.New("http2: Transport received Server's graceful shutdown GOAWAY"), StreamReset, unsent},
		{"x/net/http2: no stream was opened", errors.New("http2: client conn not usable"), ConnClosed, unsent},
		{"x/net/http2: the connection was closed", errors.New("http2: client conn is closed"), ConnClosed, maybeSent},
		{"a proxy that knows us not, via http.Client", get(errors.New("Proxy Authentication Required")), ProxyAuth, maybeSent},
		{"a text that only contains a status is a transport error", errors.New("upstream: Service Unavailable"), TransportError, maybeSent},
		{"redirects without an end", get(errors.New("stopped after 10 redirects")), Redirect, maybeSent},
		{"stopped after something else is not a redirect", errors.New("stopped after 3 attempts"), TransportError, maybeSent},
		{"several errors are no timeout", errors.Join(errors.New("one"), errors.New("two")), TransportError, maybeSent},
		{"several errors of which one is a timeout are one", errors.Join(errors.New("one"), os.ErrDeadlineExceeded), Timeout, maybeSent},
		{"a host that has no Punycode", errors.New("idna: invalid label \"\u0080\""), InvalidRequest, maybeSent},
		{"a trailer's name", errors.New("net/http: invalid trailer field name \"A B\""), InvalidRequest, unsent},
		{"a trailer over HTTP/2", errors.New("invalid HTTP trailer value for header \"A\""), InvalidRequest, maybeSent},
		{"a trailer that cannot be announced", errors.New("invalid Trailer key \"Content-Length\""), InvalidRequest, maybeSent},
		{"a gRPC text is not an HTTP/2 error", errors.New("connection error: desc = \"transport: x\""), TransportError, maybeSent},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			reason, unsent := fault(row.err)
			require.Equal(t, row.reason, reason)
			require.Equal(t, row.unsent, unsent)
			require.Equal(t, row.reason, ReasonOf(row.err))
		})
	}
}

// textTimeout is a timeout whose type is not known.
type textTimeout string

func (e textTimeout) Error() string { return string(e) }
func (e textTimeout) Timeout() bool { return true }

func TestReasonOf(t *testing.T) {
	t.Parallel()
	attempt := &AttemptError{Reason: "status_503", StatusCode: 503}
	rows := []struct {
		name string
		err  error
		want Reason
	}{
		{"an attempt's error says it", attempt, "status_503"},
		{"an attempt's error below others says it", &url.Error{Op: "Get", Err: fmt.Errorf("a: %w", attempt)}, "status_503"},
		{"a run's last error says it", &retry.Error{Outcome: retry.Outcome{Reason: retry.AttemptsExhausted}, Last: attempt}, "status_503"},
		{"the outermost says it", &AttemptError{Reason: Timeout, Err: attempt}, Timeout},
		{"the last of a run inside a run says it", &retry.Error{Last: &retry.Error{Outcome: retry.Outcome{Reason: retry.TerminalError}, Last: attempt}}, "status_503"},
		{"without one the chain of a run's last error says it", &retry.Error{Outcome: retry.Outcome{Reason: retry.AttemptsExhausted}, Last: io.EOF}, ConnClosed},
		{"a nil one says nothing", (*AttemptError)(nil), TransportError},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, ReasonOf(row.err)) })
	}
}

func TestStatusReason(t *testing.T) {
	t.Parallel()
	require.Equal(t, Reason("status_503"), statusReason(503))
	require.Equal(t, Reason("status_999"), statusReason(999))
	require.Equal(t, Reason("status_0"), statusReason(0))
	require.Equal(t, Reason("status_-1"), statusReason(-1))
}

func BenchmarkReasonOf(b *testing.B) {
	rows := []struct {
		name string
		err  error
	}{
		{"attempt", &AttemptError{Reason: ConnReset, Err: io.EOF}},
		{"dial", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}},
		{"unknown", &url.Error{Op: "Get", Err: errors.New("boom")}},
	}
	for _, row := range rows {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ReasonOf(row.err)
			}
		})
	}
}
