package retryjob_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestStepOfALeasedRecord(t *testing.T) {
	leased := func(c *clock) retryjob.Record {
		r := record(c)
		r.Status, r.Attempts, r.Due = retryjob.Leased, 1, time.Time{}
		r.History = []retryjob.Attempt{{ID: r.AttemptID(1), Number: 1, Start: c.now, Status: retryjob.Leased}}
		return r
	}
	t.Run("Step makes the attempt that it is leased for", func(t *testing.T) {
		c := &clock{epoch}
		r := leased(c)
		v, err := stepper(evenly(3, sec), c).Step(t.Context(), &r, 1, ending(errFlaky))
		require.NoError(t, err)
		require.Equal(t, retryjob.WaitingRetry, v.Status)
		require.Equal(t, 1, r.Attempts)
		require.Len(t, r.History, 1)
		require.Equal(t, "flaky", r.History[0].Err)
	})
	t.Run("Step records no lost attempt if the lease was not counted", func(t *testing.T) {
		c := &clock{epoch}
		r := leased(c)
		r.Attempts, r.History = 0, nil
		_, err := stepper(evenly(3, sec), c).Step(t.Context(), &r, 1, ending(errFlaky))
		require.NoError(t, err)
		require.Equal(t, 1, r.Attempts)
		require.Len(t, r.History, 1)
	})
	t.Run("Step records a lost attempt before it makes the next", func(t *testing.T) {
		c := &clock{epoch}
		r := leased(c)
		c.pass(sec)
		v, err := stepper(evenly(3, sec), c).Step(t.Context(), &r, 2, ending(nil))
		require.NoError(t, err)
		require.Equal(t, retryjob.Succeeded, v.Status)
		require.Len(t, r.History, 2)
		lost := r.History[0]
		require.Equal(t, retryjob.ErrLost.Error(), lost.Err)
		require.Equal(t, epoch, lost.Start)
		require.True(t, lost.End.IsZero())
		require.Equal(t, retryjob.WaitingRetry, lost.Status)
	})
	t.Run("Lost records the leased attempt", func(t *testing.T) {
		c := &clock{epoch}
		r := leased(c)
		v, err := stepper(evenly(3, sec), c).Lost(t.Context(), &r, 1)
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(sec)}, v)
		require.Len(t, r.History, 1)
		require.NoError(t, r.Validate())
	})
	t.Run("a gate takes the lease back: the attempt does not count", func(t *testing.T) {
		c := &clock{epoch}
		p := evenly(1, sec)
		shut := true
		p.Gate = func(context.Context) time.Duration {
			if shut {
				return sec
			}
			return 0
		}
		s := stepper(p, c)
		r := leased(c)
		v, err := s.Step(t.Context(), &r, 1, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.Pending, Due: epoch.Add(sec), Deferred: true}, v)
		require.Zero(t, r.Attempts)
		require.Empty(t, r.History)
		shut, c.now = false, v.Due
		v, err = s.Step(t.Context(), &r, 1, ending(nil))
		require.NoError(t, err)
		require.Equal(t, retryjob.Succeeded, v.Status)
	})
	t.Run("a shutdown takes the lease back", func(t *testing.T) {
		c := &clock{epoch}
		s := stepper(evenly(1, sec), c)
		r := leased(c)
		ctx, cancel := context.WithCancelCause(t.Context())
		v, err := s.Step(ctx, &r, 1, func(ctx context.Context) error { cancel(retryjob.ErrShutdown); return ctx.Err() })
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.Pending, Due: epoch, Deferred: true}, v)
		_, err = s.Step(t.Context(), &r, 1, ending(nil))
		require.NoError(t, err)
	})
	t.Run("a leased job that expires unattempted has made no attempt", func(t *testing.T) {
		c := &clock{epoch}
		r := leased(c)
		c.pass(2 * sec)
		v, err := stepper(retry.Policy{TTL: sec}, c).Step(t.Context(), &r, 1, never(t))
		require.NoError(t, err)
		require.Equal(t, retry.TTLElapsed, v.Reason)
		require.Zero(t, r.Attempts)
		require.Empty(t, r.History)
	})
}

