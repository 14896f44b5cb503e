package main

import (
	"bytes"
	"net/http"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/hints"
)

// newClient returns a client for a service of language models. budget pays for the retries of all its calls.
func newClient(base http.RoundTripper, budget *retry.Budget) *http.Client {
	return (&retryhttp.Transport{
		Base: base,
		Policy: retry.Policy{
			Name:           "models",
			MaxAttempts:    4,
			Backoff:        retry.Backoff{Base: 500 * time.Millisecond, Cap: 8 * time.Second, Jitter: retry.FullJitter},
			AttemptTimeout: 30 * time.Second, // up to the first event of a stream
			TTL:            2 * time.Minute,
			MaxHint:        20 * time.Second, // a longer wait ends the call
			Budget:         budget,
		},
		Hint:           hints.RateLimit,             // retry-after-ms and x-ratelimit-reset, beside Retry-After
		IdempotencyKey: retryhttp.RandomKey,         // the same in all attempts at a request
		Accept:         retryhttp.FirstEvent(begun), // again before the first token, never after it
		StallTimeout:   time.Minute,                 // between two events
	}).Client()
}

// begun reports whether a stream begins with anything but an error.
func begun(event []byte) bool {
	return !bytes.HasPrefix(event, []byte("event: error")) && !bytes.Contains(event, []byte(`"overloaded_error"`))
}
