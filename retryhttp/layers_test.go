package retryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

func TestWriteError(t *testing.T) {
	plain := errors.New("password hunter2")
	ended := func(p retry.Policy, err error) error {
		return retry.Do(t.Context(), p, func(context.Context) error { return err })
	}
	broke := atOnce
	broke.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1})
	for _, row := range []struct {
		name        string
		err         error
		after, once string // Retry-After and X-Should-Retry
	}{
		{name: "nil"},
		{name: "a plain error", err: plain},
		{name: "a hint", err: fmt.Errorf("load: %w", retry.After(1500*time.Millisecond, plain)), after: "2"},
		{name: "a run that has retried", err: ended(atOnce, plain), once: "false"},
		{name: "a run without budget", err: ended(broke, plain), once: "false"},
		{name: "a run of one attempt", err: ended(retry.Policy{Disabled: true}, plain)},
		{name: "a run under OneAttempt", err: retry.Do(retry.OneAttempt(t.Context()), atOnce, func(context.Context) error { return plain })},
		{name: "a run of one attempt with a hint", err: ended(retry.Policy{Disabled: true}, retry.After(time.Minute, plain)), after: "60"},
		{name: "a run that asks for too long a wait", err: ended(retry.Policy{MaxHint: time.Second}, retry.After(time.Minute, plain)), after: "60", once: "false"},
		{name: "a run that could do harm", err: ended(atOnce, retry.Permanent(plain)), once: "false"},
		{name: "a doubt", err: ended(retry.Policy{Disabled: true}, retry.Ambiguous(plain)), once: "false"},
		{name: "a mark", err: retry.Permanent(plain), once: "false"},
		{name: "a call that a shutdown has canceled", err: context.Canceled},
		{name: "a response that forbids it", err: retryhttp.CheckResponse(answer(get(t.Context()), 503, "X-Should-Retry", "false", "Retry-After", "7")),
			after: "7", once: "false"},
		{name: "what http.Client makes of a run", err: &url.Error{Op: "Get", Err: ended(atOnce, plain)}, once: "false"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			retryhttp.WriteError(w, row.err)
			require.Equal(t, 503, w.Code)
			require.Equal(t, row.after, w.Header().Get("Retry-After"))
			require.Equal(t, row.once, w.Header().Get("X-Should-Retry"))
			require.Equal(t, "Service Unavailable\n", w.Body.String(), "the text of the error stays inside")
		})
	}
	t.Run("an answer from below stays one, and is repeated by no layer", func(t *testing.T) {
		for below, want := range map[int]int{
			400: 400, 403: 403, 404: 404, 409: 409, 410: 410, 422: 422, 451: 451,
			301: 502, 304: 502, 401: 502, 405: 502, 407: 502, 418: 502,
		} {
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				retryhttp.WriteError(w, fmt.Errorf("load: %w", checked(&retryhttp.Transport{Base: always(below), Policy: atOnce}, get(r.Context()))))
			})
			calls := 0
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				calls++
				w := httptest.NewRecorder()
				handler(w, req)
				resp := w.Result()
				resp.Request = req
				return resp, nil
			})
			o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, want, resp.StatusCode, "of %d", below)
			require.Equal(t, 1, calls, "of %d", below)
			if want < 500 {
				require.Equal(t, retry.Succeeded, o.Status)
				require.Empty(t, resp.Header.Get("X-Should-Retry"))
			} else {
				require.Equal(t, retry.TerminalError, o.Reason)
				require.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
			}
		}
	})
	t.Run("an answer that a layer below has repeated, or forbids to repeat, says that too", func(t *testing.T) {
		again := atOnce
		again.Classify = retryhttp.OnStatus(retry.Retryable, 409)
		for name, tr := range map[string]*retryhttp.Transport{
			"repeated": {Base: always(409), Policy: again},
			"forbids":  {Base: always(409, "X-Should-Retry", "false"), Policy: atOnce},
		} {
			w := httptest.NewRecorder()
			retryhttp.WriteError(w, checked(tr, get(t.Context())))
			require.Equal(t, []any{409, "false"}, []any{w.Code, w.Header().Get("X-Should-Retry")}, name)
		}
	})
	t.Run("an answer in doubt says both", func(t *testing.T) {
		w := httptest.NewRecorder()
		retryhttp.WriteError(w, retryhttp.CheckResponse(answer(request(t.Context(), "POST", nil), 409, "Retry-In-Doubt", "true")))
		require.Equal(t, []any{409, "false", "true"}, []any{w.Code, w.Header().Get("X-Should-Retry"), w.Header().Get("Retry-In-Doubt")})
	})
	t.Run("what a receiver makes of a delivery is no answer to the one who ordered it", func(t *testing.T) {
		w := httptest.NewRecorder()
		retryhttp.WriteError(w, checked(&retryhttp.Transport{Base: always(404), Policy: atOnce, Delivery: true}, get(t.Context())))
		require.Equal(t, []any{502, "false"}, []any{w.Code, w.Header().Get("X-Should-Retry")})
	})
	t.Run("a Retry-After of the handler's own stays", func(t *testing.T) {
		w := httptest.NewRecorder()
		retryhttp.SetRetryAfter(w, time.Minute)
		retryhttp.WriteError(w, plain)
		require.Equal(t, "60", w.Header().Get("Retry-After"))
	})
}

func anyone(*http.Request) bool { return true }

func ExampleWriteError() {
	calls := 0
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		http.Error(w, "down", http.StatusServiceUnavailable)
	}))
	defer down.Close()
	client := retryhttp.NewClient(retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: time.Millisecond}})
	orders := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, _ := http.NewRequestWithContext(retryhttp.WithOutcome(r.Context()), http.MethodGet, down.URL, nil)
		resp, err := client.Do(req)
		if err == nil {
			err = retryhttp.CheckResponse(resp)
			resp.Body.Close()
		}
		if err != nil {
			retryhttp.WriteError(w, err)
		}
	}))
	defer orders.Close()

	resp, err := client.Get(orders.URL) // four attempts, each of which would be four calls
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.Status, resp.Header.Get("X-Should-Retry"), calls)
	// Output: 503 Service Unavailable false 4
}

// uncomparable is a context that == panics of.
type uncomparable struct {
	context.Context
	values map[string]string
}

func TestAContextNeedNotBeComparable(t *testing.T) {
	ok := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
	})
	for _, observe := range []func(context.Context, retry.Event){nil, func(context.Context, retry.Event) {}} {
		p := retry.Policy{Observe: observe}
		resp, err := (&retryhttp.Transport{Base: ok, Policy: p}).RoundTrip(get(uncomparable{t.Context(), nil}))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
	}
}

func TestTheTimeOfAClassifierCountsAfterAFirstAttempt(t *testing.T) {
	inBubble(t, "with and without an observer", func(t *testing.T) {
		fault := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errFault })
		for _, observe := range []func(context.Context, retry.Event){nil, func(context.Context, retry.Event) {}} {
			p := retry.Policy{
				MaxAttempts: 2, TTL: 30 * time.Millisecond, Backoff: retry.Backoff{Base: time.Millisecond}, Observe: observe,
				Classify: func(error) retry.Class { time.Sleep(50 * time.Millisecond); return retry.Retryable },
			}
			_, err := (&retryhttp.Transport{Base: fault, Policy: p}).RoundTrip(get(t.Context()))
			require.ErrorIs(t, err, retry.TTLElapsed)
		}
	})
}
