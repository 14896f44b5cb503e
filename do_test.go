package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

var errFlaky = errors.New("flaky")

// succeed is the cheapest fn there is, so that what is measured is the library.
//
//go:noinline
func succeed(context.Context) error { return nil }

// atOnce retries without waiting, five attempts in all.
var atOnce = retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Delays: []time.Duration{0}}}

// every second, fixed.
func everySecond(attempts int) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Mode: retry.Fixed, Base: sec}}
}

// failTimes fails n times, then succeeds.
func failTimes(n int) func(context.Context) error {
	return func(context.Context) error {
		if n--; n >= 0 {
			return errFlaky
		}
		return nil
	}
}

// inBubble runs f in virtual time.
func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// spend lets virtual time pass, as an fn that takes that long.
func spend(d time.Duration) { <-time.After(d) }

// requireEnd requires that err is an *Error with the given ending and number of attempts, and returns it.
func requireEnd(t *testing.T, err error, want retry.Decision, attempts int) *retry.Error {
	t.Helper()
	var failed *retry.Error
	require.ErrorAs(t, err, &failed)
	require.Same(t, failed, err, "the *Error itself, not wrapped")
	require.Equal(t, ending(want), retry.Decision{Status: failed.Status, Reason: failed.Reason})
	require.Equal(t, attempts, failed.Attempts)
	require.ErrorIs(t, err, failed.Reason)
	return failed
}

func TestDoSucceeds(t *testing.T) {
	inBubble(t, "at the first try without a wait", func(t *testing.T) {
		start := time.Now()
		require.NoError(t, retry.Do(t.Context(), retry.Policy{}, failTimes(0)))
		require.Zero(t, time.Since(start))
	})
	inBubble(t, "after two failures and their waits", func(t *testing.T) {
		start := time.Now()
		require.NoError(t, retry.Do(t.Context(), retry.Policy{}, failTimes(2)))
		require.Equal(t, 15*sec, time.Since(start))
	})
	inBubble(t, "after waits of 1ns, which are waits", func(t *testing.T) {
		start := time.Now()
		p := retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}
		require.NoError(t, retry.Do(t.Context(), p, failTimes(4)))
		require.Equal(t, 4*time.Nanosecond, time.Since(start))
	})
	inBubble(t, "with the last attempt", func(t *testing.T) {
		start := time.Now()
		require.NoError(t, retry.Do(t.Context(), everySecond(4), failTimes(3)))
		require.Equal(t, 3*sec, time.Since(start))
	})
	inBubble(t, "late: a success after the deadline, the TTL and a cancel is a success", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), sec)
		p := everySecond(3)
		p.TTL, p.AttemptTimeout = sec, sec
		require.NoError(t, retry.Do(ctx, p, func(context.Context) error {
			spend(minute)
			cancel()
			return nil
		}))
	})
	inBubble(t, "with a value that is not an error, whatever it is", func(t *testing.T) {
		status, err := retry.DoValue(t.Context(), retry.Policy{}, func(context.Context) (int, error) { return 500, nil })
		require.NoError(t, err)
		require.Equal(t, 500, status)
	})
}

func TestDoGivesUp(t *testing.T) {
	inBubble(t, "when the attempts are used up, and not before", func(t *testing.T) {
		start, calls := time.Now(), 0
		err := retry.Do(t.Context(), everySecond(3), func(context.Context) error {
			calls++
			return fmt.Errorf("try %d", calls)
		})
		failed := requireEnd(t, err, exhausted, 3)
		require.Equal(t, 2*sec, time.Since(start), "no wait after the last attempt")
		require.EqualError(t, failed.Last, "try 3")
		require.NoError(t, failed.Cause())
		require.EqualError(t, err, "retry: gave up after 3 attempts in 2s (attempts_exhausted): try 3")
	})
	inBubble(t, "at once on a terminal error, whatever attempts are left", func(t *testing.T) {
		start := time.Now()
		err := retry.Do(t.Context(), retry.Policy{}, func(context.Context) error { return retry.Permanent(io.EOF) })
		requireEnd(t, err, terminal, 1)
		require.ErrorIs(t, err, io.EOF)
		require.Zero(t, time.Since(start))
	})
	inBubble(t, "at once when disabled, as Failed", func(t *testing.T) {
		start := time.Now()
		requireEnd(t, retry.Do(t.Context(), retry.Policy{Disabled: true}, failing), disabled, 1)
		require.Zero(t, time.Since(start))
	})
	inBubble(t, "never, when unlimited, however many attempts it takes", func(t *testing.T) {
		p := everySecond(retry.Unlimited)
		start := time.Now()
		require.NoError(t, retry.Do(t.Context(), p, failTimes(10_000)))
		require.Equal(t, 10_000*sec, time.Since(start))
	})
	inBubble(t, "after every attempt timed out: attempt timeouts are retried", func(t *testing.T) {
		p := everySecond(4)
		p.AttemptTimeout = 2 * sec
		start := time.Now()
		err := retry.Do(t.Context(), p, untilDone)
		requireEnd(t, err, exhausted, 4)
		require.Equal(t, 4*2*sec+3*sec, time.Since(start))
		require.ErrorIs(t, err, context.DeadlineExceeded, "as the last error does")
	})
}

