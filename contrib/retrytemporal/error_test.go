package retrytemporal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrytemporal"
)

func TestErrorAtIs(t *testing.T) {
	theirs := temporal.NewApplicationErrorWithOptions("declined", "Card", temporal.ApplicationErrorOptions{
		Details: []any{402, "no funds"}, NextRetryDelay: time.Minute, Category: temporal.ApplicationErrorCategoryBenign,
	})
	final := temporal.NewNonRetryableApplicationError("gone", "Card", nil)
	for _, row := range []struct {
		name         string
		policy       retry.Policy
		progress     retry.Progress
		err          error
		message      string
		kind         string
		nonRetryable bool
		delay        time.Duration
	}{
		{"an error to be retried", retry.Policy{}, retry.Progress{Attempt: 2}, errDown,
			"retry: attempt 2 failed, the next is due in 10s", "", false, 10 * time.Second},
		{"the type that Temporal would see", retry.Policy{}, retry.Progress{}, &fs.PathError{Op: "open", Path: "x", Err: io.EOF},
			"retry: attempt 1 failed, the next is due in 5s", "PathError", false, 5 * time.Second},
		{"the type behind marks", retry.Policy{}, retry.Progress{Attempt: 1}, retry.Transient(retry.After(time.Minute, &fs.PathError{Err: io.EOF})),
			"retry: attempt 1 failed, the next is due in 1m0s", "PathError", false, time.Minute},
		{"the last attempt", retry.Policy{Name: "orders", MaxAttempts: 3}, retry.Progress{Attempt: 3, Elapsed: 1200 * time.Millisecond}, errDown,
			"retry: orders: gave up after 3 attempts in 1.2s (attempts_exhausted)", "", true, 0},
		{"a terminal error", retry.Policy{}, retry.Progress{Attempt: 1}, fmt.Errorf("charge: %w", retry.Permanent(errDown)),
			"retry: gave up after 1 attempt in 0s (terminal_error)", "wrapError", true, 0},
		{"a next delay of theirs is a hint", retry.Policy{}, retry.Progress{Attempt: 1}, theirs,
			"retry: attempt 1 failed, the next is due in 1m0s", "Card", false, time.Minute},
		{"a next delay of theirs can be too long", retry.Policy{MaxHint: time.Second}, retry.Progress{Attempt: 1}, fmt.Errorf("charge: %w", theirs),
			"retry: gave up after 1 attempt in 0s (hint_too_long)", "Card", true, 0},
		{"a non-retryable one of theirs is terminal", retry.Policy{Classify: retry.Otherwise(retry.Retryable)}, retry.Progress{Attempt: 1}, final,
			"retry: gave up after 1 attempt in 0s (terminal_error)", "Card", true, 0},
		{"a mark makes a non-retryable one of theirs retryable", retry.Policy{}, retry.Progress{Attempt: 1}, retry.Transient(final),
			"retry: attempt 1 failed, the next is due in 5s", "Card", false, 5 * time.Second},
		{"canceled work without a mark is given up", retry.Policy{Classify: retry.RetryOn(io.EOF)}, retry.Progress{Attempt: 1}, fmt.Errorf("child: %w", temporal.NewCanceledError()),
			"retry: gave up after 1 attempt in 0s (terminal_error)", "wrapError", true, 0},
		{"context.Canceled is given up", retry.Policy{}, retry.Progress{Attempt: 1}, fmt.Errorf("child: %w", context.Canceled),
			"retry: gave up after 1 attempt in 0s (terminal_error)", "wrapError", true, 0},
		{"canceled work among several errors is given up", retry.Policy{}, retry.Progress{Attempt: 1}, errors.Join(errDown, temporal.NewCanceledError()),
			"retry: gave up after 1 attempt in 0s (terminal_error)", "joinError", true, 0},
		{"a mark makes canceled work retryable", retry.Policy{}, retry.Progress{Attempt: 1}, retry.Transient(temporal.NewCanceledError()),
			"retry: attempt 1 failed, the next is due in 5s", "CanceledError", false, 5 * time.Second},
		{"a classifier makes canceled work retryable", retry.Policy{Classify: retry.RetryIf(temporal.IsCanceledError)}, retry.Progress{Attempt: 1}, temporal.NewCanceledError(),
			"retry: attempt 1 failed, the next is due in 5s", "CanceledError", false, 5 * time.Second},
		{"a run inside that was canceled is retryable", retry.Policy{}, retry.Progress{Attempt: 1}, &retry.Error{Last: temporal.NewCanceledError()},
			"retry: attempt 1 failed, the next is due in 5s", "Error", false, 5 * time.Second},
		{"jitter", retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}}, retry.Progress{Attempt: 1}, errDown,
			"retry: attempt 1 failed, the next is due in 1.25s", "", false, 1250 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := retrytemporal.ErrorAt(row.policy, row.progress, row.err, 0.25)
			app, ok := err.(*temporal.ApplicationError)
			require.True(t, ok, "the SDK looks no deeper than %T", err)
			require.Equal(t, row.message, app.Message())
			require.Equal(t, row.kind, app.Type())
			require.Equal(t, row.nonRetryable, app.NonRetryable())
			require.Equal(t, row.delay, app.NextRetryDelay())
			for cause := row.err; cause != nil; cause = errors.Unwrap(cause) {
				if errors.Unwrap(cause) == nil {
					require.ErrorIs(t, err, cause)
				}
			}
		})
	}
	t.Run("details and category are kept", func(t *testing.T) {
		var app *temporal.ApplicationError
		require.ErrorAs(t, retrytemporal.ErrorAt(retry.Policy{}, retry.Progress{}, theirs, 0), &app)
		var code int
		var text string
		require.NoError(t, app.Details(&code, &text))
		require.Equal(t, 402, code)
		require.Equal(t, "no funds", text)
		require.Equal(t, temporal.ApplicationErrorCategoryBenign, app.Category())
	})
	t.Run("details that came over the wire are kept, and end", func(t *testing.T) {
		converter := temporal.GetDefaultFailureConverter()
		arrived := converter.FailureToError(converter.ErrorToFailure(theirs))
		again := converter.FailureToError(converter.ErrorToFailure(retrytemporal.ErrorAt(retry.Policy{}, retry.Progress{}, arrived, 0)))
		var app *temporal.ApplicationError
		require.ErrorAs(t, again, &app)
		var code int
		var text string
		var more any
		require.NoError(t, app.Details(&code, &text, &more))
		require.Equal(t, 402, code)
		require.Equal(t, "no funds", text)
		require.Nil(t, more)
	})
	t.Run("nil stays nil", func(t *testing.T) {
		require.NoError(t, retrytemporal.ErrorAt(retry.Policy{}, retry.Progress{}, nil, 0))
	})
}

