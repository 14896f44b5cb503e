package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// answers returns an fn that gives one answer after the other and notes what it was given.
func answers(given *[]string, script ...func(items []string) ([]retry.ItemError[string], error)) func(context.Context, []string) ([]retry.ItemError[string], error) {
	return func(_ context.Context, items []string) ([]retry.ItemError[string], error) {
		answer := script[len(*given)]
		*given = append(*given, fmt.Sprint(items))
		defer clear(items) // which spoils nothing
		return answer(items)
	}
}

// fail returns an answer: each of the items with its error.
func fail(failed ...retry.ItemError[string]) func([]string) ([]retry.ItemError[string], error) {
	return func([]string) ([]retry.ItemError[string], error) { return failed, nil }
}

func item(name string, err error) retry.ItemError[string] {
	return retry.ItemError[string]{Item: name, Err: err}
}

func TestDoBatch(t *testing.T) {
	type list = []retry.ItemError[string]
	type script = []func([]string) (list, error)
	bad, doubt, errStop := retry.Permanent(io.EOF), retry.Ambiguous(io.EOF), errors.New("stop")
	abc := []string{"a", "b", "c"}
	for _, row := range []struct {
		name   string
		items  []string
		script script
		given  []string
		left   list
		reason retry.Reason // 0 means success
		text   string
	}{
		{"all are done at once", abc, script{fail()}, []string{"[a b c]"}, nil, 0, ""},
		{"what failed is given again, and nothing else", abc,
			script{fail(item("b", errFlaky), item("c", errFlaky)), fail(item("c", errFlaky)), fail()},
			[]string{"[a b c]", "[b c]", "[c]"}, nil, 0, ""},
		{"attempts count only without progress", abc,
			script{fail(item("b", errFlaky), item("c", errFlaky)), fail(item("c", errFlaky)), fail(item("c", errOutage)), fail(item("c", errOutage))},
			[]string{"[a b c]", "[b c]", "[c]", "[c]"}, list{item("c", errOutage)}, retry.AttemptsExhausted,
			"retry: gave up after 4 attempts in 3s (attempts_exhausted): 1 of 3 items failed: outage"},
		{"a refused item stays out and ends the run when it is alone", abc,
			script{fail(item("a", bad), item("b", errFlaky)), fail()},
			[]string{"[a b c]", "[b]"}, list{item("a", bad)}, retry.TerminalError,
			"retry: gave up after 2 attempts in 1s (terminal_error): 1 of 3 items failed: EOF"},
		{"refused items are no progress", abc,
			script{fail(item("a", errFlaky), item("b", errFlaky), item("c", bad)), fail(item("a", errFlaky), item("b", bad)), fail(item("a", errFlaky))},
			[]string{"[a b c]", "[a b]", "[a]"}, list{item("c", bad), item("b", bad), item("a", errFlaky)}, retry.AttemptsExhausted,
			"retry: gave up after 3 attempts in 2s (attempts_exhausted): 3 of 3 items failed: flaky"},
		{"doubt of an item stays out of the next attempt", abc,
			script{fail(item("a", doubt), item("b", errFlaky)), fail()},
			[]string{"[a b c]", "[b]"}, list{item("a", doubt)}, retry.TerminalError,
			"retry: gave up after 2 attempts in 1s (terminal_error): 1 of 3 items failed: EOF"},
		{"an error without items is that of all", abc,
			script{func([]string) (list, error) { return nil, errFlaky }, func([]string) (list, error) { return list{}, bad }},
			[]string{"[a b c]", "[a b c]"}, list{item("a", bad), item("b", bad), item("c", bad)}, retry.TerminalError,
			"retry: gave up after 2 attempts in 1s (terminal_error): EOF"},
		{"an error with items is that of items without one", abc,
			script{func([]string) (list, error) { return list{item("a", nil), item("b", bad)}, errFlaky }, fail()},
			[]string{"[a b c]", "[a]"}, list{item("b", bad)}, retry.TerminalError,
			"retry: gave up after 2 attempts in 1s (terminal_error): 1 of 3 items failed: EOF"},
		{"a terminal error with items ends the run", abc,
			script{func([]string) (list, error) { return list{item("a", errFlaky)}, bad }},
			[]string{"[a b c]"}, list{item("a", errFlaky)}, retry.TerminalError, "1 of 3 items failed: EOF"},
		{"more items than were given end the run", abc[:1],
			script{fail(item("a", errFlaky), item("a", errFlaky))},
			[]string{"[a]"}, nil, retry.TerminalError, "retry: DoBatch.fn was given 1 items and returned 2"},
		{"the policy judges each item", abc,
			script{fail(item("a", errStop), item("b", errFlaky), item("c", context.Canceled)), fail()},
			[]string{"[a b c]", "[b]"}, list{item("a", errStop), item("c", context.Canceled)}, retry.TerminalError,
			"retry: gave up after 2 attempts in 1s (terminal_error): 2 of 3 items failed: stop"},
		{"an item without an error in a call without one was not done", abc,
			script{fail(item("b", nil)), fail(item("b", nil)), fail(item("b", nil))},
			[]string{"[a b c]", "[b]", "[b]"}, list{item("b", errors.New("not done"))}, retry.AttemptsExhausted,
			"retry: gave up after 3 attempts in 2s (attempts_exhausted): 1 of 3 items failed: not done"},
		{"duplicates are given as often as they are there", []string{"a", "a"},
			script{fail(item("a", errFlaky), item("a", errFlaky)), fail()}, []string{"[a a]", "[a a]"}, nil, 0, ""},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			var given []string
			p := everySecond(3)
			p.Classify = retry.StopOn(errStop)
			left, err := retry.DoBatch(t.Context(), p, row.items, answers(&given, row.script...))
			require.Equal(t, row.given, given)
			if row.reason == 0 {
				require.NoError(t, err)
				require.Nil(t, left)
				return
			}
			require.EqualError(t, err, row.text)
			require.ErrorIs(t, err, row.reason)
			if row.left == nil {
				row.left = retry.ItemErrors(row.items, must[*retry.Error](t, err).Last)
			}
			require.Equal(t, row.left, left)
			for _, failed := range left {
				require.ErrorIs(t, err, failed.Err)
				require.EqualError(t, failed, failed.Err.Error())
				require.ErrorIs(t, failed, failed.Err)
			}
		})
	}
	inBubble(t, "the longest hint of an item counts", func(t *testing.T) {
		start := time.Now()
		var given []string
		_, err := retry.DoBatch(t.Context(), everySecond(3), abc,
			answers(&given, fail(item("a", retry.After(9*sec, errFlaky)), item("b", retry.After(3*sec, errFlaky))), fail()))
		require.NoError(t, err)
		require.Equal(t, 9*sec, time.Since(start))
	})
	inBubble(t, "doubt of an item is not lost", func(t *testing.T) {
		var given []string
		run := func() error {
			given = nil
			_, err := retry.DoBatch(t.Context(), everySecond(3), abc, answers(&given, fail(item("a", doubt), item("b", errFlaky)),
				fail(item("b", errFlaky)), fail(item("b", errFlaky))))
			return err
		}
		err := run()
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.True(t, retry.IsAmbiguous(err))
		calls := 0
		err = retry.Do(t.Context(), everySecond(3), func(context.Context) error {
			calls++
			return run()
		})
		require.ErrorIs(t, err, retry.TerminalError)
		require.Equal(t, 1, calls, "a run around it does not repeat doubt")
		require.False(t, retry.IsAmbiguous(retry.Transient(run())))
	})
	inBubble(t, "an item that an attempt timeout canceled is given again", func(t *testing.T) {
		p := everySecond(3)
		p.AttemptTimeout = sec
		calls := 0
		left, err := retry.DoBatch(t.Context(), p, abc, func(ctx context.Context, items []string) (list, error) {
			if calls++; calls > 1 {
				return nil, nil
			}
			<-ctx.Done()
			return list{item("c", context.Canceled)}, nil
		})
		require.NoError(t, err)
		require.Empty(t, left)
		require.Equal(t, 2, calls)
	})
	inBubble(t, "each repeat is paid for, and only a batch that is done funds", func(t *testing.T) {
		p := everySecond(3)
		p.Budget = retry.NewBudget(retry.BudgetConfig{Ratio: 0.5, Initial: 3})
		var given []string
		_, err := retry.DoBatch(t.Context(), p, abc, answers(&given, fail(item("a", errFlaky)), fail()))
		require.NoError(t, err)
		require.Equal(t, 2.5, p.Budget.Tokens())
		given = nil
		_, err = retry.DoBatch(t.Context(), p, abc, answers(&given, fail(item("a", errFlaky), item("b", bad)), fail()))
		require.Error(t, err)
		require.Equal(t, 1.5, p.Budget.Tokens())
	})
	inBubble(t, "without an attempt each item has the error of the run", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		left, err := retry.DoBatch(ctx, retry.Policy{}, abc, answers(nil))
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.Equal(t, retry.ItemErrors(abc, err), left)
		left, err = retry.DoBatch(t.Context(), retry.Policy{TTL: -1}, abc, answers(nil))
		require.EqualError(t, err, "retry: Policy.TTL -1ns is negative")
		require.Equal(t, retry.ItemErrors(abc, err), left)
		_, err = retry.DoBatch[string](t.Context(), retry.Policy{}, abc, nil)
		require.EqualError(t, err, "retry: Do.fn <nil> is not a function")
	})
	inBubble(t, "without items nothing is called, and the arguments are checked", func(t *testing.T) {
		p := retry.Policy{Observe: func(context.Context, retry.Event) { t.Error("observed") }}
		left, err := retry.DoBatch(t.Context(), p, nil, answers(nil))
		require.NoError(t, err)
		require.Empty(t, left)
		_, err = retry.DoBatch(t.Context(), retry.Policy{TTL: -1}, nil, answers(nil))
		require.Error(t, err)
		_, err = retry.DoBatch[string](t.Context(), retry.Policy{}, nil, nil)
		require.Error(t, err)
	})
}

