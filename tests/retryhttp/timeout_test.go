package retryhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retrytest"
)

func TestAttemptTimeoutIsADeadline(t *testing.T) {
	limited := three
	limited.MaxAttempts, limited.AttemptTimeout = 2, time.Second
	for _, row := range []struct {
		name string
		ctx  func(context.Context) (context.Context, context.CancelFunc) // what a RoundTripper inside makes of its own
	}{
		{"its context", func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }},
		{"a context with a value", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithValue(ctx, errFault, 1), func() {}
		}},
		{"a context with a cancellation of its own", context.WithCancel},
		{"a context with a deadline of its own", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		}},
	} {
		for name, h2 := range map[string]bool{", HTTP/1.1": false, ", HTTP/2": true} {
			hang := []retrytest.Answer{{Fault: retrytest.HangHeaders, Times: 2}}
			socketBubble(t, "to a breaker inside Base with "+row.name+name, h2, hang, func(t *testing.T, base *retrytest.Server) {
				breaker := roundTripper(func(req *http.Request) (*http.Response, error) {
					ctx, cancel := row.ctx(req.Context())
					defer cancel()
					resp, err := base.RoundTrip(req.WithContext(ctx))
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.NotErrorIs(t, err, context.Canceled)
					require.Equal(t, context.DeadlineExceeded, ctx.Err())
					require.Equal(t, retry.ErrAttemptTimeout, context.Cause(ctx))
					return resp, err
				})
				_, _, err := run(t, &retryhttp.Transport{Base: breaker, Policy: limited}, get(t.Context()))
				require.ErrorIs(t, err, retry.ErrAttemptTimeout)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, context.Canceled)
			})
		}
	}
	inBubble(t, "a caller that cancels is none, in the attempt's context and those derived from it", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			derived, end := context.WithCancel(req.Context())
			defer end()
			cancel(why)
			require.Equal(t, context.Canceled, req.Context().Err(), "at once")
			<-derived.Done()
			<-req.Context().Done()
			require.Equal(t, context.Canceled, derived.Err())
			require.Equal(t, why, context.Cause(derived))
			require.Equal(t, why, context.Cause(req.Context()))
			return nil, derived.Err()
		})
		_, err := (&retryhttp.Transport{Base: base, Policy: limited}).RoundTrip(get(ctx))
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.ErrorIs(t, err, why)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
	inBubble(t, "a context derived from the attempt's lives as long as the body is read, and no longer", func(t *testing.T) {
		var derived context.Context
		var end context.CancelFunc
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			derived, end = context.WithCancel(req.Context())
			resp := answer(req, 200)
			resp.Body = io.NopCloser(strings.NewReader("body"))
			return resp, nil
		})
		resp, err := (&retryhttp.Transport{Base: base, Policy: limited}).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, derived.Err())
		require.NoError(t, resp.Body.Close())
		<-derived.Done()
		require.Equal(t, context.Canceled, derived.Err())
		end()
	})
}
