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
			return context.Cause(ctx)
		})
		require.Equal(t, retry.ErrAttemptTimeout, requireEnd(t, err, exhausted, 2).Last)
		require.EqualError(t, err, "retry: gave up after 2 attempts in 7s (attempts_exhausted): attempt timeout")
	})
	inBubble(t, "has the caller's deadline if that is earlier or at the same instant, and its cause", func(t *testing.T) {
		why := errors.New("enough")
		for _, callers := range []time.Duration{sec, 3 * sec} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), callers, why)
			defer cancel()
			start := time.Now()
			err := retry.Do(ctx, timeout(3*sec), func(ctx context.Context) error {
				<-ctx.Done()
				require.Same(t, why, context.Cause(ctx))
				return ctx.Err()
			})
			requireEnd(t, err, passed, 1)
			require.NotErrorIs(t, err, retry.ErrAttemptTimeout)
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
		_ = retry.Do(ctx, atOnce, func(ctx context.Context) error { kept = ctx; return errFlaky })
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
	inBubble(t, "the longest timeout does not overflow, and the shortest holds for retries too", func(t *testing.T) {
		require.NoError(t, retry.Do(t.Context(), timeout(longest), func(ctx context.Context) error { return ctx.Err() }))
		err := retry.Do(t.Context(), timeout(1), func(ctx context.Context) error {
			_, limited := ctx.Deadline()
			require.True(t, limited)
			return errFlaky
		})
		requireEnd(t, err, exhausted, 2)
	})
	inBubble(t, "a timeout applies to a disabled policy", func(t *testing.T) {
		start := time.Now()
		err := retry.Do(t.Context(), retry.Policy{Disabled: true, AttemptTimeout: sec}, untilDone)
		requireEnd(t, err, disabled, 1)
		require.ErrorIs(t, err, retry.ErrAttemptTimeout)
		require.Equal(t, sec, time.Since(start))
	})
}

