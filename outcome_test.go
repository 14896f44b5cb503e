package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// TestErrorsIs is the table of the documentation of Error: which errors.Is holds for which ending.
func TestErrorsIs(t *testing.T) {
	why := errors.New("why")
	flakyInTheEnd := func(ctx context.Context) error { <-ctx.Done(); return errFlaky }
	for _, row := range []struct {
		name             string
		policy           retry.Policy
		fn               func(context.Context) error
		timeout, cancel  time.Duration // of the caller; 0 is never
		want             retry.Decision
		canceled         bool // errors.Is(err, context.Canceled)
		deadlineExceeded bool // errors.Is(err, context.DeadlineExceeded)
		cause            bool // errors.Is(err, context.Cause(ctx))
	}{
		{name: "TerminalError", fn: failsWith(retry.Permanent(errFlaky)), want: terminal},
		{name: "TerminalError after a canceled call", fn: failsWith(context.Canceled), want: terminal, canceled: true},
		{name: "AttemptsExhausted", policy: everySecond(2), fn: failing, want: exhausted},
		{name: "AttemptsExhausted after an attempt timeout", policy: retry.Policy{MaxAttempts: 1, AttemptTimeout: sec}, fn: untilDone,
			want: exhausted, deadlineExceeded: true},
		{name: "BudgetExhausted", policy: retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})}, fn: failing, want: broke},
		{name: "TTLElapsed", policy: retry.Policy{TTL: sec}, fn: failing, want: tooOld},
		{name: "TTLElapsed after an attempt timeout", policy: retry.Policy{TTL: sec, AttemptTimeout: sec}, fn: untilDone, want: tooOld,
			deadlineExceeded: true},
		{name: "DeadlineTooNear", fn: failing, timeout: sec, want: tooNear},
		{name: "DeadlineTooNear after an attempt timeout", policy: retry.Policy{AttemptTimeout: sec}, fn: untilDone, timeout: 2 * sec,
			want: tooNear, deadlineExceeded: true},
		{name: "DeadlinePassed", fn: flakyInTheEnd, timeout: sec, want: passed, deadlineExceeded: true, cause: true},
		{name: "HintTooLong", fn: failsWith(retry.After(2*hour, errFlaky)), want: tooLong},
		{name: "RetriesDisabled", policy: retry.Policy{Disabled: true}, fn: failing, want: disabled},
		{name: "CallerCanceled", fn: flakyInTheEnd, cancel: sec, want: canceled, canceled: true, cause: true},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if row.cancel > 0 {
				time.AfterFunc(row.cancel, func() { cancel(why) })
			}
			if row.timeout > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeoutCause(ctx, row.timeout, why)
				defer stop()
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
			require.Equal(t, row.cause, failed.Cause() != nil)
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
		{*retry.Policy{}.NewError(canceledBy(io.EOF), outcome(0, 0, retry.CallerCanceled), nil), "retry: gave up after 0 attempts in 0s (caller_canceled): EOF"},
		{retry.Error{Outcome: outcome(0, 0, retry.TTLElapsed)}, "retry: gave up after 0 attempts in 0s (ttl_elapsed)"},
		{retry.Error{Outcome: outcome(1, 0, retry.TerminalError), Last: errors.Join(io.EOF, errors.New("a\r\nb\rc"))},
			"EOF; a; b; c"},
		{retry.Error{Outcome: retry.Outcome{Policy: "a\nb", Attempts: 2, Reason: retry.TTLElapsed}, Last: errors.New("\nx\n")},
			"retry: a; b: gave up after 2 attempts in 0s (ttl_elapsed): ; x"},
		{retry.Error{Outcome: outcome(1, 0, retry.TerminalError)}, "retry: gave up after 1 attempt in 0s (terminal_error)"},
		{retry.Error{Outcome: outcome(1, 0, retry.TerminalError), Last: fmt.Errorf("charge card 7: %w", retry.Permanent(errors.New("expired")))},
			"charge card 7: expired"},
		{retry.Error{Outcome: outcome(2, sec, retry.TerminalError), Last: io.EOF}, "retry: gave up after 2 attempts in 1s (terminal_error): EOF"},
		{retry.Error{Outcome: retry.Outcome{Policy: "orders", Attempts: 1, Reason: retry.TerminalError}, Last: io.EOF}, "EOF"},
		{*retry.Policy{}.NewError(context.Background(), outcome(1, 0, retry.HintTooLong), retry.After(2*hour, io.EOF)),
			"retry: gave up after 1 attempt in 0s (hint_too_long: 2h is above MaxHint 1h): EOF"},
		{*retry.Policy{MaxHint: 90 * sec}.NewError(context.Background(), outcome(2, sec, retry.HintTooLong), fmt.Errorf("x: %w", retry.After(minute+hour, io.EOF))),
			"retry: gave up after 2 attempts in 1s (hint_too_long: 1h1m is above MaxHint 1m30s): x: EOF"},
		{*retry.Policy{}.NewError(canceledBy(io.EOF), outcome(1, 0, retry.HintTooLong), retry.After(2*hour, io.EOF)),
			"retry: gave up after 1 attempt in 0s (hint_too_long: 2h is above MaxHint 1h): EOF"},
		{retry.Error{Outcome: outcome(1, 0, retry.HintTooLong), Last: io.EOF}, "retry: gave up after 1 attempt in 0s (hint_too_long): EOF"},
		{retry.Error{Outcome: outcome(1, 0, retry.HintTooLong), Last: retry.After(2*hour, io.EOF)},
			"retry: gave up after 1 attempt in 0s (hint_too_long: 2h is above MaxHint): EOF"},
		{*retry.Policy{}.NewError(context.Background(), outcome(2, sec, retry.TTLElapsed), retry.After(2*hour, io.EOF)),
			"retry: gave up after 2 attempts in 1s (ttl_elapsed): EOF"},
		{*retry.Policy{}.NewError(context.Background(), gated(outcome(0, 0, retry.TTLElapsed)), nil),
			"retry: gave up after 0 attempts in 0s (ttl_elapsed, deferred by Gate)"},
		{*retry.Policy{}.NewError(context.Background(), gated(outcome(2, sec, retry.DeadlineTooNear)), io.EOF),
			"retry: gave up after 2 attempts in 1s (deadline_too_near, deferred by Gate): EOF"},
		{retry.Error{Outcome: outcome(1, 1234567891, retry.RetriesDisabled), Last: io.EOF},
			"retry: gave up after 1 attempt in 1.235s (retries_disabled): EOF"},
		{retry.Error{Outcome: outcome(1, 1234567, retry.RetriesDisabled), Last: io.EOF},
			"retry: gave up after 1 attempt in 1.235ms (retries_disabled): EOF"},
		{retry.Error{Outcome: outcome(1, 123456, retry.RetriesDisabled), Last: io.EOF},
			"retry: gave up after 1 attempt in 123.456µs (retries_disabled): EOF"},
	} {
		t.Run(row.want, func(t *testing.T) { require.EqualError(t, &row.err, row.want) })
	}
}

