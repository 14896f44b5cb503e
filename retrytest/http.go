package retrytest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Answer is a Server's answer to one request. The zero Answer is 200 OK without a body.
type Answer struct {
	// Status is the status code. 101 switches protocols. The server then sends Body and echoes the client. Zero means
	// 200.
	Status int
	// Header is sent besides Date and Content-Length. It may be nil.
	Header http.Header
	// Body is sent with its length. Empty means no body.
	Body string
	// RetryAfter is sent as the Retry-After header in whole seconds, rounded up. Zero means that it is not sent. Use
	// Header for a value that is malformed or in another unit.
	RetryAfter time.Duration
	// RetryDate is sent as the Retry-After header in the form of a date. The date is the time of the answer plus
	// RetryDate, rounded up to a second. Zero means that it is not sent.
	RetryDate time.Duration
	// Takes is how long the server takes between reading the request and answering or failing. Zero means no time.
	Takes time.Duration
	// Pause is how long the server waits between the headers and the body. Zero means no time.
	Pause time.Duration
	// Drip is how long the body takes. It is sent byte by byte, evenly. Zero means that it is sent at once.
	Drip time.Duration
	// On is the request that the row is for. It is a method, a path or both, such as "POST", "/orders" or "POST
	// /orders". Such a row is not used in turn. A request gets the first row that is for it and not used up. Empty
	// means any request.
	On string
	// OnHeader is a header field that the request must have as well, such as "X-Region: eu". Empty means any request.
	OnHeader string
	// Handler answers in place of Status, Header and Body, after Takes. The body of its request has already been read.
	// Nil means that the fields are used.
	Handler http.Handler
	// Fault is the fault of the request. Empty means that it gets its answer.
	Fault HTTPFault
	// Times is the number of requests that use the row. Zero means 1. Forever means all that follow.
	Times int
}

func (a Answer) times() int { return a.Times }

func (a Answer) check(bad refuse) {
	isFinal := a.Status >= 200 && a.Status <= 999
	if !isFinal && a.Status != 0 && a.Status != http.StatusSwitchingProtocols {
		bad("Status", a.Status, "is neither 101 nor from 200 to 999")
	}
	bad.negative("RetryAfter", a.RetryAfter)
	bad.negative("RetryDate", a.RetryDate)
	bad.negative("Takes", a.Takes)
	bad.negative("Pause", a.Pause)
	bad.negative("Drip", a.Drip)
	if name, _, ok := strings.Cut(a.OnHeader, ":"); a.OnHeader != "" && (!ok || name == "") {
		bad("OnHeader", strconv.Quote(a.OnHeader), `is not of the form "Name: value"`)
	}
	if (a.On != "" || a.OnHeader != "") && a.Fault.isUnread() {
		bad("Fault", strconv.Quote(string(a.Fault)), "comes before the request is read, and so does not go with On and OnHeader")
	}
	if a.Fault != "" && !slices.Contains(httpFaults, a.Fault) {
		bad("Fault", strconv.Quote(string(a.Fault)), fmt.Sprintf("is not one of %q", httpFaults))
	}
}

// HTTPFault is a fault of a request. Empty means that there is no fault.
type HTTPFault string

// The faults of HTTP/1.1 and HTTP/2.
const (
	ResetUnread HTTPFault = "reset unread" // the connection is reset before the request is read, and its record is empty
	ResetRead   HTTPFault = "reset read"   // the connection is reset after the request was read, so the server may have acted
	HangHeaders HTTPFault = "hang headers" // the server reads the request and never answers
	HangBody    HTTPFault = "hang body"    // the headers and half of the body arrive, and then the stream stalls
	Truncate    HTTPFault = "truncate"     // the headers and half of the body arrive, and the connection ends
	Garbage     HTTPFault = "garbage"      // the bytes that arrive are not HTTP

	// The faults of a connection that is not made, which only the client sees. The server has no Request of them. They
	// need the server's RoundTrip or Transport.
	RefuseDial HTTPFault = "refuse dial" // no server listens (ECONNREFUSED)
	NoHost     HTTPFault = "no host"     // the name is not found (a *net.DNSError)
	FailTLS    HTTPFault = "fail tls"    // the TLS handshake fails (a tls.AlertError)
)

var httpFaults = []HTTPFault{ResetUnread, ResetRead, HangHeaders, HangBody, Truncate, Garbage, RefuseDial, NoHost, FailTLS}

func (f HTTPFault) isReset() bool { return f == ResetUnread || f == ResetRead }
func (f HTTPFault) isDial() bool  { return f == RefuseDial || f == NoHost || f == FailTLS }

// isUnread reports whether f comes before the request is read.
func (f HTTPFault) isUnread() bool { return f == ResetUnread || f.isDial() }

// Request is a request that arrived at a Server. A field without a value in the request is empty.
type Request struct {
	At     time.Duration // since the server was created
	Conn   int           // number of the connection, from 1
	Proto  string        // "HTTP/1.1"
	Method string
	Host   string
	URL    string // path and query, as sent
	Header http.Header
	Body   string // the part that arrived
}

