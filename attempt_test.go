package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

func TestAttemptContext(t *testing.T) {
	timeout := func(d time.Duration) retry.Policy {
		p := everySecond(2)
		p.AttemptTimeout = d
		return p
	}
	inBubble(t, "has the attempt's deadline and its cause", func(t *testing.T) {
		err := retry.Do(t.Context(), timeout(3*sec), func(ctx context.Context) error {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, 3*sec, time.Until(deadline))
			<-ctx.Done()
			require.Zero(t, time.Until(deadline))
			require.Equal(t, context.DeadlineExceeded, ctx.Err())
			require.Equal(t, retry.ErrAttemptTimeout, context.Cause(ctx))
			return context.Cause(ctx)
		})
		requireEnd(t, err, exhausted, 2)
		require.ErrorIs(t, err, retry.ErrAttemptTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "retry: gave up after 2 attempts in 7s (attempts_exhausted): attempt timeout")
	})
	inBubble(t, "has the caller's deadline if that is earlier, and its cause", func(t *testing.T) {
		why := errors.New("enough")
		for _, callers := range []time.Duration{sec, 3 * sec} { // earlier, and at the same instant
			ctx, cancel := context.WithTimeoutCause(t.Context(), callers, why)
			defer cancel()
			start := time.Now()
			err := retry.Do(ctx, timeout(3*sec), func(ctx context.Context) error {
				<-ctx.Done()
				require.Same(t, why, context.Cause(ctx))
				return ctx.Err()
			})
			requireEnd(t, err, passed, 1)
			require.Equal(t, callers, time.Since(start))
		}
	})
	inBubble(t, "is canceled when its attempt ends", func(t *testing.T) {
		for _, callers := range []time.Duration{hour, sec} {
			ctx, cancel := context.WithTimeout(t.Context(), callers)
			defer cancel()
			var kept context.Context
			require.NoError(t, retry.Do(ctx, timeout(minute), func(ctx context.Context) error { kept = ctx; return nil }))
			require.Equal(t, context.Canceled, kept.Err())
			require.NoError(t, ctx.Err())
		}
	})
	inBubble(t, "is the caller's own for a first attempt without a timeout", func(t *testing.T) {
		require.NoError(t, retry.Do(t.Context(), retry.Policy{}, func(ctx context.Context) error {
			require.Same(t, t.Context(), ctx)
			return nil
		}))
	})
	inBubble(t, "is alive for a retry without a timeout, and passes on values", func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		defer cancel()
		var kept context.Context
		require.NoError(t, retry.Do(ctx, atOnce, func(ctx context.Context) error {
			kept = ctx
			if retry.AttemptNumber(ctx) < 3 {
				return errFlaky
			}
			return nil
		}))
		require.NoError(t, kept.Err())
		require.Equal(t, "v", kept.Value(key{}))
		child, stop := context.WithCancel(kept)
		defer stop()
		cancel()
		require.Error(t, child.Err())
	})
	inBubble(t, "a timeout is cooperative: an fn that ignores it is waited for", func(t *testing.T) {
		start := time.Now()
		require.NoError(t, retry.Do(t.Context(), timeout(sec), func(context.Context) error { spend(hour); return nil }))
		require.Equal(t, hour, time.Since(start))
	})
	inBubble(t, "the longest timeout does not overflow", func(t *testing.T) {
		require.NoError(t, retry.Do(t.Context(), timeout(longest), func(ctx context.Context) error { return ctx.Err() }))
	})
	inBubble(t, "a timeout applies to a disabled policy", func(t *testing.T) {
		p := retry.Policy{Disabled: true, AttemptTimeout: sec}
		start := time.Now()
		requireEnd(t, retry.Do(t.Context(), p, untilDone), disabled, 1)
		require.Equal(t, sec, time.Since(start))
	})
	t.Run("ErrAttemptTimeout is a timeout by every convention", func(t *testing.T) {
		require.ErrorIs(t, retry.ErrAttemptTimeout, context.DeadlineExceeded)
		var timeout interface{ Timeout() bool }
		require.ErrorAs(t, retry.ErrAttemptTimeout, &timeout)
		require.True(t, timeout.Timeout())
		require.NotErrorIs(t, retry.ErrAttemptTimeout, context.Canceled)
	})
}

