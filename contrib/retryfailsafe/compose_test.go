package retryfailsafe_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/common"
	"github.com/failsafe-go/failsafe-go/fallback"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryfailsafe"
)

// each is a policy of fixed waits of a second.
func each(attempts int) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}}
}

// limited is each with a limit for an attempt.
func limited(attempts int, limit time.Duration) retry.Policy {
	p := each(attempts)
	p.AttemptTimeout = limit
	return p
}

func TestACircuitBreakerInside(t *testing.T) {
	// It opens at the second failure, for 2.5s: the attempts at 2s and 3s are refused and sent nowhere, the one at 4s
	// is the trial that closes it.
	guard := func() circuitbreaker.CircuitBreaker[string] {
		return circuitbreaker.NewBuilder[string]().WithFailureThreshold(2).WithDelay(2500 * time.Millisecond).WithSuccessThreshold(1).Build()
	}
	untilThird := func(sent int) error {
		if sent == 3 {
			return nil
		}
		return errDown
	}
	inBubble(t, "an open breaker refuses attempts, which are retried", func(t *testing.T) {
		breaker := guard()
		var failures []error
		p := each(8)
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Outcome == nil {
				failures = append(failures, e.Attempt.Err)
			}
		}
		start := time.Now()
		waits, err := run(t.Context(), untilThird, policy(t, p), breaker)
		require.NoError(t, err)
		require.Equal(t, []time.Duration{time.Second, 3 * time.Second}, waits) // sent at 0s, 1s and 4s
		require.Equal(t, 4*time.Second, time.Since(start))
		require.Equal(t, []error{errDown, errDown, circuitbreaker.ErrOpen, circuitbreaker.ErrOpen}, failures)
		require.True(t, breaker.IsClosed())
	})
	inBubble(t, "a breaker that is the gate as well refuses no attempt", func(t *testing.T) {
		breaker := guard()
		p := each(8)
		p.Gate = func(context.Context) time.Duration { return breaker.RemainingDelay() }
		waits, err := run(t.Context(), untilThird, policy(t, p), breaker)
		require.NoError(t, err)
		require.Equal(t, []time.Duration{time.Second, 2500 * time.Millisecond}, waits)
	})
	inBubble(t, "an open breaker ends the run if a classifier says so", func(t *testing.T) {
		p := each(8)
		p.Classify = retry.StopOn(circuitbreaker.ErrOpen)
		waits, err := run(t.Context(), always, policy(t, p), guard())
		require.Len(t, waits, 1)
		require.ErrorIs(t, err, retry.TerminalError)
		require.ErrorIs(t, err, circuitbreaker.ErrOpen)
	})
}

