package retryhttp_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

func TestAnAnswerIsNotAFailure(t *testing.T) {
	t.Run("it funds the budget once, as a 200 does", func(t *testing.T) {
		for _, status := range []int{200, 302, 304, 404} {
			for _, ctx := range []context.Context{t.Context(), retryhttp.WithOutcome(t.Context())} { // which have ways of their own
				p := atOnce
				p.Budget = retry.NewBudget(retry.BudgetConfig{Ratio: 0.5, Initial: -1})
				_, err := (&retryhttp.Transport{Base: always(status), Policy: p}).RoundTrip(get(ctx))
				require.NoError(t, err)
				require.Equal(t, 0.5, p.Budget.Tokens(), status)
			}
		}
	})
	t.Run("Observe sees one success and no failure", func(t *testing.T) {
		var events []retry.Event
		p := atOnce
		p.Observe = func(_ context.Context, e retry.Event) { events = append(events, e) }
		resp, err := (&retryhttp.Transport{Base: always(404), Policy: p}).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, 404, resp.StatusCode)
		require.Len(t, events, 1)
		require.NoError(t, events[0].Err)
		require.Equal(t, retry.Succeeded, events[0].Outcome.Status)
	})
	t.Run("a run around CheckResponse ends at it, unless its policy or the Transport repeats the status", func(t *testing.T) {
		again := retryhttp.OnStatus(retry.Retryable, 404)
		for _, row := range []struct {
			name     string
			base     http.RoundTripper
			classify retry.Classifier
			calls    int
		}{
			{"a 404", always(404), nil, 1},
			{"a 400", always(400), nil, 1},
			{"a 404 that its policy repeats", always(404), again, 3},
			{"a 404 that the Transport has repeated", &retryhttp.Transport{Base: always(404), Policy: retry.Policy{MaxAttempts: 2, Backoff: atOnce.Backoff, Classify: again}}, nil, 3},
			{"a 503", always(503), nil, 3},
			{"a 429", always(429), nil, 3},
		} {
			calls, p := 0, atOnce
			p.Classify = row.classify
			err := retry.Do(t.Context(), p, func(ctx context.Context) error {
				calls++
				return checked(row.base, get(ctx))
			})
			require.Error(t, err, row.name)
			require.Equal(t, row.calls, calls, row.name)
		}
	})
	t.Run("it is an answer after a retry, with one attempt only, and if it is not accepted", func(t *testing.T) {
		disabled := atOnce
		disabled.Disabled = true
		for name, tr := range map[string]*retryhttp.Transport{
			"after a retry":   {Base: faults(always(404), 1), Policy: atOnce},
			"one attempt":     {Base: always(404), Policy: disabled},
			"is not accepted": {Base: always(404), Policy: atOnce, Accept: func(r *http.Response) bool { return r.StatusCode == 200 }},
		} {
			o, resp, err := run(t, tr, get(t.Context()))
			require.NoError(t, err, name)
			require.Equal(t, 404, resp.StatusCode, name)
			require.Equal(t, retry.Succeeded, o.Status, name)
		}
	})
	t.Run("CheckResponse knows that a 200 was not accepted, with a context of WithOutcome and without", func(t *testing.T) {
		tr := &retryhttp.Transport{Base: always(200), Policy: atOnce, Accept: func(*http.Response) bool { return false }}
		for _, ctx := range []context.Context{t.Context(), retryhttp.WithOutcome(t.Context())} {
			require.True(t, retry.IsGivenUp(checked(tr, get(ctx))))
		}
	})

	// What stays a failure, and funds nothing.
	stop := func(codes ...int) retry.Policy {
		p := atOnce
		p.Classify = retryhttp.OnStatus(retry.Terminal, codes...)
		return p
	}
	again := atOnce
	again.Classify = retryhttp.OnStatus(retry.Retryable, 409)
	for _, row := range []struct {
		name string
		tr   retryhttp.Transport
		req  *http.Request
		want string // of the one failure
	}{
		{"a 503 that no rule repeats", retryhttp.Transport{Base: always(503), Policy: stop(503)}, get(t.Context()), "status_503"},
		{"a 429 that no rule repeats", retryhttp.Transport{Base: always(429), Policy: stop(429)}, get(t.Context()), "status_429"},
		{"a 408 that no rule repeats", retryhttp.Transport{Base: always(408), Policy: stop(408)}, get(t.Context()), "status_408"},
		{"a status beyond 599 that no rule repeats", retryhttp.Transport{Base: always(999), Policy: stop(999)}, get(t.Context()), "status_999"},
		{"a POST that must not be repeated", retryhttp.Transport{Base: always(503), Policy: atOnce}, request(t.Context(), "POST", nil), "status_503/not_idempotent"},
		{"a 409 that the caller would have repeated", retryhttp.Transport{Base: always(409), Policy: again}, request(t.Context(), "POST", nil), "status_409/not_idempotent"},
		{"a 503 with X-Should-Retry: false", retryhttp.Transport{Base: always(503, "X-Should-Retry", "false"), Policy: atOnce}, get(t.Context()), "status_503/do_not_retry"},
		{"a 404 of a delivery", retryhttp.Transport{Base: always(404), Policy: atOnce, Delivery: true}, get(t.Context()), "status_404"},
	} {
		t.Run("a failure that funds nothing: "+row.name, func(t *testing.T) {
			row.tr.Policy.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1, Ratio: 1})
			o, _, err := run(t, &row.tr, row.req)
			require.NoError(t, err)
			require.Equal(t, retry.TerminalError, o.Reason)
			require.Equal(t, []string{row.want}, reasons(o))
			require.Zero(t, row.tr.Policy.Budget.Tokens())
		})
	}
}

