package retry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// watched returns p with an observer that appends the end of each run to ends, and the number of attempts made.
func watched(p retry.Policy, ends *[]string) retry.Policy {
	p.Observe = func(_ context.Context, e retry.Event) {
		if e.Outcome != nil {
			*ends = append(*ends, fmt.Sprint(e.Decision, " after ", e.Outcome.Attempts))
		}
	}
	return p
}

func TestEndsOfALoopOfAttempts(t *testing.T) {
	const lost = "a turn of Attempts ended without an error or nil in its variable"
	never := errors.New("not to be seen")
	call := func() (int, error) { return 0, errFlaky }
	for _, row := range []struct {
		name   string
		loop   func(ctx context.Context, p retry.Policy) error
		want   any    // the error, or a part of the text of an *Error
		end    string // that is observed
		tokens float64
	}{
		{"left by break with an error", func(ctx context.Context, p retry.Policy) (err error) {
			for range retry.Attempts(ctx, p, &err) {
				err = errFlaky
				break
			}
			return err
		}, errFlaky, "dead_letter (terminal_error) after 1", 2},
		{"left by break without one", func(ctx context.Context, p retry.Policy) (err error) {
			for range retry.Attempts(ctx, p, &err) {
				break
			}
			return err
		}, nil, "succeeded after 1", 2.5},
		{"left by return of an error through a named result", func(ctx context.Context, p retry.Policy) (err error) {
			for range retry.Attempts(ctx, p, &err) {
				return errFlaky
			}
			return never
		}, errFlaky, "dead_letter (terminal_error) after 1", 2},
		{"left by return of an error that the loop does not see", func(ctx context.Context, p retry.Policy) error {
			var err error
			for range retry.Attempts(ctx, p, &err) {
				return errFlaky
			}
			return never
		}, errFlaky, "succeeded after 1", 2.5},
		{"left by return in the second turn", func(ctx context.Context, p retry.Policy) (err error) {
			for ctx := range retry.Attempts(ctx, p, &err) {
				if err = errFlaky; retry.AttemptNumber(ctx) == 2 {
					return errOutage
				}
			}
			return never
		}, errOutage, "dead_letter (terminal_error) after 2", 1},
		{"left by goto", func(ctx context.Context, p retry.Policy) (err error) {
			for range retry.Attempts(ctx, p, &err) {
				err = errFlaky
				goto out
			}
			err = never
		out:
			return err
		}, errFlaky, "dead_letter (terminal_error) after 1", 2},
		{"left by continue of a loop around it", func(ctx context.Context, p retry.Policy) (err error) {
		outer:
			for i := range 2 {
				for range retry.Attempts(ctx, p, &err) {
					if err = errFlaky; i == 0 {
						continue outer
					}
					err = nil
				}
			}
			return err
		}, nil, "dead_letter (terminal_error) after 1; succeeded after 1", 2.5},
		{"left with an error under Transient", func(ctx context.Context, p retry.Policy) (err error) {
			for range retry.Attempts(ctx, p, &err) {
				err = retry.Transient(errFlaky)
				break
			}
			return errors.Unwrap(err)
		}, errFlaky, "dead_letter (terminal_error) after 1", 2},
		{"left under OneAttempt", func(ctx context.Context, p retry.Policy) (err error) {
			for range retry.Attempts(retry.OneAttempt(ctx), p, &err) {
				err = errFlaky
				break
			}
			return err
		}, errFlaky, "failed_no_retries (retries_disabled) after 1", 2},

		// A turn that leaves its error unset has lost it: the loop ends, and says so.
		{"an error is lost by an err that the body declares anew", func(ctx context.Context, p retry.Policy) (err error) {
			for range retry.Attempts(ctx, p, &err) {
				_, err := call()
				if err != nil {
					continue
				}
			}
			return err
		}, lost, "dead_letter (terminal_error) after 1", 2},
		{"an error is lost by an err that the body declares anew in a later turn", func(ctx context.Context, p retry.Policy) (err error) {
			for ctx := range retry.Attempts(ctx, p, &err) {
				if retry.AttemptNumber(ctx) == 1 {
					err = errFlaky
					continue
				}
				_, err := call()
				_ = err
			}
			return err
		}, "gave up after 2 attempts in 1s (terminal_error): retry: " + lost, "dead_letter (terminal_error) after 2", 1},
		{"an error is lost by a success that does not say so", func(ctx context.Context, p retry.Policy) (err error) {
			for range retry.Attempts(ctx, p, &err) {
				continue
			}
			return err
		}, lost, "dead_letter (terminal_error) after 1", 2},
		{"an error is lost by a body that asks for nil first", func(ctx context.Context, p retry.Policy) (err error) {
			for range retry.Attempts(ctx, p, &err) {
				if err == nil {
					_, err = call()
				}
			}
			return err
		}, lost, "dead_letter (terminal_error) after 1", 2},
		{"an error is lost by a body that adds to it", func(ctx context.Context, p retry.Policy) (err error) {
			for range retry.Attempts(ctx, p, &err) {
				err = errors.Join(err, errFlaky)
			}
			return err
		}, lost, "dead_letter (terminal_error) after 1", 2},
		{"an error is lost by the inner of two loops with an error each", func(ctx context.Context, p retry.Policy) (err error) {
		outer:
			for ctx := range retry.Attempts(ctx, p, &err) {
				var inner error
				for range retry.Attempts(ctx, p, &inner) {
					continue outer
				}
			}
			return err
		}, lost, "succeeded after 1; dead_letter (terminal_error) after 1", 2.5},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			var ends []string
			p := watched(everySecond(3), &ends)
			p.Budget = retry.NewBudget(retry.BudgetConfig{Ratio: 0.5, Initial: 2})
			err := row.loop(t.Context(), p)
			if text, ok := row.want.(string); ok {
				require.ErrorContains(t, err, text)
				require.ErrorIs(t, err, retry.TerminalError)
			} else {
				require.Equal(t, row.want, err)
			}
			require.Equal(t, row.end, strings.Join(ends, "; "))
			require.Equal(t, row.tokens, p.Budget.Tokens())
		})
	}
	inBubble(t, "a lost error inside of another Attempts ends that one too", func(t *testing.T) {
		var err error
		turns := 0
		for range retry.Attempts(t.Context(), everySecond(3), &err) {
			turns++
			err = func() (err error) {
				for range retry.Attempts(t.Context(), everySecond(3), &err) {
					continue
				}
				return err
			}()
		}
		require.ErrorContains(t, err, lost)
		require.Equal(t, 1, turns)
	})
}

