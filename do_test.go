package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	for _, row := range []struct {
		name     string
		policy   retry.Policy
		failures int
		want     time.Duration
	}{
		{"at the first try without a wait", retry.Policy{}, 0, 0},
		{"after two failures and their waits", retry.Policy{}, 2, 15 * sec},
		{"after waits of 1ns, which are waits", retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}, 4, 4},
		{"with the last attempt", everySecond(4), 3, 3 * sec},
		{"after any number of attempts, if they are unlimited", everySecond(retry.Unlimited), 10_000, 10_000 * sec},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			start := time.Now()
			require.NoError(t, retry.Do(t.Context(), row.policy, failTimes(row.failures)))
			require.Equal(t, row.want, time.Since(start))
		})
	}
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
}

func TestDoGivesUp(t *testing.T) {
	limited := everySecond(4)
	limited.AttemptTimeout = 2 * sec
	for _, row := range []struct {
		name     string
		policy   retry.Policy
		fn       func(context.Context) error
		want     retry.Decision
		attempts int
		elapsed  time.Duration
	}{
		{"when the attempts are used up, without a wait after the last", everySecond(3), failing, exhausted, 3, 2 * sec},
		{"at once on a terminal error, whatever attempts are left", retry.Policy{}, failsWith(retry.Permanent(io.EOF)), terminal, 1, 0},
		{"at once when disabled, as Failed", retry.Policy{Disabled: true}, failing, disabled, 1, 0},
		{"after every attempt timed out: attempt timeouts are retried", limited, untilDone, exhausted, 4, 4*2*sec + 3*sec},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			start := time.Now()
			failed := requireEnd(t, retry.Do(t.Context(), row.policy, row.fn), row.want, row.attempts)
			require.Equal(t, row.elapsed, time.Since(start))
			require.NoError(t, failed.Cause())
		})
	}
}

func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// noContext is what a caller passes that forgot it.
var noContext context.Context

func TestDoRefuses(t *testing.T) {
	const nilFn, nilCtx = "retry: Do.fn <nil> is not a function", "retry: Do.ctx <nil> is not a context"
	_, ofValue := retry.DoValue[int](t.Context(), retry.Policy{}, nil)
	_, ofWrap := retry.Wrap[int, int](retry.Policy{}, nil)(t.Context(), 1)
	observed := retry.Policy{TTL: -1, Observe: func(context.Context, retry.Event) { t.Error("observed") }}
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"a nil fn", retry.Do(t.Context(), retry.Policy{}, nil), nilFn},
		{"a nil fn of DoValue", ofValue, nilFn},
		{"a nil fn of Wrap", ofWrap, nilFn},
		{"a nil ctx", retry.Do(noContext, retry.Policy{}, failing), nilCtx},
		{"a context made from a nil one", retry.Do(retry.OneAttempt(noContext), retry.Policy{}, failing), nilCtx},
		{"all that is wrong at once", retry.Do(noContext, retry.Policy{TTL: -1}, nil),
			"retry: Policy.TTL -1ns is negative; Do.ctx <nil> is not a context; Do.fn <nil> is not a function"},
		{"a policy that does not validate, and Observe is not called", retry.Do(t.Context(), observed, failing), "retry: Policy.TTL -1ns is negative"},
		{"an attempt of Continue without an error", retry.Policy{}.Continue(t.Context(), 0, nil, failing), "retry: Continue.err <nil> is not an error"},
		{"a policy of Continue", retry.Policy{TTL: -1}.Continue(t.Context(), 0, errFlaky, failing), "retry: Policy.TTL -1ns is negative"},
		{"a nil fn of Continue", retry.Policy{}.Continue(t.Context(), 0, errFlaky, nil), nilFn},
		{"a nil ctx of Continue", retry.Policy{}.Continue(noContext, 0, errFlaky, failing), nilCtx},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.EqualError(t, row.err, row.want)
			var failed *retry.Error
			require.False(t, errors.As(row.err, &failed), "nothing ran, so it is not an *Error")
		})
	}
	for _, ctx := range []context.Context{retry.OneAttempt(noContext), retryshell.WithRemoteAttempt(noContext, 2),
		retryshell.WithAttempt(noContext, retry.Policy{}, retry.Progress{Attempt: 1}), retryshell.WithAttemptOf(noContext, t.Context())} {
		require.True(t, ctx == nil, "%v", ctx)
	}
}

