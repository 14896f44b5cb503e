package retryfailsafe_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryfailsafe"
	"github.com/retrygo/retry/retryhttp"
)

var errDown = errors.New("down")

// policy is retryfailsafe.Policy for a p that is carried in full, but for AttemptTimeout.
func policy(t *testing.T, p retry.Policy) retrypolicy.RetryPolicy[string] {
	t.Helper()
	rp, lost, err := retryfailsafe.Policy[string](p)
	require.NoError(t, err)
	require.Equal(t, p.AttemptTimeout > 0, len(lost) > 0)
	return rp
}

// inBubble runs f as a subtest in virtual time.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// seeded returns the same numbers on every call of it.
func seeded() func() float64 { return rand.New(rand.NewPCG(9, 9)).Float64 }

// delays returns the waits that Decide gives for a run whose attempts take no time and fail, the n-th with fail(n), and
// how it ends.
func delays(p retry.Policy, fail func(attempt int) error) (waits []time.Duration, end retry.Decision) {
	next := p.Rand
	u, pr := 0.0, retry.Progress{}
	for {
		pr.Attempt++
		if next != nil && p.Jitter != retry.NoJitter {
			u = next()
		}
		d := p.Decide(pr, fail(pr.Attempt), u)
		if d.Status != retry.WaitingRetry {
			return waits, d
		}
		waits = append(waits, d.Delay)
		pr.Elapsed += d.Delay
		pr.Prev = d.Backoff
	}
}

// run executes fail under failsafe-go with the given policies and returns the time that passed between its attempts.
func run(ctx context.Context, fail func(attempt int) error, policies ...failsafe.Policy[string]) (waits []time.Duration, err error) {
	var attempts int
	var last time.Time
	_, err = failsafe.With(policies...).WithContext(ctx).Get(func() (string, error) {
		if attempts++; attempts > 1 {
			waits = append(waits, time.Since(last))
		}
		last = time.Now()
		return fmt.Sprint("answer ", attempts), fail(attempts)
	})
	return waits, err
}

func always(int) error { return errDown }

// hinted asks for a minute after the second attempt.
func hinted(attempt int) error {
	if attempt == 2 {
		return fmt.Errorf("busy: %w", retry.After(time.Minute, errDown))
	}
	return errDown
}

func TestTheWaitsAreThoseOfThePolicy(t *testing.T) {
	const ms = time.Millisecond
	modes := map[string]retry.Backoff{
		"default":     {},
		"exponential": {Mode: retry.Exponential, Base: 100 * ms, Factor: 1.7, Cap: time.Second},
		"linear":      {Mode: retry.Linear, Base: 300 * ms, Factor: 0.5},
		"fixed":       {Mode: retry.Fixed, Base: 250 * ms},
		"list":        {Delays: []time.Duration{7 * ms, 0, 1, 3 * time.Second}},
	}
	for mode, b := range modes {
		for jitter := retry.NoJitter; jitter <= retry.DecorrelatedJitter; jitter++ {
			b.Jitter = jitter
			if (retry.Policy{Backoff: b}).Validate() != nil {
				require.Equal(t, retry.DecorrelatedJitter, jitter) // goes with Exponential only
				continue
			}
			for name, p := range map[string]retry.Policy{
				"9 attempts": {MaxAttempts: 9, Backoff: b},
				"a TTL":      {MaxAttempts: retry.Unlimited, Backoff: b, TTL: 5 * time.Minute},
			} {
				for text, fail := range map[string]func(int) error{"": always, " and a hint": hinted} {
					inBubble(t, fmt.Sprintf("%s, %v jitter, %s%s", mode, jitter, name, text), func(t *testing.T) {
						p.Rand = seeded()
						want, end := delays(p, fail)
						p.Rand = seeded()
						got, err := run(t.Context(), fail, policy(t, p))
						require.Equal(t, want, got)
						require.ErrorIs(t, err, end.Reason)
						require.Greater(t, len(got), 2)
					})
				}
			}
		}
	}
}

// The published schedule, written down.
func TestTheZeroPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, err := run(t.Context(), always, policy(t, retry.Policy{}))
		const s = time.Second
		require.Equal(t, []time.Duration{5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 320 * s}, waits)
		require.EqualError(t, err, "retries exceeded. last result: answer 8, last error: "+
			"retry: gave up after 8 attempts in 10m35s (attempts_exhausted): down")
	})
}

