package retryhttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"syscall"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp/ssrf"
)

// Reason is the machine-readable word for why an attempt failed, for logs, metrics and rules. It is one of the
// constants or, if there was a response, "status_" and its code. Empty means that no attempt failed. Later versions may
// add words.
type Reason string

// The way to the server failed, before a byte of the request was sent.
const (
	AddressBlocked Reason = "address_blocked" // an ssrf.Guard forbade the address
	DNSNotFound    Reason = "dns_not_found"   // the host has no address (NXDOMAIN)
	DNSFailed      Reason = "dns_failed"      // the look-up failed in another way
	DialTimeout    Reason = "dial_timeout"    // the connection, or its TLS handshake, was not done in time
	DialFailed     Reason = "dial_failed"     // the connection was not made, for another cause, or has lost its route
	ProxyConnect   Reason = "proxy_connect"   // the proxy was not reached, or refused to connect
	ProxyAuth      Reason = "proxy_auth"      // the proxy wants credentials (407)
	TLSCertificate Reason = "tls_certificate" // the server's certificate did not verify
	TLSNotSpoken   Reason = "tls_not_spoken"  // the server does not speak TLS on this port
)

// The connection failed, before the request or after it.
const (
	ConnRefused Reason = "conn_refused" // no server listens on the port
	ConnReset   Reason = "conn_reset"   // the connection was reset or aborted
	ConnClosed  Reason = "conn_closed"  // the connection was closed before the response (EOF, idle, a broken pipe)
	TLSAlert    Reason = "tls_alert"    // the server ended TLS with an alert
	TLSFailed   Reason = "tls_failed"   // TLS failed on our side, for a cause that has no Reason of its own
	StreamReset Reason = "stream_reset" // an HTTP/2 stream error or GOAWAY, with Unsent if the server has refused the stream
)

// The response did not arrive, or not whole.
const (
	AttemptTimeout    Reason = "attempt_timeout"    // Policy.AttemptTimeout has passed
	Timeout           Reason = "timeout"            // another timeout, such as http.Transport.ResponseHeaderTimeout
	MalformedResponse Reason = "malformed_response" // the server's answer is not HTTP
	BodyTruncated     Reason = "body_truncated"     // the response ended too soon (io.ErrUnexpectedEOF)
	ContentChanged    Reason = "content_changed"    // the rest of a body is of another version (see Transport.Resume)
	NotAccepted       Reason = "not_accepted"       // a 2xx that Transport.Accept refused, or that is no rest of a body
	DigestMismatch    Reason = "digest_mismatch"    // a body has not the digest of its response's header (see Transport.Resume)
	NotResumable      Reason = "not_resumable"      // the rest of a body cannot be asked for, or the answer is another part
	TransportError    Reason = "transport_error"    // a fault that has no Reason of its own
)

// The request cannot be sent as it is, or not again.
const (
	InvalidRequest    Reason = "invalid_request"     // URL, method, header or trailer cannot be sent
	BodyFailed        Reason = "body_failed"         // the request's body cannot be read, or has not its ContentLength
	BodyNotReplayable Reason = "body_not_replayable" // the request's body has been read, or is in use, and has no GetBody
	NotIdempotent     Reason = "not_idempotent"      // to repeat the request could do its work twice
	DoNotRetry        Reason = "do_not_retry"        // the response forbids to repeat the request
	Redirect          Reason = "redirect"            // http.Client did not follow a redirect
	Canceled          Reason = "canceled"            // the request was given up
	DeadlinePassed    Reason = "deadline_passed"     // the deadline of the request's context has passed
)

// ReasonOf returns the Reason why an attempt failed. It takes any error of an http.RoundTripper, an http.Client or a
// response's body. It returns the Reason of the outermost *AttemptError that errors.As finds, also in the *retry.Error
// of a run. Without one it judges by the errors in err's chain, and returns TransportError if it knows no word for
// them. It returns "" for nil and for a run that made no attempt.
//
// A chain does not show everything. The same EOF ends a TLS handshake and a response, a refused proxy CONNECT is only
// its status text, and an error of CheckRedirect is only itself.
func ReasonOf(err error) Reason {
	if attempt := attemptError(err); attempt != nil {
		return attempt.Reason
	}
	var run *retry.Error
	if errors.As(err, &run) && run.Last == nil && run.Cause() == nil {
		return ""
	}
	reason, _ := fault(err)
	return reason
}

