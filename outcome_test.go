package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// TestErrorsIs is the table of the package documentation: which errors.Is holds for which ending.
func TestErrorsIs(t *testing.T) {
	why := errors.New("why")
	timedOut := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, row := range []struct {
		name             string
		policy           retry.Policy
		fn               func(context.Context) error
		ctx              func(context.Context) (context.Context, context.CancelFunc)
		want             retry.Decision
		canceled         bool // errors.Is(err, context.Canceled)
		deadlineExceeded bool // errors.Is(err, context.DeadlineExceeded)
		cause            bool // errors.Is(err, context.Cause(ctx))
	}{
		{name: "TerminalError", fn: func(context.Context) error { return retry.Permanent(errFlaky) }, want: terminal},
		{name: "TerminalError after a cancelled call", fn: func(context.Context) error { return context.Canceled }, want: terminal, canceled: true},
		{name: "AttemptsExhausted", policy: everySecond(2), fn: failing, want: exhausted},
		{name: "AttemptsExhausted after an attempt timeout", policy: retry.Policy{MaxAttempts: 1, AttemptTimeout: sec}, fn: timedOut,
			want: exhausted, deadlineExceeded: true},
		{name: "BudgetExhausted", policy: retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})}, fn: failing, want: broke},
		{name: "TTLElapsed", policy: retry.Policy{TTL: sec}, fn: failing, want: tooOld},
		{name: "TTLElapsed after an attempt timeout", policy: retry.Policy{TTL: sec, AttemptTimeout: sec}, fn: timedOut, want: tooOld,
			deadlineExceeded: true},
		{name: "DeadlineTooNear", fn: failing, want: tooNear,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, sec, why)
			}},
		{name: "DeadlineTooNear after an attempt timeout", policy: retry.Policy{AttemptTimeout: sec}, fn: timedOut, want: tooNear,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, 2*sec, why)
			},
			deadlineExceeded: true},
		{name: "DeadlinePassed", fn: func(ctx context.Context) error { <-ctx.Done(); return errFlaky }, want: passed,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, sec, why)
			},
			deadlineExceeded: true, cause: true},
		{name: "HintTooLong", fn: func(context.Context) error { return retry.After(2*hour, errFlaky) }, want: tooLong},
		{name: "RetriesDisabled", policy: retry.Policy{Disabled: true}, fn: failing, want: disabled},
		{name: "CallerCanceled", fn: func(ctx context.Context) error { <-ctx.Done(); return errFlaky }, want: canceled,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(sec, func() { cancel(why) })
				return ctx, func() { cancel(nil) }
			}, canceled: true, cause: true},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			ctx := t.Context()
			if row.ctx != nil {
				var cancel context.CancelFunc
				ctx, cancel = row.ctx(ctx)
				defer cancel()
			}
			err := retry.Do(ctx, row.policy, row.fn)
			failed := requireEnd(t, err, row.want, len(must[*retry.Error](t, err).History))
			for reason := retry.TerminalError; reason <= retry.CallerCanceled; reason++ {
				require.Equal(t, reason == row.want.Reason, errors.Is(err, reason), reason)
			}
			require.ErrorIs(t, err, failed.Last)
			require.Equal(t, row.canceled, errors.Is(err, context.Canceled))
			require.Equal(t, row.deadlineExceeded, errors.Is(err, context.DeadlineExceeded))
			require.Equal(t, row.deadlineExceeded, failed.Timeout())
			require.Equal(t, row.cause, errors.Is(err, why))
			require.Equal(t, row.cause, failed.Cause != nil)
		})
	}
}

// must returns the T that errors.As finds in err.
func must[T error](t *testing.T, err error) T {
	t.Helper()
	var found T
	require.ErrorAs(t, err, &found)
	return found
}

