//go:build js

package retryhttp_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// In a browser net/http passes a header to fetch as it is, and panics if that refuses it.
func TestABadHeaderDoesNotReachFetch(t *testing.T) {
	req, err := http.NewRequest(http.MethodGet, "http://a.test/", nil)
	require.NoError(t, err)
	req.Header["X-Trace"] = []string{"1\r\nX: 1"}
	_, err = (&retryhttp.Transport{Base: fetch{}}).RoundTrip(req)
	require.Equal(t, retryhttp.InvalidRequest, retryhttp.ReasonOf(err))
	require.ErrorIs(t, err, retry.TerminalError)
}

type fetch struct{}

func (fetch) RoundTrip(*http.Request) (*http.Response, error) { panic("TypeError: invalid value") }
