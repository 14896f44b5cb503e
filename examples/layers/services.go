package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/retryhttp"
)

// under returns the context for the calls of a handler. A handler that does not pass its request's context on, as with
// context.Background(), continues when its caller has gone; context.WithoutCancel keeps the attempt number of
// retryshell.WithRemoteAttempt.
func (c *chain) under(ctx context.Context) context.Context {
	if !c.passOn {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// serveShop is the handler of shop, which calls orders.
func (c *chain) serveShop(w http.ResponseWriter, r *http.Request) {
	defer c.begin()()
	req, err := http.NewRequestWithContext(c.under(r.Context()), http.MethodGet, "http://orders.example/", nil)
	if err != nil {
		c.refuse(w, err)
		return
	}
	resp, err := c.orders.Do(req)
	if err == nil {
		defer resp.Body.Close()
		err = retryhttp.CheckResponse(resp)
	}
	if err != nil {
		c.refuse(w, err)
	}
}

// serveOrders is the handler of orders, which calls stock.
func (c *chain) serveOrders(w http.ResponseWriter, r *http.Request) {
	defer c.begin()()
	if _, err := c.stock.Check(c.under(r.Context()), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		c.refuse(w, err)
	}
}

// refuse answers that the service has failed and, as a remedy, that it has given up.
func (c *chain) refuse(w http.ResponseWriter, err error) {
	if c.answers {
		retryhttp.WriteError(w, err)
		return
	}
	http.Error(w, "unavailable", http.StatusServiceUnavailable)
}

// stock is the gRPC service, which queries the database. Its method is one that every gRPC module has.
type stock struct {
	grpc_health_v1.UnimplementedHealthServer
	chain *chain
}

// Check is the handler of stock.
func (s stock) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	c := s.chain
	defer c.begin()()
	err := retry.Do(c.under(ctx), c.queries, c.db.query)
	switch {
	case err == nil:
		return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
	case c.answers:
		return nil, retrygrpc.Unavailable(err) // the interceptor adds the pushback
	default:
		return nil, status.Error(codes.Unavailable, "unavailable")
	}
}

// begin counts a handler as in progress until the function that it returns is called.
func (c *chain) begin() (end func()) {
	c.busy.Add(1)
	return func() { c.busy.Add(-1) }
}

// database is a fake of one, which counts its queries. It refuses each query or, if it hangs, never answers.
type database struct {
	hangs   bool
	queries atomic.Int64
}

func (d *database) query(ctx context.Context) error {
	d.queries.Add(1)
	if d.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("sorry, too many clients already")
}