func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// noContext is what a caller passes that forgot it.
var noContext context.Context

func TestDoRefuses(t *testing.T) {
	refused := func(t *testing.T, err error, text string) {
		t.Helper()
		require.EqualError(t, err, text)
		var failed *retry.Error
		require.False(t, errors.As(err, &failed), "nothing ran, so it is not an *Error")
	}
	t.Run("a nil fn", func(t *testing.T) {
		refused(t, retry.Do(t.Context(), retry.Policy{}, nil), "retry: Do.fn <nil> is not a function")
	})
	t.Run("a nil fn of DoValue and Wrap", func(t *testing.T) {
		_, err := retry.DoValue[int](t.Context(), retry.Policy{}, nil)
		refused(t, err, "retry: Do.fn <nil> is not a function")
		_, err = retry.Wrap[int, int](retry.Policy{}, nil)(t.Context(), 1)
		refused(t, err, "retry: Do.fn <nil> is not a function")
	})
	t.Run("a nil ctx", func(t *testing.T) {
		refused(t, retry.Do(noContext, retry.Policy{}, failing), "retry: Do.ctx <nil> is not a context")
	})
	t.Run("a context made from a nil one", func(t *testing.T) {
		for _, ctx := range []context.Context{retry.OneAttempt(noContext), retryshell.WithRemoteAttempt(noContext, 2),
			retryshell.WithAttempt(noContext, retry.Policy{}, retry.Progress{Attempt: 1}), retryshell.WithAttemptOf(noContext, t.Context())} {
			require.True(t, ctx == nil, "%v", ctx)
		}
		refused(t, retry.Do(retry.OneAttempt(noContext), retry.Policy{}, failing), "retry: Do.ctx <nil> is not a context")
	})
	t.Run("all that is wrong at once", func(t *testing.T) {
		refused(t, retry.Do(noContext, retry.Policy{TTL: -1}, nil),
			"retry: Policy.TTL -1ns is negative; Do.ctx <nil> is not a context; Do.fn <nil> is not a function")
	})
	t.Run("a policy that does not validate, and Observe is not called", func(t *testing.T) {
		p := retry.Policy{TTL: -1, Observe: func(context.Context, retry.Event) { t.Error("observed") }}
		refused(t, retry.Do(t.Context(), p, failing), "retry: Policy.TTL -1ns is negative")
	})
}

func TestDeadline(t *testing.T) {
	inBubble(t, "a wait that would end after the deadline is not begun", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*sec)
		defer cancel()
		start := time.Now()
		err := retry.Do(ctx, retry.Policy{Backoff: retry.Backoff{Base: hour}}, failing)
		failed := requireEnd(t, err, tooNear, 1)
		require.Zero(t, time.Since(start))
		require.Same(t, errFlaky, failed.Last)
		require.NoError(t, failed.Cause())
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the deadline has not passed")
	})
	for _, row := range []struct {
		name     string
		deadline time.Duration
		want     retry.Decision
		attempts int
		elapsed  time.Duration
	}{
		{"a wait that would end just before the deadline is begun", 3*sec + 1, tooNear, 4, 3 * sec},
		{"a wait that would end exactly at the deadline is not begun", 3 * sec, tooNear, 3, 2 * sec},
		{"a wait that would end just after the deadline is not begun", 3*sec - 1, tooNear, 3, 2 * sec},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
			defer cancel()
			start := time.Now()
			requireEnd(t, retry.Do(ctx, everySecond(9), failing), row.want, row.attempts)
			require.Equal(t, row.elapsed, time.Since(start))
		})
	}
	inBubble(t, "too near matches DeadlineExceeded if the last error does", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*sec)
		defer cancel()
		p := retry.Policy{Backoff: retry.Backoff{Base: hour}, AttemptTimeout: sec}
		err := retry.Do(ctx, p, untilDone)
		requireEnd(t, err, tooNear, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	inBubble(t, "passed during the attempt, it is DeadlinePassed, with its cause", func(t *testing.T) {
		why := errors.New("the page is closed at 10")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*sec, why)
		defer cancel()
		err := retry.Do(ctx, retry.Policy{}, func(ctx context.Context) error { <-ctx.Done(); return errFlaky })
		failed := requireEnd(t, err, passed, 1)
		require.Same(t, why, failed.Cause())
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errFlaky)
		require.NotErrorIs(t, err, context.Canceled)
	})
	inBubble(t, "a deadline later than the longest Duration is far away", func(t *testing.T) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(longest).Add(hour))
		defer cancel()
		start := time.Now()
		requireEnd(t, retry.Do(ctx, everySecond(3), lasting(sec, sec, sec)), exhausted, 3)
		require.Equal(t, 5*sec, time.Since(start))
	})
	inBubble(t, "passed before the call, there is no attempt", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		err := retry.Do(ctx, retry.Policy{}, func(context.Context) error { t.Error("called"); return nil })
		failed := requireEnd(t, err, passed, 0)
		require.NoError(t, failed.Last)
		require.EqualError(t, err, "retry: gave up after 0 attempts in 0s (deadline_passed): context deadline exceeded")
	})
	inBubble(t, "passed by the clock, it is DeadlinePassed before the context has noticed", func(t *testing.T) {
		ctx := lateContext{t.Context(), time.Now().Add(sec)}
		err := retry.Do(ctx, atOnce, func(context.Context) error { spend(sec); return errFlaky })
		failed := requireEnd(t, err, passed, 1)
		require.Equal(t, context.DeadlineExceeded, failed.Cause())
	})
	inBubble(t, "a deadline that no Deadline method returns cuts the wait all the same", func(t *testing.T) {
		inner, cancel := context.WithTimeout(t.Context(), 3*sec/2)
		defer cancel()
		start := time.Now()
		err := retry.Do(secretive{inner}, everySecond(9), failing)
		requireEnd(t, err, passed, 2)
		require.Equal(t, 3*sec/2, time.Since(start))
	})
}

