package retryjob_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestStepOfAnAttemptThatDoesNotReturn(t *testing.T) {
	waits := retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(5 * sec)}
	for _, row := range []struct {
		name   string
		policy retry.Policy
		fn     func(context.Context) error
		want   retryjob.Next
		says   string
	}{
		{"a panic is the failure of the attempt", retry.Policy{}, func(context.Context) error { panic("boom") }, waits, "panicked: boom"},
		{"a panic with an error can be classified by it", retry.Policy{Classify: retry.StopOn(errFlaky)}, func(context.Context) error { panic(errFlaky) },
			retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.TerminalError}, "panicked: flaky"},
		{"a panic with nil is a failure", retry.Policy{}, func(context.Context) error { panic(nil) }, waits, "panicked: panic called with nil"},
		{"the absence of a handler is a failure", retry.Policy{}, nil, waits, "panicked: runtime error"},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTrial(t, row.policy)
			require.Equal(t, row.want, x.step(1, row.fn))
			require.Contains(t, x.r.History[0].Err, "retryjob: the handler "+row.says)
		})
	}
	t.Run("the classifier gets the value and the stack of a panic", func(t *testing.T) {
		var seen error
		x := newTrial(t, retry.Policy{Classify: func(err error) retry.Class { seen = err; return retry.Unknown }})
		x.step(1, func(context.Context) error { panic("boom") })
		var p *retryjob.PanicError
		require.ErrorAs(t, seen, &p)
		require.Equal(t, "boom", p.Value)
		require.Contains(t, string(p.Stack), "TestStepOfAnAttemptThatDoesNotReturn")
	})
	t.Run("Goexit is the failure of the attempt, and the record is up to date when deferred functions run", func(t *testing.T) {
		x := newTrial(t, retry.Policy{})
		done := make(chan retryjob.Record, 1)
		go func() {
			defer func() { done <- clone(x.r) }()
			x.step(1, func(context.Context) error { runtime.Goexit(); return nil })
		}()
		got := <-done
		require.Equal(t, retryjob.WaitingRetry, got.Status)
		require.Equal(t, "retryjob: the handler ended its goroutine", got.History[0].Err)
		require.Equal(t, epoch.Add(5*sec), got.Due)
	})
}

