package retryhttp_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// A policy that makes one attempt ends its run as RetriesDisabled, which says nothing of the failure.
var once = retry.Policy{Disabled: true}

func TestATransportSeesWhyTheOneBelowHasFailed(t *testing.T) {
	for text, want := range map[string]string{
		"http: ContentLength=10 with Body length 3":                     "body_failed",
		`net/http: invalid header field value for "X"`:                  "invalid_request",
		"net/http: cannot rewind body after connection loss":            "body_not_replayable",
		"net/http: request canceled while waiting for connection":       "canceled",
		`failed to parse Location header "http://[": missing ']' in it`: "redirect",
	} {
		t.Run(want, func(t *testing.T) {
			sent := 0
			base := roundTripper(func(*http.Request) (*http.Response, error) { sent++; return nil, errors.New(text) })
			below := &retryhttp.Transport{Base: base, Policy: once}
			o, _, err := run(t, &retryhttp.Transport{Base: below, Policy: atOnce}, get(t.Context()))
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, []string{want}, reasons(o))
			require.Equal(t, 1, sent)
		})
	}
	t.Run("which is not due to a mark of the policy's", func(t *testing.T) {
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("net/http: TLS handshake timeout")
		})
		never := once
		never.Classify = retry.Otherwise(retry.Terminal)
		below := &retryhttp.Transport{Base: base, Policy: never}
		o, _, err := run(t, &retryhttp.Transport{Base: below, Policy: atOnce}, get(t.Context()))
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, slices.Repeat([]string{string(retryhttp.DialTimeout)}, 3), reasons(o))
	})
	t.Run("and what its own context was canceled for", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("http: ContentLength=1 with Body length 0"))
		failed := once.NewError(ctx, retry.Outcome{Status: retry.Expired, Reason: retry.DeadlinePassed}, nil)
		require.Equal(t, retryhttp.BodyFailed, retryhttp.ReasonOf(failed))
	})
}

func TestABadHeaderIsRefusedOnceThroughTwoTransports(t *testing.T) {
	for name, spoil := range map[string]func(http.Header){
		"value": func(h http.Header) { h["X-Trace"] = []string{"secret\r\nX: 1"} },
		"name":  func(h http.Header) { h["Authorization: secret"] = nil },
	} {
		t.Run(name, func(t *testing.T) {
			reached := 0
			counted := roundTripper(func(req *http.Request) (*http.Response, error) {
				reached++
				return http.DefaultTransport.RoundTrip(req)
			})
			below := &retryhttp.Transport{Base: counted, Policy: once}
			req := request(t.Context(), http.MethodPost, strings.NewReader("body"))
			spoil(req.Header)
			o, _, err := run(t, &retryhttp.Transport{Base: below, Policy: atOnce}, req)
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, []string{"invalid_request/invalid_request"}, reasons(o))
			require.Equal(t, 1, reached)
			var failed *retryhttp.AttemptError
			require.ErrorAs(t, err, &failed)
			require.True(t, failed.Unsent)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}
