package retryhttp_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

func TestAttemptTimeoutIsANetError(t *testing.T) {
	limited := three
	limited.AttemptTimeout = time.Second
	for name, fault := range map[string]func(context.Context) error{
		"the context's Err":                context.Context.Err,
		"the context's Cause":              context.Cause,
		"a cancellation of the transport":  func(context.Context) error { return context.Canceled },
		"an error without a word for that": func(context.Context) error { return errFault },
	} {
		inBubble(t, "a Base returns "+name, func(t *testing.T) {
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, fault(req.Context())
			})
			_, err := (&retryhttp.Transport{Base: base, Policy: limited}).RoundTrip(get(t.Context()))
			require.ErrorIs(t, err, retry.ErrAttemptTimeout)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, context.Canceled)
			var timeout net.Error
			require.ErrorAs(t, err, &timeout)
			require.True(t, timeout.Timeout())
		})
	}
}