func TestTheShortestAttemptTimeoutHoldsForRetriesToo(t *testing.T) {
	p := retry.Policy{MaxAttempts: 3, AttemptTimeout: 1, Backoff: retry.Backoff{Delays: []time.Duration{0}}}
	attempts := 0
	_ = retry.Do(context.Background(), p, func(ctx context.Context) error {
		_, limited := ctx.Deadline()
		require.True(t, limited)
		attempts++
		return errFlaky
	})
	require.Equal(t, 3, attempts)
}

func TestAttemptNumber(t *testing.T) {
	t.Run("is 1 if no run has marked the context", func(t *testing.T) {
		require.Equal(t, 1, retry.AttemptNumber(t.Context()))
		require.Equal(t, 1, retry.AttemptNumber(noContext))
	})
	for _, timeout := range []time.Duration{0, sec} {
		inBubble(t, fmt.Sprintf("counts from 1, with an attempt timeout of %v", timeout), func(t *testing.T) {
			p := atOnce
			p.AttemptTimeout = timeout
			p.MaxAttempts = 12
			var numbers []int
			var contexts []context.Context
			_ = retry.Do(t.Context(), p, func(ctx context.Context) error {
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				require.Equal(t, retry.AttemptNumber(ctx), retry.AttemptNumber(child))
				numbers = append(numbers, retry.AttemptNumber(ctx))
				contexts = append(contexts, ctx)
				return errFlaky
			})
			require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, numbers)
			for i, ctx := range contexts {
				require.Equal(t, i+1, retry.AttemptNumber(ctx), "a context that was kept keeps its number")
			}
		})
		inBubble(t, fmt.Sprintf("a nested run counts from 1 again, with an attempt timeout of %v", timeout), func(t *testing.T) {
			inner, outer := atOnce, atOnce
			inner.MaxAttempts, outer.MaxAttempts = 2, 3
			inner.AttemptTimeout = timeout
			var numbers [][2]int
			_ = retry.Do(t.Context(), outer, func(octx context.Context) error {
				return retry.Do(octx, inner, func(ictx context.Context) error {
					numbers = append(numbers, [2]int{retry.AttemptNumber(octx), retry.AttemptNumber(ictx)})
					return errFlaky
				})
			})
			require.Equal(t, [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 1}, {3, 2}}, numbers)
		})
	}
}