func TestDeadline(t *testing.T) {
	for _, row := range []struct {
		name     string
		deadline time.Duration
		attempts int
		elapsed  time.Duration
	}{
		{"a wait that would end just before the deadline is begun", 3*sec + 1, 4, 3 * sec},
		{"a wait that would end exactly at the deadline is not begun", 3 * sec, 3, 2 * sec},
		{"a wait that would end just after the deadline is not begun", 3*sec - 1, 3, 2 * sec},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
			defer cancel()
			start := time.Now()
			failed := requireEnd(t, retry.Do(ctx, everySecond(9), failing), tooNear, row.attempts)
			require.Equal(t, row.elapsed, time.Since(start))
			require.NoError(t, failed.Cause())
		})
	}
	inBubble(t, "passed during the attempt, it is DeadlinePassed, with its cause", func(t *testing.T) {
		why := errors.New("the page is closed at 10")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*sec, why)
		defer cancel()
		err := retry.Do(ctx, retry.Policy{}, func(ctx context.Context) error { <-ctx.Done(); return errFlaky })
		failed := requireEnd(t, err, passed, 1)
		require.Same(t, why, failed.Cause())
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
		require.NoError(t, requireEnd(t, err, passed, 0).Last)
		require.EqualError(t, err, "retry: gave up after 0 attempts in 0s (deadline_passed): context deadline exceeded")
	})
	inBubble(t, "passed by the clock, it is DeadlinePassed before the context has noticed", func(t *testing.T) {
		for _, d := range []time.Duration{0, sec} { // 0 is the start of the run
			ctx := lateContext{t.Context(), time.Now().Add(d)}
			failed := requireEnd(t, retry.Do(ctx, atOnce, lasting(d)), passed, 1)
			require.Equal(t, context.DeadlineExceeded, failed.Cause())
		}
	})
	inBubble(t, "a deadline that no Deadline method returns cuts the wait all the same", func(t *testing.T) {
		inner, cancel := context.WithTimeout(t.Context(), 3*sec/2)
		defer cancel()
		start := time.Now()
		requireEnd(t, retry.Do(secretive{inner}, everySecond(9), failing), passed, 2)
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
	for _, row := range []struct {
		name string
		base time.Duration
	}{
		{"during a wait it returns at that instant, with cause and last error", hour},
		{"during the longest wait there is, it returns at that instant too", longest},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(1234*ms, func() { cancel(why) })
			start := time.Now()
			err := retry.Do(ctx, retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: row.base}}, failing)
			failed := requireEnd(t, err, canceled, 1)
			require.Equal(t, 1234*ms, time.Since(start))
			require.Equal(t, 1234*ms, failed.Elapsed)
			require.Same(t, why, failed.Cause())
			require.EqualError(t, err, "retry: gave up after 1 attempt in 1.234s (caller_canceled): flaky")
		})
	}
	inBubble(t, "before the call there is no attempt", func(t *testing.T) {
		err := retry.Do(canceledBy(why), retry.Policy{}, func(context.Context) error { t.Error("called"); return nil })
		require.Empty(t, requireEnd(t, err, canceled, 0).History)
		require.EqualError(t, err, "retry: gave up after 0 attempts in 0s (caller_canceled): shutting down")
	})
	inBubble(t, "it beats a timer that fires with it", func(t *testing.T) {
		ctx := silentContext{t.Context(), time.Now().Add(sec)} // canceled when the timer fires, which wins the select
		requireEnd(t, retry.Do(ctx, everySecond(9), failing), canceled, 1)
	})
	inBubble(t, "a context that ends with an error of its own is a canceled one", func(t *testing.T) {
		requireEnd(t, retry.Do(brokenContext{t.Context()}, retry.Policy{}, failing), canceled, 0)
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
			requireEnd(t, retry.Do(t.Context(), p, failing), tooOld, row.attempts)
			require.Equal(t, row.elapsed, time.Since(start))
		})
	}
	inBubble(t, "an attempt under way is not cut by it", func(t *testing.T) {
		p := everySecond(9)
		p.TTL = sec
		start := time.Now()
		requireEnd(t, retry.Do(t.Context(), p, func(ctx context.Context) error {
			_, ok := ctx.Deadline()
			require.False(t, ok)
			spend(minute)
			return errFlaky
		}), tooOld, 1)
		require.Equal(t, minute, time.Since(start))
	})
	inBubble(t, "retries without a wait end with it too", func(t *testing.T) {
		p := atOnce
		p.TTL = 5 * sec
		start := time.Now()
		requireEnd(t, retry.Do(t.Context(), p, lasting(2*sec, 3*sec, 0, 1)), tooOld, 4)
		require.Equal(t, 5*sec+1, time.Since(start))
	})
	inBubble(t, "it counts from the call, what Observe takes included", func(t *testing.T) {
		p := calling(func() { spend(sec + 1) }, "Observe", everySecond(9))
		p.TTL = 2 * sec
		start := time.Now()
		requireEnd(t, retry.Do(t.Context(), p, failing), tooOld, 1)
		require.Equal(t, 2*sec+2, time.Since(start), "observed, found too late, observed: the wait is not begun")
	})
	inBubble(t, "no wait is begun that is too late because Classify took its time, and nothing else did", func(t *testing.T) {
		p := calling(func() { spend(6 * sec) }, "Classify", everySecond(9))
		p.TTL = 10 * sec
		failed := requireEnd(t, retry.Do(t.Context(), p, failing), tooOld, 2) // at 0s, and at 6s + 1s; 13s is too late
		require.Equal(t, 13*sec, failed.Elapsed)
		require.Zero(t, failed.History[1].Duration)
	})
	for _, slow := range []string{"Pay", "Classify", "Rand", "Observe"} {
		inBubble(t, "no wait is begun that is too late because "+slow+" took its time", func(t *testing.T) {
			calls := 0
			p := retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: 5 * sec, Jitter: retry.RatioJitter}, Rand: func() float64 { return 0.5 }}
			p = calling(func() {
				if calls++; calls == 1 {
					spend(6 * sec)
				}
			}, slow, p)
			p.TTL = 10 * sec
			start := time.Now()
			failed := requireEnd(t, retry.Do(t.Context(), p, failing), tooOld, 1)
			require.Equal(t, 6*sec, time.Since(start))
			require.Equal(t, 6*sec, failed.Elapsed)
			require.Zero(t, failed.History[0].Duration)

			p.TTL = 0
			for deadline, want := range map[time.Duration]retry.Decision{10 * sec: tooNear, 6 * sec: passed} {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				calls, start = 0, time.Now()
				requireEnd(t, retry.Do(ctx, p, failing), want, 1)
				require.Equal(t, 6*sec, time.Since(start))
			}
		})
	}
}

