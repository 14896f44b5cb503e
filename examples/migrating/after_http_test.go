package migrating_test

import (
	"net/http"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

func afterHTTPClient(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &retryhttp.Transport{
		Base: base,
		Policy: retry.Policy{
			MaxAttempts:    4,
			Backoff:        retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second},
			AttemptTimeout: 10 * time.Second, // up to the headers
			Classify: retry.FirstOf(
				retryhttp.OnStatus(retry.Retryable, http.StatusLocked),
				retryhttp.OnStatus(retry.Terminal, http.StatusRequestTimeout, http.StatusNotImplemented),
			),
		},
		Repeat: func(*retryhttp.AttemptError) bool { return true }, // a POST is sent again as well
	}}
}
