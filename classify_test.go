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
)

// classOf tells by Decide how a policy with the given classifier judges err.
func classOf(classify retry.Classifier, err error) retry.Class {
	switch d := (retry.Policy{Classify: classify}).Decide(retry.Progress{Attempt: 1}, err, 0); d.Status {
	case retry.Waiting:
		return retry.Retryable
	case retry.DeadLettered:
		return retry.Terminal
	default:
		return retry.Unknown
	}
}

// isCanceled is an error that calls itself context.Canceled, as net's errors do.
type isCanceled struct{}

func (isCanceled) Error() string        { return "operation was canceled" }
func (isCanceled) Is(target error) bool { return target == context.Canceled }

func TestDefaultRules(t *testing.T) {
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
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, classOf(nil, row.err)) })
	}
}

func TestMarks(t *testing.T) {
	inner := &retry.Error{Last: retry.Permanent(context.Canceled), Outcome: retry.Outcome{Reason: retry.TerminalError}}
	for _, row := range []struct {
		name string
		err  error
		want retry.Class
	}{
		{"Permanent is terminal", retry.Permanent(errFlaky), retry.Terminal},
		{"Permanent is found through %w", fmt.Errorf("send: %w", retry.Permanent(errFlaky)), retry.Terminal},
		{"Permanent is found through errors.Join", errors.Join(io.EOF, retry.Permanent(errFlaky)), retry.Terminal},
		{"Permanent is found through %w of two", fmt.Errorf("%w and %w", io.EOF, retry.Permanent(errFlaky)), retry.Terminal},
		{"Transient is retryable, whatever it marks", retry.Transient(context.Canceled), retry.Retryable},
		{"the outermost class wins", retry.Transient(fmt.Errorf("again: %w", retry.Permanent(errFlaky))), retry.Retryable},
		{"the outermost class wins, the other way round", retry.Permanent(retry.Transient(errFlaky)), retry.Terminal},
		{"the first of joined classes wins", errors.Join(retry.Transient(io.EOF), retry.Permanent(errFlaky)), retry.Retryable},
		{"After does not classify", retry.After(sec, context.Canceled), retry.Terminal},
		{"After leaves the class inside it", retry.After(sec, retry.Permanent(errFlaky)), retry.Terminal},
		{"a nested run's mark does not leak", inner, retry.Retryable},
		{"a nested run's mark does not leak through %w", fmt.Errorf("outer: %w", inner), retry.Retryable},
		{"a mark beside a nested run is found", errors.Join(inner, retry.Permanent(io.EOF)), retry.Terminal},
		{"a mark around a nested run is found", retry.Permanent(inner), retry.Terminal},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, classOf(nil, row.err)) })
	}

	t.Run("marks beat classifiers", func(t *testing.T) {
		require.Equal(t, retry.Terminal, classOf(retry.Otherwise(retry.Retryable), retry.Permanent(errFlaky)))
		require.Equal(t, retry.Retryable, classOf(retry.Otherwise(retry.Terminal), retry.Transient(errFlaky)))
	})
	t.Run("a marked error is not shown to classifiers", func(t *testing.T) {
		classOf(func(error) retry.Class { t.Error("asked"); return retry.Unknown }, retry.Permanent(errFlaky))
	})
	t.Run("a mark keeps the text and what errors.Is finds", func(t *testing.T) {
		for _, err := range []error{
			retry.Permanent(fmt.Errorf("disk: %w", io.EOF)),
			retry.Transient(fmt.Errorf("disk: %w", io.EOF)),
			retry.After(sec, fmt.Errorf("disk: %w", io.EOF)),
		} {
			require.EqualError(t, err, "disk: EOF")
			require.ErrorIs(t, err, io.EOF)
		}
	})
	t.Run("a mark of nil is nil", func(t *testing.T) {
		require.NoError(t, retry.Permanent(nil))
		require.NoError(t, retry.Transient(nil))
		require.NoError(t, retry.After(sec, nil))
		require.NoError(t, retry.After(0, nil))
	})
	t.Run("a hint of 0 or less returns the error as it is", func(t *testing.T) {
		require.Same(t, errFlaky, retry.After(0, errFlaky))
		require.Same(t, errFlaky, retry.After(-sec, errFlaky))
	})
	t.Run("the longest hint wins, wherever it is", func(t *testing.T) {
		for _, err := range []error{
			retry.After(30*sec, retry.After(sec, errFlaky)),
			retry.After(sec, retry.After(30*sec, errFlaky)),
			errors.Join(retry.After(sec, io.EOF), fmt.Errorf("busy: %w", retry.After(30*sec, errFlaky))),
			retry.Transient(retry.After(30*sec, errFlaky)),
		} {
			require.Equal(t, waiting(30*sec), retry.Policy{}.Decide(retry.Progress{}, err, 0))
		}
	})
	t.Run("a nested run's hint does not leak", func(t *testing.T) {
		err := &retry.Error{Last: retry.After(30*sec, errFlaky), Outcome: retry.Outcome{Reason: retry.AttemptsExhausted}}
		require.Equal(t, waiting(5*sec), retry.Policy{}.Decide(retry.Progress{}, err, 0))
	})
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
		{"RetryIf answers where it matches", retry.RetryIf(eof), wrapped, retry.Retryable},
		{"RetryIf has no opinion elsewhere", retry.RetryIf(eof), errFlaky, retry.Unknown},
		{"RetryIf of nil has no opinion", retry.RetryIf(nil), io.EOF, retry.Unknown},
		{"StopIf answers where it matches", retry.StopIf(eof), wrapped, retry.Terminal},
		{"StopIf of nil has no opinion", retry.StopIf(nil), io.EOF, retry.Unknown},
		{"Otherwise answers for all", retry.Otherwise(retry.Terminal), errFlaky, retry.Terminal},
		{"FirstOf takes the first firm answer", retry.FirstOf(retry.StopOn(errFlaky), retry.StopOn(io.EOF), retry.RetryOn(io.EOF)),
			io.EOF, retry.Terminal},
		{"FirstOf passes over nil", retry.FirstOf(nil, retry.RetryOn(io.EOF)), io.EOF, retry.Retryable},
		{"FirstOf passes over an answer that is no class",
			retry.FirstOf(func(error) retry.Class { return 9 }, retry.RetryOn(io.EOF)), io.EOF, retry.Retryable},
		{"FirstOf nothing has no opinion", retry.FirstOf(), io.EOF, retry.Unknown},
		{"stop unless told: told", retry.FirstOf(retry.RetryOn(io.EOF), retry.Otherwise(retry.Terminal)), io.EOF, retry.Retryable},
		{"stop unless told: not told", retry.FirstOf(retry.RetryOn(io.EOF), retry.Otherwise(retry.Terminal)), errFlaky, retry.Terminal},
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

