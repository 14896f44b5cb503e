package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrydebug"
	"github.com/retrygo/retry/retryhttp"
)

// servePage serves the page of retrydebug on addr until ctx ends. Meanwhile a client makes five requests a second, to a
// server that is down for the last 20 seconds of each minute and slow for the 20 seconds before.
func servePage(ctx context.Context, addr string, w io.Writer) error {
	live := retrydebug.New(retrydebug.Options{Name: "observability"})
	policy := retry.Inline()
	policy.Name, policy.AttemptTimeout = "catalog", 200*time.Millisecond
	policy.Budget = retry.NewBudget(retry.BudgetConfig{})

	began := time.Now()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch time.Since(began) % time.Minute / (20 * time.Second) {
		case 1:
			time.Sleep(time.Duration(time.Since(began).Nanoseconds() % int64(250*time.Millisecond)))
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	client := (&retryhttp.Transport{Policy: live.Watch(policy)}).Client()
	go func() {
		for tick := time.Tick(200 * time.Millisecond); ctx.Err() == nil; <-tick {
			if resp, err := client.Get(server.URL); err == nil {
				_ = resp.Body.Close()
			}
		}
	}()

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/retry/", live)
	service := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { _ = service.Close() })
	fmt.Fprintf(w, "http://%s/debug/retry/\n", listener.Addr())
	if err := service.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
