package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// multi is hashicorp/go-multierror's Error, as of v1.1.1. What it holds is reached through its chain's Is and As: the
// first error of a chain has no Unwrap that leads to it.
type multi []error

func (m multi) Error() string { return fmt.Sprintf("%d errors occurred", len(m)) }

func (m multi) Unwrap() error {
	switch len(m) {
	case 0:
		return nil
	case 1:
		return m[0]
	}
	return chain(m)
}

type chain []error

func (e chain) Error() string        { return e[0].Error() }
func (e chain) As(target any) bool   { return errors.As(e[0], target) }
func (e chain) Is(target error) bool { return errors.Is(e[0], target) }

func (e chain) Unwrap() error {
	if len(e) == 1 {
		return nil
	}
	return e[1:]
}

// opaque is an error that others reach by Is and As alone.
type opaque struct{ err error }

func (o opaque) Error() string        { return o.err.Error() }
func (o opaque) As(target any) bool   { return errors.As(o.err, target) }
func (o opaque) Is(target error) bool { return errors.Is(o.err, target) }

// both is an error that leads to another one by As and by Unwrap.
type both struct{ err error }

func (b both) Error() string      { return b.err.Error() }
func (b both) As(target any) bool { return errors.As(b.err, target) }
func (b both) Unwrap() error      { return b.err }

// yes is an error with a bad As.
type yes struct{}

func (yes) Error() string { return "yes" }
func (yes) As(any) bool   { return true }

// runOf is the error of a nested run that ended with last.
func runOf(last error) error {
	return &retry.Error{Outcome: retry.Outcome{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Attempts: 2}, Last: last}
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
		{"a nested run's cancellation does not leak", &retry.Error{Last: context.Canceled}, retry.Retryable},
		{"a nested run whose caller was canceled is retryable", retry.Policy{}.NewError(canceledBy(io.EOF),
			retry.Outcome{Status: retry.Canceled, Reason: retry.CallerCanceled}, context.Canceled), retry.Retryable},
		{"a cancellation beside a nested run is terminal", errors.Join(inner, context.Canceled), retry.Terminal},
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
			retry.Ambiguous(fmt.Errorf("disk: %w", io.EOF)),
			retry.After(sec, fmt.Errorf("disk: %w", io.EOF)),
		} {
			require.EqualError(t, err, "disk: EOF")
			require.ErrorIs(t, err, io.EOF)
		}
	})
	t.Run("a mark of nil is nil", func(t *testing.T) {
		require.NoError(t, retry.Permanent(nil))
		require.NoError(t, retry.Transient(nil))
		require.NoError(t, retry.Ambiguous(nil))
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
			require.Equal(t, 30*sec, hintOf(err))
		}
	})
	t.Run("a nested run's hint does not leak", func(t *testing.T) {
		err := &retry.Error{Last: retry.After(30*sec, errFlaky), Outcome: retry.Outcome{Reason: retry.AttemptsExhausted}}
		require.Zero(t, hintOf(err))
	})
}

