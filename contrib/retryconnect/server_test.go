package retryconnect_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
)

type (
	text     = wrapperspb.StringValue
	client   = connect.Client[text, text]
	request  = connect.Request[text]
	response = connect.Response[text]
	sending  = connect.ServerStream[text]
)

const (
	unaryProcedure  = "/test.Service/Unary"
	streamProcedure = "/test.Service/Stream"
)

// protocols are the protocols of connect.
var protocols = map[string][]connect.ClientOption{
	"connect":  nil,
	"grpc":     {connect.WithGRPC()},
	"grpc-web": {connect.WithGRPCWeb()},
}

// inEach runs the test in virtual time for each protocol.
func inEach(t *testing.T, test func(t *testing.T, protocol []connect.ClientOption)) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, protocol) })
		})
	}
}

// server answers calls with its functions, which get the number of the request.
type server struct {
	unary  func(ctx context.Context, n int, req *request) (string, error)
	stream func(ctx context.Context, n int, send *sending) error
	layer  connect.Interceptor // of the handlers; nil for none

	mu      sync.Mutex
	began   time.Time
	headers []http.Header
	at      []time.Duration

	messages []string // of streams
}

func (s *server) record(h http.Header) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = append(s.headers, h.Clone())
	s.at = append(s.at, time.Since(s.began))
	return len(s.headers)
}

// requests returns the number of requests received.
func (s *server) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.headers)
}

// waits returns the time between each request and the next.
func (s *server) waits() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var waits []time.Duration
	for i := 1; i < len(s.at); i++ {
		waits = append(waits, s.at[i]-s.at[i-1])
	}
	return waits
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	var options []connect.HandlerOption
	if s.layer != nil {
		options = append(options, connect.WithInterceptors(s.layer))
	}
	mux.Handle(unaryProcedure, connect.NewUnaryHandler(unaryProcedure, func(ctx context.Context, req *request) (*response, error) {
		n := s.record(req.Header())
		if s.unary == nil {
			return connect.NewResponse(wrapperspb.String("pong")), nil
		}
		answer, err := s.unary(ctx, n, req)
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(wrapperspb.String(answer)), nil
	}, append(options, connect.WithIdempotency(connect.IdempotencyNoSideEffects))...))
	mux.Handle(streamProcedure, connect.NewServerStreamHandler(streamProcedure, func(ctx context.Context, req *request, stream *sending) error {
		s.mu.Lock()
		s.messages = append(s.messages, req.Msg.GetValue())
		s.mu.Unlock()
		return s.stream(ctx, s.record(req.Header()), stream)
	}, options...))
	return mux
}

// pipes are connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// start serves handler over pipes, by HTTP/2, and returns a client for it.
func start(t *testing.T, handler http.Handler) *http.Client {
	listener := pipes{make(chan net.Conn), make(chan struct{})}
	only2 := new(http.Protocols)
	only2.SetUnencryptedHTTP2(true)
	served := &http.Server{Handler: handler, Protocols: only2, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = served.Serve(listener)
	}()
	transport := &http.Transport{Protocols: only2, DialContext: listener.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = served.Close()
		<-done
	})
	return &http.Client{Transport: transport}
}

// start returns clients of the server's unary call and stream.
func (s *server) start(t *testing.T, protocol []connect.ClientOption, p retry.Policy, o retryconnect.Options, more ...connect.ClientOption) (unary, stream *client) {
	return s.over(t, start(t, s.handler()), protocol, p, o, more...)
}

func (s *server) over(t *testing.T, h connect.HTTPClient, protocol []connect.ClientOption, p retry.Policy, o retryconnect.Options, more ...connect.ClientOption) (unary, stream *client) {
	interceptor, err := retryconnect.NewInterceptor(p, o)
	require.NoError(t, err)
	s.began = time.Now()
	options := append([]connect.ClientOption{connect.WithInterceptors(interceptor)}, protocol...)
	options = append(options, more...)
	return connect.NewClient[text, text](h, "http://server.test"+unaryProcedure, options...),
		connect.NewClient[text, text](h, "http://server.test"+streamProcedure, options...)
}

// upTo is a policy of n attempts, with waits of 1s, 2s, 4s, ...
func upTo(attempts int) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Base: time.Second}}
}

// answers is a server whose unary call and stream fail as f does.
func answers(f func(context.Context) error) *server {
	return &server{
		unary:  func(ctx context.Context, _ int, _ *request) (string, error) { return "pong", f(ctx) },
		stream: func(ctx context.Context, _ int, _ *sending) error { return f(ctx) },
	}
}

// fails is a server that answers everything with the code.
func fails(code connect.Code) *server {
	return answers(func(context.Context) error { return connect.NewError(code, errors.New("no")) })
}

// ping makes the unary call.
func ping(ctx context.Context, c *client) (string, error) {
	resp, err := c.CallUnary(ctx, connect.NewRequest(wrapperspb.String("ping")))
	if err != nil {
		return "", err
	}
	return resp.Msg.GetValue(), nil
}

// pings and reads are the calls as functions of runs.
func pings(c *client) func(context.Context) error {
	return func(ctx context.Context) error { _, err := ping(ctx, c); return err }
}

func reads(c *client) func(context.Context) error {
	return func(ctx context.Context) error { _, err := read(ctx, c); return err }
}

// read opens the stream and returns all of its messages.
func read(ctx context.Context, c *client) (all string, err error) {
	s, err := c.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("ping")))
	if err != nil {
		return "", err
	}
	for s.Receive() {
		all += s.Msg().GetValue()
	}
	return all, errors.Join(s.Err(), s.Close())
}

var idempotent = connect.WithIdempotency(connect.IdempotencyIdempotent)
