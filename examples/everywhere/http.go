package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"github.com/go-resty/resty/v2"
)

// busy returns a server that answers 503 until the last attempt.
func busy(note func() (last bool)) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !note() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
}

// elastic sends a request by the transport of Elasticsearch's client.
func elastic(ctx context.Context, delay func(attempt int) time.Duration, note func() (last bool)) error {
	server := busy(note)
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		return err
	}

	client, err := elastictransport.NewClient(elastictransport.WithURLs(address),
		elastictransport.WithRetryBackoff(delay), // from 1
		elastictransport.WithMaxRetries(policy.MaxAttempts-1))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return err
	}
	resp, err := client.Perform(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// restyV2 sends a request by resty.
func restyV2(ctx context.Context, delay func(attempt int) time.Duration, note func() (last bool)) error {
	server := busy(note)
	defer server.Close()

	client := resty.New().
		SetRetryAfter(func(_ *resty.Client, r *resty.Response) (time.Duration, error) { return delay(r.Request.Attempt), nil }). // from 1
		SetRetryWaitTime(1).                                                                                                     // limits the hook's result to the two, which are 100ms and 2s unless set
		SetRetryMaxWaitTime(policy.Cap).
		SetRetryCount(policy.MaxAttempts - 1).
		AddRetryCondition(func(r *resty.Response, _ error) bool { return r.StatusCode() == http.StatusServiceUnavailable })
	_, err := client.R().SetContext(ctx).Get(server.URL)
	return err
}