func TestEndings(t *testing.T) {
	empty := retry.NewBudget(retry.BudgetConfig{Initial: -1})
	for _, row := range []struct {
		name     string
		policy   retry.Policy
		fail     func(int) error
		reason   retry.Reason
		exceeded bool
		waits    int
	}{
		{name: "attempts exhausted", policy: retry.Policy{MaxAttempts: 3}, fail: always, reason: retry.AttemptsExhausted, exceeded: true, waits: 2},
		{name: "one attempt", policy: retry.Policy{MaxAttempts: 1}, fail: always, reason: retry.AttemptsExhausted, exceeded: true},
		{name: "TTL: a retry exactly at it is made", policy: retry.Policy{TTL: 15 * time.Second}, fail: always, reason: retry.TTLElapsed, exceeded: true, waits: 2},
		{name: "TTL: one a nanosecond later is not waited for", policy: retry.Policy{TTL: 15*time.Second - 1}, fail: always, reason: retry.TTLElapsed, exceeded: true, waits: 1},
		{name: "a hint that is too long", policy: retry.Policy{MaxHint: 59 * time.Second}, fail: hinted, reason: retry.HintTooLong, exceeded: true, waits: 1},
		{name: "an empty budget", policy: retry.Policy{Budget: empty}, fail: always, reason: retry.BudgetExhausted, exceeded: true},
		{name: "a mark", fail: func(int) error { return retry.Permanent(errDown) }, reason: retry.TerminalError},
		{name: "a mark on a later attempt", fail: func(n int) error {
			if n == 3 {
				return retry.Permanent(errDown)
			}
			return errDown
		}, reason: retry.TerminalError, waits: 2},
		{name: "a classifier", policy: retry.Policy{Classify: retry.StopOn(errDown)}, fail: always, reason: retry.TerminalError},
		{name: "disabled", policy: retry.Policy{Disabled: true}, fail: always, reason: retry.RetriesDisabled},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			waits, err := run(t.Context(), row.fail, policy(t, row.policy))
			require.Len(t, waits, row.waits)
			require.ErrorIs(t, err, row.reason)
			require.ErrorIs(t, err, errDown)
			require.Equal(t, row.exceeded, retrypolicy.IsExceededError(err))
			require.Equal(t, row.exceeded, retrypolicy.AsExceededError(err) != nil)
			var gaveUp *retry.Error
			require.ErrorAs(t, err, &gaveUp)
			require.Equal(t, row.waits+1, gaveUp.Attempts)
		})
	}
}

func TestTheCaller(t *testing.T) {
	inBubble(t, "a deadline that is too near is not waited for", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		start := time.Now()
		waits, err := run(ctx, always, policy(t, retry.Policy{}))
		require.Equal(t, []time.Duration{5 * time.Second}, waits)
		require.Equal(t, 5*time.Second, time.Since(start))
		require.ErrorIs(t, err, retry.DeadlineTooNear)
		require.True(t, retrypolicy.IsExceededError(err))
	})
	inBubble(t, "a caller can cancel during a wait", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		errCause := errors.New("shutdown")
		time.AfterFunc(7*time.Second, func() { cancel(errCause) })
		start := time.Now()
		waits, err := run(ctx, always, policy(t, retry.Policy{}))
		require.Equal(t, []time.Duration{5 * time.Second}, waits)
		require.Equal(t, 7*time.Second, time.Since(start))
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errCause)
		require.ErrorIs(t, err, errDown)
		require.False(t, retrypolicy.IsExceededError(err))
	})
	t.Run("a caller who has given up before has no attempt", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		result, err := failsafe.With(policy(t, retry.Policy{})).WithContext(ctx).Get(func() (string, error) {
			t.Error("an attempt")
			return "answer", nil
		})
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.Empty(t, result)
	})
	inBubble(t, "a caller of RunAsync can cancel", func(t *testing.T) {
		result := failsafe.With(policy(t, retry.Policy{})).RunAsync(func() error { return errDown })
		time.AfterFunc(time.Second, result.Cancel)
		start := time.Now()
		<-result.Done()
		require.Equal(t, failsafe.ErrExecutionCanceled, result.Error())
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestBudgetGateAndObserveAreCarried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "caller")
		start := time.Now()
		var events []string
		budget := retry.NewBudget(retry.BudgetConfig{Initial: 2})
		p := retry.Policy{
			Name:    "orders",
			Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second},
			Budget:  budget,
			Gate: func(ctx context.Context) time.Duration {
				require.Equal(t, "caller", ctx.Value(key{}))
				return 1500*time.Millisecond - time.Since(start) // the first attempt waits for it as well
			},
			Observe: func(ctx context.Context, e retry.Event) {
				require.Equal(t, "caller", ctx.Value(key{}))
				events = append(events, fmt.Sprint(e.Policy, " ", time.Since(start), " ", e.Attempt.Number, " ", e.Decision))
			},
		}
		waits, err := run(ctx, always, policy(t, p))
		require.ErrorIs(t, err, retry.BudgetExhausted)
		require.Equal(t, []time.Duration{time.Second, time.Second}, waits)
		require.Zero(t, budget.Tokens())
		require.Equal(t, []string{
			"orders 1.5s 1 waiting_retry 1s",
			"orders 2.5s 2 waiting_retry 1s",
			"orders 3.5s 3 dead_letter (budget_exhausted)",
			"orders 3.5s 0 dead_letter (budget_exhausted)",
		}, events)
	})
}