// statusReason returns the reason of a response, such as "status_503". The reasons of the statuses that are repeated
// are constants, which saves an allocation.
func statusReason(code int) Reason {
	switch code {
	case http.StatusRequestTimeout:
		return "status_408"
	case http.StatusTooManyRequests:
		return "status_429"
	case http.StatusInternalServerError:
		return "status_500"
	case http.StatusBadGateway:
		return "status_502"
	case http.StatusServiceUnavailable:
		return "status_503"
	case http.StatusGatewayTimeout:
		return "status_504"
	}
	return Reason(strconv.AppendInt([]byte("status_"), int64(code), 10))
}

// fault returns the Reason why an attempt failed, from err's chain alone, and whether it is certain that the request
// was not sent. For nil it returns "" and false. A fault that can follow a write is never unsent. A peer's TLS 1.3
// alert about our certificate, for example, arrives after one.
func fault(err error) (reason Reason, unsent bool) {
	var (
		dns     *net.DNSError
		op      *net.OpError
		parse   *url.Error
		refused requestError
		stream  streamError
		record  tls.RecordHeaderError
	)
	switch {
	case err == nil:
		return "", false
	case errors.Is(err, ssrf.ErrBlocked): // it arrives as a dial error
		return AddressBlocked, true
	case errors.Is(err, retry.ErrAttemptTimeout): // it is a timeout
		return AttemptTimeout, false
	case errors.Is(err, context.Canceled): // it arrives inside DNS and dial errors too
		return Canceled, false
	case errors.As(err, &parse) && parse.Op == "parse":
		return InvalidRequest, true
	case errors.As(err, &refused): // by a Transport below
		return InvalidRequest, true
	case isCertificate(err): // it can arrive inside proxyconnect
		return TLSCertificate, true
	case errors.As(err, &record):
		return TLSNotSpoken, record.Conn != nil // crypto/tls sets it before the handshake only
	case errors.Is(err, http.ErrSchemeMismatch):
		return TLSNotSpoken, false // http.Client has dropped the record that said so
	case errors.As(err, &stream):
		return StreamReset, stream.Code == refusedStream
	case errors.As(err, &op):
		if reason, unsent = opReason(op); reason != "" {
			return reason, unsent
		}
	}
	// A resolver of one's own may return it bare.
	if errors.As(err, &dns) {
		return dnsReason(dns), true
	}
	// Texts come before the general kinds below, because the errors in the texts of net/http are more specific.
	if reason, unsent = textReason(err); reason != "" {
		return reason, unsent
	}
	return kindReason(err), false
}

// saysUnsent reports whether err, of a RoundTripper above the one that sends, shows that the request was not sent. Such
// an error has a method Unsent, or is the error of package golang.org/x/oauth2 for a token that it did not get, which
// is recognized by its form.
func saysUnsent(err error) bool {
	return deepest(err, func(err error) bool {
		own, ok := err.(interface{ Unsent() bool })
		return ok && own.Unsent() || isTokenError(err)
	})
}

// isTokenError reports whether err is an *oauth2.RetrieveError of any copy of that package.
func isTokenError(err error) bool {
	form := reflect.TypeOf(err)
	if form.Kind() != reflect.Pointer || form.Elem().Kind() != reflect.Struct || form.Elem().Name() != "RetrieveError" {
		return false
	}
	response, ok := form.Elem().FieldByName("Response")
	return ok && response.Type == reflect.TypeFor[*http.Response]()
}

// opReason returns the reason of a *net.OpError that stands for a step on the way to the server or for an alert,
// otherwise "".
func opReason(op *net.OpError) (reason Reason, unsent bool) {
	var dns *net.DNSError
	switch {
	case op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks "): // before dial, since it holds one
		return ProxyConnect, true
	case op.Op == "remote error":
		return TLSAlert, false
	case op.Op == "local error":
		return TLSFailed, false
	case op.Op != "dial":
		return "", false
	case errors.As(op, &dns): // before dial, since it is inside one
		return dnsReason(dns), true
	}
	switch reason := kindReason(op.Err); reason {
	case ConnRefused, ConnReset:
		return reason, true
	case Timeout:
		return DialTimeout, true
	default:
		return DialFailed, true
	}
}