// TestAttemptTimeoutIsRecorded holds that an attempt that its AttemptTimeout ended says so wherever it is recorded.
func TestAttemptTimeoutIsRecorded(t *testing.T) {
	own := errors.New("own")
	for _, row := range []struct {
		name string
		fn   func(context.Context) error
		want bool
		text string
	}{
		{"ctx.Err()", untilDone, true, "attempt timeout: context deadline exceeded"},
		{"the cause", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, true, "attempt timeout"},
		{"context.Canceled, as some drivers return", func(ctx context.Context) error { <-ctx.Done(); return context.Canceled }, true,
			"attempt timeout: context canceled"},
		{"a wrapped ctx.Err()", func(ctx context.Context) error { return fmt.Errorf("read: %w", untilDone(ctx)) }, true,
			"attempt timeout: read: context deadline exceeded"},
		{"a hint with it", func(ctx context.Context) error { return retry.After(3*sec, untilDone(ctx)) }, true,
			"attempt timeout: context deadline exceeded"},
		{"an error of its own", func(ctx context.Context) error { <-ctx.Done(); return own }, false, "own"},
		{"an error of its own before the timeout", func(context.Context) error { return own }, false, "own"},
		{"a timeout of its own before the timeout", func(context.Context) error { return context.DeadlineExceeded }, false, "context deadline exceeded"},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			p := everySecond(2)
			p.AttemptTimeout = minute
			var seen []error
			p.Observe = func(_ context.Context, e retry.Event) {
				if e.Outcome == nil {
					seen = append(seen, e.Attempt.Err)
				}
			}
			err := retry.Do(t.Context(), p, row.fn)
			failed := requireEnd(t, err, exhausted, 2)
			for _, got := range append(seen, failed.History[0].Err, failed.History[1].Err, failed.Last, err) {
				require.Equal(t, row.want, errors.Is(got, retry.ErrAttemptTimeout))
				require.NotErrorIs(t, got, context.Canceled)
			}
			require.Len(t, seen, 2)
			require.EqualError(t, failed.Last, row.text)
			require.Equal(t, retry.Retryable, failed.History[0].Class)
			require.NotErrorIs(t, err, retry.DeadlinePassed)
		})
	}
	inBubble(t, "a mark in it is acted on", func(t *testing.T) {
		p := everySecond(2)
		p.AttemptTimeout = minute
		err := retry.Do(t.Context(), p, func(ctx context.Context) error { return retry.Permanent(untilDone(ctx)) })
		requireEnd(t, err, terminal, 1)
		require.ErrorIs(t, err, retry.ErrAttemptTimeout)
	})
	inBubble(t, "a single attempt says so too", func(t *testing.T) {
		err := retry.Do(t.Context(), retry.Policy{Disabled: true, AttemptTimeout: sec}, untilDone)
		requireEnd(t, err, disabled, 1)
		require.ErrorIs(t, err, retry.ErrAttemptTimeout)
	})
	inBubble(t, "a caller's deadline that comes first is none", func(t *testing.T) {
		for _, callers := range []time.Duration{sec, minute} { // earlier, and at the same instant
			ctx, cancel := context.WithTimeout(t.Context(), callers)
			defer cancel()
			p := everySecond(2)
			p.AttemptTimeout = minute
			err := retry.Do(ctx, p, untilDone)
			requireEnd(t, err, passed, 1)
			require.NotErrorIs(t, err, retry.ErrAttemptTimeout)
		}
	})
	inBubble(t, "a caller that cancels first is none, however long the attempt goes on", func(t *testing.T) {
		for _, more := range []time.Duration{0, hour} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(sec, cancel)
			p := everySecond(2)
			p.AttemptTimeout = minute
			err := retry.Do(ctx, p, func(ctx context.Context) error {
				<-ctx.Done()
				spend(more)
				return ctx.Err()
			})
			requireEnd(t, err, canceled, 1)
			require.NotErrorIs(t, err, retry.ErrAttemptTimeout)
		}
	})

	nested := func(ctx context.Context, outer, inner time.Duration, fn func(context.Context) error) (outerErr, innerErr *retry.Error) {
		p, q := everySecond(1), everySecond(1)
		p.AttemptTimeout, q.AttemptTimeout = outer, inner
		err := retry.Do(ctx, p, func(ctx context.Context) error {
			err := retry.Do(ctx, q, fn)
			errors.As(err, &innerErr)
			return err
		})
		errors.As(err, &outerErr)
		return outerErr, innerErr
	}
	inBubble(t, "nested: if the inner timeout comes first, the inner attempt timed out", func(t *testing.T) {
		outer, inner := nested(t.Context(), minute, sec, untilDone)
		requireEnd(t, inner, exhausted, 1)
		require.ErrorIs(t, inner.History[0].Err, retry.ErrAttemptTimeout)
		requireEnd(t, outer, exhausted, 1)
		require.Same(t, inner, outer.History[0].Err, "the outer attempt did not")
	})
	inBubble(t, "nested: if the outer timeout comes first, the outer attempt timed out, and the inner run met a deadline", func(t *testing.T) {
		outer, inner := nested(t.Context(), sec, minute, untilDone)
		requireEnd(t, inner, passed, 1)
		require.NotErrorIs(t, inner.History[0].Err, retry.ErrAttemptTimeout)
		require.Equal(t, retry.ErrAttemptTimeout, inner.Cause())
		requireEnd(t, outer, exhausted, 1)
		require.ErrorIs(t, outer.History[0].Err, retry.ErrAttemptTimeout)
		require.Same(t, inner, outer.Last, "which matches through its cause already")
		require.NotErrorIs(t, outer, retry.DeadlinePassed)
	})
	inBubble(t, "nested, behind a context that hides the deadline: the same", func(t *testing.T) {
		p, q := everySecond(1), everySecond(1)
		p.AttemptTimeout, q.AttemptTimeout = sec, minute
		var inner *retry.Error
		_ = retry.Do(t.Context(), p, func(ctx context.Context) error {
			require.ErrorAs(t, retry.Do(secretive{ctx}, q, untilDone), &inner)
			return inner
		})
		requireEnd(t, inner, passed, 1)
		require.NotErrorIs(t, inner.History[0].Err, retry.ErrAttemptTimeout)
	})
	inBubble(t, "nested: an inner attempt that outlasts both timed out", func(t *testing.T) {
		outer, inner := nested(t.Context(), 5*sec, sec, func(ctx context.Context) error {
			<-ctx.Done()
			spend(minute)
			return ctx.Err()
		})
		requireEnd(t, inner, passed, 1)
		require.ErrorIs(t, inner.History[0].Err, retry.ErrAttemptTimeout)
		require.ErrorIs(t, outer.History[0].Err, retry.ErrAttemptTimeout)
	})
}