func gated(o retry.Outcome) retry.Outcome { o.EndedByGate = true; return o }

func TestAttemptText(t *testing.T) {
	for _, row := range []struct {
		attempt retry.Attempt
		want    string
	}{
		{retry.Attempt{Number: 1, Duration: 50 * ms, Class: retry.Retryable, Err: errors.New("dial tcp: refused"), Delay: 100 * ms},
			"attempt 1 failed after 50ms (retryable): dial tcp: refused; wait 100ms"},
		{retry.Attempt{Number: 9, Duration: 1234567891, Class: retry.Terminal, Err: errors.New("a\nb\x1b"), Delay: 0},
			"attempt 9 failed after 1.235s (terminal): a; b\uFFFD"},
		{retry.Attempt{Number: 2, Class: retry.Retryable, Delay: hour}, "attempt 2 failed after 0s (retryable); wait 1h"},
	} {
		require.Equal(t, row.want, row.attempt.String())
	}
}

func TestHintOfAnEnding(t *testing.T) {
	nested := runOf(retry.After(9*sec, io.EOF))
	for _, row := range []struct {
		name string
		err  *retry.Error
		want time.Duration
	}{
		{"that of the last error", &retry.Error{Last: fmt.Errorf("busy: %w", retry.After(2*hour, io.EOF))}, 2 * hour},
		{"as Judge finds it", &retry.Error{Last: multi{io.EOF, retry.After(9*sec, io.EOF)}}, 9 * sec},
		{"none", &retry.Error{Last: io.EOF}, 0},
		{"for a caller that comes back later, a nested run's", &retry.Error{Last: nested}, 9 * sec},
		{"unless there is one of this run", &retry.Error{Last: retry.After(sec, nested)}, sec},
		{"no last error", &retry.Error{}, 0},
		{"a nil *Error", nil, 0},
	} {
		require.Equal(t, row.want, row.err.Hint(), row.name)
	}
}

