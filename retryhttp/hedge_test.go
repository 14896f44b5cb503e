package retryhttp_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

// hedgeAfter is a policy that hedges after 50ms.
var hedgeAfter = retryhedge.Policy{Delay: 50 * time.Millisecond}

// answerer is a base whose n-th request, from 1, is answered after a time, unless its context ends.
type answerer struct {
	mu       sync.Mutex
	answers  []timedAnswer
	requests []*http.Request
	bodies   []string
	at       []time.Duration // of each request, since began
	open     atomic.Int32    // bodies
	began    time.Time
}

type timedAnswer struct {
	after  time.Duration
	status int // 0 for errFault
	header []string
}

func (a *answerer) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	if len(a.at) == 0 {
		a.began = time.Now()
	}
	next := a.answers[len(a.at)]
	a.at = append(a.at, time.Since(a.began))
	a.requests = append(a.requests, req)
	a.mu.Unlock()
	if req.Body != nil {
		sent, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		_ = req.Body.Close()
		a.mu.Lock()
		a.bodies = append(a.bodies, string(sent))
		a.mu.Unlock()
	}
	select {
	case <-time.After(next.after):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	if next.status == 0 {
		return nil, errFault
	}
	a.open.Add(1)
	resp := answer(req, next.status, next.header...)
	resp.Body = &boundBody{io.NopCloser(strings.NewReader("whole")), req.Context(), &a.open}
	return resp, nil
}

// boundBody is a body that cannot be read once its request's context has ended.
type boundBody struct {
	io.ReadCloser
	ctx  context.Context
	open *atomic.Int32 // bodies
}