// inActivity runs f in an activity.
func inActivity(t *testing.T, f func(ctx context.Context)) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	ran := false
	work := func(ctx context.Context) error {
		f(ctx)
		ran = true
		return nil
	}
	env.RegisterActivityWithOptions(work, activity.RegisterOptions{Name: "work"})
	_, err := env.ExecuteActivity("work")
	require.NoError(t, err)
	require.True(t, ran)
}

func TestErrorPassesThrough(t *testing.T) {
	inActivity(t, func(ctx context.Context) {
		require.NoError(t, retrytemporal.Error(ctx, retry.Policy{}, nil))
		require.Equal(t, activity.ErrResultPending, retrytemporal.Error(ctx, retry.Policy{}, activity.ErrResultPending)) // the SDK compares it with ==

		gone, cancel := context.WithCancel(ctx)
		cancel()
		for _, err := range []error{context.Canceled, fmt.Errorf("charge: %w", context.Canceled), temporal.NewCanceledError()} {
			require.Equal(t, err, retrytemporal.Error(gone, retry.Policy{}, err))
			var app *temporal.ApplicationError
			require.ErrorAs(t, retrytemporal.Error(ctx, retry.Policy{}, err), &app)
		}
		var app *temporal.ApplicationError
		require.ErrorAs(t, retrytemporal.Error(gone, retry.Policy{}, errDown), &app)
	})
}

func TestErrorRefuses(t *testing.T) {
	var app *temporal.ApplicationError
	err := retrytemporal.Error(context.Background(), retry.Policy{}, errDown)
	require.EqualError(t, err, "retrytemporal: Error: ctx is not the context of an activity: down")
	require.ErrorIs(t, err, errDown)
	require.NotErrorAs(t, err, &app)
	inActivity(t, func(ctx context.Context) {
		err := retrytemporal.Error(ctx, retry.Policy{TTL: -1}, errDown)
		require.EqualError(t, err, "retrytemporal: Error: retry: Policy.TTL -1ns is negative: down")
		require.ErrorIs(t, err, errDown)
		require.NotErrorAs(t, err, &app)
	})
}

func TestErrorAsksTheBudget(t *testing.T) {
	p := retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Ratio: 0.5, Initial: 1})}
	inActivity(t, func(ctx context.Context) {
		nonRetryable := func(err error) bool {
			var app *temporal.ApplicationError
			require.ErrorAs(t, retrytemporal.Error(ctx, p, err), &app)
			return app.NonRetryable()
		}
		require.True(t, nonRetryable(retry.Permanent(errDown)), "and nothing is paid for it")
		require.False(t, nonRetryable(errDown))
		require.True(t, nonRetryable(errDown))
		require.ErrorContains(t, retrytemporal.Error(ctx, p, errDown), "(budget_exhausted)")
		for range 2 {
			require.NoError(t, retrytemporal.Error(ctx, p, nil))
		}
		require.False(t, nonRetryable(errDown))
		for range 2 {
			require.NoError(t, retrytemporal.Error(ctx, p, nil))
		}
		p.Pay = func(context.Context, retry.Decision) bool { return false }
		require.ErrorContains(t, retrytemporal.Error(ctx, p, errDown), "(budget_exhausted)")
		require.Equal(t, 1.0, p.Budget.Tokens(), "what Pay refuses is paid back")
	})
}