func TestErrorText(t *testing.T) {
	outcome := func(attempts int, elapsed time.Duration, reason retry.Reason) retry.Outcome {
		return retry.Outcome{Attempts: attempts, Elapsed: elapsed, Reason: reason}
	}
	named := outcome(2, sec, retry.TerminalError)
	named.Policy = "invoice-email"
	for _, row := range []struct {
		err  retry.Error
		want string
	}{
		{retry.Error{Outcome: outcome(3, 1200*ms, retry.AttemptsExhausted), Last: errors.New("dial tcp: refused")},
			"retry: gave up after 3 attempts in 1.2s (attempts_exhausted): dial tcp: refused"},
		{retry.Error{Outcome: outcome(1, 0, retry.RetriesDisabled), Last: io.EOF}, "retry: gave up after 1 attempt in 0s (retries_disabled): EOF"},
		{retry.Error{Outcome: named, Last: io.EOF}, "retry: invoice-email: gave up after 2 attempts in 1s (terminal_error): EOF"},
		{retry.Error{Outcome: outcome(0, 0, retry.CallerCanceled), Cause: io.EOF}, "retry: gave up after 0 attempts in 0s (caller_canceled): EOF"},
		{retry.Error{Outcome: outcome(0, 0, retry.TTLElapsed)}, "retry: gave up after 0 attempts in 0s (ttl_elapsed)"},
		{retry.Error{Outcome: outcome(1, 0, retry.TerminalError), Last: errors.Join(io.EOF, errors.New("a\r\nb\rc"))},
			"retry: gave up after 1 attempt in 0s (terminal_error): EOF; a; b; c"},
		{retry.Error{Outcome: outcome(1, 1234567891*time.Nanosecond, retry.TerminalError), Last: io.EOF},
			"retry: gave up after 1 attempt in 1.235s (terminal_error): EOF"},
		{retry.Error{Outcome: outcome(1, 1234567*time.Nanosecond, retry.TerminalError), Last: io.EOF},
			"retry: gave up after 1 attempt in 1.235ms (terminal_error): EOF"},
		{retry.Error{Outcome: outcome(1, 123456*time.Nanosecond, retry.TerminalError), Last: io.EOF},
			"retry: gave up after 1 attempt in 123.456µs (terminal_error): EOF"},
	} {
		t.Run(row.want, func(t *testing.T) { require.EqualError(t, &row.err, row.want) })
	}
	t.Run("wrapping text around a mark is kept", func(t *testing.T) {
		err := retry.Do(t.Context(), retry.Policy{}, func(context.Context) error {
			return fmt.Errorf("charge card 7: %w", retry.Permanent(errors.New("expired")))
		})
		require.Contains(t, err.Error(), "(terminal_error): charge card 7: expired")
	})
}

func TestOutcomeText(t *testing.T) {
	require.Equal(t, "succeeded after 3 attempts in 1.2s", retry.Outcome{Policy: "p", Status: retry.Succeeded, Attempts: 3, Elapsed: 1200 * ms}.String())
	require.Equal(t, "dead_letter (terminal_error) after 1 attempt in 0s",
		fmt.Sprint(retry.Outcome{Status: retry.DeadLettered, Reason: retry.TerminalError, Attempts: 1}))
}

