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

func TestProgressed(t *testing.T) {
	moved := retry.Progressed(errFlaky)
	for _, row := range []struct {
		name string
		err  error
		want bool
	}{
		{"the mark", moved, true},
		{"through %w", fmt.Errorf("stream: %w", moved), true},
		{"in a join", errors.Join(io.EOF, moved), true},
		{"under Permanent", retry.Permanent(moved), true},
		{"around a hint", retry.Progressed(retry.After(sec, errFlaky)), true},
		{"in the mark of a timeout", retryshell.MarkTimeout(retry.Progressed(context.DeadlineExceeded)), true},
		{"behind an As without Unwrap", multi{io.EOF, moved}, true},
		{"around a nested run", retry.Progressed(runOf(errFlaky)), true},
		{"inside a nested run", runOf(moved), false},
		{"inside a nested run behind an As", multi{runOf(moved), io.EOF}, false},
		{"another mark", retry.Transient(errFlaky), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := retry.Policy{MaxAttempts: 9}
			for _, class := range []retry.Class{retry.Unknown, retry.Retryable} { // also if the shell has judged
				d := p.Decide(retry.Progress{Attempt: 4, Prev: hour, Class: class}, row.err, 0)
				want := 0
				if row.want {
					want = 3
				}
				require.Equal(t, want, d.Forgiven)
			}
		})
	}
	t.Run("it does not classify", func(t *testing.T) {
		require.Equal(t, retry.Retryable, classOf(nil, moved))
		require.Equal(t, retry.Terminal, classOf(retry.Otherwise(retry.Terminal), moved))
		require.Equal(t, retry.Terminal, classOf(nil, retry.Progressed(context.Canceled)))
		require.True(t, retry.IsAmbiguous(retry.Progressed(retry.Ambiguous(errFlaky))))
		require.True(t, retry.IsGivenUp(retry.Progressed(runOf(errFlaky))))
	})
	inBubble(t, "attempts and delays begin anew", func(t *testing.T) {
		start := time.Now()
		var starts []time.Duration
		err := retry.Do(t.Context(), retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: sec}}, func(ctx context.Context) error {
			starts = append(starts, time.Since(start))
			if retry.AttemptNumber(ctx) == 2 {
				return moved
			}
			return errFlaky
		})
		requireEnd(t, err, exhausted, 4)
		require.Equal(t, []time.Duration{0, 1 * sec, 2 * sec, 4 * sec}, starts)
	})
	inBubble(t, "one attempt is one attempt", func(t *testing.T) {
		requireEnd(t, retry.Do(t.Context(), everySecond(1), func(context.Context) error { return moved }), exhausted, 1)
	})
	inBubble(t, "Disabled, TTL and the budget hold", func(t *testing.T) {
		for name, row := range map[string]struct {
			p        retry.Policy
			reason   retry.Reason
			attempts int
		}{
			"Disabled": {retry.Policy{Disabled: true}, retry.RetriesDisabled, 1},
			"TTL":      {retry.Policy{TTL: 5 * sec}, retry.TTLElapsed, 6},
			"Budget":   {retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: 5})}, retry.BudgetExhausted, 6},
		} {
			p := row.p
			p.Backoff = retry.Backoff{Mode: retry.Fixed, Base: sec}
			err := retry.Do(t.Context(), p, func(context.Context) error { return moved })
			require.ErrorIs(t, err, row.reason, name)
			require.Equal(t, row.attempts, must[*retry.Error](t, err).Attempts, name)
		}
	})
}

func TestLastAttempt(t *testing.T) {
	// last returns the answers in the attempts of a run.
	last := func(ctx context.Context, p retry.Policy, errs ...error) (got []bool) {
		_ = retry.Do(ctx, p, func(ctx context.Context) error {
			got = append(got, retry.LastAttempt(ctx))
			if len(got) <= len(errs) {
				return errs[len(got)-1]
			}
			return errFlaky
		})
		return got
	}
	p := everySecond(3)
	unlimited := everySecond(retry.Unlimited)
	unlimited.TTL = sec
	for _, row := range []struct {
		name   string
		policy retry.Policy
		derive func(context.Context) context.Context
		errs   []error
		want   []bool
	}{
		{"the last by count", p, context.WithoutCancel, nil, []bool{false, false, true}},
		{"the only one", everySecond(1), context.WithoutCancel, nil, []bool{true}},
		{"the only one behind a gate", calling(func() {}, "Gate", everySecond(1)), context.WithoutCancel, nil, []bool{true}},
		{"the only one of a disabled policy", retry.Policy{Disabled: true}, context.WithoutCancel, nil, []bool{true}},
		{"the only one under OneAttempt", p, retry.OneAttempt, nil, []bool{true}},
		{"the last of a list of delays", retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{sec}}}, context.WithoutCancel, nil, []bool{false, true}},
		{"another one after progress", p, context.WithoutCancel, []error{errFlaky, errFlaky, retry.Progressed(errFlaky)},
			[]bool{false, false, true, false, true}},
		{"none without an end by count", unlimited, context.WithoutCancel, nil, []bool{false, false}},
	} {
		inBubble(t, row.name, func(t *testing.T) { require.Equal(t, row.want, last(row.derive(t.Context()), row.policy, row.errs...)) })
	}
	require.False(t, retry.LastAttempt(t.Context()), "no run")
	require.False(t, retry.LastAttempt(noContext))
	inBubble(t, "a nested run answers for itself", func(t *testing.T) {
		_ = retry.Do(t.Context(), everySecond(1), func(ctx context.Context) error {
			require.Equal(t, []bool{false, false, true}, last(ctx, p))
			require.True(t, retry.LastAttempt(retry.OneAttempt(ctx)), "OneAttempt is no run")
			require.Equal(t, []bool{true}, last(retry.OneAttempt(ctx), p))
			return nil
		})
		_ = retry.Do(t.Context(), p, func(ctx context.Context) error {
			require.False(t, retry.LastAttempt(retry.OneAttempt(ctx)))
			return nil
		})
	})
}

func ExampleProgressed() {
	offset := 0
	read := func(ctx context.Context) error { // two lines a connection, then it breaks
		fmt.Println("attempt", retry.AttemptNumber(ctx), "from line", offset)
		if offset == 6 {
			return errors.New("no such host")
		}
		offset += 2
		return retry.Progressed(errors.New("connection reset"))
	}
	p := retry.Policy{MaxAttempts: 2, TTL: time.Minute, Backoff: retry.Backoff{Base: time.Millisecond}}
	err := retry.Do(context.Background(), p, read)
	fmt.Println(errors.Is(err, retry.AttemptsExhausted), err.(*retry.Error).Last)
	// Output:
	// attempt 1 from line 0
	// attempt 2 from line 2
	// attempt 3 from line 4
	// attempt 4 from line 6
	// true no such host
}

func ExampleLastAttempt() {
	err := retry.Do(context.Background(), quick, func(ctx context.Context) error {
		if retry.LastAttempt(ctx) {
			fmt.Println("attempt", retry.AttemptNumber(ctx), "takes the slow mirror")
		}
		return errors.New("down")
	})
	fmt.Println(errors.Is(err, retry.AttemptsExhausted))
	// Output:
	// attempt 3 takes the slow mirror
	// true
}
