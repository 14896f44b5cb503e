package main

import (
	"context"
	"net/http"
	"time"

	kratos "github.com/go-kratos/kratos/v2/transport/http"

	"github.com/retrygo/retry/retryhttp"
)

// kratosHTTP sends a request by a client of kratos, which has no retries. A retry.Wrap in its middleware would repeat a
// POST, too.
func kratosHTTP(ctx context.Context, delay func(attempt int) time.Duration, note func() (last bool)) error {
	server := busy(note)
	defer server.Close()

	client, err := kratos.NewClient(ctx, kratos.WithEndpoint(server.URL),
		kratos.WithTransport(&retryhttp.Transport{Policy: waiting(delay)}))
	if err != nil {
		return err
	}
	defer client.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