func TestErrorParts(t *testing.T) {
	notFound := &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}
	t.Run("Unwrap gives Reason, Last and Cause, as far as they are set", func(t *testing.T) {
		e := &retry.Error{Outcome: retry.Outcome{Reason: retry.CallerCanceled}, Last: notFound, Cause: io.EOF}
		require.Equal(t, []error{retry.CallerCanceled, notFound, io.EOF}, e.Unwrap())
		require.Equal(t, []error{retry.TTLElapsed}, (&retry.Error{Outcome: retry.Outcome{Reason: retry.TTLElapsed}}).Unwrap())
		require.Empty(t, (&retry.Error{}).Unwrap())
	})
	t.Run("errors.As reaches the last error through marks and wrapping", func(t *testing.T) {
		err := retry.Do(t.Context(), retry.Policy{}, func(context.Context) error {
			return fmt.Errorf("load: %w", retry.Permanent(notFound))
		})
		require.Same(t, notFound, must[*fs.PathError](t, err))
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
	t.Run("a nested run's last error is reached, its Reason is not", func(t *testing.T) {
		inner := &retry.Error{Outcome: retry.Outcome{Reason: retry.TerminalError}, Last: notFound}
		outer := &retry.Error{Outcome: retry.Outcome{Reason: retry.CallerCanceled}, Last: fmt.Errorf("x: %w", inner), Cause: inner}
		require.Same(t, notFound, must[*fs.PathError](t, outer))
		require.ErrorIs(t, outer, fs.ErrNotExist)
		require.NotErrorIs(t, outer, retry.TerminalError)
		require.Equal(t, retry.CallerCanceled, must[retry.Reason](t, outer))
		require.Same(t, outer, must[*retry.Error](t, outer))
		require.EqualError(t, outer.Unwrap()[1], outer.Last.Error(), "what shields it keeps its text")
	})
	t.Run("a nil *Error is an error without parts", func(t *testing.T) {
		var none *retry.Error
		err := retry.Do(t.Context(), atOnce, func(context.Context) error { return none })
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.NotErrorIs(t, err, io.EOF)
		require.NotErrorIs(t, none, context.Canceled)
		require.False(t, none.Timeout())
		require.Contains(t, err.Error(), "(attempts_exhausted): <nil>")
	})
	t.Run("an *Error that carries no reason matches nothing by itself", func(t *testing.T) {
		require.NotErrorIs(t, &retry.Error{}, context.Canceled)
		require.NotErrorIs(t, &retry.Error{}, context.DeadlineExceeded)
		var reason retry.Reason
		nested := &retry.Error{Last: &retry.Error{Outcome: retry.Outcome{Reason: retry.TerminalError}}}
		require.False(t, errors.As(nested, &reason))
	})
}

func TestHistory(t *testing.T) {
	inBubble(t, "records every failed attempt: number, start, duration, class, error and the wait after it", func(t *testing.T) {
		start := time.Now()
		calls := 0
		boom := []error{io.EOF, retry.After(9*sec, io.ErrNoProgress), retry.Permanent(io.ErrShortWrite)}
		p := retry.Policy{Name: "named", Backoff: retry.Backoff{Base: sec}}
		err := retry.Do(t.Context(), p, func(context.Context) error {
			calls++
			spend(time.Duration(calls) * ms)
			return boom[calls-1]
		})
		require.Equal(t, retry.Outcome{
			Policy: "named", Status: retry.DeadLettered, Reason: retry.TerminalError, Attempts: 3, Elapsed: 10*sec + 6*ms,
			History: []retry.Attempt{
				{Number: 1, Start: start, Duration: ms, Class: retry.Retryable, Err: boom[0], Delay: sec},
				{Number: 2, Start: start.Add(sec + ms), Duration: 2 * ms, Class: retry.Retryable, Err: boom[1], Delay: 9 * sec},
				{Number: 3, Start: start.Add(10*sec + 3*ms), Duration: 3 * ms, Class: retry.Terminal, Err: boom[2]},
			},
		}, must[*retry.Error](t, err).Outcome)
	})
	for _, attempts := range []int{1, 2, 63, 64, 65, 66, 127, 128, 1000} {
		inBubble(t, fmt.Sprintf("keeps the first and the newest 63 of %d", attempts), func(t *testing.T) {
			start, calls := time.Now(), 0
			err := retry.Do(t.Context(), everySecond(attempts), func(context.Context) error {
				calls++
				return fmt.Errorf("try %d", calls)
			})
			history := must[*retry.Error](t, err).History
			require.Len(t, history, min(attempts, 64))
			for i, a := range history {
				number := i + 1
				if i > 0 {
					number += attempts - len(history)
				}
				require.Equal(t, number, a.Number)
				require.EqualError(t, a.Err, fmt.Sprintf("try %d", number))
				require.Equal(t, start.Add(time.Duration(number-1)*sec), a.Start)
				if number < attempts {
					require.Equal(t, sec, a.Delay)
				} else {
					require.Zero(t, a.Delay)
				}
			}
		})
	}
	t.Run("a run of any length holds bounded memory", func(t *testing.T) {
		p := atOnce
		p.MaxAttempts = retry.Unlimited
		var base, after uint64
		calls := 0
		err := retry.Do(t.Context(), p, func(context.Context) error {
			switch calls++; calls {
			case 1000:
				base = heap()
			case 101_000:
				after = heap()
				return nil
			}
			return fmt.Errorf("try %d", calls)
		})
		require.NoError(t, err)
		require.Less(t, after, base+100_000, "a hundred thousand failures later: less than a byte for each")
	})
	inBubble(t, "a wait that was cut short is recorded as it was decided", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(ms, cancel)
		err := retry.Do(ctx, everySecond(9), failing)
		require.Equal(t, sec, must[*retry.Error](t, err).History[0].Delay)
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestObserve(t *testing.T) {
	// told collects the events of one run.
	told := func(p *retry.Policy) *[]retry.Event {
		events := new([]retry.Event)
		p.Observe = func(_ context.Context, e retry.Event) { *events = append(*events, e) }
		return events
	}
	inBubble(t, "a first-try success is one final event", func(t *testing.T) {
		p := retry.Policy{Name: "named"}
		events := told(&p)
		require.NoError(t, retry.Do(t.Context(), p, func(context.Context) error { spend(sec); return nil }))
		require.Equal(t, []retry.Event{{Policy: "named", Elapsed: sec, Decision: succeeded,
			Outcome: &retry.Outcome{Policy: "named", Status: retry.Succeeded, Attempts: 1, Elapsed: sec}}}, *events)
	})
	inBubble(t, "each failed attempt is told before its wait, and the end once", func(t *testing.T) {
		start := time.Now()
		var when []time.Duration
		p := everySecond(3)
		events := told(&p)
		tell := p.Observe
		p.Observe = func(ctx context.Context, e retry.Event) { when = append(when, time.Since(start)); tell(ctx, e) }
		err := retry.Do(t.Context(), p, failing)
		failed := must[*retry.Error](t, err)
		require.Equal(t, []time.Duration{0, sec, 2 * sec, 2 * sec}, when)
		require.Equal(t, []retry.Event{
			{Attempt: failed.History[0], Decision: waiting(sec)},
			{Elapsed: sec, Attempt: failed.History[1], Decision: waiting(sec)},
			{Elapsed: 2 * sec, Attempt: failed.History[2], Decision: exhausted},
			{Elapsed: 2 * sec, Decision: exhausted, Outcome: &failed.Outcome, Err: failed},
		}, *events)
	})
	inBubble(t, "Elapsed ends with the attempt, whatever time its judge takes", func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 1, Classify: func(error) retry.Class { spend(sec); return retry.Unknown }}
		events := told(&p)
		requireEnd(t, retry.Do(t.Context(), p, func(context.Context) error { spend(ms); return errFlaky }), exhausted, 1)
		require.Equal(t, ms, (*events)[0].Elapsed)
		require.Equal(t, (*events)[1].Outcome.Elapsed, (*events)[1].Elapsed)
	})
	inBubble(t, "a retry that something forbids is never announced", func(t *testing.T) {
		deadline, cancel := context.WithTimeout(t.Context(), sec)
		defer cancel()
		for want, p := range map[retry.Decision]retry.Policy{
			terminal: {Classify: retry.Otherwise(retry.Terminal)},
			tooNear:  {},
			broke:    {Backoff: retry.Backoff{Base: 1}, Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})},
			tooOld:   {TTL: ms},
			disabled: {Disabled: true},
		} {
			events := told(&p)
			requireEnd(t, retry.Do(deadline, p, failing), want, 1)
			require.Len(t, *events, 2)
			require.Equal(t, want, (*events)[0].Decision)
			require.Equal(t, want, (*events)[1].Decision)
		}
	})
	inBubble(t, "a run without an attempt is told too", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := retry.Policy{}
		events := told(&p)
		failed := requireEnd(t, retry.Do(ctx, p, failing), canceled, 0)
		require.Equal(t, []retry.Event{{Decision: canceled, Outcome: &failed.Outcome, Err: failed}}, *events)
	})
	inBubble(t, "it gets the caller's context", func(t *testing.T) {
		p := everySecond(2)
		p.AttemptTimeout = minute
		p.Observe = func(ctx context.Context, _ retry.Event) { require.Same(t, t.Context(), ctx) }
		requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 2)
	})
	inBubble(t, "its history is its own copy", func(t *testing.T) {
		p := everySecond(2)
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Outcome != nil {
				e.Outcome.History[0].Err = io.EOF
				e.Outcome.Attempts = 99
			}
		}
		failed := requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 2)
		require.Same(t, errFlaky, failed.History[0].Err)
	})
	inBubble(t, "a success after failures has them in its history", func(t *testing.T) {
		p := everySecond(9)
		events := told(&p)
		require.NoError(t, retry.Do(t.Context(), p, failTimes(2)))
		end := (*events)[2].Outcome
		require.Equal(t, []retry.Attempt{(*events)[0].Attempt, (*events)[1].Attempt}, end.History)
		require.Equal(t, 3, end.Attempts)
		require.Equal(t, retry.Succeeded, end.Status)
		require.Equal(t, 2*sec, end.Elapsed)
	})
}