func TestOneAttempt(t *testing.T) {
	inBubble(t, "a failure ends as Failed, whatever the policy says", func(t *testing.T) {
		for _, p := range []retry.Policy{{}, everySecond(9), everySecond(retry.Unlimited), atOnce, {MaxAttempts: 1}, {Disabled: true}, {AttemptTimeout: sec}} {
			start := time.Now()
			failed := requireEnd(t, retry.Do(retry.OneAttempt(t.Context()), p, failing), disabled, 1)
			require.Same(t, errFlaky, failed.Last)
			require.Zero(t, time.Since(start))
		}
	})
	inBubble(t, "a success is a success", func(t *testing.T) {
		require.NoError(t, retry.Do(retry.OneAttempt(t.Context()), everySecond(9), failTimes(0)))
	})
	inBubble(t, "a terminal error ends as Failed too", func(t *testing.T) {
		failed := requireEnd(t, retry.Do(retry.OneAttempt(t.Context()), retry.Policy{}, failsWith(retry.Permanent(errFlaky))), disabled, 1)
		require.Equal(t, retry.Terminal, failed.History[0].Class)
	})
	inBubble(t, "a canceled caller is Canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		requireEnd(t, retry.Do(retry.OneAttempt(ctx), retry.Policy{}, failing), canceled, 0)
	})
	inBubble(t, "no token is taken, and a success funds the budget", func(t *testing.T) {
		p := everySecond(9)
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 3})
		p.Pay = func(context.Context, retry.Decision) bool { t.Error("asked"); return true }
		requireEnd(t, retry.Do(retry.OneAttempt(t.Context()), p, failing), disabled, 1)
		require.Equal(t, 3.0, p.Budget.Tokens())
		require.NoError(t, retry.Do(retry.OneAttempt(t.Context()), p, failTimes(0)))
		require.Equal(t, 3.1, p.Budget.Tokens())
	})
	inBubble(t, "gate, timeout and observer are as ever", func(t *testing.T) {
		p := everySecond(9)
		gated, events := 0, 0
		p.Gate = func(context.Context) time.Duration {
			if gated++; gated == 1 {
				return sec
			}
			return 0
		}
		p.Observe = func(context.Context, retry.Event) { events++ }
		p.AttemptTimeout = 2 * sec
		start := time.Now()
		requireEnd(t, retry.Do(retry.OneAttempt(t.Context()), p, untilDone), disabled, 1)
		require.Equal(t, 3*sec, time.Since(start))
		require.Equal(t, []int{2, 2}, []int{gated, events})
	})
	inBubble(t, "the policy stays as it is", func(t *testing.T) {
		p := everySecond(2)
		requireEnd(t, retry.Do(retry.OneAttempt(t.Context()), p, failing), disabled, 1)
		requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 2)
	})

	runs := func(ctx context.Context) int {
		calls := 0
		_ = retry.Do(ctx, everySecond(3), func(context.Context) error { calls++; return errFlaky })
		return calls
	}
	type key struct{}
	value := func(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, "v") }
	for name, derive := range map[string]func(context.Context) context.Context{
		"the context itself":          func(ctx context.Context) context.Context { return ctx },
		"a value":                     value,
		"context.WithoutCancel":       context.WithoutCancel,
		"WithoutCancel of a value":    func(ctx context.Context) context.Context { return context.WithoutCancel(value(ctx)) },
		"a value of WithoutCancel":    func(ctx context.Context) context.Context { return value(context.WithoutCancel(ctx)) },
		"a context of another type":   func(ctx context.Context) context.Context { return secretive{ctx} },
		"one that is canceled beside": func(ctx context.Context) context.Context { _, stop := context.WithCancel(ctx); stop(); return ctx },
	} {
		inBubble(t, "what descends from it inherits it: "+name, func(t *testing.T) {
			require.Equal(t, 1, runs(derive(retry.OneAttempt(t.Context()))))
			require.Equal(t, 1, runs(retry.OneAttempt(derive(retry.OneAttempt(t.Context())))), "twice is once")
			require.Equal(t, 3, runs(derive(t.Context())), "and nothing else does")
		})
	}
	inBubble(t, "nested runs inherit it, in any attempt's context and to any depth", func(t *testing.T) {
		for _, timeout := range []time.Duration{0, minute} {
			calls := 0
			p := everySecond(3)
			p.AttemptTimeout = timeout
			err := retry.Do(retry.OneAttempt(t.Context()), p, func(ctx context.Context) error {
				return retry.Do(ctx, p, func(ctx context.Context) error {
					return retry.Do(context.WithoutCancel(ctx), p, func(context.Context) error { calls++; return errFlaky })
				})
			})
			requireEnd(t, err, disabled, 1)
			require.Equal(t, 1, calls)
		}
	})
	inBubble(t, "inside an attempt it holds for the runs under it and for no other", func(t *testing.T) {
		var calls []int
		_ = retry.Do(t.Context(), everySecond(2), func(ctx context.Context) error {
			calls = append(calls, runs(retry.OneAttempt(ctx)), runs(ctx))
			return errFlaky
		})
		require.Equal(t, []int{1, 3, 1, 3}, calls)
	})
	inBubble(t, "AttemptNumber is kept", func(t *testing.T) {
		require.Equal(t, 1, retry.AttemptNumber(retry.OneAttempt(t.Context())))
		var numbers [][2]int
		_ = retry.Do(t.Context(), everySecond(3), func(ctx context.Context) error {
			one := retry.OneAttempt(ctx)
			_ = retry.Do(one, everySecond(3), func(inner context.Context) error {
				numbers = append(numbers, [2]int{retry.AttemptNumber(one), retry.AttemptNumber(inner)})
				return errFlaky
			})
			return errFlaky
		})
		require.Equal(t, [][2]int{{1, 1}, {2, 1}, {3, 1}}, numbers)
	})
	inBubble(t, "the context is otherwise its parent", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(value(t.Context()), minute)
		one := retry.OneAttempt(ctx)
		require.Equal(t, "v", one.Value(key{}))
		want, _ := ctx.Deadline()
		got, ok := one.Deadline()
		require.Equal(t, want, got)
		require.True(t, ok)
		cancel()
		<-one.Done()
		require.Equal(t, context.Canceled, one.Err())
	})
	t.Run("it costs a plain first try nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = retry.Do(ctx, retry.Policy{}, succeed) }))
	})
}

