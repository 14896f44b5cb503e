package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// saysGivenUp is an error of a layer below that says whether it has given up.
type saysGivenUp bool

func (saysGivenUp) Error() string   { return "503" }
func (s saysGivenUp) GivenUp() bool { return bool(s) }

func TestIsGivenUp(t *testing.T) {
	run := func(p retry.Policy, fn func(context.Context) error) error { return retry.Do(t.Context(), p, fn) }
	gaveUp := runOf(errFlaky)
	once := &retry.Error{Outcome: retry.Outcome{Attempts: 1, Reason: retry.AttemptsExhausted}, Last: errFlaky}
	canceled := &retry.Error{Outcome: retry.Outcome{Attempts: 2, Reason: retry.CallerCanceled}, Last: gaveUp}
	for _, row := range []struct {
		name string
		err  error
		want bool
	}{
		{"success", nil, false},
		{"a nil *Error", (*retry.Error)(nil), false},
		{"a plain error", errFlaky, false},
		{"a layer that says so", saysGivenUp(true), true},
		{"a layer that says no", saysGivenUp(false), false},
		{"a run that has retried", run(atOnce, failing), true},
		{"a run of one attempt", run(retry.Policy{MaxAttempts: 1}, failing), false},
		{"a run without retries", run(retry.Policy{Disabled: true}, failing), false},
		{"a run under OneAttempt, whose caller holds the retries", retry.Do(retry.OneAttempt(t.Context()), atOnce, failing), false},
		{"a run that its caller canceled", canceled, false},
		{"a terminal error at once", run(atOnce, failsWith(retry.Permanent(errFlaky))), false},
		{"a server that asked for two hours", run(retry.Inline(), failsWith(retry.After(2*hour, errFlaky))), true},
		{"a budget that is empty", run(retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})}, failing), true},
		{"a layer below a run of one attempt", run(retry.Policy{Disabled: true}, failsWith(saysGivenUp(true))), true},
		{"a run that has retried below a run of one attempt", run(retry.Policy{MaxAttempts: 1}, failsWith(gaveUp)), true},
		{"marked and wrapped", fmt.Errorf("load: %w", retry.Permanent(errors.Join(errFlaky, gaveUp))), true},
		{"first in a join", errors.Join(gaveUp, once), true},
		{"second in a join", errors.Join(once, gaveUp), true},
		{"second in %w and %w", fmt.Errorf("%w %w", once, gaveUp), true},
		{"in a join in a join", errors.Join(io.EOF, errors.Join(once, gaveUp)), true},
		{"first in a list", multi{gaveUp, once}, true},
		{"second in a list", multi{once, gaveUp}, true},
		{"behind an As that sets nothing", multi{yes{}, gaveUp}, true},
		{"under marks and a timeout", retry.Permanent(retry.After(sec, retryshell.MarkTimeout(retry.Progressed(errors.Join(context.Canceled, gaveUp))))), true},
		{"nowhere", errors.Join(once, io.EOF, multi{once, yes{}}), false},
		{"under a run that its caller canceled", errors.Join(canceled), false},
	} {
		require.Equal(t, row.want, retry.IsGivenUp(row.err), row.name)
	}
}

func TestANestedRunIsRepeatedUnlessThePolicyStopsAtWhatIsGivenUp(t *testing.T) {
	for _, row := range []struct {
		classify retry.Classifier
		want     int
	}{{nil, 16}, {retry.StopIf(retry.IsGivenUp), 4}} {
		inBubble(t, fmt.Sprint(row.want), func(t *testing.T) {
			outer, inner, calls := everySecond(4), everySecond(4), 0
			outer.Classify = row.classify
			err := retry.Do(t.Context(), outer, func(ctx context.Context) error {
				return retry.Do(ctx, inner, func(context.Context) error { calls++; return errFlaky })
			})
			require.Equal(t, row.want, calls)
			require.ErrorIs(t, err, errFlaky)
		})
	}
}

func TestBelowTellsARunThatALayerBelowHasEnded(t *testing.T) {
	inBubble(t, "of Do", func(t *testing.T) {
		var seen []bool
		p := everySecond(3)
		p.Classify = retry.StopIf(retry.IsGivenUp)
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Outcome != nil {
				seen = append(seen, e.Outcome.InnerGaveUp)
			}
		}
		ends := func(fn func(context.Context) error) *retry.Error {
			return must[*retry.Error](t, retry.Do(t.Context(), p, fn))
		}
		require.True(t, ends(failsWith(saysGivenUp(true))).InnerGaveUp)
		require.False(t, ends(failsWith(retry.Permanent(errFlaky))).InnerGaveUp)
		require.False(t, ends(failing).InnerGaveUp)
		require.Equal(t, []bool{true, false, false}, seen)

		calls := 0
		failed := ends(func(context.Context) error { calls++; return saysGivenUp(calls == 2) })
		require.EqualError(t, failed, "retry: gave up after 2 attempts in 1s (terminal_error, given up below): 503")
	})
	t.Run("of NewError", func(t *testing.T) {
		o := retry.Outcome{Status: retry.DeadLettered, Reason: retry.TerminalError, Attempts: 1}
		require.True(t, retry.Policy{}.NewError(t.Context(), o, saysGivenUp(true)).InnerGaveUp)
		o.Status, o.Reason = retry.FailedNoRetries, retry.RetriesDisabled
		require.False(t, retry.Policy{}.NewError(t.Context(), o, saysGivenUp(true)).InnerGaveUp)
	})
}

func TestWithRemoteAttempt(t *testing.T) {
	inBubble(t, "a retry of another process is not repeated again, and keeps its number in what it causes", func(t *testing.T) {
		var numbers [][2]int
		ctx := retryshell.WithRemoteAttempt(t.Context(), 3)
		require.Equal(t, 3, retry.AttemptNumber(ctx))
		require.False(t, retry.LastAttempt(ctx), "the attempt of another process does not say")
		_ = retry.Do(ctx, everySecond(4), func(ctx context.Context) error {
			return retry.Do(retry.OneAttempt(context.WithoutCancel(ctx)), everySecond(4), func(ctx context.Context) error {
				numbers = append(numbers, [2]int{retry.AttemptNumber(ctx), retryshell.OuterAttemptNumber(ctx)})
				return errFlaky
			})
		})
		require.Equal(t, [][2]int{{1, 3}}, numbers)
		require.True(t, retryshell.IsOneAttempt(ctx))
	})
}

func ExampleIsGivenUp() {
	load := func(ctx context.Context) error { // retries by itself
		return retry.Do(ctx, quick, func(context.Context) error {
			fmt.Println("load")
			return errors.New("down")
		})
	}
	p := quick
	p.Classify = retry.StopIf(retry.IsGivenUp)
	err := retry.Do(context.Background(), p, load)
	fmt.Println(errors.Is(err, retry.TerminalError), retry.IsGivenUp(err))
	// Output:
	// load
	// load
	// load
	// true true
}