// calling returns p with a function of the caller, which calls f and has no other effect.
func calling(f func(), in string, p retry.Policy) retry.Policy {
	switch in {
	case "Classify":
		p.Classify = func(error) retry.Class { f(); return retry.Unknown }
	case "Rand":
		p.Rand = func() float64 { f(); return 0.5 }
	case "Pay":
		p.Pay = func(context.Context, retry.Decision) bool { f(); return true }
	case "Observe":
		p.Observe = func(context.Context, retry.Event) { f() }
	case "Gate":
		p.Gate = func(context.Context) time.Duration { f(); return 0 }
	}
	return p
}

func TestAHintNeitherResetsTheExponentNorFeedsDecorrelatedJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 3, Rand: func() float64 { return 0.5 },
			Backoff: retry.Backoff{Base: sec, Jitter: retry.DecorrelatedJitter}}
		start := time.Now()
		failed := requireEnd(t, retry.Do(t.Context(), p, failsWith(retry.After(minute, errFlaky), errFlaky)), exhausted, 3)
		// First delay 1+½(3−1)=2s, so 1m + ½·2s waited; then 1+½(3·2−1)=3.5s.
		require.Equal(t, []time.Duration{61 * sec, 3500 * ms, 0}, delays(failed))
		require.Equal(t, 64500*ms, time.Since(start))
	})
}

// closedFor returns a gate that defers by the given times, one at each question, and then says go.
func closedFor(deferrals ...time.Duration) (gate func(context.Context) time.Duration, asked *int) {
	asked = new(int)
	return func(context.Context) time.Duration {
		if *asked++; *asked <= len(deferrals) {
			return deferrals[*asked-1]
		}
		return 0
	}, asked
}

