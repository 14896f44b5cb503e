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
	t.Run("a panic is the failure of the attempt", func(t *testing.T) {
		c := &clock{epoch}
		var seen error
		s := stepper(retry.Policy{Classify: func(err error) retry.Class { seen = err; return retry.Unknown }}, c)
		r := record(c)
		v, err := s.Step(t.Context(), &r, 1, func(context.Context) error { panic("boom") })
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(5 * sec)}, v)
		require.Equal(t, "retryjob: the handler panicked: boom", r.History[0].Err)
		var p *retryjob.PanicError
		require.ErrorAs(t, seen, &p)
		require.Equal(t, "boom", p.Value)
		require.Contains(t, string(p.Stack), "TestStepOfAnAttemptThatDoesNotReturn")
	})
	t.Run("a panic with an error can be classified by it", func(t *testing.T) {
		c := &clock{epoch}
		r := record(c)
		v, err := stepper(retry.Policy{Classify: retry.StopOn(errFlaky)}, c).Step(t.Context(), &r, 1, func(context.Context) error { panic(errFlaky) })
		require.NoError(t, err)
		require.Equal(t, retry.TerminalError, v.Reason)
	})
	t.Run("a panic with nil is a failure", func(t *testing.T) {
		c := &clock{epoch}
		r := record(c)
		v, err := stepper(retry.Policy{}, c).Step(t.Context(), &r, 1, func(context.Context) error { panic(nil) })
		require.NoError(t, err)
		require.Equal(t, retryjob.WaitingRetry, v.Status)
		require.Contains(t, r.History[0].Err, "retryjob: the handler panicked: panic called with nil")
	})
	t.Run("the absence of a handler is a failure", func(t *testing.T) {
		c := &clock{epoch}
		r := record(c)
		v, err := stepper(retry.Policy{}, c).Step(t.Context(), &r, 1, nil)
		require.NoError(t, err)
		require.Equal(t, retryjob.WaitingRetry, v.Status)
	})
	t.Run("Goexit is the failure of the attempt, and the record is up to date when deferred functions run", func(t *testing.T) {
		c := &clock{epoch}
		s := stepper(retry.Policy{}, c)
		r := record(c)
		done := make(chan retryjob.Record, 1)
		go func() {
			defer func() { done <- clone(r) }()
			_, _ = s.Step(t.Context(), &r, 1, func(context.Context) error { runtime.Goexit(); return nil })
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
			c := &clock{epoch}
			r := record(c)
			ctx, cancel := context.WithCancelCause(t.Context())
			v, err := stepper(evenly(1, sec), c).Step(ctx, &r, 1, func(context.Context) error {
				c.pass(sec)
				cancel(row.cause)
				return row.err
			})
			require.NoError(t, err)
			require.Equal(t, row.want, v)
			require.Equal(t, row.want.Status, r.Status)
			require.Equal(t, row.runs, r.Attempts)
			require.Len(t, r.History, row.runs)
			require.NoError(t, r.Validate())
			if row.runs > 0 {
				if row.err == nil {
					require.Equal(t, retryjob.Succeeded, r.History[0].Status)
				} else {
					require.Equal(t, row.want.Status, r.History[0].Status)
					require.Equal(t, row.want.Reason, r.History[0].Reason)
				}
				require.Equal(t, epoch.Add(sec), r.Ended)
			}
		})
	}
	t.Run("a second attempt in a shutdown waits again", func(t *testing.T) {
		c := &clock{epoch}
		s := stepper(evenly(2, sec), c)
		r := record(c)
		_, err := s.Step(t.Context(), &r, 1, ending(errFlaky))
		require.NoError(t, err)
		c.pass(9 * sec)
		ctx, cancel := context.WithCancelCause(t.Context())
		v, err := s.Step(ctx, &r, 2, func(context.Context) error { cancel(retryjob.ErrShutdown); panic("cut off") })
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: c.now, Deferred: true}, v)
		require.Equal(t, 1, r.Attempts)
		_, err = s.Step(t.Context(), &r, 2, ending(nil))
		require.NoError(t, err)
	})
	t.Run("a deadline is an ordinary failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &clock{epoch}
			r := record(c)
			ctx, cancel := context.WithTimeout(t.Context(), sec)
			defer cancel()
			v, err := stepper(retry.Policy{}, c).Step(ctx, &r, 1, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			require.NoError(t, err)
			require.Equal(t, retryjob.WaitingRetry, v.Status)
			require.False(t, v.Deferred)
			require.Equal(t, 1, r.Attempts)
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
		c := &clock{epoch}
		r := record(c)
		var kept context.Context
		_, err := stepper(retry.Policy{AttemptTimeout: time.Hour}, c).Step(t.Context(), &r, 1, func(ctx context.Context) error { kept = ctx; return nil })
		require.NoError(t, err)
		require.Error(t, kept.Err())
	})
}

// TestStepUnderAContextThatHasEnded shows that no attempt begins, and that a canceled caller comes before gate and TTL,
// as in Do.
func TestStepUnderAContextThatHasEnded(t *testing.T) {
	for name, row := range map[string]struct {
		cause error
		want  retryjob.Next
	}{
		"a shutdown defers the attempt": {retryjob.ErrShutdown, retryjob.Next{Status: retryjob.Pending, Due: epoch.Add(sec), Deferred: true}},
		"a cancel cancels the job":      {retryjob.ErrCanceled, retryjob.Next{Status: retryjob.Canceled, Reason: retry.CallerCanceled}},
		"any other cause cancels":       {errFlaky, retryjob.Next{Status: retryjob.Canceled, Reason: retry.CallerCanceled}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(row.cause)
			c := &clock{epoch}
			r := record(c)
			c.pass(sec)
			s := stepper(retry.Policy{TTL: 2 * sec, Gate: func(context.Context) time.Duration {
				t.Error("the gate was asked")
				return sec
			}}, c)
			v, err := s.Step(ctx, &r, 1, never(t))
			require.NoError(t, err)
			require.Equal(t, row.want, v)
			require.Zero(t, r.Attempts)
			require.Empty(t, r.History)
			require.NoError(t, r.Validate())
		})
	}
	t.Run("a cancel goes before the TTL", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(retryjob.ErrCanceled)
		c := &clock{epoch}
		r := record(c)
		c.pass(sec)
		v, err := stepper(retry.Policy{TTL: 1}, c).Step(ctx, &r, 1, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.Canceled, Reason: retry.CallerCanceled}, v)
	})
}