func TestDoNotRetryIsObeyed(t *testing.T) {
	for _, row := range []struct {
		name   string
		header []string
		want   int // attempts
	}{
		{"X-Should-Retry: false", []string{"X-Should-Retry", "false"}, 1},
		{"Stripe-Should-Retry: false", []string{"Stripe-Should-Retry", "false"}, 1},
		{"in other letters, with spaces", []string{"X-Should-Retry", " False "}, 1},
		{"false in one of several", []string{"X-Should-Retry", "true", "X-Should-Retry", "false"}, 1},
		{"false by one name, true by the other", []string{"X-Should-Retry", "true", "Stripe-Should-Retry", "false"}, 1},
		{"x-envoy-overloaded", []string{"x-envoy-overloaded", "true"}, 1},
		{"x-envoy-overloaded with any value", []string{"x-envoy-overloaded", ""}, 1},
		{"finagle-http-nonretryable-nack", []string{"finagle-http-nonretryable-nack", "true"}, 1},
		{"finagle's retryable nack is another", []string{"finagle-http-retryable-nack", "true"}, 3},
		{"X-Should-Retry: true", []string{"X-Should-Retry", "true"}, 3},
		{"junk", []string{"X-Should-Retry", "0", "Stripe-Should-Retry", "no"}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := atOnce
			p.Classify = retryhttp.OnStatus(retry.Retryable, 409)
			for _, status := range []int{409, 500, 503} {
				o, resp, err := run(t, &retryhttp.Transport{Base: always(status, row.header...), Policy: p}, get(t.Context()))
				require.NoError(t, err)
				require.Equal(t, status, resp.StatusCode)
				require.Equal(t, row.want, o.Attempts, "after %d", status)
				require.Equal(t, retry.DeadLettered, o.Status)
			}
			o, _, err := run(t, &retryhttp.Transport{Base: always(200, row.header...), Policy: p}, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, retry.Succeeded, o.Status, "a success stays one")
			o, _, err = run(t, &retryhttp.Transport{Base: always(402, row.header...), Policy: p}, get(t.Context()))
			require.NoError(t, err)
			ended := map[int]retry.Status{1: retry.DeadLettered, 3: retry.Succeeded}[row.want]
			require.Equal(t, ended, o.Status, "a refusal is a failure whatever its status, and an answer without one is none")
		})
	}
	t.Run("by a handler of jobs too", func(t *testing.T) {
		err := retryhttp.CheckResponse(answer(get(t.Context()), 503, "X-Should-Retry", "false"))
		require.EqualError(t, err, "retryhttp: 503 Service Unavailable (not repeated: do_not_retry)")
		require.Equal(t, retry.Terminal, retryhttp.Classify(err))
		require.Equal(t, retry.Terminal, retryhttp.ClassifyStrict(err))
		class, _ := atOnce.Judge(err)
		require.Equal(t, retry.Terminal, class, "whatever the policy's classifier")
		class, hint := atOnce.Judge(retryhttp.CheckResponse(answer(get(t.Context()), 503, "Retry-After", "7")))
		require.Equal(t, retry.Retryable, class)
		require.Equal(t, 7*time.Second, hint)
	})
}

