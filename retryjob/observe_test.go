package retryjob_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// told collects the events passed to a policy's Observe.
type told []retry.Event

func (l *told) observe(_ context.Context, e retry.Event) { *l = append(*l, e) }

func TestObserveIsCalledForEachFailureAndOnceForTheEnd(t *testing.T) {
	type ctx = context.Context
	for _, row := range []struct {
		name   string
		policy retry.Policy
		play   func(x *trial)
		failed []int // attempts reported
		end    retry.Decision
		last   error // what the final error reaches
	}{
		{"a success at once", retry.Policy{}, func(x *trial) {
			x.through(1, ending(nil))
		}, nil, retry.Decision{Status: retry.Succeeded}, nil},
		{"a success at last", evenly(3, sec), func(x *trial) {
			x.through(1, ending(errFlaky))
			x.through(2, ending(errFlaky))
			x.through(3, ending(nil))
		}, []int{1, 2}, retry.Decision{Status: retry.Succeeded}, nil},
		{"exhausted", evenly(2, sec), func(x *trial) {
			x.through(1, ending(errors.New("first")))
			x.through(2, ending(errFlaky))
		}, []int{1, 2}, retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Class: retry.Retryable}, errFlaky},
		{"lost before a success", evenly(5, sec), func(x *trial) {
			x.through(3, ending(nil))
		}, []int{1, 2}, retry.Decision{Status: retry.Succeeded}, nil},
		{"lost to the last", evenly(2, sec), func(x *trial) {
			x.through(3, never(t))
		}, []int{1, 2}, retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Class: retry.Retryable}, retryjob.ErrLost},
		{"Lost, then Lost to the last", evenly(2, sec), func(x *trial) {
			x.lost(1).Tell()
			x.lost(2).Tell()
		}, []int{1, 2}, retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Class: retry.Retryable}, retryjob.ErrLost},
		{"expired unattempted", retry.Policy{TTL: sec}, func(x *trial) {
			x.c.pass(2 * sec)
			x.through(1, never(t))
		}, nil, retry.Decision{Status: retry.Expired, Reason: retry.TTLElapsed}, nil},
		{"canceled", evenly(3, sec), func(x *trial) {
			canceled, cancel := context.WithCancelCause(t.Context())
			x.stepIn(canceled, 1, func(ctx ctx) error { cancel(retryjob.ErrCanceled); return ctx.Err() }).Tell()
		}, []int{1}, retry.Decision{Status: retry.Canceled, Reason: retry.CallerCanceled, Class: retry.Terminal}, retryjob.ErrCanceled},
		{"canceled while it waits", evenly(3, sec), func(x *trial) {
			x.through(1, ending(errFlaky))
			require.NoError(t, x.r.Cancel(x.c.now))
			x.s.Canceled(t.Context(), &x.r)
		}, []int{1}, retry.Decision{Status: retry.Canceled, Reason: retry.CallerCanceled}, nil},
		{"canceled before its first attempt", evenly(3, sec), func(x *trial) {
			x.c.pass(sec)
			require.NoError(t, x.r.Cancel(x.c.now))
			x.s.Canceled(t.Context(), &x.r)
		}, nil, retry.Decision{Status: retry.Canceled, Reason: retry.CallerCanceled}, nil},
		{"a handler that ends its goroutine", evenly(1, sec), func(x *trial) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				x.step(1, func(ctx) error { runtime.Goexit(); return nil })
			}()
			<-done
		}, []int{1}, retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Class: retry.Retryable}, nil},
		{"a shutdown is not told", evenly(3, sec), func(x *trial) {
			down, cancel := context.WithCancelCause(t.Context())
			x.stepIn(down, 1, func(ctx ctx) error { cancel(retryjob.ErrShutdown); return ctx.Err() })
			x.through(1, ending(nil))
		}, nil, retry.Decision{Status: retry.Succeeded}, nil},
		{"a panic", evenly(1, sec), func(x *trial) {
			x.through(1, func(ctx) error { panic(errFlaky) })
		}, []int{1}, retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Class: retry.Retryable}, errFlaky},
		{"a budget", retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})}, func(x *trial) {
			x.through(1, ending(errFlaky))
		}, []int{1}, retry.Decision{Status: retry.DeadLettered, Reason: retry.BudgetExhausted, Class: retry.Retryable}, errFlaky},
	} {
		t.Run(row.name, func(t *testing.T) {
			var events told
			row.policy.Observe = events.observe
			x := newTrial(t, row.policy)
			row.play(x)

			require.Len(t, events, len(row.failed)+1)
			for n, attempt := range row.failed {
				e := events[n]
				require.Nil(t, e.Outcome)
				require.NoError(t, e.Err)
				require.Equal(t, "p", e.Policy, "it is named as it was looked up")
				require.Equal(t, attempt, e.Attempt.Number)
				require.Error(t, e.Attempt.Err)
				require.Equal(t, e.Decision.Delay, e.Attempt.Delay)
				require.GreaterOrEqual(t, e.Attempt.Duration, time.Duration(0))
				if n < len(row.failed)-1 {
					require.Equal(t, retry.WaitingRetry, e.Decision.Status)
				}
			}
			end := events[len(events)-1]
			require.Equal(t, row.end, end.Decision)
			require.Equal(t, retry.Attempt{}, end.Attempt)
			require.NotNil(t, end.Outcome)
			require.Equal(t, []any{"p", "p"}, []any{end.Policy, end.Outcome.Policy})
			require.Equal(t, []any{row.end.Status, row.end.Reason}, []any{end.Outcome.Status, end.Outcome.Reason})
			require.Equal(t, []any{x.r.Attempts, x.r.Ended.Sub(x.r.FirstDue)}, []any{end.Outcome.Attempts, end.Outcome.Elapsed})
			require.Len(t, end.Outcome.History, len(row.failed))
			if row.end.Status == retry.Succeeded {
				require.NoError(t, end.Err)
				return
			}
			var failed *retry.Error
			require.ErrorAs(t, end.Err, &failed)
			require.Equal(t, *end.Outcome, failed.Outcome)
			require.ErrorIs(t, end.Err, row.end.Reason)
			if row.last != nil {
				require.ErrorIs(t, end.Err, row.last)
			} else if len(row.failed) == 0 {
				require.NoError(t, failed.Last)
			}
		})
	}
}