// TestHiddenMarks is about marks that only an error's own As reaches.
func TestHiddenMarks(t *testing.T) {
	permanent, transient, ambiguous := retry.Permanent(errFlaky), retry.Transient(errFlaky), retry.Ambiguous(errFlaky)
	busy := func(d time.Duration) error { return retry.After(d, errFlaky) }
	for _, row := range []struct {
		name string
		err  error
		want retry.Class
		hint time.Duration
	}{
		{"Permanent, first of two", multi{permanent, io.EOF}, retry.Terminal, 0},
		{"Permanent, second of two", multi{io.EOF, permanent}, retry.Terminal, 0},
		{"Permanent, last of four", multi{io.EOF, io.EOF, io.EOF, permanent}, retry.Terminal, 0},
		{"Permanent alone", multi{permanent}, retry.Terminal, 0},
		{"Permanent in a list in a list", multi{multi{io.EOF, permanent}, io.EOF}, retry.Terminal, 0},
		{"Permanent in a list under %w in a list", multi{io.EOF, fmt.Errorf("x: %w", multi{permanent, io.EOF})}, retry.Terminal, 0},
		{"Permanent in a join in a list", multi{errors.Join(io.EOF, permanent), io.EOF}, retry.Terminal, 0},
		{"Permanent under an opaque error", opaque{permanent}, retry.Terminal, 0},
		{"Permanent under two opaque errors", opaque{opaque{permanent}}, retry.Terminal, 0},
		{"the first class wins", multi{transient, permanent}, retry.Retryable, 0},
		{"the first class wins, the other way round", multi{permanent, transient}, retry.Terminal, 0},
		{"a hint", multi{io.EOF, busy(9 * sec)}, retry.Retryable, 9 * sec},
		{"the longest hint", multi{busy(9 * sec), busy(sec), busy(10 * sec)}, retry.Retryable, 10 * sec},
		{"a hint in a hint", multi{retry.After(sec, busy(9*sec)), io.EOF}, retry.Retryable, 9 * sec},
		{"a mark around the list", retry.Transient(multi{permanent, io.EOF}), retry.Retryable, 0},
		{"a list without a mark", multi{io.EOF, errFlaky}, retry.Retryable, 0},
		{"an empty list", multi{}, retry.Retryable, 0},
		{"a nil *Error", opaque{(*retry.Error)(nil)}, retry.Retryable, 0},
		{"what As and Unwrap both lead to", both{fmt.Errorf("x: %w", retry.After(sec, both{permanent}))}, retry.Terminal, sec},
		{"an As that says yes to everything and sets nothing", yes{}, retry.Retryable, 0},
		{"an As that says yes to everything and sets nothing, in a list", multi{io.EOF, yes{}, permanent}, retry.Terminal, 0},

		{"a cancellation", multi{io.EOF, context.Canceled}, retry.Terminal, 0},
		{"a cancellation, first", multi{context.Canceled, io.EOF}, retry.Terminal, 0},
		{"a cancellation under Transient", multi{io.EOF, retry.Transient(context.Canceled)}, retry.Retryable, 0},
		{"a timeout that looks like a cancellation", multi{retryshell.MarkTimeout(context.Canceled), io.EOF}, retry.Retryable, 0},
		{"a timeout that looks like a cancellation, around a hint", multi{retryshell.MarkTimeout(retry.After(sec, context.Canceled)), io.EOF}, retry.Retryable, sec},

		{"a nested run's mark does not leak", multi{runOf(permanent), io.EOF}, retry.Retryable, 0},
		{"a nested run's mark does not leak, second", multi{io.EOF, runOf(permanent)}, retry.Retryable, 0},
		{"a nested run's mark does not leak under %w", multi{fmt.Errorf("x: %w", runOf(permanent)), io.EOF}, retry.Retryable, 0},
		{"a mark in a nested run's timeout does not leak",
			multi{runOf(retryshell.MarkTimeout(retry.Permanent(context.Canceled))), io.EOF}, retry.Retryable, 0},
		{"a nested run's hint does not leak", multi{runOf(busy(sec)), io.EOF}, retry.Retryable, 0},
		{"a nested run's cancellation does not leak", multi{runOf(context.Canceled), io.EOF}, retry.Retryable, 0},
		{"a nested run's cancellation does not leak through a hint", retry.After(sec, runOf(context.Canceled)), retry.Retryable, sec},
		{"a nested run's cancellation does not leak, second", multi{io.EOF, runOf(context.Canceled)}, retry.Retryable, 0},
		{"a nested run's list does not leak", runOf(multi{permanent, busy(sec), context.Canceled}), retry.Retryable, 0},
		{"a nested run's list does not leak through a list", multi{runOf(multi{permanent, io.EOF}), runOf(opaque{permanent})}, retry.Retryable, 0},
		{"a nested run that was canceled does not leak", multi{retry.Policy{}.NewError(canceledBy(context.Canceled),
			retry.Outcome{Status: retry.Canceled, Reason: retry.CallerCanceled}, errFlaky), io.EOF}, retry.Retryable, 0},
		{"a mark beside a nested run is found", multi{runOf(permanent), permanent}, retry.Terminal, 0},
		{"a mark beside a nested run in one element is found", multi{errors.Join(runOf(permanent), permanent), io.EOF}, retry.Terminal, 0},
		{"a mark beside a nested run in one element is found, before it", multi{errors.Join(permanent, runOf(transient)), io.EOF}, retry.Terminal, 0},
		{"a mark around a nested run is found", multi{retry.Permanent(runOf(errFlaky)), io.EOF}, retry.Terminal, 0},
		{"a cancellation beside a nested run is found", multi{runOf(errFlaky), context.Canceled}, retry.Terminal, 0},

		{"Ambiguous", multi{io.EOF, ambiguous}, retry.Terminal, 0},
		{"Ambiguous of a nested run", multi{io.EOF, runOf(ambiguous)}, retry.Terminal, 0},
		{"Ambiguous of a nested run, first", multi{runOf(ambiguous), io.EOF}, retry.Terminal, 0},
		{"Ambiguous of a nested run's list", runOf(multi{io.EOF, ambiguous}), retry.Terminal, 0},
		{"Ambiguous of a nested run's list in a list", multi{runOf(multi{ambiguous, io.EOF}), io.EOF}, retry.Terminal, 0},
		{"Ambiguous of a run in a run, hidden twice", opaque{runOf(opaque{runOf(ambiguous)})}, retry.Terminal, 0},
		{"Transient around Ambiguous", multi{retry.Transient(ambiguous), io.EOF}, retry.Retryable, 0},
		{"Transient around Ambiguous of a nested run", multi{retry.Transient(runOf(ambiguous)), io.EOF}, retry.Retryable, 0},
		{"Transient around a list with Ambiguous", retry.Transient(multi{io.EOF, ambiguous}), retry.Retryable, 0},
		{"Transient around a list with Ambiguous of a nested run", retry.Transient(multi{runOf(ambiguous), io.EOF}), retry.Retryable, 0},
		{"Transient around %w around Ambiguous of a nested run", opaque{retry.Transient(fmt.Errorf("x: %w", runOf(ambiguous)))}, retry.Retryable, 0},
		{"Transient around a run, and Ambiguous of another", opaque{errors.Join(runOf(ambiguous), retry.Transient(runOf(errFlaky)))}, retry.Terminal, 0},
		{"Transient beside Ambiguous", multi{transient, ambiguous}, retry.Terminal, 0},

		// The limits: As finds the first mark and the first run, and Is does not say whose the cancellation is.
		{"a class after a hint in one element is found", multi{errors.Join(busy(sec), permanent), io.EOF}, retry.Terminal, sec},
		{"a hint after a class in one element is found", multi{errors.Join(transient, busy(sec)), io.EOF}, retry.Retryable, sec},
		{"doubt of a second run in one element is found", multi{errors.Join(runOf(errFlaky), runOf(ambiguous)), io.EOF}, retry.Terminal, 0},
		{"doubt after a hint in one element is found", multi{errors.Join(busy(sec), ambiguous), io.EOF}, retry.Terminal, sec},
		{"doubt under Transient in one element is not", multi{retry.Transient(ambiguous), io.EOF}, retry.Retryable, 0},
		{"doubt beside Transient in one element is found", multi{errors.Join(retry.Transient(ambiguous), retry.Ambiguous(io.EOF)), io.EOF}, retry.Terminal, 0},
		{"limit: a cancellation beside a run in one element is taken for the run's", multi{errors.Join(runOf(errFlaky), context.Canceled), io.EOF}, retry.Retryable, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			class, hint := retry.Policy{}.Judge(row.err)
			require.Equal(t, row.want, class)
			require.Equal(t, row.hint, hint)
		})
	}
	inBubble(t, "Do acts on them", func(t *testing.T) {
		err := retry.Do(t.Context(), retry.Policy{}, func(context.Context) error { return multi{io.EOF, permanent} })
		requireEnd(t, err, terminal, 1)
		require.EqualError(t, err, "2 errors occurred")
	})
	t.Run("a mark of an outer Do is not found in a nested one's error by errors.As", func(t *testing.T) {
		require.ErrorIs(t, runOf(multi{io.EOF, permanent}), errFlaky)
		require.Equal(t, retry.Retryable, classOf(nil, fmt.Errorf("x: %w", runOf(multi{io.EOF, permanent}))))
	})
}