func (b *boundBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

func (b *boundBody) Close() error {
	b.open.Add(-1)
	return b.ReadCloser.Close()
}

func TestHedges(t *testing.T) {
	const ms = time.Millisecond
	keyed := func(ctx context.Context) *http.Request {
		req := request(ctx, http.MethodPost, strings.NewReader("order"))
		req.Header.Set("Idempotency-Key", "1")
		return req
	}
	for _, row := range []struct {
		name    string
		answers []timedAnswer
		change  func(*retryhttp.Transport)
		request func(context.Context) *http.Request
		at      []time.Duration
		status  int    // 0 for an error
		took    string // virtual
		won     int    // 0 if it is not recorded
		reason  retryhttp.Reason
	}{
		{name: "a fast request has none", answers: []timedAnswer{{10 * ms, 200, nil}}, at: []time.Duration{0}, status: 200, took: "10ms", won: 1},
		{name: "the hedge of a slow one wins", answers: []timedAnswer{{time.Second, 200, nil}, {10 * ms, 200, nil}},
			at: []time.Duration{0, 50 * ms}, status: 200, took: "60ms", won: 2},
		{name: "the first wins after all", answers: []timedAnswer{{70 * ms, 200, nil}, {time.Second, 200, nil}},
			at: []time.Duration{0, 50 * ms}, status: 200, took: "70ms", won: 1},
		{name: "an answer ends both", answers: []timedAnswer{{time.Second, 200, nil}, {10 * ms, 404, nil}},
			at: []time.Duration{0, 50 * ms}, status: 404, took: "60ms", won: 2},
		{name: "a failure waits for the other", answers: []timedAnswer{{200 * ms, 200, nil}, {10 * ms, 503, nil}},
			at: []time.Duration{0, 50 * ms}, status: 200, took: "200ms", won: 1},
		{name: "a fault waits for the other", answers: []timedAnswer{{200 * ms, 200, nil}, {10 * ms, 0, nil}},
			at: []time.Duration{0, 50 * ms}, status: 200, took: "200ms", won: 1},
		{name: "both fail, and the attempt is repeated",
			answers: []timedAnswer{{100 * ms, 503, nil}, {10 * ms, 502, nil}, {10 * ms, 200, nil}},
			at:      []time.Duration{0, 50 * ms, 1100 * ms}, status: 200, took: "1.11s", won: 1},
		{name: "a failure within the delay is for the retry alone", answers: []timedAnswer{{10 * ms, 503, nil}, {10 * ms, 200, nil}},
			at: []time.Duration{0, 1010 * ms}, status: 200, took: "1.02s", won: 1},
		{name: "a server that forbids retries ends both",
			answers: []timedAnswer{{time.Second, 200, nil}, {10 * ms, 503, []string{"X-Should-Retry", "false"}}},
			at:      []time.Duration{0, 50 * ms}, status: 503, took: "60ms", won: 2},
		{name: "Retry-After holds the hedge off", answers: []timedAnswer{{60 * ms, 503, []string{"Retry-After", "1"}}, {time.Second, 200, nil}, {time.Second, 200, nil}},
			change: func(tr *retryhttp.Transport) { tr.Hedge.Policy.MaxCalls = 3 },
			at:     []time.Duration{0, 50 * ms}, status: 200, took: "1.05s", won: 2},
		{name: "the attempt's timeout covers both",
			answers: []timedAnswer{{time.Minute, 200, nil}, {time.Minute, 200, nil}, {10 * ms, 200, nil}},
			change:  func(tr *retryhttp.Transport) { tr.Policy.AttemptTimeout = 110 * ms },
			at:      []time.Duration{0, 50 * ms, 1110 * ms}, status: 200, took: "1.12s", won: 1, reason: retryhttp.AttemptTimeout},
		{name: "none begins too near the attempt's timeout",
			answers: []timedAnswer{{time.Minute, 200, nil}, {10 * ms, 200, nil}},
			change:  func(tr *retryhttp.Transport) { tr.Policy.AttemptTimeout = 100 * ms },
			at:      []time.Duration{0, 1100 * ms}, status: 200, took: "1.11s", won: 1, reason: retryhttp.AttemptTimeout},
		{name: "a POST has none", answers: []timedAnswer{{time.Second, 200, nil}},
			request: func(ctx context.Context) *http.Request {
				return request(ctx, http.MethodPost, strings.NewReader("order"))
			},
			at: []time.Duration{0}, status: 200, took: "1s"},
		{name: "a POST with a key has, with its own body", answers: []timedAnswer{{time.Second, 200, nil}, {10 * ms, 200, nil}},
			request: keyed, at: []time.Duration{0, 50 * ms}, status: 200, took: "60ms", won: 2},
		{name: "a key of the Transport will do", answers: []timedAnswer{{time.Second, 200, nil}, {10 * ms, 200, nil}},
			request: func(ctx context.Context) *http.Request { return request(ctx, http.MethodPost, nil) },
			change:  func(tr *retryhttp.Transport) { tr.IdempotencyKey = retryhttp.RandomKey },
			at:      []time.Duration{0, 50 * ms}, status: 200, took: "60ms", won: 2},
		{name: "a stream has none", answers: []timedAnswer{{time.Second, 200, nil}},
			request: func(ctx context.Context) *http.Request { return put(ctx, io.MultiReader(strings.NewReader("order"))) },
			at:      []time.Duration{0}, status: 200, took: "1s"},
		{name: "a stream that is buffered has", answers: []timedAnswer{{time.Second, 200, nil}, {10 * ms, 200, nil}},
			request: func(ctx context.Context) *http.Request {
				return withKey(put(ctx, io.MultiReader(strings.NewReader("order"))))
			},
			change: func(tr *retryhttp.Transport) { tr.BufferBody = 100 },
			at:     []time.Duration{0, 50 * ms}, status: 200, took: "60ms", won: 2},
		{name: "a PUT has none", answers: []timedAnswer{{time.Second, 200, nil}},
			request: func(ctx context.Context) *http.Request { return put(ctx, strings.NewReader("order")) },
			at:      []time.Duration{0}, status: 200, took: "1s"},
		{name: "a DELETE has none", answers: []timedAnswer{{time.Second, 200, nil}},
			request: func(ctx context.Context) *http.Request { return request(ctx, http.MethodDelete, nil) },
			at:      []time.Duration{0}, status: 200, took: "1s"},
		{name: "a key that is declared and not sent will not do", answers: []timedAnswer{{time.Second, 200, nil}},
			request: func(ctx context.Context) *http.Request {
				req := request(ctx, http.MethodPost, nil)
				req.Header["Idempotency-Key"] = nil
				return req
			},
			at: []time.Duration{0}, status: 200, took: "1s"},
		{name: "a HEAD has", answers: []timedAnswer{{time.Second, 200, nil}, {10 * ms, 200, nil}},
			request: func(ctx context.Context) *http.Request { return request(ctx, http.MethodHead, nil) },
			at:      []time.Duration{0, 50 * ms}, status: 200, took: "60ms", won: 2},
		{name: "none under OneAttempt", answers: []timedAnswer{{time.Second, 200, nil}},
			request: func(ctx context.Context) *http.Request { return get(retry.OneAttempt(ctx)) },
			at:      []time.Duration{0}, status: 200, took: "1s"},
		{name: "none too near the deadline", answers: []timedAnswer{{80 * ms, 200, nil}},
			request: func(ctx context.Context) *http.Request {
				ctx, cancel := context.WithTimeout(ctx, 90*ms)
				t.Cleanup(cancel)
				return get(ctx)
			},
			at: []time.Duration{0}, status: 200, took: "80ms", won: 1},
		{name: "none without a token", answers: []timedAnswer{{time.Second, 200, nil}},
			change: func(tr *retryhttp.Transport) {
				tr.Policy.Budget = retry.NewBudget(retry.BudgetConfig{Ratio: 0.1, Burst: 1})
				tr.Policy.Spend(t.Context(), retry.Decision{Status: retry.WaitingRetry}, time.Time{})
			},
			at: []time.Duration{0}, status: 200, took: "1s", won: 1},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			base := &answerer{answers: row.answers}
			policy := three
			tr := &retryhttp.Transport{Base: base, Policy: policy, Hedge: &retryhttp.Hedge{Policy: hedgeAfter}, AttemptHeader: retryhttp.AttemptHeader}
			if row.change != nil {
				row.change(tr)
			}
			if row.request == nil {
				row.request = get
			}
			began := time.Now()
			req := row.request(retryhttp.WithOutcome(t.Context()))
			resp, err := tr.RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, row.took, time.Since(began).String())
			require.Equal(t, row.status, resp.StatusCode)
			require.Same(t, req, resp.Request)
			time.Sleep(time.Millisecond) // the others have been let go of
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "whole", string(body))
			require.NoError(t, resp.Body.Close())
			synctest.Wait()
			require.Zero(t, base.open.Load(), "open bodies")
			require.Equal(t, row.at, base.at)
			for i, sent := range base.bodies {
				require.Equal(t, "order", sent, i)
			}
			for i, sent := range base.requests {
				number := "1"
				if base.at[i] >= time.Second {
					number = "2"
				}
				require.Equal(t, number, sent.Header.Get(retryhttp.AttemptHeader))
			}
			event, ok := retryhttp.HedgeOf(resp)
			require.Equal(t, row.won > 0, ok)
			require.Equal(t, row.won, event.Won)
			if row.reason != "" {
				outcome, err := retryhttp.OutcomeOf(resp, nil)
				require.NoError(t, err)
				var failed *retryhttp.AttemptError
				require.ErrorAs(t, outcome.History[0].Err, &failed)
				require.Equal(t, row.reason, failed.Reason)
			}
		})
	}
}

