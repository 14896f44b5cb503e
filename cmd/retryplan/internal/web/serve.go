// Package web serves retryplan's page. It has sliders for a policy and a fleet, and their effect beside them. Figures and
// pictures are computed here, by package retryplan. Everything the page needs is in the binary, and it is served on
// loopback only.
package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve serves the page at addr until ctx is done, cancels the evaluations under way, and returns nil. The host of addr is
// "localhost", which means 127.0.0.1, or a loopback address; port 0 is a free one. When the page can be opened, ready is
// called with its address, such as "http://127.0.0.1:41234/". Serve returns an error if addr is not loopback, as is ":8080",
// or cannot be listened on.
func Serve(ctx context.Context, addr string, ready func(url string)) error {
	addr, err := loopback(addr)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	server := newServer(ctx)
	// Requests end with ctx, so there is nothing to wait for that Close would interrupt.
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	ready("http://" + listener.Addr().String() + "/")
	if err := server.Serve(listener); ctx.Err() == nil || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("web: %w", err)
	}
	return nil
}

func newServer(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           newHandler(evaluationLimit),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute, // of which an evaluation may take its limit twice
		IdleTimeout:       time.Minute,
	}
}

// loopback returns the address to listen on, which no other machine can reach. It does not ask a resolver for
// "localhost", which may resolve to anything.
func loopback(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || !local(host) {
		return "", fmt.Errorf("web: address %q is not a loopback address with a port, such as 127.0.0.1:8080: the page is for this machine only", addr)
	}
	if net.ParseIP(host) == nil { // "localhost"
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}