func TestAmbiguous(t *testing.T) {
	doubt := retry.Ambiguous(errFlaky)
	for _, row := range []struct {
		name string
		err  error
		want retry.Class
	}{
		{"it is terminal", doubt, retry.Terminal},
		{"through %w", fmt.Errorf("commit: %w", doubt), retry.Terminal},
		{"in a join", errors.Join(io.EOF, doubt), retry.Terminal},
		{"around Transient", retry.Ambiguous(retry.Transient(errFlaky)), retry.Terminal},
		{"under Transient it is retryable", retry.Transient(doubt), retry.Retryable},
		{"under Transient and %w it is retryable", retry.Transient(fmt.Errorf("commit: %w", doubt)), retry.Retryable},
		{"under Permanent and Transient it is terminal, as Permanent says", retry.Permanent(retry.Transient(doubt)), retry.Terminal},
		{"under Transient and Permanent it is retryable", retry.Transient(retry.Permanent(doubt)), retry.Retryable},
		{"beside Transient it is terminal", errors.Join(retry.Transient(io.EOF), doubt), retry.Terminal},
		{"beside Transient, before it, it is terminal", errors.Join(doubt, retry.Transient(io.EOF)), retry.Terminal},
		{"a join under Transient is retryable", retry.Transient(errors.Join(io.EOF, doubt)), retry.Retryable},
		{"of a nested run it is terminal", runOf(doubt), retry.Terminal},
		{"of a nested run under %w it is terminal", fmt.Errorf("tx: %w", runOf(fmt.Errorf("commit: %w", doubt))), retry.Terminal},
		{"of a nested run in a join it is terminal", errors.Join(io.EOF, runOf(errors.Join(io.EOF, doubt))), retry.Terminal},
		{"of a run in a run in a run it is terminal", runOf(runOf(runOf(doubt))), retry.Terminal},
		{"of a nested run under Transient it is retryable", retry.Transient(runOf(doubt)), retry.Retryable},
		{"of a nested run in which it is under Transient it is retryable", runOf(retry.Transient(doubt)), retry.Retryable},
		{"Transient of an outer run holds for a run in a run", retry.Transient(runOf(runOf(doubt))), retry.Retryable},
		{"Transient beside a nested run does not undo it", errors.Join(retry.Transient(io.EOF), runOf(doubt)), retry.Terminal},
		{"After does not undo it", retry.After(sec, runOf(doubt)), retry.Terminal},
		{"a timeout hides no cancellation", retryshell.MarkTimeout(retry.Ambiguous(context.DeadlineExceeded)), retry.Terminal},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := false
			require.Equal(t, row.want, classOf(func(error) retry.Class { asked = true; return retry.Retryable }, row.err))
			require.Equal(t, row.want == retry.Retryable && classOf(nil, row.err) == retry.Retryable && strings.HasPrefix(row.name, "of a nested run in which"), asked,
				"Classify is not asked: a mark has judged, except that a nested run's marks do not")
			class, _ := retry.Policy{Classify: retry.RetryIf(func(error) bool { return true })}.Judge(row.err)
			require.Equal(t, class == retry.Terminal && !strings.Contains(row.name, "as Permanent says"), retry.IsAmbiguous(row.err))
		})
	}
	inBubble(t, "it ends every run around the one that met it, whatever their Classify says", func(t *testing.T) {
		again := retry.Policy{MaxAttempts: 3, Classify: retry.Otherwise(retry.Retryable)}
		calls := 0
		err := retry.Do(t.Context(), again, func(ctx context.Context) error {
			return retry.Do(ctx, again, func(ctx context.Context) error {
				return fmt.Errorf("middle: %w", retry.Do(ctx, again, func(context.Context) error { calls++; return doubt }))
			})
		})
		requireEnd(t, err, terminal, 1)
		require.Equal(t, 1, calls)
		require.ErrorIs(t, err, errFlaky)
		require.EqualError(t, err, "middle: flaky")
	})
	inBubble(t, "an outer run for work that may be done twice says Transient", func(t *testing.T) {
		calls := 0
		err := retry.Do(t.Context(), everySecond(3), func(ctx context.Context) error {
			return retry.Transient(retry.Do(ctx, retry.Policy{}, func(context.Context) error { calls++; return doubt }))
		})
		requireEnd(t, err, exhausted, 3)
		require.Equal(t, 3, calls)
	})
}