func TestTheCallerSaysWhatMayBeRepeated(t *testing.T) {
	on429 := func(failed *retryhttp.AttemptError) bool {
		return failed.Request.Method == http.MethodPost && failed.StatusCode == http.StatusTooManyRequests
	}
	on503 := func(failed *retryhttp.AttemptError) bool {
		return failed.StatusCode == http.StatusServiceUnavailable && failed.Header.Get("Retry-After") != ""
	}
	for _, row := range []struct {
		name   string
		repeat func(*retryhttp.AttemptError) bool
		method string
		base   roundTripper
		want   int
	}{
		{"POST on 429 only: 429", on429, "POST", always(429), 3},
		{"POST on 429 only: 503", on429, "POST", always(503), 1},
		{"POST on 429 only: a fault", on429, "POST", traced(true, true, errFault), 1},
		{"POST on 429 only: PATCH", on429, "PATCH", always(429), 1},
		{"POST on 429 only: GET stays repeatable", on429, "GET", always(503), 3},
		{"POST on 503 with Retry-After", on503, "POST", always(503, "Retry-After", "0.000000001"), 3},
		{"POST on 503 without Retry-After", on503, "POST", always(503), 1},
		{"what the rules end it cannot repeat", func(*retryhttp.AttemptError) bool { return true }, "POST", always(404), 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			o, _, _ := run(t, &retryhttp.Transport{Base: row.base, Policy: atOnce, Repeat: row.repeat}, request(t.Context(), row.method, nil))
			require.Equal(t, row.want, o.Attempts)
		})
	}
	t.Run("this call never: retry.OneAttempt", func(t *testing.T) {
		ctx := retry.OneAttempt(t.Context())
		o, resp, err := run(t, &retryhttp.Transport{Base: always(503), Policy: atOnce}, get(ctx))
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, 1, o.Attempts)
		require.Equal(t, retry.RetriesDisabled, o.Reason)
		o, _, err = run(t, &retryhttp.Transport{Base: always(404), Policy: atOnce}, get(ctx))
		require.NoError(t, err)
		require.Equal(t, retry.Succeeded, o.Status)
	})
}

func TestAnswer(t *testing.T) {
	var none *retryhttp.AttemptError
	require.False(t, none.Answer())
	for _, row := range []struct {
		e    retryhttp.AttemptError
		want bool
	}{
		{retryhttp.AttemptError{StatusCode: 404}, true},
		{retryhttp.AttemptError{StatusCode: 503}, false},
		{retryhttp.AttemptError{}, false},
		{retryhttp.AttemptError{StatusCode: 404, Err: errFault}, false},
		{retryhttp.AttemptError{Err: errFault}, false},
		{retryhttp.AttemptError{StatusCode: 404, Veto: retryhttp.DoNotRetry}, false},
		{retryhttp.AttemptError{StatusCode: 503, Veto: retryhttp.NotIdempotent}, false},
	} {
		require.Equal(t, row.want, row.e.Answer(), row.e)
	}
	o, _, _ := run(t, &retryhttp.Transport{Delivery: true, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
		return answer(req, 404), nil
	})}, get(t.Context()))
	var failed *retryhttp.AttemptError
	require.ErrorAs(t, o.History[0].Err, &failed)
	require.False(t, failed.Answer(), "of a delivery")
}