// lateContext has a deadline that its Err does not know yet.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// secretive keeps its deadline to itself.
type secretive struct{ context.Context }

func (secretive) Deadline() (time.Time, bool) { return time.Time{}, false }

func TestCancel(t *testing.T) {
	why := errors.New("shutting down")
	inBubble(t, "during a wait it returns at that instant, with cause and last error", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(1234*ms, func() { cancel(why) })
		start := time.Now()
		err := retry.Do(ctx, retry.Policy{Backoff: retry.Backoff{Base: hour}}, failing)
		failed := requireEnd(t, err, canceled, 1)
		require.Equal(t, 1234*ms, time.Since(start))
		require.Equal(t, 1234*ms, failed.Elapsed)
		require.Same(t, why, failed.Cause())
		require.Same(t, errFlaky, failed.Last)
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, errFlaky)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "retry: gave up after 1 attempt in 1.234s (caller_canceled): flaky")
	})
	inBubble(t, "during an attempt it ends the run with what the attempt returned", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := retry.Do(ctx, retry.Policy{}, func(ctx context.Context) error {
			cancel(why)
			<-ctx.Done()
			return io.ErrUnexpectedEOF
		})
		failed := requireEnd(t, err, canceled, 1)
		require.Same(t, io.ErrUnexpectedEOF, failed.Last)
	})
	inBubble(t, "during the longest wait there is, it returns at that instant too", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(sec, cancel)
		p := retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: longest}}
		start := time.Now()
		requireEnd(t, retry.Do(ctx, p, failing), canceled, 1)
		require.Equal(t, sec, time.Since(start))
	})
	inBubble(t, "before the call there is no attempt", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		err := retry.Do(ctx, retry.Policy{}, func(context.Context) error { t.Error("called"); return nil })
		failed := requireEnd(t, err, canceled, 0)
		require.Empty(t, failed.History)
		require.EqualError(t, err, "retry: gave up after 0 attempts in 0s (caller_canceled): shutting down")
	})
	inBubble(t, "it goes before every other ending", func(t *testing.T) {
		for _, p := range []retry.Policy{{Disabled: true}, {MaxAttempts: 1}, {TTL: 1}} {
			ctx, cancel := context.WithCancel(t.Context())
			requireEnd(t, retry.Do(ctx, p, func(context.Context) error { cancel(); return retry.Permanent(errFlaky) }), canceled, 1)
		}
	})
	inBubble(t, "it beats a timer that fires with it", func(t *testing.T) {
		ctx := silentContext{t.Context(), time.Now().Add(sec)} // canceled when the timer fires, which wins the select
		requireEnd(t, retry.Do(ctx, everySecond(9), failing), canceled, 1)
	})
	inBubble(t, "between attempts without a wait it ends the run too", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := atOnce
		p.Observe = func(context.Context, retry.Event) { cancel() }
		requireEnd(t, retry.Do(ctx, p, failing), canceled, 1)
	})
	inBubble(t, "a context that ends with an error of its own is a canceled one", func(t *testing.T) {
		ctx := brokenContext{t.Context()}
		requireEnd(t, retry.Do(ctx, retry.Policy{}, failing), canceled, 0)
	})
}

// silentContext is canceled at an instant, but does not close Done.
type silentContext struct {
	context.Context
	end time.Time
}

func (silentContext) Done() <-chan struct{} { return nil }
func (c silentContext) Err() error {
	if time.Now().Before(c.end) {
		return nil
	}
	return context.Canceled
}

// brokenContext is done from the first.
type brokenContext struct{ context.Context }

func (brokenContext) Err() error { return io.ErrClosedPipe }