// The waits are not the execution's, so what failsafe-go counts and shows of it is right too.
func TestTheExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		var done failsafe.ExecutionDoneEvent[string]
		var succeeded int
		result, err := failsafe.With(policy(t, retry.Policy{})).
			OnDone(func(e failsafe.ExecutionDoneEvent[string]) { done = e }).
			OnSuccess(func(failsafe.ExecutionDoneEvent[string]) { succeeded++ }).
			GetWithExecution(func(e failsafe.Execution[string]) (string, error) {
				seen = append(seen, fmt.Sprintf("%d %d %d %v %q %v",
					e.Attempts(), e.Retries(), e.Executions(), e.ElapsedAttemptTime(), e.LastResult(), e.LastError()))
				if e.Retries() == 2 {
					return "answer", nil
				}
				return fmt.Sprint("part ", e.Retries()), fmt.Errorf("fault %d", e.Retries())
			})
		require.NoError(t, err)
		require.Equal(t, "answer", result)
		require.Equal(t, []string{`1 0 0 0s "" <nil>`, `2 1 1 0s "part 0" fault 0`, `3 2 2 0s "part 1" fault 1`}, seen)
		require.Equal(t, []int{3, 2, 3, 1}, []int{done.Attempts(), done.Retries(), done.Executions(), succeeded})
	})
}

func TestAFailureKeepsTheLastResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fail := range []error{errDown, retry.Permanent(errDown)} {
			result, err := failsafe.With(policy(t, retry.Policy{MaxAttempts: 2})).Get(func() (string, error) { return "page", fail })
			require.ErrorIs(t, err, errDown)
			require.Equal(t, "page", result)
		}
	})
}

func TestLost(t *testing.T) {
	full := retry.Policy{
		Name: "all", MaxAttempts: 5, TTL: time.Hour, MaxHint: time.Minute, Disabled: true,
		Backoff:  retry.Backoff{Base: time.Second, Factor: 3, Cap: time.Minute, Jitter: retry.RatioJitter, JitterRatio: 0.1},
		Classify: retry.StopOn(errDown), Budget: retry.NewBudget(retry.BudgetConfig{}),
		Gate:    func(context.Context) time.Duration { return 0 },
		Observe: func(context.Context, retry.Event) {}, Rand: rand.Float64,
	}
	policy(t, full)
	full.AttemptTimeout = 1500 * time.Millisecond
	_, lost, err := retryfailsafe.Policy[string](full)
	require.NoError(t, err)
	require.Equal(t, []string{"Policy.AttemptTimeout 1.5s: the attempt's context is canceled then, but without a Deadline that fn could " +
		"read and with context.Canceled as its error and cause; the run gets retry.ErrAttemptTimeout"}, lost)
}

func TestABadPolicyIsRefused(t *testing.T) {
	bad := retry.Policy{Backoff: retry.Backoff{Base: 5 * time.Second, Cap: time.Second}, AttemptTimeout: -1}
	rp, lost, err := retryfailsafe.Policy[int](bad)
	require.Nil(t, rp)
	require.Nil(t, lost)
	require.Equal(t, bad.Validate(), err)
	require.ErrorContains(t, err, "retry: Policy.Cap 1s is below Base 5s")
}

func TestAPanicPassesThrough(t *testing.T) {
	p := retry.Policy{AttemptTimeout: time.Minute}
	require.PanicsWithValue(t, "broken", func() {
		_ = failsafe.With(policy(t, p)).Run(func() error { panic("broken") })
	})
}

// unavailable is a transport that answers 503.
type unavailable int

func (n *unavailable) RoundTrip(r *http.Request) (*http.Response, error) {
	*n++
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: r}, nil
}

func TestAResponseIsASuccessAndLostSaysSo(t *testing.T) {
	rp, lost, err := retryfailsafe.Policy[*http.Response](retry.Policy{})
	require.NoError(t, err)
	require.Equal(t, []string{"*http.Response: a response without an error is a success, whatever its status: use " +
		"retryhttp.Transport"}, lost)
	var sent unavailable
	client := http.Client{Transport: failsafehttp.NewRoundTripper(&sent, rp)}
	resp, err := client.Get("http://server.test/")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 1, int(sent))

	// What the line says: the 503 is repeated below.
	sent = 0
	transport := &retryhttp.Transport{Base: &sent, Policy: retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 1}}}
	client.Transport = failsafehttp.NewRoundTripper(transport, rp)
	resp, err = client.Get("http://server.test/")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 3, int(sent))
}
