package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/retryhttp"
)

// remedy is how the services limit each other's retries.
type remedy struct {
	name     string
	passOn   bool // a handler makes its calls with the context of its request
	time     bool // a request says how much time it has left, over HTTP as gRPC does anyway
	answers  bool // a handler answers that it has given up
	requests bool // a handler trusts a request to be a retry
	budgets  bool // each layer has a budget
	proxy    bool // between shop and orders is one that goes on when its client has gone
}

// scene is the fault of the database, and the policies of the three layers.
type scene struct {
	name     string
	hang     bool             // the database does not answer; otherwise it refuses each query
	timeouts [3]time.Duration // of an attempt of each layer, the outermost first; 0 means none
	attempts int              // of each layer
	wait     time.Duration    // between them
}

// budget is that of a layer: two retries when the fault begins.
var budget = retry.BudgetConfig{Burst: 2, Initial: 2}

// policies returns those of the three layers.
func (s scene) policies(budgets bool) (list [3]retry.Policy) {
	for i := range list {
		list[i] = retry.Policy{
			MaxAttempts:    s.attempts,
			Backoff:        retry.Backoff{Mode: retry.Fixed, Base: s.wait},
			AttemptTimeout: s.timeouts[i],
		}
		if budgets {
			list[i].Budget = retry.NewBudget(budget)
		}
	}
	return list
}

// chain is three services and a database, with three layers of retries between them, on a network in memory:
//
//	user → shop (HTTP) → orders (HTTP) → stock (gRPC) → database
type chain struct {
	remedy
	user    *http.Client                // does not retry
	orders  *http.Client                // shop's
	stock   grpc_health_v1.HealthClient // orders'
	queries retry.Policy                // stock's
	db      *database
	busy    atomic.Int64 // handlers in progress, including those whose caller has gone
	stop    []func()
}

// newChain starts the services.
func newChain(r remedy, p [3]retry.Policy, db *database) *chain {
	c := &chain{remedy: r, queries: p[2], db: db}

	c.user = &http.Client{Transport: c.serveHTTP(c.serveShop)}
	toOrders := c.serveHTTP(c.serveOrders)
	if r.proxy {
		toOrders = c.serveHTTP(goesOn(toOrders))
	}
	transport := &retryhttp.Transport{Base: toOrders, Policy: p[0]}
	if r.requests {
		transport.AttemptHeader = retryhttp.AttemptHeader
	}
	if r.time {
		transport.TimeLeftHeaders = map[string]string{"orders.example": retryhttp.EnvoyTimeLeftHeader}
	}
	c.orders = transport.Client()

	c.stock = grpc_health_v1.NewHealthClient(c.serveGRPC(p[1]))
	return c
}

// goesOn returns a proxy that does not end a request when its client does, as one that retries or buffers.
func goesOn(to http.RoundTripper) http.HandlerFunc {
	proxy := &httputil.ReverseProxy{
		Transport: to, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "orders.example"}) },
	}
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}
}

// serveHTTP starts an HTTP service and returns a transport to it.
func (c *chain) serveHTTP(serve http.HandlerFunc) *http.Transport {
	handler := retryhttp.Handler(serve, retryhttp.HandlerOptions{Trust: func(*http.Request) bool { return c.requests || c.time }})
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	listener := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(listener) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return listener.DialContext(ctx)
	}}
	c.stop = append(c.stop, transport.CloseIdleConnections, func() { _ = server.Close() })
	return transport
}

// serveGRPC starts stock and returns a channel to it.
func (c *chain) serveGRPC(p retry.Policy) *grpc.ClientConn {
	trust := func(context.Context) bool { return c.requests }
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(retrygrpc.UnaryServerInterceptor(trust)))
	grpc_health_v1.RegisterHealthServer(server, stock{chain: c})
	listener := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(listener) }()

	opts, err := retrygrpc.DialOptions(p, retrygrpc.Options{
		Idempotent:  func(string) bool { return true }, // Check only reads
		PassAttempt: c.requests,
	})
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///stock", append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		log.Fatal(err)
	}
	c.stop = append(c.stop, func() { _ = conn.Close() }, server.Stop)
	return conn
}

// request is one request of a user. It returns when everything that it caused has ended.
func (c *chain) request() error {
	resp, err := c.user.Get("http://shop.example/")
	if err != nil {
		return err
	}
	for quiet := 0; quiet < 5; quiet++ { // an attempt may be on its way to a handler
		if c.busy.Load() > 0 {
			quiet = 0
		}
		time.Sleep(10 * time.Millisecond)
	}
	return resp.Body.Close()
}

// close stops the services.
func (c *chain) close() {
	for _, stop := range c.stop {
		stop()
	}
}