func TestTTL(t *testing.T) {
	for _, row := range []struct {
		name     string
		ttl      time.Duration
		attempts int
		elapsed  time.Duration
	}{
		{"an attempt that would start just before it starts", 3*sec + 1, 4, 3 * sec},
		{"an attempt that would start exactly at it starts", 3 * sec, 4, 3 * sec},
		{"an attempt that would start just after it ends the run at once", 3*sec - 1, 3, 2 * sec},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			p := everySecond(9)
			p.TTL = row.ttl
			start := time.Now()
			err := retry.Do(t.Context(), p, failing)
			requireEnd(t, err, tooOld, row.attempts)
			require.Equal(t, row.elapsed, time.Since(start))
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		})
	}
	inBubble(t, "an attempt under way is not cut by it", func(t *testing.T) {
		p := everySecond(9)
		p.TTL = sec
		start := time.Now()
		err := retry.Do(t.Context(), p, func(ctx context.Context) error {
			_, ok := ctx.Deadline()
			require.False(t, ok)
			spend(minute)
			return errFlaky
		})
		requireEnd(t, err, tooOld, 1)
		require.Equal(t, minute, time.Since(start))
	})
	inBubble(t, "retries without a wait end with it too", func(t *testing.T) {
		p := atOnce
		p.TTL = 5 * sec
		start := time.Now()
		requireEnd(t, retry.Do(t.Context(), p, lasting(2*sec, 3*sec, 0, 1)), tooOld, 4)
		require.Equal(t, 5*sec+1, time.Since(start))
		p.MaxAttempts = retry.Unlimited
		start = time.Now()
		requireEnd(t, retry.Do(t.Context(), p, lasting(6*sec)), tooOld, 1)
		require.Equal(t, 6*sec, time.Since(start))
	})
	inBubble(t, "it counts from the call, what Observe takes included", func(t *testing.T) {
		p := everySecond(9)
		p.TTL = 2 * sec
		p.Observe = func(context.Context, retry.Event) { spend(sec + 1) }
		start := time.Now()
		requireEnd(t, retry.Do(t.Context(), p, failing), tooOld, 1)
		require.Equal(t, 2*sec+2, time.Since(start), "observed, found too late, observed: the wait is not begun")
	})
	inBubble(t, "no wait is begun that is too late because Classify took its time, and nothing else did", func(t *testing.T) {
		p := everySecond(9)
		p.TTL = 10 * sec
		p.Classify = func(error) retry.Class { spend(6 * sec); return retry.Unknown }
		start := time.Now()
		failed := requireEnd(t, retry.Do(t.Context(), p, failing), tooOld, 2) // at 0s, and at 6s + 1s; 13s is too late
		require.Equal(t, 13*sec, time.Since(start))
		require.Equal(t, 13*sec, failed.Elapsed)
		require.Zero(t, failed.History[1].Duration)
	})
	for name, slow := range map[string]func(*retry.Policy, func()){
		"Pay": func(p *retry.Policy, f func()) {
			p.Pay = func(context.Context, retry.Decision) bool { f(); return true }
		},
		"Classify": func(p *retry.Policy, f func()) { p.Classify = func(error) retry.Class { f(); return retry.Unknown } },
		"Rand":     func(p *retry.Policy, f func()) { p.Rand = func() float64 { f(); return 0.5 } },
		"Observe":  func(p *retry.Policy, f func()) { p.Observe = func(context.Context, retry.Event) { f() } },
	} {
		inBubble(t, "no wait is begun that is too late because "+name+" took its time", func(t *testing.T) {
			first := true
			take := func() {
				if first {
					spend(6 * sec)
				}
				first = false
			}
			p := retry.Policy{TTL: 10 * sec, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 5 * sec, Jitter: retry.RatioJitter},
				Rand: func() float64 { return 0.5 }}
			slow(&p, take)
			start := time.Now()
			failed := requireEnd(t, retry.Do(t.Context(), p, failing), tooOld, 1)
			require.Equal(t, 6*sec, time.Since(start))
			require.Equal(t, 6*sec, failed.Elapsed)
			require.Zero(t, failed.History[0].Duration)

			ctx, cancel := context.WithTimeout(t.Context(), 10*sec)
			defer cancel()
			p.TTL, first, start = 0, true, time.Now()
			requireEnd(t, retry.Do(ctx, p, failing), tooNear, 1)
			require.Equal(t, 6*sec, time.Since(start))

			ctx, cancel = context.WithTimeout(t.Context(), 6*sec)
			defer cancel()
			first = true
			p.Base = 0
			require.ErrorIs(t, retry.Do(ctx, p, failing), context.DeadlineExceeded, "it has passed meanwhile")
		})
	}
}

func TestHint(t *testing.T) {
	for _, row := range []struct {
		name    string
		hint    time.Duration
		want    retry.Decision
		elapsed time.Duration
	}{
		{"below the backoff's delay changes nothing", 500 * ms, exhausted, sec},
		{"above it is waited for", minute, exhausted, minute},
		{"of MaxHint is waited for", 2 * minute, exhausted, 2 * minute},
		{"beyond MaxHint ends the run", 2*minute + 1, tooLong, 0},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			p := everySecond(2)
			p.MaxHint = 2 * minute
			start := time.Now()
			err := retry.Do(t.Context(), p, func(context.Context) error { return retry.After(row.hint, errFlaky) })
			attempts := 2
			if row.want == tooLong {
				attempts = 1
			}
			requireEnd(t, err, row.want, attempts)
			require.Equal(t, row.elapsed, time.Since(start))
		})
	}
	inBubble(t, "does not reset the exponent nor feed decorrelated jitter", func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 3, Rand: func() float64 { return 0.5 },
			Backoff: retry.Backoff{Base: sec, Jitter: retry.DecorrelatedJitter}}
		calls := 0
		start := time.Now()
		err := retry.Do(t.Context(), p, func(context.Context) error {
			if calls++; calls == 1 {
				return retry.After(minute, errFlaky)
			}
			return errFlaky
		})
		failed := requireEnd(t, err, exhausted, 3)
		// First delay 1+½(3−1)=2s, so 1m + ½·2s waited; then 1+½(3·2−1)=3.5s.
		require.Equal(t, 61*sec, failed.History[0].Delay)
		require.Equal(t, 3500*ms, failed.History[1].Delay)
		require.Equal(t, 64500*ms, time.Since(start))
	})
}

