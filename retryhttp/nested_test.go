package retryhttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// A policy that makes one attempt ends its run as RetriesDisabled, which says nothing of the failure.
var once = retry.Policy{Disabled: true}

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
