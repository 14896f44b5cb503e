package retryhttp_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// always returns a RoundTripper whose every answer is this one.
func always(status int, header ...string) roundTripper {
	return func(req *http.Request) (*http.Response, error) { return answer(req, status, header...), nil }
}

func TestThePolicyOfARun(t *testing.T) {
	attempts := func(n int) retry.Policy {
		return retry.Policy{Name: strconv.Itoa(n), MaxAttempts: n, Backoff: atOnce.Backoff}
	}
	t.Run("PolicyFor is asked once for each run, so that a change reaches a Transport in use", func(t *testing.T) {
		asked := 0
		tr := &retryhttp.Transport{Base: always(503), Policy: attempts(9), PolicyFor: func(*http.Request) retry.Policy { asked++; return attempts(asked) }}
		for n := 1; n <= 3; n++ {
			o, _, err := run(t, tr, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, n, o.Attempts)
			require.Equal(t, strconv.Itoa(n), o.Policy)
			require.Equal(t, n, asked)
		}
	})
	t.Run("all of it counts: hooks, classifier, timeout, budget", func(t *testing.T) {
		events := 0
		p := attempts(3)
		p.Observe = func(context.Context, retry.Event) { events++ }
		p.Pay = func(context.Context, retry.Decision) bool { return false }
		p.Classify = retryhttp.OnStatus(retry.Retryable, 404)
		tr := &retryhttp.Transport{Base: always(404), PolicyFor: func(*http.Request) retry.Policy { return p }}
		o, _, err := run(t, tr, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, retry.BudgetExhausted, o.Reason)
		require.Equal(t, 2, events)

		p.AttemptTimeout = 1
		tr.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		_, _, err = run(t, tr, get(t.Context()))
		require.ErrorIs(t, err, retry.ErrAttemptTimeout)
	})
	t.Run("a bad one is refused", func(t *testing.T) {
		for _, p := range []retry.Policy{{AttemptTimeout: -1}, {TTL: -1}} {
			_, err := (&retryhttp.Transport{Base: always(200), PolicyFor: func(*http.Request) retry.Policy { return p }}).RoundTrip(get(t.Context()))
			var bad *retry.FieldError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, "-1ns", bad.Value)
		}
	})
}