func TestGate(t *testing.T) {
	// closedFor defers by the given times, one at each question, then says go.
	closedFor := func(deferrals ...time.Duration) (gate func(context.Context) time.Duration, asked *int) {
		asked = new(int)
		return func(context.Context) time.Duration {
			if *asked++; *asked <= len(deferrals) {
				return deferrals[*asked-1]
			}
			return 0
		}, asked
	}
	inBubble(t, "defers the first attempt", func(t *testing.T) {
		p := everySecond(3)
		gate, asked := closedFor(7 * sec)
		p.Gate = gate
		start := time.Now()
		require.NoError(t, retry.Do(t.Context(), p, failTimes(0)))
		require.Equal(t, 7*sec, time.Since(start))
		require.Equal(t, 2, *asked, "it is asked again after the wait")
	})
	inBubble(t, "defers a retry after its own wait", func(t *testing.T) {
		p := everySecond(3)
		gate, asked := closedFor(0, 3*sec, 4*sec)
		p.Gate = gate
		start := time.Now()
		require.NoError(t, retry.Do(t.Context(), p, failTimes(1)))
		require.Equal(t, sec+3*sec+4*sec, time.Since(start))
		require.Equal(t, 4, *asked)
	})
	inBubble(t, "0 and less mean go", func(t *testing.T) {
		p := everySecond(3)
		p.Gate = func(context.Context) time.Duration { return -hour }
		start := time.Now()
		require.NoError(t, retry.Do(t.Context(), p, failTimes(0)))
		require.Zero(t, time.Since(start))
	})
	for _, row := range []struct {
		name     string
		policy   retry.Policy
		deadline time.Duration
		deferral time.Duration
		want     retry.Decision
		attempts int
	}{
		{"to exactly the TTL is waited for", retry.Policy{TTL: 10 * sec}, hour, 10 * sec, exhausted, 1},
		{"past the TTL ends the run at once", retry.Policy{TTL: 10 * sec}, hour, 10*sec + 1, tooOld, 0},
		{"to the deadline ends the run at once", retry.Policy{}, 10 * sec, 10 * sec, tooNear, 0},
		{"before the deadline is waited for", retry.Policy{}, 10 * sec, 10*sec - 1, exhausted, 1},
		{"past both names the TTL", retry.Policy{TTL: sec}, sec, hour, tooOld, 0},
		{"as long as there is ends the run at once", retry.Policy{TTL: longest}, hour, longest, tooNear, 0},
	} {
		inBubble(t, "a deferral "+row.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
			defer cancel()
			p := row.policy
			p.MaxAttempts = 1
			p.Gate, _ = closedFor(row.deferral)
			start := time.Now()
			requireEnd(t, retry.Do(ctx, p, failing), row.want, row.attempts)
			if row.attempts == 0 {
				require.Zero(t, time.Since(start))
			} else {
				require.Equal(t, row.deferral, time.Since(start))
			}
		})
	}
	inBubble(t, "between attempts, past the TTL, ends the run with the last error", func(t *testing.T) {
		p := everySecond(3)
		p.TTL = minute
		p.Gate, _ = closedFor(0, hour)
		start := time.Now()
		err := retry.Do(t.Context(), p, failing)
		failed := requireEnd(t, err, tooOld, 1)
		require.Same(t, errFlaky, failed.Last)
		require.Equal(t, sec, time.Since(start), "the wait that nothing forbade is over, the gate's is not begun")
	})
	inBubble(t, "that takes its time is followed by a look at caller and TTL", func(t *testing.T) {
		p := everySecond(3)
		p.TTL = sec
		p.Gate = func(context.Context) time.Duration { spend(minute); return 0 }
		requireEnd(t, retry.Do(t.Context(), p, failing), tooOld, 0)
		ctx, cancel := context.WithCancel(t.Context())
		p.Gate = func(context.Context) time.Duration { cancel(); return 0 }
		requireEnd(t, retry.Do(ctx, p, failing), canceled, 0)
	})
	inBubble(t, "is not asked for a caller that is done", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := everySecond(3)
		p.Gate = func(context.Context) time.Duration { t.Error("asked"); return 0 }
		requireEnd(t, retry.Do(ctx, p, failing), canceled, 0)
	})
	inBubble(t, "a cancel during its deferral ends the run at that instant", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(sec, cancel)
		p := everySecond(3)
		p.Gate, _ = closedFor(hour)
		start := time.Now()
		requireEnd(t, retry.Do(ctx, p, failing), canceled, 0)
		require.Equal(t, sec, time.Since(start))
	})
	inBubble(t, "applies to a disabled policy, with the caller's context", func(t *testing.T) {
		type key struct{}
		p := retry.Policy{Disabled: true}
		asked := 0
		p.Gate = func(ctx context.Context) time.Duration {
			require.Equal(t, "v", ctx.Value(key{}))
			asked++
			return 0
		}
		requireEnd(t, retry.Do(context.WithValue(t.Context(), key{}, "v"), p, failing), disabled, 1)
		require.Equal(t, 1, asked)
	})
}