func TestClassTexts(t *testing.T) {
	require.Equal(t, []string{"unknown", "retryable", "terminal", "Class(3)"}, []string{
		retry.Unknown.String(), retry.Retryable.String(), retry.Terminal.String(), retry.Class(3).String(),
	})
}

// FuzzMarks builds a tree of errors from bytes, together with what the docs say of it.
func FuzzMarks(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6})
	f.Add([]byte{5, 1, 0, 5, 3, 0, 2, 0})
	f.Add([]byte{6, 1, 0})
	f.Fuzz(func(t *testing.T, tree []byte) {
		want, err := build(&tree, 0)
		class, hint := retry.Retryable, want.hint
		if want.class != retry.Unknown {
			class = want.class
		} else if want.canceled {
			class = retry.Terminal
		}
		d := retry.Policy{Backoff: retry.Backoff{Base: 1}}.Decide(retry.Progress{}, err, 0)
		if class == retry.Terminal {
			require.Equal(t, terminal, d)
		} else {
			require.Equal(t, waiting(max(1, hint)), d)
		}
	})
}

// marksIn is what is to be found in an error's tree.
type marksIn struct {
	class    retry.Class
	hint     time.Duration
	canceled bool
}

func build(tree *[]byte, depth int) (marksIn, error) {
	if len(*tree) == 0 || depth > 8 {
		return marksIn{}, errFlaky
	}
	kind := (*tree)[0]
	*tree = (*tree)[1:]
	child := func() (marksIn, error) { return build(tree, depth+1) }
	switch kind % 8 {
	case 1:
		return marksIn{canceled: true}, context.Canceled
	case 2:
		m, err := child()
		m.class = retry.Terminal
		return m, retry.Permanent(err)
	case 3:
		m, err := child()
		m.class = retry.Retryable
		return m, retry.Transient(err)
	case 4:
		m, err := child()
		hint := time.Duration(kind) * sec
		m.hint = max(m.hint, hint)
		return m, retry.After(hint, err)
	case 5:
		m, left := child()
		n, right := child()
		if m.class == retry.Unknown {
			m.class = n.class
		}
		return marksIn{m.class, max(m.hint, n.hint), m.canceled || n.canceled}, errors.Join(left, right)
	case 6:
		_, err := child()
		return marksIn{}, &retry.Error{Last: err, Outcome: retry.Outcome{Reason: retry.AttemptsExhausted}}
	case 7:
		m, err := child()
		return m, fmt.Errorf("while testing: %w", err)
	default:
		return marksIn{}, errFlaky
	}
}