func dnsReason(dns *net.DNSError) Reason {
	if dns.IsNotFound {
		return DNSNotFound
	}
	return DNSFailed
}

// isCertificate reports whether a server's certificate did not verify. The x509 errors come bare from a
// tls.Config.VerifyConnection of one's own.
func isCertificate(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		roots        x509.SystemRootsError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || errors.As(err, &roots)
}

// streamError has the shape of net/http's unexported HTTP/2 stream error, whose As method fills any such struct.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (streamError) Error() string { return "stream error" }

// refusedStream is the error code of a stream that was not processed (RFC 9113, sections 7 and 8.7).
const refusedStream = 0x7

// saying is a reason by the text that an error begins with.
type saying struct {
	prefix string
	reason Reason
	unsent bool
}

// sayings are the errors of net/http that have no type, from Go 1.25 and 1.26. They are in transport.go, transfer.go,
// request.go, client.go, response.go, h2_bundle.go and internal/httpcommon. TestChains of tests/retryhttp fails if
// another version of Go has other texts.
var sayings = []saying{
	{"unsupported protocol scheme ", InvalidRequest, true},
	{"http2: unsupported scheme", InvalidRequest, true},
	{"http: nil Request.URL", InvalidRequest, true},
	{"Request.URL is nil", InvalidRequest, true},
	{"http: Request.RequestURI can't be set", InvalidRequest, true},
	{"net/http: can't write control character in Request.URL", InvalidRequest, false},
	{"invalid request :path ", InvalidRequest, false},
	{"http: no Host in request URL", InvalidRequest, true},
	{"http: Request.Write on Request with no Host or URL set", InvalidRequest, false},
	{"http: invalid Host header", InvalidRequest, false},
	{"invalid Host header", InvalidRequest, false},
	{"idna: ", InvalidRequest, false},
	{"net/http: invalid method ", InvalidRequest, true},
	{"http: nil Request.Header", InvalidRequest, true},
	{"net/http: invalid header ", InvalidRequest, true},
	{"invalid HTTP ", InvalidRequest, false},
	{"invalid Upgrade request header: ", InvalidRequest, false},
	{"invalid Transfer-Encoding request header: ", InvalidRequest, false},
	{"invalid Connection request header: ", InvalidRequest, false},
	{"net/http: invalid trailer ", InvalidRequest, true},
	{"invalid Trailer key ", InvalidRequest, false},
	{"http: ContentLength=", BodyFailed, false},
	{"http: Request.ContentLength=", BodyFailed, false},
	{"http2: request body larger than specified content length", BodyFailed, false},
	{"net/http: cannot rewind body ", BodyNotReplayable, false},
	{"failed to parse Location header ", Redirect, false},
	{"net/http: TLS handshake timeout", DialTimeout, true},
	{"malformed ", MalformedResponse, false},
	{"net/http: server response headers exceeded ", MalformedResponse, false},
	{"http: message cannot contain multiple Content-Length headers", MalformedResponse, false},
	{"bad Content-Length ", MalformedResponse, false},
	{"http: unexpected EOF reading trailer", BodyTruncated, false},
	{"http: suspiciously long trailer ", MalformedResponse, false},
	{"invalid empty Content-Length ", MalformedResponse, false},
	{"unsupported transfer encoding: ", MalformedResponse, false},
	{"too many transfer encodings: ", MalformedResponse, false},
	{"connection error: PROTOCOL_ERROR", MalformedResponse, false}, // HTTP/2
	{"connection error: FLOW_CONTROL_ERROR", MalformedResponse, false},
	{"connection error: FRAME_SIZE_ERROR", MalformedResponse, false},
	{"connection error: COMPRESSION_ERROR", MalformedResponse, false},
	{"http2: frame too large", MalformedResponse, false},
	{"http2: failed reading the frame payload: ", MalformedResponse, false},
	{"http: server closed idle connection", ConnClosed, false},
	{"http: idle connection timeout", ConnClosed, false},
	{"http: CloseIdleConnections called", ConnClosed, false},
	{"http2: client conn not usable", ConnClosed, true}, // the stream was never opened
	{"http2: client conn could not be established", ConnClosed, true},
	{"http2: client conn", ConnClosed, false},                                          // closed, connection lost
	{"http2: server sent GOAWAY and closed the connection", StreamReset, false},        // the stream may be one it acted on
	{"http2: Transport received GOAWAY from server ", StreamReset, true},               // only for streams above LastStreamID:
	{"http2: Transport received Server's graceful shutdown GOAWAY", StreamReset, true}, // RFC 9113, section 6.8
	{"net/http: request canceled", Canceled, false},
	{"tls: ", TLSFailed, false},
}