func TestNestedRuns(t *testing.T) {
	inner := func(reason error) func(context.Context) error {
		return func(ctx context.Context) error {
			return retry.Do(ctx, retry.Policy{Name: "inner", MaxAttempts: 1}, func(context.Context) error { return reason })
		}
	}
	inBubble(t, "an inner failure is an ordinary, retryable error, whatever ended it", func(t *testing.T) {
		for _, err := range []error{retry.Permanent(errFlaky), context.Canceled, retry.After(9*hour, errFlaky)} {
			failed := requireEnd(t, retry.Do(t.Context(), atOnce, inner(err)), exhausted, 5)
			require.Equal(t, retry.Retryable, failed.History[0].Class)
		}
	})
	inBubble(t, "errors.Is for a Reason sees the outermost run only", func(t *testing.T) {
		err := retry.Do(t.Context(), atOnce, inner(retry.Permanent(errFlaky)))
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.NotErrorIs(t, err, retry.TerminalError)
		require.ErrorIs(t, err, errFlaky, "but the last error is reached")
		var reason retry.Reason
		require.ErrorAs(t, err, &reason)
		require.Equal(t, retry.AttemptsExhausted, reason)
		var failed *retry.Error
		require.ErrorAs(t, err, &failed)
		var nested *retry.Error
		require.ErrorAs(t, failed.Last, &nested, "the inner run is to be found in Last")
		require.Equal(t, "inner", nested.Policy)
		require.ErrorIs(t, failed.Last, retry.TerminalError)
	})
	inBubble(t, "an attempt timeout of the outer run is the inner run's deadline", func(t *testing.T) {
		outer := atOnce
		outer.AttemptTimeout = sec
		var ends []retry.Reason
		err := retry.Do(t.Context(), outer, func(ctx context.Context) error {
			err := retry.Do(ctx, retry.Policy{Backoff: retry.Backoff{Base: 1}}, untilDone)
			var failed *retry.Error
			require.ErrorAs(t, err, &failed)
			require.ErrorIs(t, err, retry.ErrAttemptTimeout)
			ends = append(ends, failed.Reason)
			return err
		})
		requireEnd(t, err, exhausted, 5)
		require.Equal(t, []retry.Reason{retry.DeadlinePassed, retry.DeadlinePassed, retry.DeadlinePassed, retry.DeadlinePassed,
			retry.DeadlinePassed}, ends)
	})
}

func TestDoValue(t *testing.T) {
	inBubble(t, "returns the value of the attempt that succeeded", func(t *testing.T) {
		value, err := retry.DoValue(t.Context(), atOnce, func(ctx context.Context) (string, error) {
			if n := retry.AttemptNumber(ctx); n < 3 {
				return fmt.Sprint("bad ", n), errFlaky
			}
			return "good", nil
		})
		require.NoError(t, err)
		require.Equal(t, "good", value)
	})
	inBubble(t, "returns the last attempt's value also on failure", func(t *testing.T) {
		value, err := retry.DoValue(t.Context(), atOnce, func(ctx context.Context) (int, error) {
			return retry.AttemptNumber(ctx), errFlaky
		})
		requireEnd(t, err, exhausted, 5)
		require.Equal(t, 5, value)
	})
	inBubble(t, "returns the zero value if nothing was attempted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		value, err := retry.DoValue(ctx, atOnce, func(context.Context) (int, error) { return 7, nil })
		requireEnd(t, err, canceled, 0)
		require.Zero(t, value)
	})
}

func TestWrap(t *testing.T) {
	inBubble(t, "gives each call a run of its own", func(t *testing.T) {
		calls := 0
		double := retry.Wrap(atOnce, func(ctx context.Context, n int) (string, error) {
			if calls++; retry.AttemptNumber(ctx) < 2 {
				return "", errFlaky
			}
			return fmt.Sprint(2 * n), nil
		})
		for n := range 3 {
			got, err := double(t.Context(), n)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(2*n), got)
		}
		require.Equal(t, 6, calls)
	})
}