func TestTimeouts(t *testing.T) {
	hang := func(e failsafe.Execution[string]) (string, error) {
		<-e.Canceled()
		return "", fmt.Errorf("reading: %w", e.Context().Err())
	}
	inBubble(t, "a timeout inside ends an attempt", func(t *testing.T) {
		start := time.Now()
		_, err := failsafe.With(policy(t, each(3)), failsafe.Policy[string](timeout.New[string](10*time.Second))).GetWithExecution(hang)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Equal(t, 32*time.Second, time.Since(start))
	})
	inBubble(t, "a timeout outside ends the run, in the middle of a wait too", func(t *testing.T) {
		start := time.Now()
		var status retry.Status
		p := each(retry.Unlimited)
		p.Observe = func(_ context.Context, e retry.Event) { status = e.Decision.Status }
		outside := failsafe.Policy[string](timeout.New[string](2500 * time.Millisecond))
		waits, err := run(t.Context(), always, outside, policy(t, p))
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Len(t, waits, 2)
		require.Equal(t, 2500*time.Millisecond, time.Since(start))
		require.Equal(t, retry.Canceled, status)
	})
	inBubble(t, "AttemptTimeout ends an attempt", func(t *testing.T) {
		p := limited(3, 10*time.Second)
		var failures []error
		p.Observe = func(_ context.Context, e retry.Event) { failures = append(failures, e.Attempt.Err) }
		start := time.Now()
		_, err := failsafe.With(policy(t, p)).GetWithExecution(hang)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.ErrorIs(t, err, retry.ErrAttemptTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
		require.Equal(t, 32*time.Second, time.Since(start))
		require.Len(t, failures, 4)
		require.EqualError(t, failures[0], "attempt timeout: reading: context canceled")
	})
	inBubble(t, "AttemptTimeout ends an attempt with a policy inside, too", func(t *testing.T) {
		hedged := hedgepolicy.NewWithDelay[string](time.Minute)
		start := time.Now()
		_, err := failsafe.With(policy(t, limited(2, 10*time.Second)), failsafe.Policy[string](hedged)).GetWithExecution(hang)
		var gaveUp *retry.Error
		require.ErrorAs(t, err, &gaveUp)
		require.Equal(t, retry.AttemptsExhausted, gaveUp.Reason)
		require.ErrorIs(t, gaveUp.Last, retry.ErrAttemptTimeout)
		require.NotErrorIs(t, gaveUp.Last, context.Canceled)
		require.Equal(t, 21*time.Second, time.Since(start))
		synctest.Wait()
	})
	inBubble(t, "a result that comes after AttemptTimeout is a result", func(t *testing.T) {
		result, err := failsafe.With(policy(t, limited(3, time.Second))).GetWithExecution(func(e failsafe.Execution[string]) (string, error) {
			<-e.Canceled()
			return "late", nil
		})
		require.NoError(t, err)
		require.Equal(t, "late", result)
	})
	inBubble(t, "a caller who cancels is not an attempt's timeout", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		_, err := failsafe.With(policy(t, limited(3, time.Second))).WithContext(ctx).GetWithExecution(func(e failsafe.Execution[string]) (string, error) {
			result, err := hang(e)
			<-time.After(time.Second) // past the timeout
			return result, err
		})
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.NotErrorIs(t, err, retry.ErrAttemptTimeout)
	})
	inBubble(t, "no attempt leaves its context behind", func(t *testing.T) {
		var contexts []context.Context
		_, err := failsafe.With(policy(t, limited(3, time.Hour))).GetWithExecution(func(e failsafe.Execution[string]) (string, error) {
			require.NoError(t, e.Context().Err())
			contexts = append(contexts, e.Context())
			return "", errDown
		})
		require.ErrorIs(t, err, errDown)
		require.Len(t, contexts, 3)
		for _, ctx := range contexts {
			require.ErrorIs(t, ctx.Err(), context.Canceled)
		}
	})
}

// As failsafehttp does, so that a response's body can be read once the attempt is over.
func TestAnExecutionCanKeepItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ctx context.Context
		var release func()
		_, err := failsafe.With(policy(t, limited(2, time.Second))).GetWithExecution(func(e failsafe.Execution[string]) (string, error) {
			ctx, release = e.Context(), e.(interface{ DeferCancel() func() }).DeferCancel()
			return "head", nil
		})
		require.NoError(t, err)
		<-time.After(time.Minute)
		require.NoError(t, ctx.Err())
		release()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
	})
}

// spy is an outer policy that keeps the execution that it gets.
type spy struct{ result *common.PolicyResult[string] }

func (s *spy) ToExecutor(string) any { return s }

func (s *spy) Apply(inner func(failsafe.Execution[string]) *common.PolicyResult[string]) func(failsafe.Execution[string]) *common.PolicyResult[string] {
	return func(e failsafe.Execution[string]) *common.PolicyResult[string] {
		s.result = inner(e)
		return s.result
	}
}

func TestWhatAPolicyOutsideIsHanded(t *testing.T) {
	// A breaker that takes the result for a failure, which to the retries is a result.
	picky := circuitbreaker.NewBuilder[string]().WithFailureThreshold(100).HandleResult("bad").Build()
	for _, row := range []struct {
		answer string
		err    error
		want   common.PolicyResult[string]
	}{
		{answer: "good", want: common.PolicyResult[string]{Result: "good", Done: true, Success: true, SuccessAll: true}},
		{answer: "bad", want: common.PolicyResult[string]{Result: "bad", Done: true, Success: true}},
		{answer: "half", err: retry.Permanent(errDown), want: common.PolicyResult[string]{Result: "half", Done: true}},
	} {
		t.Run(row.answer, func(t *testing.T) {
			outside := new(spy)
			_, err := failsafe.With(outside, policy(t, each(1)), picky).Get(func() (string, error) { return row.answer, row.err })
			require.ErrorIs(t, err, row.err)
			outside.result.Error = nil
			require.Equal(t, row.want, *outside.result)
		})
	}
}

func TestABulkheadInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := bulkhead.New[string](1)
		require.True(t, one.TryAcquirePermit())
		time.AfterFunc(2500*time.Millisecond, one.ReleasePermit)
		start := time.Now()
		waits, err := run(t.Context(), func(int) error { return nil }, policy(t, each(8)), one)
		require.NoError(t, err)
		require.Empty(t, waits) // the attempts before were refused
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestHedges(t *testing.T) {
	inBubble(t, "hedges inside are not retries", func(t *testing.T) {
		var sent atomic.Int32
		p := retry.Policy{MaxAttempts: 3}
		start := time.Now()
		var ended []time.Duration
		p.Observe = func(_ context.Context, e retry.Event) { ended = append(ended, time.Since(start)) }
		hedged := hedgepolicy.NewBuilderWithDelay[string](time.Second).WithMaxHedges(2).CancelIf(func(string, error) bool { return false }).Build()
		_, err := failsafe.With(policy(t, p), failsafe.Policy[string](hedged)).GetWithExecution(func(failsafe.Execution[string]) (string, error) {
			sent.Add(1)
			<-time.After(1500 * time.Millisecond)
			return "", errDown
		})
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.EqualValues(t, 9, sent.Load())
		// Each attempt ends with its last hedge, 3.5s after it began; 5s and 10s lie between.
		require.Equal(t, []time.Duration{3500 * time.Millisecond, 12 * time.Second, 25500 * time.Millisecond, 25500 * time.Millisecond}, ended)
	})
	inBubble(t, "each hedge outside is a run of its own", func(t *testing.T) {
		var mu sync.Mutex
		sent := map[time.Duration]int{}
		start := time.Now()
		hedged := hedgepolicy.NewBuilderWithDelay[string](time.Second).CancelIf(func(string, error) bool { return false }).Build()
		_, err := failsafe.With(failsafe.Policy[string](hedged), policy(t, retry.Policy{MaxAttempts: 3})).Get(func() (string, error) {
			mu.Lock()
			defer mu.Unlock()
			sent[time.Since(start)]++
			return "", errDown
		})
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		const s = time.Second
		require.Equal(t, map[time.Duration]int{0: 1, 5 * s: 1, 15 * s: 1, 1 * s: 1, 6 * s: 1, 16 * s: 1}, sent)
	})
}

func TestAFallbackOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		onExceeded := fallback.NewBuilderWithResult("cached").HandleErrorTypes(retrypolicy.ExceededError{}).Build()
		executor := failsafe.With[string](onExceeded, policy(t, each(3)))
		result, err := executor.Get(func() (string, error) { return "", errDown })
		require.NoError(t, err)
		require.Equal(t, "cached", result)
		_, err = executor.Get(func() (string, error) { return "", retry.Permanent(errDown) })
		require.ErrorIs(t, err, retry.TerminalError)
		result, err = executor.Get(func() (string, error) { return "fresh", nil })
		require.NoError(t, err)
		require.Equal(t, "fresh", result)
	})
}

// The outer run counts its own attempts, and the inner one begins again with each of them.
func TestNestedPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Minute}}
		waits, err := run(t.Context(), always, policy(t, outer), policy(t, retry.Policy{MaxAttempts: 3}))
		const s = time.Second
		require.Equal(t, []time.Duration{5 * s, 10 * s, 60 * s, 5 * s, 10 * s}, waits)
		var gaveUp *retry.Error
		require.ErrorAs(t, err, &gaveUp)
		require.Equal(t, 2, gaveUp.Attempts)
	})
}

// The policy has no state: each of many executions gets the whole schedule, and its own.
func TestSharedByManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: time.Second, Cap: time.Minute, Jitter: retry.DecorrelatedJitter}}
		p.Rand = func() float64 { return 0.5 }
		want, _ := delays(p, hinted)
		p.AttemptTimeout = time.Hour
		shared, _, err := retryfailsafe.Policy[string](p)
		require.NoError(t, err)
		breaker := circuitbreaker.NewBuilder[string]().WithFailureThreshold(1 << 20).Build()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				waits, err := run(t.Context(), func(attempt int) error {
					if i%2 == 0 && attempt == 5 {
						return nil
					}
					return hinted(attempt)
				}, shared, breaker)
				if i%2 == 0 {
					if err != nil || fmt.Sprint(waits) != fmt.Sprint(want[:4]) {
						t.Errorf("%v: %v", waits, err)
					}
				} else if !errors.Is(err, retry.AttemptsExhausted) || fmt.Sprint(waits) != fmt.Sprint(want) {
					t.Errorf("%v: %v", waits, err)
				}
			})
		}
		all.Wait()
	})
}