func TestAttemptNumber(t *testing.T) {
	t.Run("is 1 if no run has marked the context", func(t *testing.T) {
		require.Equal(t, 1, retry.AttemptNumber(t.Context()))
		require.Equal(t, 1, retry.AttemptNumber(noContext))
	})
	for _, timeout := range []time.Duration{0, sec} {
		inBubble(t, fmt.Sprintf("counts from 1, in a nested run again, with an attempt timeout of %v", timeout), func(t *testing.T) {
			inner, outer := instantly(2), instantly(3)
			inner.AttemptTimeout, outer.AttemptTimeout = timeout, timeout
			var numbers [][2]int
			var contexts []context.Context
			_ = retry.Do(t.Context(), outer, func(octx context.Context) error {
				return retry.Do(octx, inner, func(ictx context.Context) error {
					child, cancel := context.WithCancel(ictx)
					defer cancel()
					numbers = append(numbers, [2]int{retry.AttemptNumber(octx), retry.AttemptNumber(child)})
					contexts = append(contexts, ictx)
					return errFlaky
				})
			})
			require.Equal(t, [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 1}, {3, 2}}, numbers)
			for i, ctx := range contexts {
				require.Equal(t, numbers[i][1], retry.AttemptNumber(ctx), "a context that was kept keeps its number")
			}
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

	same := func(ctx context.Context) context.Context { return ctx }
	hidden := func(ctx context.Context) context.Context { return secretive{ctx} }
	for _, row := range []struct {
		name         string
		outer, inner time.Duration
		derive       func(context.Context) context.Context
		overrun      time.Duration
		want         retry.Decision // of the inner run
		timedOut     bool           // the inner attempt
		cause        error          // of the inner run's end
	}{
		{"the inner timeout comes first", minute, sec, same, 0, exhausted, true, nil},
		{"the outer timeout comes first", sec, minute, same, 0, passed, false, retry.ErrAttemptTimeout},
		{"the outer timeout comes first, behind a context that hides the deadline", sec, minute, hidden, 0, passed, false, retry.ErrAttemptTimeout},
		{"the inner attempt outlasts both", 5 * sec, sec, same, minute, passed, true, retry.ErrAttemptTimeout},
	} {
		inBubble(t, "of two runs, one in the other: "+row.name, func(t *testing.T) {
			outer, inner := everySecond(1), everySecond(1)
			outer.AttemptTimeout, inner.AttemptTimeout = row.outer, row.inner
			var within *retry.Error
			err := retry.Do(t.Context(), outer, func(ctx context.Context) error {
				require.ErrorAs(t, retry.Do(row.derive(ctx), inner, func(ctx context.Context) error {
					<-ctx.Done()
					spend(row.overrun)
					return ctx.Err()
				}), &within)
				return within
			})
			requireEnd(t, within, row.want, 1)
			require.Equal(t, row.timedOut, errors.Is(within.History[0].Err, retry.ErrAttemptTimeout))
			require.Equal(t, row.cause, within.Cause())
			require.Same(t, within, requireEnd(t, err, exhausted, 1).Last, "an outer timeout matches through the inner cause already")
			require.ErrorIs(t, err, retry.ErrAttemptTimeout)
			require.NotErrorIs(t, err, retry.DeadlinePassed)
		})
	}
}

func TestOneAttempt(t *testing.T) {
	inBubble(t, "a failure ends as Failed, whatever the policy says", func(t *testing.T) {
		for _, p := range []retry.Policy{{}, everySecond(9), everySecond(retry.Unlimited), atOnce, {MaxAttempts: 1}, {Disabled: true}, {AttemptTimeout: sec}} {
			start := time.Now()
			requireEnd(t, retry.Do(retry.OneAttempt(t.Context()), p, failing), disabled, 1)
			require.Zero(t, time.Since(start))
		}
	})
	inBubble(t, "a terminal error ends as Failed too", func(t *testing.T) {
		failed := requireEnd(t, retry.Do(retry.OneAttempt(t.Context()), retry.Policy{}, failsWith(retry.Permanent(errFlaky))), disabled, 1)
		require.Equal(t, retry.Terminal, failed.History[0].Class)
	})
	inBubble(t, "a canceled caller is Canceled", func(t *testing.T) {
		requireEnd(t, retry.Do(retry.OneAttempt(canceledBy(io.EOF)), retry.Policy{}, failing), canceled, 0)
	})
	inBubble(t, "no token is taken, and a success funds the budget", func(t *testing.T) {
		p := calling(func() { t.Error("asked") }, "Pay", everySecond(9))
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 3})
		requireEnd(t, retry.Do(retry.OneAttempt(t.Context()), p, failing), disabled, 1)
		require.Equal(t, 3.0, p.Budget.Tokens())
		require.NoError(t, retry.Do(retry.OneAttempt(t.Context()), p, succeed))
		require.Equal(t, 3.1, p.Budget.Tokens())
	})
	inBubble(t, "gate, timeout and observer are as ever", func(t *testing.T) {
		events := 0
		p := calling(func() { events++ }, "Observe", everySecond(9))
		p.Gate, _ = closedFor(sec)
		p.AttemptTimeout = 2 * sec
		start := time.Now()
		requireEnd(t, retry.Do(retry.OneAttempt(t.Context()), p, untilDone), disabled, 1)
		require.Equal(t, 3*sec, time.Since(start))
		require.Equal(t, 2, events)
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
			one := derive(retry.OneAttempt(t.Context()))
			require.Equal(t, 1, runs(one))
			require.True(t, retryshell.IsOneAttempt(one))
			require.Equal(t, 1, runs(retry.OneAttempt(one)), "twice is once")
			require.Equal(t, 3, runs(derive(t.Context())), "and nothing else does")
			require.False(t, retryshell.IsOneAttempt(derive(t.Context())))
		})
	}
	inBubble(t, "nested runs inherit it, in any attempt's context and to any depth", func(t *testing.T) {
		for _, timeout := range []time.Duration{0, minute} {
			calls := 0
			p := everySecond(3)
			p.AttemptTimeout = timeout
			err := retry.Do(retry.OneAttempt(t.Context()), p, func(ctx context.Context) error {
				return retry.Do(ctx, p, func(ctx context.Context) error {
					require.True(t, retryshell.IsOneAttempt(ctx))
					return retry.Do(context.WithoutCancel(ctx), p, func(context.Context) error { calls++; return errFlaky })
				})
			})
			requireEnd(t, err, disabled, 1)
			require.Equal(t, 1, calls)
		}
	})
	inBubble(t, "inside an attempt it holds for the runs under it, which have its number, and for no other", func(t *testing.T) {
		require.Equal(t, 1, retry.AttemptNumber(retry.OneAttempt(t.Context())))
		require.Zero(t, retryshell.OuterAttemptNumber(t.Context()))
		require.Equal(t, 1, retryshell.OuterAttemptNumber(retry.OneAttempt(t.Context())))
		var numbers [][3]int
		_ = retry.Do(t.Context(), everySecond(2), func(ctx context.Context) error {
			one := retry.OneAttempt(ctx)
			_ = retry.Do(one, everySecond(3), func(inner context.Context) error {
				numbers = append(numbers, [3]int{retry.AttemptNumber(one), retry.AttemptNumber(inner), retryshell.OuterAttemptNumber(inner)})
				return errFlaky
			})
			require.Equal(t, 3, runs(ctx))
			require.Zero(t, retryshell.OuterAttemptNumber(ctx))
			return errFlaky
		})
		require.Equal(t, [][3]int{{1, 1, 1}, {2, 1, 2}}, numbers)
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