// Server is an HTTP server that answers by a script. NewServer and NewPipeServer make one. The zero Server is not
// usable. It is also an http.RoundTripper that sends every request to the server, whatever host the URL names. Requests
// fail as they do over a network, since the client is an http.Transport that reads bytes from a connection.
//
// The server speaks HTTP/1.1, and HTTP/2 without TLS to a Transport whose Protocols are set so. An https URL also
// reaches the server, without TLS.
//
// net/http repeats a GET by itself if a reused connection is reset. To show the caller such a reset, the answer before
// it closes its connection.
type Server struct {
	URL string // "http://127.0.0.1:41234"
	// Transport is the transport of RoundTrip. It is never nil. Its fields may be changed before the first request.
	Transport *http.Transport

	script *script[Answer]
	ctx    context.Context // ends with the test
	began  time.Time
	active sync.WaitGroup // connections and handlers

	mu       sync.Mutex
	conns    int
	requests []Request
	bodies   []*clientBody // of responses that are not closed yet
}

// NewServer returns a server on the loopback interface. A request beyond the last answer fails the test and gets a 400.
func NewServer(tb testing.TB, answers []Answer) *Server {
	tb.Helper()
	script := newScript(tb, answers)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("retrytest: %v", err)
	}
	address := listener.Addr().String()
	return serve(tb, script, listener, "http://"+address, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	})
}

// NewPipeServer returns a server in memory, which needs no network and works inside a synctest bubble. Its connections
// are from net.Pipe. HTTP/2 inside a bubble needs Go 1.26. Only its RoundTrip and its Transport reach the server.
// Otherwise it is like NewServer.
func NewPipeServer(tb testing.TB, answers []Answer) *Server {
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	return serve(tb, newScript(tb, answers), listener, "http://server.test", listener.dial)
}

// Statuses is NewPipeServer for answers that have only a status.
func Statuses(tb testing.TB, codes ...int) *Server {
	answers := make([]Answer, len(codes))
	for i, code := range codes {
		answers[i].Status = code
	}
	return NewPipeServer(tb, answers)
}