func ExampleOneAttempt() {
	load := func(ctx context.Context) error { // retries by itself
		return retry.Do(ctx, quick, func(context.Context) error {
			fmt.Println("load")
			return io.ErrUnexpectedEOF
		})
	}
	// A job that is repeated as a whole says so: otherwise 3 attempts of 3 loads would be 9.
	err := retry.Do(context.Background(), quick, func(ctx context.Context) error {
		return load(retry.OneAttempt(ctx))
	})
	fmt.Println(errors.Is(err, retry.AttemptsExhausted))
	// Output:
	// load
	// load
	// load
	// true
}

func TestIsOneAttempt(t *testing.T) {
	ctx := retry.OneAttempt(t.Context())
	require.False(t, retryshell.IsOneAttempt(t.Context()))
	require.True(t, retryshell.IsOneAttempt(ctx))
	require.True(t, retryshell.IsOneAttempt(context.WithoutCancel(ctx)), "detached work inherits it")
	for _, row := range []struct {
		ctx  context.Context
		want bool
	}{{t.Context(), false}, {ctx, true}} {
		calls := 0
		_ = retry.Do(row.ctx, atOnce, func(ctx context.Context) error { // an attempt has what its caller has
			calls++
			require.Equal(t, row.want, retryshell.IsOneAttempt(ctx))
			return errFlaky
		})
		require.Equal(t, row.want, calls == 1)
	}
}
