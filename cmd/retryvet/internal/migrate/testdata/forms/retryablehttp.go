package forms

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

var retryHTTP = map[string]Form{
	"http defaults": httpDefaults,
	"http settings": func(ctx context.Context, work Work, note func(...any)) (string, error) {
		return httpSettings(ctx, work, note, settings{first: 100 * time.Millisecond, longest: 500 * time.Millisecond})
	},
	"http transport": httpTransport,
	"http client": func(ctx context.Context, work Work, note func(...any)) (string, error) {
		return httpClient(ctx, &api{&http.Client{Transport: server{work, note}}})
	},
}

func httpDefaults(ctx context.Context, work Work, note func(...any)) (string, error) {
	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{Transport: server{work, note}}
	return post(ctx, c.StandardClient())
}

func httpSettings(ctx context.Context, work Work, note func(...any), s settings) (string, error) {
	base := server{work, note}
	client := retryablehttp.NewClient()
	client.HTTPClient.Transport = base
	client.Logger = nil
	client.RetryMax = 6
	client.RetryWaitMin, client.RetryWaitMax = s.first, s.longest
	client.CheckRetry = retryablehttp.DefaultRetryPolicy
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	standard := client.StandardClient()
	standard.CheckRedirect = nil
	return post(ctx, standard)
}

func httpTransport(ctx context.Context, work Work, note func(...any)) (string, error) {
	c := retryablehttp.NewClient()
	c.HTTPClient.Transport, c.HTTPClient.Timeout, c.RetryMax = server{work, note}, time.Hour, 0
	return post(ctx, &http.Client{Transport: &retryablehttp.RoundTripper{Client: c}})
}

type api struct{ client *http.Client }

func httpClient(ctx context.Context, a *api) (string, error) {
	c := retryablehttp.NewClient()
	c.Logger = log.New(io.Discard, "", 0)
	c.HTTPClient = a.client
	a.client = c.StandardClient()
	return post(ctx, a.client)
}

// server answers as work does.
type server struct {
	work Work
	note func(...any)
}

func (s server) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	s.note(req.Method, string(body))
	value, err := s.work(req.Context())
	resp := &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(value)), Request: req}
	switch {
	case errors.Is(err, errBusy):
		resp.StatusCode = http.StatusServiceUnavailable
	case errors.Is(err, errNotFound):
		resp.StatusCode = http.StatusNotImplemented
	case err != nil:
		return nil, err
	}
	return resp, nil
}

func post(ctx context.Context, c *http.Client) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://test/", io.MultiReader(strings.NewReader("body")))
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", errFailed
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		value, err := io.ReadAll(resp.Body)
		return string(value), err
	case http.StatusNotImplemented:
		return "", errNotFound
	}
	return "", errFailed
}