func TestGate(t *testing.T) {
	for _, row := range []struct {
		name      string
		deferrals []time.Duration
		failures  int
		want      time.Duration
		asked     int
	}{
		{"defers the first attempt, and is asked again after the wait", []time.Duration{7 * sec}, 0, 7 * sec, 2},
		{"defers a retry after its own wait", []time.Duration{0, 3 * sec, 4 * sec}, 1, sec + 3*sec + 4*sec, 4},
		{"defers by a nanosecond", []time.Duration{1, 0, 1, 0}, 1, 1 + sec + 1, 4},
		{"says go by 0 and less", []time.Duration{-hour}, 0, 0, 1},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			p := everySecond(3)
			var asked *int
			p.Gate, asked = closedFor(row.deferrals...)
			var last retry.Outcome
			p.Observe = func(_ context.Context, e retry.Event) {
				if e.Final() {
					last = *e.Outcome
				}
			}
			require.NoError(t, retry.Do(t.Context(), p, failTimes(row.failures)))
			require.Equal(t, row.want, last.Elapsed)
			require.Equal(t, row.asked, *asked)
			require.False(t, last.EndedByGate)
		})
	}
	once := retry.Policy{MaxAttempts: 1}
	aged := func(ttl time.Duration) retry.Policy {
		return retry.Policy{MaxAttempts: 2, TTL: ttl, Backoff: retry.Backoff{Base: sec}}
	}
	for _, row := range []struct {
		name      string
		policy    retry.Policy
		deadline  time.Duration
		takes     time.Duration // the gate itself
		deferrals []time.Duration
		want      retry.Decision
		attempts  int
		elapsed   time.Duration
		gated     bool // a deferral ended the run
	}{
		{"a deferral to exactly the TTL is waited for", retry.Policy{MaxAttempts: 1, TTL: 10 * sec}, hour, 0, []time.Duration{10 * sec}, exhausted, 1, 10 * sec, false},
		{"a deferral past the TTL ends the run at once", aged(10 * sec), hour, 0, []time.Duration{10*sec + 1}, tooOld, 0, 0, true},
		{"a deferral to the deadline ends the run at once", once, 10 * sec, 0, []time.Duration{10 * sec}, tooNear, 0, 0, true},
		{"a deferral before the deadline is waited for", once, 10 * sec, 0, []time.Duration{10*sec - 1}, exhausted, 1, 10*sec - 1, false},
		{"a deferral past both names the TTL", aged(sec), sec, 0, []time.Duration{hour}, tooOld, 0, 0, true},
		{"a deferral as long as there is ends the run at once", aged(longest), hour, 0, []time.Duration{longest}, tooNear, 0, 0, true},
		{"a deferral of a retry past the TTL is not begun after the wait that nothing forbade", aged(minute), hour, 0, []time.Duration{0, hour}, tooOld, 1, sec, true},
		{"a second deferral past the TTL", aged(minute), hour, 0, []time.Duration{40 * sec, 40 * sec}, tooOld, 0, 40 * sec, true},
		{"a TTL that the next wait does not fit in", aged(sec - 1), hour, 0, nil, tooOld, 1, 0, false},
		{"a gate that itself takes longer than the TTL", aged(sec), hour, minute, nil, tooOld, 0, minute, false},
		{"a gate that itself takes longer than the TTL, and defers", aged(sec), hour, minute, []time.Duration{hour}, tooOld, 0, minute, false},
		{"a gate in which the deadline passes", once, minute, minute, []time.Duration{hour}, passed, 0, minute, false},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
			defer cancel()
			p := row.policy
			gate, _ := closedFor(row.deferrals...)
			p.Gate = func(ctx context.Context) time.Duration { spend(row.takes); return gate(ctx) }
			start := time.Now()
			failed := requireEnd(t, retry.Do(ctx, p, failing), row.want, row.attempts)
			require.Equal(t, row.elapsed, time.Since(start))
			require.Equal(t, row.gated, failed.EndedByGate)
		})
	}
	inBubble(t, "is not asked for a caller that is done", func(t *testing.T) {
		p := calling(func() { t.Error("asked") }, "Gate", everySecond(3))
		requireEnd(t, retry.Do(canceledBy(io.EOF), p, failing), canceled, 0)
	})
	inBubble(t, "a cancel during its deferral ends the run at that instant", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(sec, cancel)
		p := everySecond(3)
		p.Gate, _ = closedFor(hour)
		start := time.Now()
		require.False(t, requireEnd(t, retry.Do(ctx, p, failing), canceled, 0).EndedByGate)
		require.Equal(t, sec, time.Since(start))
	})
	inBubble(t, "applies to a disabled policy, with the caller's context", func(t *testing.T) {
		asked := 0
		p := retry.Policy{Disabled: true, Gate: func(ctx context.Context) time.Duration {
			require.Same(t, t.Context(), ctx)
			asked++
			return 0
		}}
		requireEnd(t, retry.Do(t.Context(), p, failing), disabled, 1)
		require.Equal(t, 1, asked)
	})
}