func TestObserveGetsClassAndTimes(t *testing.T) {
	var events told
	p := evenly(5, 3*sec)
	p.Name, p.Observe = "mail", events.observe
	x := newTrial(t, p)
	x.c.now = x.step(1, func(context.Context) error { x.c.pass(2 * sec); return errFlaky }).Due
	permanent := retry.Permanent(errFlaky)
	next := x.step(2, func(context.Context) error { x.c.pass(sec); return permanent })
	require.Len(t, events, 2, "the end is for when the record is stored")
	next.Tell()
	first := retry.Attempt{Number: 1, Start: epoch, Duration: 2 * sec, Class: retry.Retryable, Err: errFlaky, Delay: 3 * sec}
	second := retry.Attempt{Number: 2, Start: epoch.Add(5 * sec), Duration: sec, Class: retry.Terminal, Err: permanent}
	require.Len(t, events, 3)
	require.Equal(t, retry.Event{Policy: "mail", Elapsed: 2 * sec, Attempt: first, Decision: retry.Decision{Status: retry.WaitingRetry, Class: retry.Retryable, Delay: 3 * sec, Backoff: 3 * sec}}, events[0])
	end := retry.Decision{Status: retry.DeadLettered, Reason: retry.TerminalError, Class: retry.Terminal}
	require.Equal(t, retry.Event{Policy: "mail", Elapsed: 6 * sec, Attempt: second, Decision: end}, events[1])
	outcome := events[2].Outcome
	require.Equal(t, 6*sec, outcome.Elapsed)
	require.Equal(t, 6*sec, events[2].Elapsed)
	require.Equal(t, "mail", outcome.Policy)
	require.EqualError(t, outcome.History[0].Err, "flaky", "of earlier errors the text is left")
	outcome.History[0].Err = errFlaky
	require.Equal(t, []retry.Attempt{first, second}, outcome.History)
}

// tell calls Observe with the end, and returns next without it.
func tell(next retryjob.Next) retryjob.Next {
	next.Tell()
	return retryjob.Next{Status: next.Status, Reason: next.Reason, Due: next.Due, Deferred: next.Deferred}
}

// through makes an attempt, calls Observe with the end, and moves the clock to when the next attempt is due.
func (x *trial) through(attempt int, fn func(context.Context) error) {
	x.t.Helper()
	next := x.step(attempt, fn)
	next.Tell()
	if !next.Due.IsZero() {
		x.c.now = next.Due
	}
}
