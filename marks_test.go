package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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

// TestMarks is what Judge and IsAmbiguous find. "doubt" is terminal because of Ambiguous.
func TestMarks(t *testing.T) {
	permanent, transient, ambiguous := retry.Permanent(errFlaky), retry.Transient(errFlaky), retry.Ambiguous(errFlaky)
	again := retry.Transient(ambiguous)
	busy := func(d time.Duration) error { return retry.After(d, errFlaky) }
	wrapped := func(err error) error { return fmt.Errorf("x: %w", err) }
	canceledRun := retry.Policy{}.NewError(canceledBy(io.EOF), retry.Outcome{Status: retry.Canceled, Reason: retry.CallerCanceled}, context.Canceled)
	hints := ambiguous
	for range 40 { // each of which has two ways to the next
		hints = both{retry.After(sec, hints)}
	}
	for _, row := range []struct {
		name string
		err  error
		want string
		hint time.Duration
	}{
		{"Permanent", permanent, "terminal", 0},
		{"Permanent through %w", wrapped(permanent), "terminal", 0},
		{"Permanent through errors.Join", errors.Join(io.EOF, permanent), "terminal", 0},
		{"Permanent through %w of two", fmt.Errorf("%w and %w", io.EOF, permanent), "terminal", 0},
		{"Transient, whatever it marks", retry.Transient(context.Canceled), "retryable", 0},
		{"the outermost class wins", retry.Transient(wrapped(permanent)), "retryable", 0},
		{"the outermost class wins, the other way round", retry.Permanent(transient), "terminal", 0},
		{"the first of joined classes wins", errors.Join(transient, permanent), "retryable", 0},
		{"After does not classify", retry.After(sec, context.Canceled), "terminal", sec},
		{"After leaves the class inside it", retry.After(sec, permanent), "terminal", sec},
		{"the longest hint wins", retry.After(30*sec, busy(sec)), "retryable", 30 * sec},
		{"the longest hint wins, inside", retry.After(sec, busy(30*sec)), "retryable", 30 * sec},
		{"the longest hint wins in a join", errors.Join(busy(sec), wrapped(busy(30*sec))), "retryable", 30 * sec},
		{"a hint under a class", retry.Transient(busy(30 * sec)), "retryable", 30 * sec},
		{"a nested run's mark does not leak", runOf(permanent), "retryable", 0},
		{"a nested run's mark does not leak through %w", wrapped(runOf(permanent)), "retryable", 0},
		{"a nested run's hint does not leak", runOf(busy(sec)), "retryable", 0},
		{"a mark beside a nested run", errors.Join(runOf(permanent), permanent), "terminal", 0},
		{"a mark around a nested run", retry.Permanent(runOf(errFlaky)), "terminal", 0},
		{"a nested run's cancellation does not leak", runOf(context.Canceled), "retryable", 0},
		{"a nested run's cancellation does not leak through a hint", retry.After(sec, runOf(context.Canceled)), "retryable", sec},
		{"a nested run whose caller was canceled", canceledRun, "retryable", 0},
		{"a cancellation beside a nested run", errors.Join(runOf(errFlaky), context.Canceled), "terminal", 0},

		{"Ambiguous", ambiguous, "doubt", 0},
		{"Ambiguous through %w", wrapped(ambiguous), "doubt", 0},
		{"Ambiguous in a join", errors.Join(io.EOF, ambiguous), "doubt", 0},
		{"Ambiguous behind other marks", retry.Permanent(retry.After(1, ambiguous)), "doubt", 1},
		{"Ambiguous beside a hint", errors.Join(retry.After(1, io.EOF), ambiguous), "doubt", 1},
		{"Ambiguous beside Permanent", fmt.Errorf("%w %w", permanent, ambiguous), "doubt", 0},
		{"Ambiguous around Transient", retry.Ambiguous(transient), "doubt", 0},
		{"Ambiguous under Transient", again, "retryable", 0},
		{"Ambiguous under Transient and %w", retry.Transient(wrapped(ambiguous)), "retryable", 0},
		{"Ambiguous under Permanent and Transient, as Permanent says", retry.Permanent(again), "terminal", 0},
		{"Ambiguous under Transient and Permanent", retry.Transient(retry.Permanent(ambiguous)), "retryable", 0},
		{"Ambiguous beside Transient", errors.Join(transient, ambiguous), "doubt", 0},
		{"Ambiguous beside Transient, before it", errors.Join(ambiguous, transient), "doubt", 0},
		{"Ambiguous in a join under Transient", retry.Transient(errors.Join(io.EOF, ambiguous)), "retryable", 0},
		{"Ambiguous of a nested run", runOf(ambiguous), "doubt", 0},
		{"Ambiguous of a nested run under %w", wrapped(runOf(wrapped(ambiguous))), "doubt", 0},
		{"Ambiguous of a nested run in a join", errors.Join(io.EOF, runOf(errors.Join(io.EOF, ambiguous))), "doubt", 0},
		{"Ambiguous of a run in a run in a run", runOf(runOf(runOf(ambiguous))), "doubt", 0},
		{"Ambiguous of a nested run under Transient", retry.Transient(runOf(ambiguous)), "retryable", 0},
		{"Ambiguous of a nested run in which it is under Transient", runOf(again), "retryable", 0},
		{"Ambiguous of a run in a run under Transient", retry.Transient(runOf(runOf(ambiguous))), "retryable", 0},
		{"Ambiguous of a nested run beside Transient", errors.Join(transient, runOf(ambiguous)), "doubt", 0},
		{"Ambiguous of a nested run under After", retry.After(sec, runOf(ambiguous)), "doubt", sec},
		{"Permanent in a timeout", retryshell.MarkTimeout(retry.Permanent(context.Canceled)), "terminal", 0},
		{"Ambiguous in a timeout", retryshell.MarkTimeout(retry.Ambiguous(context.DeadlineExceeded)), "doubt", 0},

		// What only an error's own As reaches.
		{"Permanent, first of a list", multi{permanent, io.EOF}, "terminal", 0},
		{"Permanent, second of a list", multi{io.EOF, permanent}, "terminal", 0},
		{"Permanent, last of four", multi{io.EOF, io.EOF, io.EOF, permanent}, "terminal", 0},
		{"Permanent alone in a list", multi{permanent}, "terminal", 0},
		{"Permanent in a list in a list", multi{multi{io.EOF, permanent}, io.EOF}, "terminal", 0},
		{"Permanent in a list under %w in a list", multi{io.EOF, wrapped(multi{permanent, io.EOF})}, "terminal", 0},
		{"Permanent in a join in a list", multi{errors.Join(io.EOF, permanent), io.EOF}, "terminal", 0},
		{"Permanent under an opaque error", opaque{permanent}, "terminal", 0},
		{"Permanent under two opaque errors", opaque{opaque{permanent}}, "terminal", 0},
		{"the first class of a list wins", multi{transient, permanent}, "retryable", 0},
		{"the first class of a list wins, the other way round", multi{permanent, transient}, "terminal", 0},
		{"a hint in a list", multi{io.EOF, busy(9 * sec)}, "retryable", 9 * sec},
		{"the longest hint in a list", multi{busy(9 * sec), busy(sec), busy(10 * sec)}, "retryable", 10 * sec},
		{"a hint in a hint in a list", multi{retry.After(sec, busy(9*sec)), io.EOF}, "retryable", 9 * sec},
		{"a mark around the list", retry.Transient(multi{permanent, io.EOF}), "retryable", 0},
		{"a list without a mark", multi{io.EOF, errFlaky}, "retryable", 0},
		{"an empty list", multi{}, "retryable", 0},
		{"a nil *Error", opaque{(*retry.Error)(nil)}, "retryable", 0},
		{"what As and Unwrap both lead to", both{wrapped(retry.After(sec, both{permanent}))}, "terminal", sec},
		{"an As that says yes to everything and sets nothing", yes{}, "retryable", 0},
		{"an As that says yes to everything and sets nothing, in a list", multi{io.EOF, yes{}, permanent}, "terminal", 0},

		{"a cancellation in a list", multi{io.EOF, context.Canceled}, "terminal", 0},
		{"a cancellation, first in a list", multi{context.Canceled, io.EOF}, "terminal", 0},
		{"a cancellation under Transient in a list", multi{io.EOF, retry.Transient(context.Canceled)}, "retryable", 0},
		{"a timeout that looks like a cancellation", multi{retryshell.MarkTimeout(context.Canceled), io.EOF}, "retryable", 0},
		{"a timeout that looks like a cancellation, around a hint", multi{retryshell.MarkTimeout(retry.After(sec, context.Canceled)), io.EOF}, "retryable", sec},

		{"in a list a nested run's mark does not leak", multi{runOf(permanent), io.EOF}, "retryable", 0},
		{"in a list a nested run's mark does not leak, second", multi{io.EOF, runOf(permanent)}, "retryable", 0},
		{"in a list a nested run's mark does not leak under %w", multi{wrapped(runOf(permanent)), io.EOF}, "retryable", 0},
		{"in a list a mark in a nested run's timeout does not leak",
			multi{runOf(retryshell.MarkTimeout(retry.Permanent(context.Canceled))), io.EOF}, "retryable", 0},
		{"in a list a nested run's hint does not leak", multi{runOf(busy(sec)), io.EOF}, "retryable", 0},
		{"in a list a nested run's cancellation does not leak", multi{runOf(context.Canceled), io.EOF}, "retryable", 0},
		{"in a list a nested run's cancellation does not leak, second", multi{io.EOF, runOf(context.Canceled)}, "retryable", 0},
		{"a nested run's list does not leak", runOf(multi{permanent, busy(sec), context.Canceled}), "retryable", 0},
		{"a nested run's list does not leak through a list", multi{runOf(multi{permanent, io.EOF}), runOf(opaque{permanent})}, "retryable", 0},
		{"in a list a nested run that was canceled does not leak", multi{canceledRun, io.EOF}, "retryable", 0},
		{"in a list a mark beside a nested run", multi{runOf(permanent), permanent}, "terminal", 0},
		{"in one element a mark beside a nested run", multi{errors.Join(runOf(permanent), permanent), io.EOF}, "terminal", 0},
		{"in one element a mark beside a nested run, before it", multi{errors.Join(permanent, runOf(transient)), io.EOF}, "terminal", 0},
		{"in a list a mark around a nested run", multi{retry.Permanent(runOf(errFlaky)), io.EOF}, "terminal", 0},
		{"in a list a cancellation beside a nested run", multi{runOf(errFlaky), context.Canceled}, "terminal", 0},
		{"in one element a class after a hint", multi{errors.Join(busy(sec), permanent), io.EOF}, "terminal", sec},
		{"in one element a hint after a class", multi{errors.Join(transient, busy(sec)), io.EOF}, "retryable", sec},
		{"limit: in one element a cancellation beside a run is taken for the run's", multi{errors.Join(runOf(errFlaky), context.Canceled), io.EOF}, "retryable", 0},

		{"Ambiguous in a list", multi{io.EOF, ambiguous}, "doubt", 0},
		{"Ambiguous of a nested run in a list", multi{io.EOF, runOf(ambiguous)}, "doubt", 0},
		{"Ambiguous of a nested run, first in a list", multi{runOf(ambiguous), io.EOF}, "doubt", 0},
		{"Ambiguous of a nested run's list", runOf(multi{io.EOF, ambiguous}), "doubt", 0},
		{"Ambiguous of a nested run's list in a list", multi{runOf(multi{ambiguous, io.EOF}), io.EOF}, "doubt", 0},
		{"Ambiguous of a run in a run, hidden twice", opaque{runOf(opaque{runOf(ambiguous)})}, "doubt", 0},
		{"Transient around Ambiguous in a list", multi{again, io.EOF}, "retryable", 0},
		{"Transient around Ambiguous of a nested run in a list", multi{retry.Transient(runOf(ambiguous)), io.EOF}, "retryable", 0},
		{"Transient around a list with Ambiguous", retry.Transient(multi{io.EOF, ambiguous}), "retryable", 0},
		{"Transient around a list with Ambiguous of a nested run", retry.Transient(multi{runOf(ambiguous), io.EOF}), "retryable", 0},
		{"Transient around %w around Ambiguous of a nested run", opaque{retry.Transient(wrapped(runOf(ambiguous)))}, "retryable", 0},
		{"Transient around a run, and Ambiguous of another", opaque{errors.Join(runOf(ambiguous), retry.Transient(runOf(errFlaky)))}, "doubt", 0},
		{"Transient beside Ambiguous in a list", multi{transient, ambiguous}, "doubt", 0},
		{"in one element doubt of a second run", multi{errors.Join(runOf(errFlaky), runOf(ambiguous)), io.EOF}, "doubt", 0},
		{"in one element doubt after a hint", multi{errors.Join(busy(sec), ambiguous), io.EOF}, "doubt", sec},
		{"in one element doubt beside Transient", multi{errors.Join(again, retry.Ambiguous(io.EOF)), io.EOF}, "doubt", 0},

		// Doubt that is under Transient in one place and not in another.
		{"the same doubt in a list, under Transient first", multi{again, ambiguous}, "doubt", 0},
		{"the same doubt in a list, under Transient last", multi{ambiguous, again}, "doubt", 0},
		{"the same doubt in a list, under Transient only", multi{again, again}, "retryable", 0},
		{"the same doubt in a join with an As, under Transient first", errors.Join(opaque{io.EOF}, again, ambiguous), "doubt", 0},
		{"the same doubt in one element, under Transient first", multi{errors.Join(again, ambiguous), io.EOF}, "doubt", 0},
		{"the same doubt in one element, under Transient only", multi{errors.Join(again, again), io.EOF}, "retryable", 0},
		{"the same doubt in a list, in a nested run under Transient first", multi{retry.Transient(runOf(ambiguous)), runOf(ambiguous)}, "doubt", 0},
		{"the same doubt in a list, in a timeout under Transient first",
			multi{retry.Transient(retryshell.MarkTimeout(retry.Ambiguous(context.Canceled))), ambiguous}, "doubt", 0},
		{"the same doubt in a list under Transient, and beside it", errors.Join(retry.Transient(multi{io.EOF, ambiguous}), multi{io.EOF, ambiguous}), "doubt", 0},
		{"doubt behind more hints than are looked at", hints, "doubt", sec},
		{"doubt behind more hints than are looked at, in an opaque error", opaque{hints}, "doubt", sec},
		{"what is behind a thousand hints is not looked at, and so it may be doubt",
			opaque{errors.Join(append(slices.Repeat([]error{busy(sec)}, 1000), ambiguous)...)}, "doubt", sec},
	} {
		t.Run(row.name, func(t *testing.T) {
			class, hint := retry.Policy{}.Judge(row.err)
			got := class.String()
			if retry.IsAmbiguous(row.err) {
				require.Equal(t, retry.Terminal, class)
				require.Equal(t, retry.Terminal, classOf(retry.Otherwise(retry.Retryable), row.err), "no classifier undoes it")
				var marked interface{ Ambiguous() bool }
				require.ErrorAs(t, row.err, &marked, "a package that does not import retry finds it")
				require.True(t, marked.Ambiguous())
				got = "doubt"
			}
			require.Equal(t, row.want, got)
			require.Equal(t, row.hint, hint)
		})
	}

	t.Run("marks beat classifiers, which are not asked", func(t *testing.T) {
		asked := func(error) retry.Class { t.Error("asked"); return retry.Unknown }
		require.Equal(t, retry.Terminal, classOf(asked, permanent))
		require.Equal(t, retry.Retryable, classOf(asked, transient))
	})
	t.Run("a mark keeps the text and what errors.Is finds", func(t *testing.T) {
		eof := fmt.Errorf("disk: %w", io.EOF)
		for _, err := range []error{retry.Permanent(eof), retry.Transient(eof), retry.Ambiguous(eof), retry.After(sec, eof), retry.Progressed(eof)} {
			require.EqualError(t, err, "disk: EOF")
			require.ErrorIs(t, err, io.EOF)
		}
	})
	t.Run("a mark of nil is nil", func(t *testing.T) {
		require.Equal(t, []error{nil, nil, nil, nil, nil, nil}, []error{retry.Permanent(nil), retry.Transient(nil), retry.Ambiguous(nil),
			retry.After(sec, nil), retry.After(0, nil), retry.Progressed(nil)})
		require.False(t, retry.IsAmbiguous(nil))
	})
	t.Run("a hint of 0 or less returns the error as it is", func(t *testing.T) {
		require.Same(t, errFlaky, retry.After(0, errFlaky))
		require.Same(t, errFlaky, retry.After(-sec, errFlaky))
	})
}