// TestABatchEnds plays 1,000 batches against a service that does some items, refuses some for good and fails the rest.
func TestABatchEnds(t *testing.T) {
	inBubble(t, "every item is done once, refused once, or left with its error", func(t *testing.T) {
		r := rand.New(rand.NewPCG(49, 2))
		all, some := 0, 0
		for i := range 1_000 {
			items := make([]int, 1+r.IntN(20))
			for item := range items {
				items[item] = item
			}
			share := r.IntN(100)
			done, refused := map[int]int{}, map[int]int{}
			attempts := 0
			p := everySecond(1 + r.IntN(4))
			left, err := retry.DoBatch(t.Context(), p, items, func(_ context.Context, given []int) (failed []retry.ItemError[int], err error) {
				attempts++
				for _, item := range given {
					switch {
					case r.IntN(100) < share:
						done[item]++
					case r.IntN(20) == 0:
						refused[item]++
						failed = append(failed, retry.ItemError[int]{Item: item, Err: retry.Permanent(errFlaky)})
					default:
						failed = append(failed, retry.ItemError[int]{Item: item, Err: errFlaky})
					}
				}
				return failed, nil
			})
			if i < 3 {
				t.Logf("%d items, %d attempts without progress: %d attempts, left %v, %v", len(items), p.MaxAttempts, attempts, left, err)
			}
			require.LessOrEqual(t, attempts, len(items)*p.MaxAttempts)
			require.Equal(t, err == nil, len(left) == 0)
			require.Len(t, left, len(items)-len(done))
			for _, failed := range left {
				require.Zero(t, done[failed.Item])
				require.ErrorIs(t, failed, errFlaky)
				refused[failed.Item]--
			}
			for item, times := range done {
				require.Equal(t, 1, times)
				require.LessOrEqual(t, refused[item], 0)
			}
			if err == nil {
				all++
			} else {
				some++
				require.True(t, errors.Is(err, retry.AttemptsExhausted) || errors.Is(err, retry.TerminalError))
			}
		}
		require.Greater(t, min(all, some), 200)
	})
}