func serve(tb testing.TB, script *script[Answer], l net.Listener, url string, dial func(context.Context) (net.Conn, error)) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{URL: url, script: script, ctx: ctx, began: time.Now()}
	dialAny := func(ctx context.Context, _, address string) (net.Conn, error) {
		if err := s.dialFault(ctx, address); err != nil {
			return nil, err
		}
		return dial(ctx)
	}
	s.Transport = &http.Transport{DialContext: dialAny, DialTLSContext: dialAny, DisableCompression: true, Protocols: new(http.Protocols)}
	s.Transport.Protocols.SetHTTP1(true)
	server := &http.Server{
		Handler:     http.HandlerFunc(s.answer),
		Protocols:   new(http.Protocols),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(c net.Conn, state http.ConnState) {
			if c, ok := c.(*conn); ok && (state == http.StateClosed || state == http.StateHijacked) {
				c.left()
			}
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	s.active.Go(func() { _ = server.Serve(&listener{l, s}) })
	tb.Cleanup(func() {
		for _, b := range s.unclosed() {
			s.script.errorf("the body of the response to %s is not closed", b.request)
			_ = b.Close()
		}
		cancel()
		_ = server.Close()
		s.Transport.CloseIdleConnections()
		s.active.Wait()
	})
	return s
}

// dialFault returns the error of a connection that the script does not let come about.
func (s *Server) dialFault(ctx context.Context, address string) error {
	a, _, ok := s.script.take("dial "+address, func(a Answer) fit {
		if a.Fault.isDial() {
			return takes
		}
		return never
	})
	if !ok {
		return nil
	}
	if err := sleep(ctx, a.Takes); err != nil {
		return &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	host, _, _ := net.SplitHostPort(address)
	switch a.Fault {
	case NoHost:
		return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	case FailTLS:
		return &net.OpError{Op: "remote error", Err: tls.AlertError(40)} // handshake_failure (RFC 8446, section 6)
	default:
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
}

func (a *Answer) fits(r *http.Request) fit {
	method, path := a.On, ""
	if i := strings.IndexByte(a.On, '/'); i >= 0 {
		method, path = strings.TrimSpace(a.On[:i]), a.On[i:]
	}
	name, value, _ := strings.Cut(a.OnHeader, ":")
	switch {
	case a.Fault.isDial():
		return never
	case method != "" && method != r.Method, path != "" && path != r.URL.Path,
		name != "" && !slices.Contains(r.Header.Values(name), strings.TrimSpace(value)):
		return pass
	}
	return takes
}

// RoundTrip sends req to the server. A response whose body is not closed at the test's end fails the test.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.Transport.RoundTrip(req)
	if err != nil || resp.Body == http.NoBody {
		return resp, err
	}
	body := &clientBody{ReadCloser: resp.Body, server: s, request: fmt.Sprintf("%s %s", req.Method, req.URL)}
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	s.mu.Unlock()
	if conn, ok := resp.Body.(io.Writer); ok {
		resp.Body = struct {
			*clientBody
			io.Writer
		}{body, conn}
	} else {
		resp.Body = body
	}
	return resp, nil
}

type clientBody struct {
	io.ReadCloser
	server  *Server
	request string
}

func (b *clientBody) Close() error {
	b.server.mu.Lock()
	b.server.bodies = slices.DeleteFunc(b.server.bodies, func(other *clientBody) bool { return other == b })
	b.server.mu.Unlock()
	return b.ReadCloser.Close()
}

func (s *Server) unclosed() []*clientBody {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// Requests returns the requests that have arrived, in the order of the answers.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// record records a request if take returns an answer to it.
func (s *Server) record(r Request, take func() (Answer, bool)) (Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := take()
	if ok {
		r.At = time.Since(s.began)
		s.requests = append(s.requests, r)
	}
	return a, ok
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	s.active.Add(1)
	defer s.active.Done()
	ctx, c := r.Context(), r.Context().Value(connKey{}).(*conn)
	body, _ := io.ReadAll(r.Body)
	got := Request{Conn: c.number, Proto: r.Proto, Method: r.Method, Host: r.Host, URL: r.RequestURI, Header: r.Header.Clone(), Body: string(body)}
	var use string
	a, _ := s.record(got, func() (a Answer, ok bool) {
		var err error
		a, use, err = s.script.nextThat(r.Method+" "+r.URL.Path, func(a Answer) fit { return a.fits(r) })
		if err != nil {
			a = Answer{Status: http.StatusBadRequest, Body: err.Error()}
		}
		return a, true
	})
	if sleep(ctx, a.Takes) != nil {
		panic(http.ErrAbortHandler)
	}
	switch a.Fault {
	case "":
	case HangBody, Truncate:
		a.Body = cmp.Or(a.Body, "a body that does not arrive whole")
	case ResetUnread, ResetRead:
		c.reset()
	case HangHeaders:
		s.hang(ctx, use)
	case Garbage:
		_, _ = io.WriteString(c.Conn, "garbage\r\n\r\n")
		_ = c.Close()
	}
	if a.Fault != "" && a.Fault != HangBody && a.Fault != Truncate {
		panic(http.ErrAbortHandler)
	}
	if r.ProtoMajor == 1 && s.script.due(func(a Answer) bool { return a.Fault.isReset() || a.Fault.isDial() }) {
		w.Header().Set("Connection", "close")
	}
	c.answered()
	if a.Handler != nil && a.Fault == "" {
		r.Body = io.NopCloser(bytes.NewReader(body))
		a.Handler.ServeHTTP(w, r)
		return
	}
	a.header(w.Header())
	if a.Status == http.StatusSwitchingProtocols {
		a.switchProtocols(ctx, w)
		return
	}
	a.send(ctx, w)
	if a.Fault != "" {
		if a.Fault == HangBody {
			s.hang(ctx, use)
		}
		panic(http.ErrAbortHandler)
	}
}

// hang waits until the client has gone. It fails the test if the client would wait forever.
func (s *Server) hang(ctx context.Context, use string) {
	if !hang(ctx) {
		s.script.errorf("%s hangs, and its client never gives up: the policy needs an AttemptTimeout, or the caller a deadline", use)
	}
}

func (a *Answer) header(h http.Header) {
	h["Content-Type"] = nil // otherwise net/http adds one
	maps.Copy(h, a.Header)
	if a.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((a.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if a.RetryDate > 0 {
		h.Set("Retry-After", time.Now().Add(a.RetryDate+time.Second-1).UTC().Format(http.TimeFormat))
	}
	if a.Body != "" {
		h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
}

// send sends the headers and the body, or as much of it as the fault allows.
func (a *Answer) send(ctx context.Context, w http.ResponseWriter) {
	w.WriteHeader(cmp.Or(a.Status, http.StatusOK))
	flush := http.NewResponseController(w).Flush
	if a.Pause > 0 {
		_ = flush()
		if sleep(ctx, a.Pause) != nil {
			panic(http.ErrAbortHandler)
		}
	}
	body := a.Body
	if a.Fault != "" {
		body = body[:len(body)/2]
	}
	if a.Drip == 0 {
		_, _ = io.WriteString(w, body)
	}
	for i := 0; a.Drip > 0 && i < len(body); i++ {
		if sleep(ctx, a.Drip/time.Duration(len(a.Body))) != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, body[i:i+1])
		_ = flush()
	}
	if a.Fault != "" {
		_ = flush()
	}
}

// switchProtocols sends Body and then echoes the client, until the client or the test ends.
func (a *Answer) switchProtocols(ctx context.Context, w http.ResponseWriter) {
	conn, from, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 has no 101
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", cmp.Or(h.Get("Upgrade"), "echo"))
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n")
	_ = h.Write(conn)
	_, _ = io.WriteString(conn, "\r\n"+a.Body)
	_, _ = io.Copy(conn, from)
}