func TestAmbiguous(t *testing.T) {
	doubt := retry.Ambiguous(errFlaky)
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
		require.EqualError(t, err, "middle: flaky")
	})
	inBubble(t, "an outer run for work that may be done twice says Transient, which errors.As does not see", func(t *testing.T) {
		calls := 0
		err := retry.Do(t.Context(), everySecond(3), func(ctx context.Context) error {
			return retry.Transient(retry.Do(ctx, retry.Policy{}, func(context.Context) error { calls++; return doubt }))
		})
		requireEnd(t, err, exhausted, 3)
		require.Equal(t, 3, calls)
		require.ErrorAs(t, err, new(interface{ Ambiguous() bool }))
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
		{"a cancellation beside the cause of an attempt's context", errors.Join(retry.ErrAttemptTimeout, context.Canceled), true},
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
		require.ErrorIs(t, retry.ErrAttemptTimeout, context.DeadlineExceeded)
		require.NotErrorIs(t, retry.ErrAttemptTimeout, context.Canceled)
		var timeout interface{ Timeout() bool }
		require.ErrorAs(t, retry.ErrAttemptTimeout, &timeout)
		require.True(t, timeout.Timeout())
		wrapped := fmt.Errorf("read: %w", retry.ErrAttemptTimeout)
		require.Same(t, wrapped, retryshell.MarkTimeout(wrapped))
	})
	t.Run("everything else in the error is found", func(t *testing.T) {
		got := retryshell.MarkTimeout(errors.Join(isCanceled{}, own, retry.After(7*sec, runOf(io.EOF))))
		require.ErrorIs(t, got, own)
		require.ErrorIs(t, got, io.EOF)
		require.Equal(t, isCanceled{}, must[isCanceled](t, got))
		_, hint := retry.Policy{}.Judge(got)
		require.Equal(t, 7*sec, hint)
		require.Same(t, io.EOF, must[*retry.Error](t, got).Last)
	})
	t.Run("a classifier sees a timeout and no cancellation", func(t *testing.T) {
		require.Equal(t, retry.Retryable, classOf(retry.StopOn(context.Canceled), retryshell.MarkTimeout(context.Canceled)))
		require.Equal(t, retry.Terminal, classOf(retry.StopOn(retry.ErrAttemptTimeout), retryshell.MarkTimeout(context.Canceled)))
	})
}