func TestATurnOfAttempts(t *testing.T) {
	inBubble(t, "begins without the error of the last one and has its number and timeout", func(t *testing.T) {
		p := everySecond(3)
		p.AttemptTimeout = time.Minute
		err := errOutage
		var turns []string
		for ctx := range retry.Attempts(t.Context(), p, &err) {
			deadline, _ := ctx.Deadline()
			turns = append(turns, fmt.Sprint(retry.AttemptNumber(ctx), " ", time.Until(deadline), " ", errors.Is(err, errFlaky)))
			err = errFlaky
		}
		require.Equal(t, []string{"1 1m0s false", "2 1m0s false", "3 1m0s false"}, turns)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, errFlaky, must[*retry.Error](t, err).Last)
	})
	inBubble(t, "is not made for a caller that has gone, nor for arguments that Do refuses", func(t *testing.T) {
		for _, row := range []struct {
			ctx  context.Context
			p    retry.Policy
			want string
		}{
			{canceledBy(errOutage), retry.Policy{}, "retry: gave up after 0 attempts in 0s (caller_canceled): outage"},
			{nil, retry.Policy{}, "retry: Do.ctx <nil> is not a context"},
			{t.Context(), retry.Policy{TTL: -1}, "retry: Policy.TTL -1ns is negative"},
		} {
			err := errFlaky
			for range retry.Attempts(row.ctx, row.p, &err) {
				t.Fatal("a turn")
			}
			require.EqualError(t, err, row.want)
		}
	})
	inBubble(t, "that panics pays back the token, and the panic passes through", func(t *testing.T) {
		var ends []string
		p := watched(everySecond(3), &ends)
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 2})
		var err error
		require.PanicsWithValue(t, "turn 2", func() {
			for ctx := range retry.Attempts(t.Context(), p, &err) {
				if err = errFlaky; retry.AttemptNumber(ctx) == 2 {
					panic("turn 2")
				}
			}
		})
		require.Equal(t, 2.0, p.Budget.Tokens())
		require.Empty(t, ends)
		require.Equal(t, errFlaky, err)
		require.Panics(t, func() {
			for range retry.Attempts(t.Context(), p, &err) {
				panic("turn 1")
			}
		})
		require.ErrorContains(t, err, "ended without an error or nil", "so that a recover does not make it a success")
	})
	inBubble(t, "may end its goroutine", func(t *testing.T) {
		p := everySecond(3)
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 2})
		done := make(chan struct{})
		go func() {
			defer close(done)
			var err error
			for ctx := range retry.Attempts(t.Context(), p, &err) {
				if err = errFlaky; retry.AttemptNumber(ctx) == 2 {
					runtime.Goexit()
				}
			}
		}()
		<-done
		require.Equal(t, 2.0, p.Budget.Tokens())
	})
}

func TestAttemptsTwice(t *testing.T) {
	inBubble(t, "are two runs", func(t *testing.T) {
		var ends []string
		var err error
		attempts := retry.Attempts(t.Context(), watched(everySecond(2), &ends), &err)
		for range 2 {
			for range attempts {
				err = errFlaky
			}
			require.ErrorIs(t, err, retry.AttemptsExhausted)
		}
		require.Equal(t, []string{"dead_letter (attempts_exhausted) after 2", "dead_letter (attempts_exhausted) after 2"}, ends)
	})
	inBubble(t, "pulled are a run that waits between the calls of next", func(t *testing.T) {
		start := time.Now()
		var err error
		next, stop := iter.Pull(retry.Attempts(t.Context(), everySecond(3), &err))
		defer stop()
		for n := 1; ; n++ {
			ctx, ok := next()
			if !ok {
				break
			}
			require.Equal(t, n, retry.AttemptNumber(ctx))
			err = errFlaky
		}
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, 2*time.Second, time.Since(start))
	})
	t.Run("need a place for the error", func(t *testing.T) {
		require.PanicsWithValue(t, "retry: Attempts.err <nil> is not a pointer to the error of the loop",
			func() { retry.Attempts(t.Context(), retry.Policy{}, nil) })
	})
}

func ExampleAttempts() {
	stock := []int{0, 0, 7} // what the service answers, one after the other
	read := func(ctx context.Context) (int, error) {
		if n := stock[retry.AttemptNumber(ctx)-1]; n > 0 {
			return n, nil
		}
		return 0, errors.New("not yet")
	}

	var n int
	var err error
	for ctx := range retry.Attempts(context.Background(), quick, &err) {
		n, err = read(ctx)
		fmt.Println(retry.AttemptNumber(ctx), n, err)
	}
	fmt.Println(n, err)
	// Output:
	// 1 0 not yet
	// 2 0 not yet
	// 3 7 <nil>
	// 7 <nil>
}