func withKey(req *http.Request) *http.Request {
	req.Header.Set("X-Idempotency-Key", "k")
	return req
}

func TestTheBudgetOfTheRunPaysForHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := retry.NewBudget(retry.BudgetConfig{Ratio: 0.5, Burst: 10, Initial: 3})
		var events []retryhedge.Event
		tr := &retryhttp.Transport{Policy: retry.Policy{Budget: budget}, Hedge: &retryhttp.Hedge{Policy: hedgeAfter}}
		tr.Hedge.Policy.Observe = func(_ context.Context, e retryhedge.Event) { events = append(events, e) }
		for range 4 {
			tr.Base = &answerer{answers: []timedAnswer{{time.Second, 200, nil}, {time.Second, 200, nil}}}
			resp, err := tr.RoundTrip(get(t.Context()))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
		made := 0
		for _, e := range events {
			made += len(e.Calls) - 1
		}
		require.Len(t, events, 4)
		require.Equal(t, 3, made, "3 tokens and 0.5 of each of the successes, less the one that is left for a retry")
		require.True(t, events[2].Refused != events[3].Refused)
		_, ok := retryhttp.HedgeOf(nil)
		require.False(t, ok)
	})
}

func TestAHedgeThatCannotBeMade(t *testing.T) {
	for name, fails := range map[string]error{"GetBody fails": errFault, "GetBody returns nothing": nil} {
		inBubble(t, name, func(t *testing.T) {
			base := &answerer{answers: []timedAnswer{{time.Second, 200, nil}}}
			tr := &retryhttp.Transport{Base: base, Policy: three, Hedge: &retryhttp.Hedge{Policy: hedgeAfter}}
			req := request(t.Context(), http.MethodPut, strings.NewReader("order"))
			req.GetBody = func() (io.ReadCloser, error) { return nil, fails }
			resp, err := tr.RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
		})
	}
	inBubble(t, "its Base panics", func(t *testing.T) {
		base := &answerer{answers: []timedAnswer{{time.Second, 200, nil}}}
		bad := roundTripper(func(*http.Request) (*http.Response, error) { panic("hedge") })
		tr := &retryhttp.Transport{Base: base, Policy: three, Hedge: &retryhttp.Hedge{Policy: hedgeAfter, Base: bad}}
		require.PanicsWithValue(t, "hedge", func() { _, _ = tr.RoundTrip(get(t.Context())) })
		synctest.Wait()
		require.Zero(t, base.open.Load())
	})
	t.Run("the policy is refused", func(t *testing.T) {
		tr := &retryhttp.Transport{Hedge: &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: -1}}}
		_, err := tr.RoundTrip(get(t.Context()))
		require.EqualError(t, err, "retryhedge: Policy.Delay -1ns is negative")
	})
}

func TestACallerThatGoesEndsTheHedges(t *testing.T) {
	for cut := range 12 { // from before the hedge to after its answer
		inBubble(t, strconv.Itoa(cut), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(cut)*10*time.Millisecond, cancel)
			base := &answerer{answers: []timedAnswer{{90 * time.Millisecond, 503, nil}, {30 * time.Millisecond, 503, nil}, {time.Second, 200, nil}}}
			tr := &retryhttp.Transport{Base: base, Policy: three, Hedge: &retryhttp.Hedge{Policy: hedgeAfter}}
			_, err := tr.RoundTrip(get(ctx))
			require.ErrorIs(t, err, retry.CallerCanceled)
			synctest.Wait()
			require.Zero(t, base.open.Load())
		})
	}
}