func TestStepWhoseContextEnds(t *testing.T) {
	for _, row := range []struct {
		name  string
		cause error
		err   error // what the handler returns; nil is a success
		want  retryjob.Next
		runs  int
	}{
		{"a shutdown does not count the attempt", retryjob.ErrShutdown, context.Canceled, retryjob.Next{Status: retryjob.Pending, Due: epoch.Add(sec), Deferred: true}, 0},
		{"a wrapped ErrShutdown neither", fmt.Errorf("bye: %w", retryjob.ErrShutdown), errFlaky, retryjob.Next{Status: retryjob.Pending, Due: epoch.Add(sec), Deferred: true}, 0},
		{"doubt is kept in a shutdown", retryjob.ErrShutdown, retry.Ambiguous(context.Canceled), retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.TerminalError}, 1},
		{"a success is one, also in a shutdown", retryjob.ErrShutdown, nil, retryjob.Next{Status: retryjob.Succeeded}, 1},
		{"ErrCanceled cancels the job", retryjob.ErrCanceled, context.Canceled, retryjob.Next{Status: retryjob.Canceled, Reason: retry.CallerCanceled}, 1},
		{"any other cause cancels", errors.New("fed up"), errFlaky, retryjob.Next{Status: retryjob.Canceled, Reason: retry.CallerCanceled}, 1},
		{"no cause cancels", nil, context.Canceled, retryjob.Next{Status: retryjob.Canceled, Reason: retry.CallerCanceled}, 1},
		{"a success does not undo ErrCanceled", retryjob.ErrCanceled, nil, retryjob.Next{Status: retryjob.Canceled, Reason: retry.CallerCanceled}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTrial(t, evenly(1, sec))
			ctx, cancel := context.WithCancelCause(t.Context())
			next := x.stepIn(ctx, 1, func(context.Context) error {
				x.c.pass(sec)
				cancel(row.cause)
				return row.err
			})
			require.Equal(t, row.want, next)
			require.Equal(t, row.runs, x.r.Attempts)
			require.Len(t, x.r.History, row.runs)
			if row.runs > 0 {
				want := retryjob.Attempt{ID: x.r.AttemptID(1), Number: 1, Start: epoch, End: epoch.Add(sec), Status: retryjob.Succeeded}
				if row.err != nil {
					want.Status, want.Reason, want.Err, want.Ambiguous = next.Status, next.Reason, row.err.Error(), retry.IsAmbiguous(row.err)
				}
				require.Equal(t, want, x.r.History[0])
				require.Equal(t, epoch.Add(sec), x.r.Ended)
			}
		})
	}
	t.Run("a second attempt in a shutdown waits again", func(t *testing.T) {
		x := newTrial(t, evenly(2, sec))
		x.step(1, ending(errFlaky))
		x.c.pass(9 * sec)
		ctx, cancel := context.WithCancelCause(t.Context())
		next := x.stepIn(ctx, 2, func(context.Context) error { cancel(retryjob.ErrShutdown); panic("cut off") })
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: x.c.now, Deferred: true}, next)
		require.Equal(t, 1, x.r.Attempts)
		x.step(2, ending(nil))
	})
	t.Run("a deadline is an ordinary failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, retry.Policy{})
			ctx, cancel := context.WithTimeout(t.Context(), sec)
			defer cancel()
			next := x.stepIn(ctx, 1, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(5 * sec)}, next)
			require.Equal(t, 1, x.r.Attempts)
		})
	})
	t.Run("AttemptTimeout ends the attempt with its cause, and is retried", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &retryjob.Stepper{Policies: retryjob.FromMap(map[string]retry.Policy{"p": {AttemptTimeout: 7 * sec}})}
			r := record(&clock{time.Now()})
			began := time.Now()
			v, err := s.Step(t.Context(), &r, 1, func(ctx context.Context) error {
				<-ctx.Done()
				require.Equal(t, retry.ErrAttemptTimeout, context.Cause(ctx))
				return ctx.Err()
			})
			require.NoError(t, err)
			require.Equal(t, 7*sec, time.Since(began))
			require.Equal(t, retryjob.WaitingRetry, v.Status)
			require.Equal(t, 12*sec, v.Due.Sub(began), "the zero Now is time.Now")
			require.Equal(t, 7*sec, r.History[0].End.Sub(r.History[0].Start))
		})
	})
	t.Run("an attempt that timed out says so in its record, and in events and to the classifier if its error comes of that", func(t *testing.T) {
		for name, row := range map[string]struct {
			err  func(ctx context.Context) error
			says bool
			text string
		}{
			"its context's error":    {context.Context.Err, true, "attempt timeout: context deadline exceeded"},
			"a cancellation":         {func(context.Context) error { return context.Canceled }, true, "attempt timeout: context canceled"},
			"the cause":              {context.Cause, true, "attempt timeout"},
			"a panic with that":      {func(ctx context.Context) error { panic(ctx.Err()) }, true, "attempt timeout: retryjob: the handler panicked: context deadline exceeded"},
			"an error of its own":    {func(context.Context) error { return errFlaky }, false, "attempt timeout: flaky"},
			"a panic with something": {func(context.Context) error { panic("boom") }, false, "attempt timeout: retryjob: the handler panicked: boom"},
		} {
			synctest.Test(t, func(t *testing.T) {
				var events told
				var judged error
				s := &retryjob.Stepper{Policies: retryjob.FromMap(map[string]retry.Policy{"p": {
					AttemptTimeout: 7 * sec, MaxAttempts: 1, Observe: events.observe,
					Classify: func(err error) retry.Class { judged = err; return retry.Unknown },
				}})}
				r := record(&clock{time.Now()})
				next, err := s.Step(t.Context(), &r, 1, func(ctx context.Context) error {
					<-ctx.Done()
					return row.err(ctx)
				})
				require.NoError(t, err, name)
				next.Tell()
				require.Equal(t, row.text, r.History[0].Err, name)
				require.Equal(t, retry.AttemptsExhausted, r.Reason, name)
				for _, err := range []error{judged, events[0].Attempt.Err, events[1].Outcome.History[0].Err, events[1].Err} {
					require.Equal(t, row.says, errors.Is(err, retry.ErrAttemptTimeout), "%s: %v", name, err)
					require.NotErrorIs(t, err, context.Canceled, name)
				}
			})
		}
	})
	t.Run("a cancellation that comes first is not a timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &retryjob.Stepper{Policies: retryjob.FromMap(map[string]retry.Policy{"p": {AttemptTimeout: 7 * sec}})}
			r := record(&clock{time.Now()})
			ctx, cancel := context.WithCancelCause(t.Context())
			_, err := s.Step(ctx, &r, 1, func(ctx context.Context) error {
				cancel(retryjob.ErrCanceled)
				<-time.After(time.Minute)
				return ctx.Err()
			})
			require.NoError(t, err)
			require.Equal(t, retryjob.Canceled, r.Status)
			require.Equal(t, "context canceled", r.History[0].Err)
		})
	})
	t.Run("the context is over when the attempt is", func(t *testing.T) {
		var kept context.Context
		newTrial(t, retry.Policy{AttemptTimeout: time.Hour}).step(1, func(ctx context.Context) error { kept = ctx; return nil })
		require.Error(t, kept.Err())
	})
}

// TestStepUnderAContextThatHasEnded shows that no attempt begins, and that a canceled caller comes before gate and TTL,
// as in Do.
func TestStepUnderAContextThatHasEnded(t *testing.T) {
	canceled := retryjob.Next{Status: retryjob.Canceled, Reason: retry.CallerCanceled}
	for name, row := range map[string]struct {
		cause error
		ttl   time.Duration
		want  retryjob.Next
	}{
		"a shutdown defers the attempt": {retryjob.ErrShutdown, 2 * sec, retryjob.Next{Status: retryjob.Pending, Due: epoch.Add(sec), Deferred: true}},
		"a cancel cancels the job":      {retryjob.ErrCanceled, 2 * sec, canceled},
		"any other cause cancels":       {errFlaky, 2 * sec, canceled},
		"a cancel goes before the TTL":  {retryjob.ErrCanceled, 1, canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(row.cause)
			x := newTrial(t, retry.Policy{TTL: row.ttl, Gate: func(context.Context) time.Duration {
				t.Error("the gate was asked")
				return sec
			}})
			x.c.pass(sec)
			require.Equal(t, row.want, x.stepIn(ctx, 1, never(t)))
			require.Zero(t, x.r.Attempts)
			require.Empty(t, x.r.History)
		})
	}
}
