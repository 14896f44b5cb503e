package retryhttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// A client that follows a redirect to another host sends it no header, even if it is one that may know.
func TestTimeLeftIsNotRedirected(t *testing.T) {
	inBubble(t, "to two others", func(t *testing.T) {
		got := map[string]string{}
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			got[req.URL.Host+req.URL.Path] = req.Header.Get(retryhttp.EnvoyTimeLeftHeader)
			next := map[string]string{"a.example/": "/here", "a.example/here": "http://b.example/"}[req.URL.Host+req.URL.Path]
			if next != "" {
				return answer(req, 302, "Location", next), nil
			}
			return answer(req, 200), nil
		})
		client := &http.Client{Transport: &retryhttp.Transport{Base: base, Policy: retry.Policy{AttemptTimeout: time.Second},
			TimeLeftHeaders: map[string]string{"a.example": retryhttp.EnvoyTimeLeftHeader, "b.example": retryhttp.EnvoyTimeLeftHeader}}}
		resp, err := client.Get("http://a.example/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, map[string]string{"a.example/": "1000", "a.example/here": "1000", "b.example/": ""}, got)
	})
}

// TestAClientsTimeoutLeavesTheTextOfTheError holds what net/http does, so that a Go that keeps the error is noticed.
func TestAClientsTimeoutLeavesTheTextOfTheError(t *testing.T) {
	hangs := roundTripper(func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		synctest.Wait() // for the client, which notices too
		return nil, context.Cause(req.Context())
	})
	inBubble(t, "a Client.Timeout", func(t *testing.T) {
		client := http.Client{Timeout: time.Second, Transport: &retryhttp.Transport{Base: hangs, Policy: three}}
		_, err := client.Do(get(retryhttp.WithOutcome(t.Context())))
		require.ErrorContains(t, err, "retry: gave up after 1 attempt in 1s (deadline_passed)")
		var run *retry.Error
		require.False(t, errors.As(err, &run))
		_, of := retryhttp.OutcomeOf(nil, err)
		require.ErrorContains(t, of, "the error is not of a run")
	})
	inBubble(t, "a deadline of the request's context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		client := http.Client{Transport: &retryhttp.Transport{Base: hangs, Policy: three}}
		_, err := client.Do(get(ctx))
		o, of := retryhttp.OutcomeOf(nil, err)
		require.NoError(t, of)
		require.Equal(t, retry.DeadlinePassed, o.Reason)
	})
}