func TestTimedOut(t *testing.T) {
	own := errors.New("own")
	for _, row := range []struct {
		name string
		err  error
		want bool // that it becomes a timeout
	}{
		{"nil", nil, false},
		{"an error of its own", own, false},
		{"context.DeadlineExceeded", context.DeadlineExceeded, true},
		{"context.Canceled", context.Canceled, true},
		{"both", errors.Join(context.Canceled, context.DeadlineExceeded), true},
		{"wrapped", fmt.Errorf("read: %w", context.Canceled), true},
		{"what calls itself canceled", isCanceled{}, true},
		{"a list with it", multi{io.EOF, context.DeadlineExceeded}, true},
		{"a nested run that was canceled", retry.Policy{}.NewError(canceledBy(io.EOF), retry.Outcome{Reason: retry.CallerCanceled}, own), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := retryshell.MarkTimeout(row.err)
			require.Equal(t, row.want, errors.Is(got, retry.ErrAttemptTimeout))
			if !row.want {
				require.Equal(t, row.err, got, "as it is")
				return
			}
			require.ErrorIs(t, got, context.DeadlineExceeded)
			require.NotErrorIs(t, got, context.Canceled)
			require.EqualError(t, got, "attempt timeout: "+row.err.Error())
			var timeout interface{ Timeout() bool }
			require.ErrorAs(t, got, &timeout)
			require.True(t, timeout.Timeout())
			require.Equal(t, retry.Retryable, classOf(nil, got))
			require.Equal(t, got, retryshell.MarkTimeout(got), "twice is once")
			require.Equal(t, retry.Retryable, classOf(nil, fmt.Errorf("x: %w", got)), "under %w too")
		})
	}
	t.Run("the cause of an attempt's context is a timeout already", func(t *testing.T) {
		require.Equal(t, retry.ErrAttemptTimeout, retryshell.MarkTimeout(retry.ErrAttemptTimeout))
		wrapped := fmt.Errorf("read: %w", retry.ErrAttemptTimeout)
		require.Same(t, wrapped, retryshell.MarkTimeout(wrapped))
	})
	t.Run("a cancellation beside it is hidden", func(t *testing.T) {
		got := retryshell.MarkTimeout(errors.Join(retry.ErrAttemptTimeout, context.Canceled))
		require.NotErrorIs(t, got, context.Canceled)
		require.ErrorIs(t, got, retry.ErrAttemptTimeout)
	})
	t.Run("everything else in the error is found", func(t *testing.T) {
		got := retryshell.MarkTimeout(errors.Join(isCanceled{}, own, retry.After(7*sec, runOf(io.EOF))))
		require.ErrorIs(t, got, own)
		require.ErrorIs(t, got, io.EOF)
		require.Equal(t, isCanceled{}, must[isCanceled](t, got))
		require.Equal(t, 7*sec, hintOf(got))
		require.Same(t, io.EOF, must[*retry.Error](t, got).Last)
	})
	t.Run("marks in it are found", func(t *testing.T) {
		require.Equal(t, retry.Terminal, classOf(nil, retryshell.MarkTimeout(retry.Permanent(context.Canceled))))
		require.Equal(t, retry.Retryable, classOf(retry.Otherwise(retry.Terminal), retryshell.MarkTimeout(retry.Transient(context.Canceled))))
	})
	t.Run("a classifier sees a timeout and no cancellation", func(t *testing.T) {
		require.Equal(t, retry.Retryable, classOf(retry.StopOn(context.Canceled), retryshell.MarkTimeout(context.Canceled)))
		require.Equal(t, retry.Terminal, classOf(retry.StopOn(retry.ErrAttemptTimeout), retryshell.MarkTimeout(context.Canceled)))
	})
}