func TestNewError(t *testing.T) {
	ended := func(status retry.Status, reason retry.Reason) retry.Outcome {
		return retry.Outcome{Status: status, Reason: reason, Attempts: 2, Elapsed: sec, History: []retry.Attempt{{Number: 1, Err: io.EOF}}}
	}
	t.Run("it is what Do returns", func(t *testing.T) {
		for _, p := range []retry.Policy{everySecond(2), {MaxAttempts: 2, MaxHint: minute, Name: "named"}} {
			for _, fail := range []error{errFlaky, retry.Permanent(errFlaky), retry.After(2*minute, errFlaky), retry.After(2*hour, errFlaky)} {
				inBubble(t, fail.Error(), func(t *testing.T) {
					failed := must[*retry.Error](t, retry.Do(t.Context(), p, failsWith(fail)))
					require.Equal(t, failed, p.NewError(t.Context(), failed.Outcome, failed.Last))
				})
			}
		}
	})
	t.Run("the cause is the caller's, for the two endings that are", func(t *testing.T) {
		why := errors.New("why")
		for reason := retry.TerminalError; reason <= retry.CallerCanceled; reason++ {
			e := retry.Policy{}.NewError(canceledBy(why), ended(0, reason), io.EOF)
			want := reason == retry.CallerCanceled || reason == retry.DeadlinePassed
			require.Equal(t, want, e.Cause() == why, reason)
			require.Equal(t, want, errors.Is(e, why), reason)
		}
	})
	t.Run("a deadline that the context has not noticed has the usual cause", func(t *testing.T) {
		e := retry.Policy{}.NewError(t.Context(), ended(retry.Expired, retry.DeadlinePassed), io.EOF)
		require.Equal(t, context.DeadlineExceeded, e.Cause())
		require.True(t, e.Timeout())
	})
	t.Run("without the caller's context a cancellation has no cause, and is one all the same", func(t *testing.T) {
		for _, e := range []*retry.Error{
			{Outcome: ended(retry.Canceled, retry.CallerCanceled)},
			retry.Policy{}.NewError(noContext, ended(retry.Canceled, retry.CallerCanceled), nil),
		} {
			require.NoError(t, e.Cause())
			require.ErrorIs(t, e, context.Canceled)
			require.Equal(t, "retry: gave up after 2 attempts in 1s (caller_canceled)", e.Error())
		}
	})
}