func TestLostAttempts(t *testing.T) {
	t.Run("lost attempts are recorded and decided about before the next is made", func(t *testing.T) {
		c := &clock{epoch}
		r := record(c)
		v, err := stepper(evenly(4, sec), c).Step(t.Context(), &r, 3, func(ctx context.Context) error {
			require.Equal(t, 2, r.Attempts)
			info, _ := retryjob.AttemptFrom(ctx)
			require.Equal(t, 3, info.Number)
			return errFlaky
		})
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(sec)}, v)
		require.Equal(t, 3, r.Attempts)
		require.Len(t, r.History, 3)
		for n, a := range r.History[:2] {
			require.Equal(t, r.AttemptID(n+1), a.ID)
			require.Equal(t, n+1, a.Number)
			require.Equal(t, retryjob.WaitingRetry, a.Status)
			require.Equal(t, retryjob.ErrLost.Error(), a.Err)
			require.True(t, a.End.IsZero())
			require.False(t, a.Due.IsZero(), "another attempt followed")
		}
	})
	t.Run("the last attempt, lost, makes a dead letter", func(t *testing.T) {
		for name, step := range map[string]func(*retryjob.Stepper, *retryjob.Record) (retryjob.Next, error){
			"Step": func(s *retryjob.Stepper, r *retryjob.Record) (retryjob.Next, error) {
				return s.Step(t.Context(), r, 4, never(t))
			},
			"Lost": func(s *retryjob.Stepper, r *retryjob.Record) (retryjob.Next, error) {
				return s.Lost(t.Context(), r, 3)
			},
		} {
			c := &clock{epoch}
			r := record(c)
			v, err := step(stepper(evenly(3, sec), c), &r)
			require.NoError(t, err, name)
			require.Equal(t, retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.AttemptsExhausted}, v, name)
			require.Equal(t, 3, r.Attempts, name)
			require.Len(t, r.History, 3, name)
			require.Equal(t, retryjob.DeadLettered, r.Last().Status, name)
			require.Equal(t, retry.AttemptsExhausted, r.Last().Reason, name)
			require.True(t, r.Last().Due.IsZero(), name)
			require.Equal(t, epoch, r.Ended, name)
			require.NoError(t, r.Validate(), name)
		}
	})
	t.Run("no more lost attempts are recorded than the policy allows", func(t *testing.T) {
		c := &clock{epoch}
		r := record(c)
		v, err := stepper(evenly(3, sec), c).Step(t.Context(), &r, 100, never(t))
		require.NoError(t, err)
		require.Equal(t, retry.AttemptsExhausted, v.Reason)
		require.Equal(t, 3, r.Attempts)
	})
	t.Run("a classifier may call lost attempts terminal", func(t *testing.T) {
		c := &clock{epoch}
		p := retry.Policy{Classify: retry.StopOn(retryjob.ErrLost)}
		r := record(c)
		v, err := stepper(p, c).Step(t.Context(), &r, 2, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.TerminalError}, v)
		r = record(c)
		v, err = stepper(p, c).Lost(t.Context(), &r, 1)
		require.NoError(t, err)
		require.Equal(t, retry.TerminalError, v.Reason)
	})
	t.Run("under a disabled policy the job has failed", func(t *testing.T) {
		c := &clock{epoch}
		r := record(c)
		v, err := stepper(retry.Policy{Disabled: true}, c).Step(t.Context(), &r, 2, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.FailedNoRetries, Reason: retry.RetriesDisabled}, v)
	})
	t.Run("Lost gives the delay that a failure would have had", func(t *testing.T) {
		c := &clock{epoch}
		p := retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}}
		lost, failed := record(c), record(c)
		v, err := stepper(p, c).Lost(t.Context(), &lost, 1)
		require.NoError(t, err)
		w, err := stepper(p, c).Step(t.Context(), &failed, 1, ending(errFlaky))
		require.NoError(t, err)
		require.Equal(t, w, v)
		require.Equal(t, v.Due, lost.Due)
		require.Equal(t, v.Due, lost.History[0].Due, "an attempt records when the attempt after it is due")
	})
	t.Run("Lost expires what the TTL forbids to wait for", func(t *testing.T) {
		for delay, want := range map[time.Duration]retryjob.Next{
			3 * sec:   {Status: retryjob.WaitingRetry, Due: epoch.Add(5 * sec)},
			3*sec + 1: {Status: retryjob.Expired, Reason: retry.TTLElapsed},
		} {
			c := &clock{epoch}
			p := evenly(5, delay)
			p.TTL = 5 * sec
			r := record(c)
			c.pass(2 * sec)
			v, err := stepper(p, c).Lost(t.Context(), &r, 1)
			require.NoError(t, err)
			require.Equal(t, want, v)
			require.Equal(t, 1, r.Attempts)
		}
	})
	t.Run("a delay that is over is not asked for again: Step heeds the TTL of the attempt alone", func(t *testing.T) {
		c := &clock{epoch}
		p := evenly(5, 3*sec)
		p.TTL = 5 * sec
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
		s := stepper(p, c)
		r := record(c)
		c.pass(5 * sec)
		v, err := s.Step(t.Context(), &r, 2, ending(nil))
		require.NoError(t, err)
		require.Equal(t, retryjob.Succeeded, v.Status)
		require.InDelta(t, 0.1, p.Budget.Tokens(), 1e-9, "the retry was paid for")
		r = record(c)
		c.pass(5*sec + 1)
		v, err = s.Step(t.Context(), &r, 2, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.Expired, Reason: retry.TTLElapsed}, v)
		require.InDelta(t, 0.1, p.Budget.Tokens(), 1e-9, "nothing is charged for what the TTL forbids")
	})
	t.Run("a budget without tokens makes a dead letter of a lost attempt", func(t *testing.T) {
		c := &clock{epoch}
		p := evenly(9, sec)
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 2})
		r := record(c)
		v, err := stepper(p, c).Step(t.Context(), &r, 7, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.BudgetExhausted}, v)
		require.Equal(t, 3, r.Attempts)
	})
	t.Run("an attempt lost before a shut gate is recorded once", func(t *testing.T) {
		c := &clock{epoch}
		p := evenly(3, sec)
		wait := 9 * sec
		p.Gate = func(context.Context) time.Duration { return wait }
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
		s := stepper(p, c)
		r := record(c)
		v, err := s.Step(t.Context(), &r, 2, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(9 * sec), Deferred: true}, v)
		wait, c.now = 0, v.Due
		v, err = s.Step(t.Context(), &r, 2, ending(nil))
		require.NoError(t, err)
		require.Equal(t, retryjob.Succeeded, v.Status)
		require.Len(t, r.History, 2)
	})
}

