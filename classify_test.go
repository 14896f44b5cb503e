package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// classOf returns the class that a policy with the given classifier acts on.
func classOf(classify retry.Classifier, err error) retry.Class {
	class, _ := retry.Policy{Classify: classify}.Judge(err)
	return class
}

// isCanceled is an error that calls itself context.Canceled, as net's errors do.
type isCanceled struct{}

func (isCanceled) Error() string        { return "operation was canceled" }
func (isCanceled) Is(target error) bool { return target == context.Canceled }

// answer is an error that says whether it is the answer of a healthy server.
type answer bool

func (a answer) Error() string { return "not found" }
func (a answer) Answer() bool  { return bool(a) }

func TestDefaultRules(t *testing.T) {
	nested := retry.Do(t.Context(), retry.Policy{MaxAttempts: 1}, func(context.Context) error { return answer(true) })
	for _, row := range []struct {
		name string
		err  error
		want retry.Class
	}{
		{"any error is retryable", errFlaky, retry.Retryable},
		{"canceled is terminal", context.Canceled, retry.Terminal},
		{"wrapped canceled is terminal", fmt.Errorf("read: %w", context.Canceled), retry.Terminal},
		{"joined canceled is terminal", errors.Join(io.EOF, context.Canceled), retry.Terminal},
		{"what calls itself canceled is terminal", fmt.Errorf("dial: %w", isCanceled{}), retry.Terminal},
		{"deadline exceeded is retryable", context.DeadlineExceeded, retry.Retryable},
		{"an attempt timeout is retryable", retry.ErrAttemptTimeout, retry.Retryable},
		{"a bare Reason is an error like any other", retry.TerminalError, retry.Retryable},
		{"an answer is terminal", answer(true), retry.Terminal},
		{"a wrapped answer is terminal", fmt.Errorf("get: %w", answer(true)), retry.Terminal},
		{"a joined answer is terminal", errors.Join(io.EOF, answer(true)), retry.Terminal},
		{"what is no answer after all is retryable", answer(false), retry.Retryable},
		{"the answer that ended a nested run is its own affair", nested, retry.Retryable},
		{"what a Validate refuses is terminal", retry.Policy{TTL: -1}.Validate(), retry.Terminal},
		{"a policy that a nested run refuses is terminal", retry.Do(t.Context(), retry.Policy{TTL: -1}, nil), retry.Terminal},
		{"a wrapped FieldError is terminal", fmt.Errorf("load: %w", &retry.FieldError{Rule: "is odd"}), retry.Terminal},
		{"Transient around an answer goes first", retry.Transient(answer(true)), retry.Retryable},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, classOf(nil, row.err)) })
	}
	require.Equal(t, retry.Retryable, classOf(retry.RetryIf(func(error) bool { return true }), answer(true)), "a classifier goes first")
}

func TestClassifiers(t *testing.T) {
	eof := func(err error) bool { return errors.Is(err, io.EOF) }
	wrapped := fmt.Errorf("read: %w", io.EOF)
	for _, row := range []struct {
		name     string
		classify retry.Classifier
		err      error
		want     retry.Class
	}{
		{"RetryOn answers for its targets", retry.RetryOn(io.ErrClosedPipe, io.EOF), wrapped, retry.Retryable},
		{"RetryOn has no opinion of others", retry.RetryOn(io.EOF), errFlaky, retry.Unknown},
		{"RetryOn of nothing has no opinion", retry.RetryOn(), io.EOF, retry.Unknown},
		{"RetryOn passes over nil", retry.RetryOn(nil, io.EOF), wrapped, retry.Retryable},
		{"StopOn answers for its targets", retry.StopOn(io.EOF), wrapped, retry.Terminal},
		{"StopOn has no opinion of others", retry.StopOn(io.EOF), errFlaky, retry.Unknown},
		{"RetryIf answers if it matches", retry.RetryIf(eof), wrapped, retry.Retryable},
		{"RetryIf has no opinion otherwise", retry.RetryIf(eof), errFlaky, retry.Unknown},
		{"RetryIf of nil has no opinion", retry.RetryIf(nil), io.EOF, retry.Unknown},
		{"StopIf answers if it matches", retry.StopIf(eof), wrapped, retry.Terminal},
		{"StopIf of nil has no opinion", retry.StopIf(nil), io.EOF, retry.Unknown},
		{"Otherwise answers for all", retry.Otherwise(retry.Terminal), errFlaky, retry.Terminal},
		{"FirstOf takes the first firm answer", retry.FirstOf(retry.StopOn(errFlaky), retry.StopOn(io.EOF), retry.RetryOn(io.EOF)),
			io.EOF, retry.Terminal},
		{"FirstOf passes over nil", retry.FirstOf(nil, retry.RetryOn(io.EOF)), io.EOF, retry.Retryable},
		{"FirstOf passes over an answer that is not a class",
			retry.FirstOf(func(error) retry.Class { return 9 }, retry.RetryOn(io.EOF)), io.EOF, retry.Retryable},
		{"FirstOf nothing has no opinion", retry.FirstOf(), io.EOF, retry.Unknown},
		{"retry only what is listed: listed", retry.FirstOf(retry.RetryOn(io.EOF), retry.Otherwise(retry.Terminal)), io.EOF, retry.Retryable},
		{"retry only what is listed: not listed", retry.FirstOf(retry.RetryOn(io.EOF), retry.Otherwise(retry.Terminal)), errFlaky, retry.Terminal},
		{"a nested run's reason can be asked for", retry.StopOn(retry.TerminalError),
			&retry.Error{Outcome: retry.Outcome{Reason: retry.TerminalError}}, retry.Terminal},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.classify(row.err)) })
	}

	t.Run("classifiers beat the default rules", func(t *testing.T) {
		require.Equal(t, retry.Retryable, classOf(retry.RetryOn(context.Canceled), context.Canceled))
		require.Equal(t, retry.Terminal, classOf(retry.StopOn(errFlaky), errFlaky))
	})
	t.Run("without an opinion the default rules hold", func(t *testing.T) {
		require.Equal(t, retry.Terminal, classOf(retry.Otherwise(retry.Unknown), context.Canceled))
		require.Equal(t, retry.Retryable, classOf(retry.Otherwise(99), errFlaky))
	})
	t.Run("a classifier sees the error with all its wrapping", func(t *testing.T) {
		var seen error
		classOf(func(err error) retry.Class { seen = err; return retry.Unknown }, wrapped)
		require.Same(t, wrapped, seen)
	})
}