func TestTimeout(t *testing.T) {
	last := func(err error) *retry.Error {
		return &retry.Error{Outcome: retry.Outcome{Reason: retry.AttemptsExhausted}, Last: err}
	}
	for _, row := range []struct {
		name string
		err  *retry.Error
		want bool
	}{
		{"a net.Error that is a timeout", last(&net.DNSError{IsTimeout: true}), true},
		{"a net.Error that is none", last(&net.DNSError{IsNotFound: true}), false},
		{"a wrapped net.Error that is a timeout", last(fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: &net.DNSError{IsTimeout: true}})), true},
		{"a wrapped net.Error that is none", last(fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: io.EOF})), false},
		{"an attempt's timeout", last(retryshell.MarkTimeout(context.Canceled)), true},
		{"any other error", last(io.EOF), false},
		{"no error", last(nil), false},
		{"a nested run that timed out", last(last(context.DeadlineExceeded)), true},
		{"a nested run that did not", last(last(io.EOF)), false},
		{"a deadline that has passed, whatever came last", &retry.Error{Outcome: retry.Outcome{Reason: retry.DeadlinePassed}, Last: io.EOF}, true},
		{"a deadline too near", &retry.Error{Outcome: retry.Outcome{Reason: retry.DeadlineTooNear}, Last: io.EOF}, false},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.err.Timeout()) })
	}
}

func TestOutcomeText(t *testing.T) {
	require.Equal(t, "succeeded after 3 attempts in 1.2s", retry.Outcome{Policy: "p", Status: retry.Succeeded, Attempts: 3, Elapsed: 1200 * ms}.String())
	require.Equal(t, "dead_letter (terminal_error) after 1 attempt in 0s",
		fmt.Sprint(retry.Outcome{Status: retry.DeadLettered, Reason: retry.TerminalError, Attempts: 1}))
}