func TestDoValue(t *testing.T) {
	value, err := retry.DoValue(t.Context(), atOnce, func(ctx context.Context) (int, error) { return retry.AttemptNumber(ctx), errFlaky })
	requireEnd(t, err, exhausted, 5)
	require.Equal(t, 5, value, "the last attempt's value, also on failure")

	value, err = retry.DoValue(canceledBy(io.EOF), atOnce, func(context.Context) (int, error) { return 7, nil })
	requireEnd(t, err, canceled, 0)
	require.Zero(t, value, "nothing was attempted")
}

func TestWrapGivesEachCallARunOfItsOwn(t *testing.T) {
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
}

// TestBudgetIsPaidBack has more places in which a panic and runtime.Goexit pass through.
func TestAPanicPassesThrough(t *testing.T) {
	boom := func() { panic("boom") }
	for _, in := range []string{"fn", "Classify", "Rand", "Pay", "Gate"} {
		inBubble(t, "in "+in+", and no end is reported", func(t *testing.T) {
			p := calling(boom, in, retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}})
			p.Observe = func(_ context.Context, e retry.Event) { t.Error(e) }
			require.PanicsWithValue(t, "boom", func() {
				_ = retry.Do(t.Context(), p, func(context.Context) error {
					if in == "fn" {
						boom()
					}
					return errFlaky
				})
			})
		})
	}
	inBubble(t, "and ends the attempt's context", func(t *testing.T) {
		p := everySecond(9)
		p.AttemptTimeout = hour
		var kept context.Context
		require.Panics(t, func() {
			_ = retry.Do(t.Context(), p, func(ctx context.Context) error { kept = ctx; panic("boom") })
		})
		require.Equal(t, context.Canceled, kept.Err())
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
		p := calling(func() { draws++ }, "Rand", retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: sec, Jitter: retry.FullJitter}})
		requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 4)
		require.Equal(t, 3, draws)
		requireEnd(t, retry.Do(t.Context(), p, failsWith(retry.Permanent(errFlaky))), terminal, 1)
		require.Equal(t, 3, draws)
		p.Jitter = retry.NoJitter
		requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 4)
		require.Equal(t, 3, draws)
	})
	inBubble(t, "is chance by default, within the bounds", func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: hour, Jitter: retry.EqualJitter}}
		seen := map[time.Duration]bool{}
		for range 50 {
			delay := requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 2).History[0].Delay
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

// panicking is a context whose Err panics if when returns true.
type panicking struct {
	context.Context
	when func() bool
}

func (c panicking) Err() error {
	if c.when() {
		panic("err")
	}
	return c.Context.Err()
}

func TestAContextWhoseErrPanicsCostsNoToken(t *testing.T) {
	for in, name := range map[string]string{"": "while a retry is admitted", "Pay": "after Pay", "Observe": "after Observe", "Gate": "after Gate"} {
		inBubble(t, name, func(t *testing.T) {
			budget := retry.NewBudget(retry.BudgetConfig{Initial: 1})
			taken := func() bool { return budget.Tokens() == 0 }
			called := false // since the token was taken
			p := calling(func() { called = taken() }, in, retry.Policy{Budget: budget})
			ctx := panicking{t.Context(), func() bool { return called || in == "" && taken() }}
			require.PanicsWithValue(t, "err", func() { _ = retry.Do(ctx, p, failing) })
			require.False(t, taken())
		})
	}
}

func TestTimeBesideTheAttempts(t *testing.T) {
	inBubble(t, "an attempt before Continue has taken its part of the TTL", func(t *testing.T) {
		p := retry.Policy{TTL: 10 * sec, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 4 * sec}}
		began := time.Now()
		err := p.Continue(t.Context(), 3*sec, errFlaky, failTimes(9))
		failed := requireEnd(t, err, retry.Decision{Status: retry.Expired, Reason: retry.TTLElapsed}, 2)
		require.Equal(t, 7*sec, failed.Elapsed)
		require.Equal(t, 4*sec, time.Since(began))
	})
	inBubble(t, "the wait begins when Observe returns", func(t *testing.T) {
		p := everySecond(2)
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Decision.Status == retry.WaitingRetry {
				spend(sec / 2)
			}
		}
		began := time.Now()
		require.NoError(t, retry.Do(t.Context(), p, failTimes(1)))
		require.Equal(t, sec/2+sec, time.Since(began))
	})
}

func ExamplePolicy_Continue() {
	call := func(context.Context) error { return nil }
	began := time.Now()
	err := errors.New("busy") // of an attempt that needed no run
	err = retry.Policy{Backoff: retry.Backoff{Base: time.Nanosecond}}.Continue(context.Background(), time.Since(began), err, call)
	fmt.Println(err)
	// Output: <nil>
}