func TestPanicAndGoexitPassThrough(t *testing.T) {
	inBubble(t, "a panic in any attempt is the caller's", func(t *testing.T) {
		for n := 1; n <= 5; n++ {
			seen := 0
			p := everySecond(9)
			p.Observe = func(_ context.Context, e retry.Event) {
				seen++
				require.Nil(t, e.Outcome, "nothing is reported as an end")
			}
			require.PanicsWithValue(t, "boom", func() {
				_ = retry.Do(t.Context(), p, func(ctx context.Context) error {
					if retry.AttemptNumber(ctx) == n {
						panic("boom")
					}
					return errFlaky
				})
			})
			require.Equal(t, n-1, seen)
		}
	})
	inBubble(t, "a panic ends the attempt's context", func(t *testing.T) {
		p := everySecond(9)
		p.AttemptTimeout = hour
		var kept context.Context
		require.Panics(t, func() {
			_ = retry.Do(t.Context(), p, func(ctx context.Context) error { kept = ctx; panic("boom") })
		})
		require.Equal(t, context.Canceled, kept.Err())
	})
	inBubble(t, "Goexit in any attempt ends the goroutine, and Do does not return", func(t *testing.T) {
		for n := 1; n <= 3; n++ {
			var wg sync.WaitGroup
			returned := false
			wg.Go(func() {
				_ = retry.Do(t.Context(), everySecond(9), func(ctx context.Context) error {
					if retry.AttemptNumber(ctx) == n {
						runtime.Goexit()
					}
					return errFlaky
				})
				returned = true
			})
			wg.Wait()
			require.False(t, returned)
		}
	})
	inBubble(t, "a panic in Observe, Gate, Classify or Rand propagates, without a final event", func(t *testing.T) {
		boom := func() { panic("boom") }
		for name, p := range map[string]retry.Policy{
			"Observe":  {Observe: func(context.Context, retry.Event) { boom() }},
			"Gate":     {Gate: func(context.Context) time.Duration { boom(); return 0 }},
			"Classify": {Classify: func(error) retry.Class { boom(); return 0 }},
			"Rand":     {Backoff: retry.Backoff{Jitter: retry.FullJitter}, Rand: func() float64 { boom(); return 0 }},
		} {
			if p.Observe == nil {
				p.Observe = func(_ context.Context, e retry.Event) { require.Nil(t, e.Outcome) }
			}
			require.PanicsWithValue(t, "boom", func() { _ = retry.Do(t.Context(), p, failing) }, name)
		}
	})
}

func TestDraw(t *testing.T) {
	p := retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}, Rand: func() float64 { return 0.25 }}
	require.Equal(t, 0.25, p.Draw())
	p.Jitter, p.Rand = retry.NoJitter, func() float64 { panic("drawn without need") }
	require.Zero(t, p.Draw())
}

func TestRand(t *testing.T) {
	inBubble(t, "is drawn once for each failed attempt that may wait", func(t *testing.T) {
		draws := 0
		p := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: sec, Jitter: retry.FullJitter},
			Rand: func() float64 { draws++; return 0.5 }}
		requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 4)
		require.Equal(t, 3, draws)
		requireEnd(t, retry.Do(t.Context(), p, func(context.Context) error { return retry.Permanent(errFlaky) }), terminal, 1)
		require.Equal(t, 3, draws)
	})
	inBubble(t, "is not drawn without jitter", func(t *testing.T) {
		p := everySecond(4)
		p.Rand = func() float64 { t.Error("drawn"); return 0 }
		requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 4)
	})
	inBubble(t, "that lies is clamped", func(t *testing.T) {
		for lie, want := range map[float64]time.Duration{-1: 0, 1: sec - 1, math.Inf(1): sec - 1} {
			p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: sec, Jitter: retry.FullJitter}, Rand: func() float64 { return lie }}
			start := time.Now()
			requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 2)
			require.Equal(t, want, time.Since(start))
		}
	})
	inBubble(t, "is chance by default, within the bounds", func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: hour, Jitter: retry.EqualJitter}}
		seen := map[time.Duration]bool{}
		for range 50 {
			failed := requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 2)
			delay := failed.History[0].Delay
			require.True(t, delay >= hour/2 && delay < hour, delay)
			seen[delay] = true
		}
		require.Greater(t, len(seen), 40)
	})
}

func TestAPolicyIsShared(t *testing.T) {
	p := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Delays: []time.Duration{0, 1}, Jitter: retry.EqualJitter},
		Budget: retry.NewBudget(retry.BudgetConfig{Burst: 1000, Initial: 1000})}
	before := fmt.Sprintf("%+v", p.Backoff)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if err := retry.Do(t.Context(), p, failTimes(2)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, before, fmt.Sprintf("%+v", p.Backoff), "the library never writes to it")
}

