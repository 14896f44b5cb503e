package bench_test

import (
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

// maxAttempts is the total number of attempts that each peer may make.
const maxAttempts = 3

// peer is an HTTP client under test. client returns it over base, with the given timeout of each attempt; 0 means none.
// It makes maxAttempts attempts and waits as little between them as the peer allows.
type peer struct {
	name   string
	client func(base http.RoundTripper, attemptTimeout time.Duration) *http.Client
}

// bare does not retry: it is what the others are compared with. Its timeout is http.Client.Timeout.
var bare = peer{"http.Client", func(base http.RoundTripper, attemptTimeout time.Duration) *http.Client {
	return &http.Client{Transport: base, Timeout: attemptTimeout}
}}

// retrying are the clients that retry.
var retrying = []peer{
	{"go-retryablehttp", retryableHTTP},
	{"rehttp", reHTTP},
	{"failsafehttp", failsafeHTTP},
	{"retryhttp", retryHTTP},
}

func all() []peer { return append([]peer{bare}, retrying...) }

// retryableHTTP has no timeout of an attempt of its own: the timeout of its inner client is one, the body included.
func retryableHTTP(base http.RoundTripper, attemptTimeout time.Duration) *http.Client {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: base, Timeout: attemptTimeout}
	client.Logger = nil
	client.RetryMax = maxAttempts - 1
	client.RetryWaitMin = 0
	client.RetryWaitMax = 0
	return client.StandardClient()
}

// reHTTP has its timeout cover the body too.
func reHTTP(base http.RoundTripper, attemptTimeout time.Duration) *http.Client {
	transport := rehttp.NewTransport(base, rehttp.RetryAll(
		rehttp.RetryMaxRetries(maxAttempts-1),
		rehttp.RetryAny(rehttp.RetryTimeoutErr(), rehttp.RetryStatusInterval(500, 600)),
	), rehttp.ConstDelay(0))
	transport.PerAttemptTimeout = attemptTimeout
	return &http.Client{Transport: transport}
}

// failsafeHTTP has its timeout end with the response's headers.
func failsafeHTTP(base http.RoundTripper, attemptTimeout time.Duration) *http.Client {
	policies := []failsafe.Policy[*http.Response]{
		failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(maxAttempts).WithDelay(0).Build(),
	}
	if attemptTimeout > 0 {
		policies = append(policies, timeout.New[*http.Response](attemptTimeout))
	}
	return &http.Client{Transport: failsafehttp.NewRoundTripper(base, policies...)}
}

// retryHTTP is ours. Its timeout ends with the response's headers.
func retryHTTP(base http.RoundTripper, attemptTimeout time.Duration) *http.Client {
	return &http.Client{Transport: &retryhttp.Transport{
		Base: base,
		Policy: retry.Policy{
			MaxAttempts:    maxAttempts,
			AttemptTimeout: attemptTimeout,
			Backoff:        retry.Backoff{Delays: []time.Duration{0}},
		},
	}}
}
