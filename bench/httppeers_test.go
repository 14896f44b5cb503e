package bench_test

import (
	"io"
	"net/http"
	"time"

	"github.com/PuerkitoBio/rehttp"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// httpAttempts is the total number of attempts that each client may make.
const httpAttempts = 3

// sender sends a request, and again if it fails.
type sender func(*http.Request) (*http.Response, error)

// httpClient is a way to send requests, named as a loop. make returns it over base, with the given timeout of each
// attempt, 0 meaning none. It waits as little between attempts as the library allows.
type httpClient struct {
	name string
	make func(base http.RoundTripper, attemptTimeout time.Duration) sender
}

var (
	// bareHTTP does not retry. Its timeout is http.Client.Timeout.
	bareHTTP = httpClient{"bare-client", func(base http.RoundTripper, attemptTimeout time.Duration) sender {
		return (&http.Client{Transport: base, Timeout: attemptTimeout}).Do
	}}
	// handHTTP is http.Client in the shortest loop that does the work.
	handHTTP = httpClient{"bare-loop", loopHTTP}
	// retryingHTTP are the clients that retry.
	retryingHTTP = []httpClient{
		{"retryhttp", retryHTTP},
		{"rehttp", reHTTP},
		{"go-retryablehttp", retryableOwnHTTP},
		{"go-retryablehttp-usual", retryableHTTP},
		{"failsafehttp", failsafeHTTP},
	}
)

// loopHTTP reads what it does not return, so that a connection can be used again.
func loopHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	client := &http.Client{Transport: base, Timeout: attemptTimeout}
	return func(req *http.Request) (resp *http.Response, err error) {
		for n := 1; ; n++ {
			resp, err = client.Do(req)
			if n == httpAttempts || err == nil && resp.StatusCode < 500 {
				return resp, err
			}
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
	}
}

func retryHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	return (&http.Client{Transport: &retryhttp.Transport{
		Base: base,
		Policy: retry.Policy{
			MaxAttempts:    httpAttempts,
			AttemptTimeout: attemptTimeout,
			Backoff:        retry.Backoff{Delays: []time.Duration{0}},
		},
	}}).Do
}

func reHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	transport := rehttp.NewTransport(base, rehttp.RetryAll(
		rehttp.RetryMaxRetries(httpAttempts-1),
		rehttp.RetryAny(rehttp.RetryTimeoutErr(), rehttp.RetryStatusInterval(500, 600)),
	), rehttp.ConstDelay(0))
	transport.PerAttemptTimeout = attemptTimeout
	return (&http.Client{Transport: transport}).Do
}

func retryableHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	return newRetryable(base, attemptTimeout).StandardClient().Do
}

// retryableOwnHTTP is for requests without a body.
func retryableOwnHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	client := newRetryable(base, attemptTimeout)
	own := new(retryablehttp.Request)
	return func(req *http.Request) (*http.Response, error) {
		own.Request = req // a retry leaves a copy there
		return client.Do(own)
	}
}

// newRetryable has no timeout of an attempt other than that of its inner client.
func newRetryable(base http.RoundTripper, attemptTimeout time.Duration) *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: base, Timeout: attemptTimeout}
	client.Logger = nil
	client.RetryMax = httpAttempts - 1
	client.RetryWaitMin = 0
	client.RetryWaitMax = 0
	return client
}

func failsafeHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	policies := []failsafe.Policy[*http.Response]{
		failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(httpAttempts).WithDelay(0).Build(),
	}
	if attemptTimeout > 0 {
		policies = append(policies, timeout.New[*http.Response](attemptTimeout))
	}
	return (&http.Client{Transport: failsafehttp.NewRoundTripper(base, policies...)}).Do
}