func TestTheEventOfALostAttemptIsOfWhenItWasFoundLost(t *testing.T) {
	for name, row := range map[string]struct {
		step  func(*retryjob.Stepper, *retryjob.Record) (retryjob.Next, error)
		delay time.Duration
	}{
		"Lost waits": {func(s *retryjob.Stepper, r *retryjob.Record) (retryjob.Next, error) {
			return s.Lost(t.Context(), r, 1)
		}, sec},
		"Step has waited": {func(s *retryjob.Stepper, r *retryjob.Record) (retryjob.Next, error) {
			return s.Step(t.Context(), r, 2, ending(nil))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clock{epoch}
			var events []retry.Event
			p := evenly(3, sec)
			p.Observe = func(_ context.Context, e retry.Event) { events = append(events, e) }
			r := record(c)
			r.Status, r.Attempts, r.Due = retryjob.Leased, 1, time.Time{}
			r.History = []retryjob.Attempt{{ID: r.AttemptID(1), Number: 1, Start: epoch, Status: retryjob.Leased}}
			c.pass(9 * sec)
			_, err := row.step(stepper(p, c), &r)
			require.NoError(t, err)
			lost := events[0]
			require.Equal(t, 9*sec, lost.Elapsed)
			require.Equal(t, epoch, lost.Attempt.Start)
			require.Equal(t, row.delay, lost.Attempt.Delay)
			require.Equal(t, row.delay, lost.Decision.Delay)
			require.Equal(t, sec, lost.Decision.Backoff)
			require.Equal(t, epoch.Add(9*sec+row.delay), r.History[0].Due)
		})
	}
}