func TestAllocations(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	full := retry.NewBudget(retry.BudgetConfig{Initial: 10})
	checked := retry.Checked(func(context.Context) (int, error) { return 1, nil }, func(int) error { return nil })
	calls := 0
	failThree := func(context.Context) error {
		if calls++; calls%4 == 0 {
			return nil
		}
		return errFlaky
	}
	bare := testing.AllocsPerRun(100, func() {
		ctx, cancel := context.WithDeadline(ctx, time.Now().Add(hour))
		_ = succeed(ctx)
		cancel()
	})
	brief := retry.Backoff{Mode: retry.Fixed, Base: 50 * time.Microsecond}
	tenFailures := testing.AllocsPerRun(10, func() {
		_ = retry.Do(ctx, retry.Policy{MaxAttempts: 10, Backoff: brief}, failing)
	})
	var p retry.Policy
	observed := retry.Policy{Observe: func(context.Context, retry.Event) {}}
	for _, row := range []struct {
		name string
		most float64
		run  func()
	}{
		{"first-try success: 0", 0, func() { _ = retry.Do(ctx, p, succeed) }},
		{"first-try success with a full budget: 0", 0, func() { _ = retry.Do(ctx, retry.Policy{Budget: full}, succeed) }},
		{"first-try success that is observed: its Outcome", 1, func() { _ = retry.Do(ctx, observed, succeed) }},
		{"first-try success of DoValue: 0", 0, func() {
			_, _ = retry.DoValue(ctx, p, func(context.Context) (int, error) { return 1, nil })
		}},
		{"first-try success of a loop of Attempts: 0", 0, func() {
			var err error
			for ctx := range retry.Attempts(ctx, p, &err) {
				err = succeed(ctx)
			}
		}},
		{"first-try success that leaves a loop of Attempts: 0", 0, func() {
			var err error
			for range retry.Attempts(ctx, p, &err) {
				break
			}
		}},
		{"a mark of nil: 0", 0, func() {
			_ = errors.Join(retry.Permanent(nil), retry.Transient(nil), retry.Progressed(nil), retry.After(1, nil))
		}},
		{"first-try success of a checked function: 0", 0, func() { _, _ = retry.DoValue(ctx, p, checked) }},
		{"an attempt that no other follows: its context", 1, func() { _ = retry.Do(ctx, retry.Policy{MaxAttempts: 1}, succeed) }},
		{"an attempt timeout: what context.WithDeadline needs", bare, func() { _ = retry.Do(ctx, retry.Policy{AttemptTimeout: hour}, succeed) }},
		{"three failures then success without waits: one for the run, one for each retry, and one for the failures", 5, func() { _ = retry.Do(ctx, atOnce, failThree) }},
		{"twenty more failures with a wait each: one for each, one for a longer list of them, and no timer", tenFailures + 21, func() {
			_ = retry.Do(ctx, retry.Policy{MaxAttempts: 30, Backoff: brief}, failing)
		}},
		{"Delay: 0", 0, func() { _ = p.Delay(7) }},
		{"Jittered: 0", 0, func() { _ = retry.Backoff{Jitter: retry.RatioJitter}.Jittered(7, 0, 0.5) }},
		{"Decide: 0", 0, func() { _ = p.Decide(retry.Progress{Attempt: 3}, errFlaky, 0.5) }},
		{"Bounds: 0", 0, func() { _, _ = p.Bounds(7) }},
	} {
		t.Run(row.name, func(t *testing.T) { require.LessOrEqual(t, testing.AllocsPerRun(10, row.run), row.most) })
	}
}

func TestAGateThatDefersByANanosecondIsAskedAgain(t *testing.T) {
	inBubble(t, "before the first attempt and before a retry", func(t *testing.T) {
		asked := 0
		p := atOnce
		p.MaxAttempts = 3
		p.Gate = func(context.Context) time.Duration { asked++; return time.Duration(asked % 2) }
		start := time.Now()
		requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 3)
		require.Equal(t, 6, asked)
		require.Equal(t, 3*time.Nanosecond, time.Since(start))
	})
}

// panicking is a context whose Err panics if from is true, or returns true.
type panicking struct {
	context.Context
	from *bool
	when func() bool
}

func (c panicking) Err() error {
	if *c.from || c.when != nil && c.when() {
		panic("err")
	}
	return c.Context.Err()
}

func TestAContextWhoseErrPanicsCostsNoToken(t *testing.T) {
	for name, p := range map[string]retry.Policy{
		"while a retry is admitted": {},
		"after Pay":                 {Pay: func(context.Context, retry.Decision) bool { return true }},
		"after Observe":             {Observe: func(context.Context, retry.Event) {}},
		"after Gate":                {Gate: func(context.Context) time.Duration { return 0 }},
	} {
		inBubble(t, name, func(t *testing.T) {
			from, when := false, func() bool { return false }
			p.Backoff, p.Budget = retry.Backoff{Base: sec}, retry.NewBudget(retry.BudgetConfig{Initial: 1})
			switch pay, observe, gate := p.Pay, p.Observe, p.Gate; {
			case pay != nil:
				p.Pay = func(ctx context.Context, d retry.Decision) bool { from = true; return pay(ctx, d) }
			case observe != nil:
				p.Observe = func(ctx context.Context, e retry.Event) { from = true; observe(ctx, e) }
			case gate != nil:
				p.Gate = func(ctx context.Context) time.Duration { from = p.Budget.Tokens() == 0; return gate(ctx) }
			default:
				when = func() bool { return p.Budget.Tokens() == 0 }
			}
			require.PanicsWithValue(t, "err", func() { _ = retry.Do(panicking{t.Context(), &from, when}, p, failing) })
			require.Equal(t, 1.0, p.Budget.Tokens())
		})
	}
}

func TestContinueRefusesWhatDoRefuses(t *testing.T) {
	require.EqualError(t, retry.Policy{}.Continue(t.Context(), 0, nil, failing), "retry: Continue.err <nil> is not an error")
	require.Error(t, retry.Policy{MaxAttempts: -5}.Continue(t.Context(), 0, errFlaky, failing))
	require.Error(t, retry.Policy{}.Continue(t.Context(), 0, errFlaky, nil))
	var none context.Context
	require.Error(t, retry.Policy{}.Continue(none, 0, errFlaky, failing))
}

func ExamplePolicy_Continue() {
	call := func(context.Context) error { return nil }
	began := time.Now()
	err := errors.New("busy") // of an attempt that needed no run
	err = retry.Policy{Backoff: retry.Backoff{Base: time.Nanosecond}}.Continue(context.Background(), time.Since(began), err, call)
	fmt.Println(err)
	// Output: <nil>
}