// textReason returns the reason of the deepest error whose text is known, otherwise "".
func textReason(err error) (reason Reason, unsent bool) {
	deepest(err, func(err error) bool {
		reason, unsent = said(err.Error())
		return reason != ""
	})
	return reason, unsent
}

// said returns the reason that a text is known to mean, otherwise "".
func said(text string) (reason Reason, unsent bool) {
	switch {
	case strings.Contains(text, "(Client.Timeout "): // http.Client puts it behind any text
		return Timeout, false
	case strings.HasPrefix(text, "stream error: stream ID "): // golang.org/x/net/http2's has no As
		return StreamReset, strings.Contains(text, "; REFUSED_STREAM")
	case strings.HasPrefix(text, "http2: Transport: cannot retry err ["): // the server has not touched it
		return BodyNotReplayable, !strings.Contains(text, "; PROTOCOL_ERROR")
	case strings.HasPrefix(text, "stopped after ") && strings.HasSuffix(text, " redirects"):
		return Redirect, false
	case text == http.StatusText(http.StatusProxyAuthRequired):
		return ProxyAuth, false
	}
	for _, s := range sayings {
		if strings.HasPrefix(text, s.prefix) {
			return s.reason, s.unsent
		}
	}
	// A proxy's answer to CONNECT other than 200 is an error of its status text alone.
	for code := http.StatusBadRequest; code < 600; code++ {
		if text != "" && text == http.StatusText(code) {
			return ProxyConnect, false
		}
	}
	return "", false
}

// kindReason returns the reason of an error that belongs to no step.
func kindReason(err error) Reason {
	var (
		errno    syscall.Errno
		protocol textproto.ProtocolError
	)
	if errors.As(err, &errno) {
		if reason := errnoReason(errno); reason != "" {
			return reason
		}
	}
	switch {
	case isTimeout(err):
		return Timeout
	case errors.As(err, &protocol):
		return MalformedResponse
	case errors.Is(err, io.ErrUnexpectedEOF):
		return BodyTruncated
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return ConnClosed
	default:
		return TransportError
	}
}

// errnoReason returns the reason of a socket's error, otherwise "". The numbers are Windows's WSAE codes, which are not
// the syscall constants there, and which no other system has.
func errnoReason(errno syscall.Errno) Reason {
	switch errno {
	case syscall.ECONNREFUSED, 10061:
		return ConnRefused
	case syscall.ECONNRESET, syscall.ECONNABORTED, 10053, 10054:
		return ConnReset
	case syscall.EPIPE, 10058:
		return ConnClosed
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN, 10050, 10051, 10064, 10065:
		return DialFailed
	case syscall.ETIMEDOUT, 10060:
		return Timeout
	default:
		return ""
	}
}

// isTimeout reports whether any error in err's tree is a timeout. errors.As would stop at a *url.Error, which asks the
// next one only.
func isTimeout(err error) bool {
	return deepest(err, func(err error) bool {
		timeout, ok := err.(interface{ Timeout() bool })
		return ok && timeout.Timeout()
	})
}

// deepest reports whether match is true for any error in err's tree. It asks the deepest first and stops at the first
// that matches.
func deepest(err error, match func(error) bool) bool {
	switch e := err.(type) {
	case *retry.Error: // its Unwrap hides the errors behind a mark
		if e != nil && (e.Last != nil && deepest(e.Last, match) || e.Cause() != nil && deepest(e.Cause(), match)) {
			return true
		}
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil && deepest(inner, match) {
			return true
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if inner != nil && deepest(inner, match) {
				return true
			}
		}
	}
	return match(err)
}
