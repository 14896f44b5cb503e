package migrating_test

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

func httpClient(base http.RoundTripper) *http.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient.Transport = base
	c.HTTPClient.Timeout = 10 * time.Second
	c.Logger = nil
	c.RetryMax = 3
	c.RetryWaitMin, c.RetryWaitMax = 100*time.Millisecond, time.Second
	c.CheckRetry = func(ctx context.Context, resp *http.Response, err error) (bool, error) {
		if err == nil && resp.StatusCode == http.StatusLocked {
			return true, nil
		}
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return c.StandardClient()
}