func TestErrorParts(t *testing.T) {
	notFound := &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}
	t.Run("Unwrap gives Reason, Last and Cause, as far as they are set", func(t *testing.T) {
		e := retry.Policy{}.NewError(canceledBy(io.EOF), retry.Outcome{Reason: retry.CallerCanceled}, notFound)
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
		outer := retry.Policy{}.NewError(canceledBy(inner), retry.Outcome{Reason: retry.CallerCanceled}, fmt.Errorf("x: %w", inner))
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
		require.NoError(t, none.Cause())
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
	for name, in := range map[string]string{"records every failed attempt": "", "records every failed attempt, the first too, behind a gate": "Gate"} {
		inBubble(t, name, func(t *testing.T) {
			start := time.Now()
			calls := 0
			boom := []error{io.EOF, retry.After(9*sec, io.ErrNoProgress), retry.Permanent(io.ErrShortWrite)}
			p := calling(func() {}, in, retry.Policy{Name: "named", Backoff: retry.Backoff{Base: sec}})
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
	}
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
	// collect collects the events of one run.
	collect := func(p *retry.Policy) *[]retry.Event {
		events := new([]retry.Event)
		p.Observe = func(_ context.Context, e retry.Event) { *events = append(*events, e) }
		return events
	}
	inBubble(t, "a first-try success is one final event", func(t *testing.T) {
		p := retry.Policy{Name: "named"}
		events := collect(&p)
		require.NoError(t, retry.Do(t.Context(), p, func(context.Context) error { spend(sec); return nil }))
		require.Equal(t, []retry.Event{{Policy: "named", Elapsed: sec, Decision: succeeded,
			Outcome: &retry.Outcome{Policy: "named", Status: retry.Succeeded, Attempts: 1, Elapsed: sec}}}, *events)
	})
	inBubble(t, "each failed attempt is observed before its wait, and the end once", func(t *testing.T) {
		start := time.Now()
		var when []time.Duration
		var events []retry.Event
		var final []bool
		p := everySecond(3)
		p.Observe = func(_ context.Context, e retry.Event) {
			when, events, final = append(when, time.Since(start)), append(events, e), append(final, e.Final())
		}
		failed := must[*retry.Error](t, retry.Do(t.Context(), p, failing))
		require.Equal(t, []time.Duration{0, sec, 2 * sec, 2 * sec}, when)
		require.Equal(t, []retry.Event{
			{Attempt: failed.History[0], Decision: waiting(sec)},
			{Elapsed: sec, Attempt: failed.History[1], Decision: waiting(sec)},
			{Elapsed: 2 * sec, Attempt: failed.History[2], Decision: exhausted},
			{Elapsed: 2 * sec, Decision: exhausted, Outcome: &failed.Outcome, Err: failed},
		}, events)
		require.Equal(t, []bool{false, false, false, true}, final)
	})
	inBubble(t, "Elapsed of an attempt ends with it, and that of the outcome with the run, whatever time its judge takes", func(t *testing.T) {
		for _, class := range []retry.Class{retry.Unknown, retry.Terminal} {
			p := retry.Policy{MaxAttempts: 1, Classify: func(error) retry.Class { spend(sec); return class }}
			events := collect(&p)
			failed := must[*retry.Error](t, retry.Do(t.Context(), p, lasting(ms)))
			require.Equal(t, []time.Duration{ms, ms}, []time.Duration{(*events)[0].Elapsed, failed.History[0].Duration})
			require.Equal(t, []time.Duration{sec + ms, sec + ms, sec + ms},
				[]time.Duration{(*events)[1].Elapsed, (*events)[1].Outcome.Elapsed, failed.Elapsed})
		}
	})
	inBubble(t, "what takes long at the last failure is a part of the run", func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 1, Observe: func(_ context.Context, e retry.Event) {
			if !e.Final() {
				spend(3 * sec)
			}
		}}
		require.Equal(t, 3*sec, must[*retry.Error](t, retry.Do(t.Context(), p, failing)).Elapsed)
	})
	inBubble(t, "a success after failures has them in its history, and its last attempt in Elapsed", func(t *testing.T) {
		p := everySecond(9)
		events := collect(&p)
		fails := failTimes(2)
		require.NoError(t, retry.Do(t.Context(), p, func(ctx context.Context) error { spend(minute); return fails(ctx) }))
		require.Equal(t, retry.Event{Elapsed: 3*minute + 2*sec, Decision: succeeded, Outcome: &retry.Outcome{
			Status: retry.Succeeded, Attempts: 3, Elapsed: 3*minute + 2*sec,
			History: []retry.Attempt{(*events)[0].Attempt, (*events)[1].Attempt},
		}}, (*events)[2])
	})
	for _, in := range []string{"Classify", "Rand", "Pay"} {
		inBubble(t, "a retry that is forbidden by a cancel in "+in+" is never announced", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p := everySecond(3)
			p.Jitter = retry.FullJitter
			p = calling(cancel, in, p)
			events := collect(&p)
			requireEnd(t, retry.Do(ctx, p, failing), canceled, 1)
			require.Len(t, *events, 2)
			require.Equal(t, ending(canceled), ending((*events)[0].Decision))
		})
	}
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
			events := collect(&p)
			requireEnd(t, retry.Do(deadline, p, failing), want, 1)
			require.Len(t, *events, 2)
			require.Equal(t, want, (*events)[0].Decision)
			require.Equal(t, want, (*events)[1].Decision)
		}
	})
	inBubble(t, "a run without an attempt is observed too", func(t *testing.T) {
		var p retry.Policy
		events := collect(&p)
		failed := requireEnd(t, retry.Do(canceledBy(io.EOF), p, failing), canceled, 0)
		require.Equal(t, []retry.Event{{Decision: ending(canceled), Outcome: &failed.Outcome, Err: failed}}, *events)
	})
	inBubble(t, "it gets the caller's context, and a copy of the history", func(t *testing.T) {
		p := everySecond(2)
		p.AttemptTimeout = minute
		p.Observe = func(ctx context.Context, e retry.Event) {
			require.Same(t, t.Context(), ctx)
			if e.Final() {
				e.Outcome.History[0].Err = io.EOF
				e.Outcome.Attempts = 99
			}
		}
		failed := requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 2)
		require.Same(t, errFlaky, failed.History[0].Err)
	})
}

// canceledBy returns a context that was canceled with the given cause.
func canceledBy(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}