func TestIsAmbiguous(t *testing.T) {
	doubt := retry.Ambiguous(errFlaky)
	for _, row := range []struct {
		name         string
		err          error
		want, wantAs bool // by IsAmbiguous, and by errors.As in a package without an import
	}{
		{"nil", nil, false, false},
		{"another mark", retry.Permanent(io.EOF), false, false},
		{"the mark", doubt, true, true},
		{"wrapped", fmt.Errorf("pay: %w", doubt), true, true},
		{"behind other marks", retry.Permanent(retry.After(1, doubt)), true, true},
		{"beside a hint", errors.Join(retry.After(1, io.EOF), doubt), true, true},
		{"beside Permanent", fmt.Errorf("%w %w", retry.Permanent(io.EOF), doubt), true, true},
		{"beside Transient", errors.Join(retry.Transient(io.EOF), doubt), true, true},
		{"of a nested run", runOf(doubt), true, true},
		{"in a list, after a hint", multi{errors.Join(retry.After(1, io.EOF), doubt), io.EOF}, true, true},
		{"in a list, of a second run", multi{errors.Join(runOf(io.EOF), runOf(doubt)), io.EOF}, true, true},
		{"under Transient, which errors.As does not see", retry.Transient(doubt), false, true},
		{"under Transient in a list", multi{retry.Transient(doubt), io.EOF}, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, retry.IsAmbiguous(row.err))
			class, _ := retry.Policy{Classify: retry.Otherwise(retry.Retryable)}.Judge(row.err)
			require.Equal(t, row.want, class == retry.Terminal && row.name != "another mark")
			var marked interface{ Ambiguous() bool }
			require.Equal(t, row.wantAs, errors.As(row.err, &marked) && marked.Ambiguous())
		})
	}
	require.NoError(t, retry.Ambiguous(nil))
}
