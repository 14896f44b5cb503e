package retryjob_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// leased returns a trial whose first attempt is leased, and was begun at the epoch.
func leased(t *testing.T, p retry.Policy) *trial {
	x := newTrial(t, p)
	x.r.Status, x.r.Attempts, x.r.Due = retryjob.Leased, 1, time.Time{}
	x.r.History = []retryjob.Attempt{{ID: x.r.AttemptID(1), Number: 1, Start: epoch, Status: retryjob.Leased}}
	return x
}

func TestStepOfALeasedRecord(t *testing.T) {
	t.Run("Step makes the attempt that it is leased for", func(t *testing.T) {
		x := leased(t, evenly(3, sec))
		require.Equal(t, retryjob.WaitingRetry, x.step(1, ending(errFlaky)).Status)
		require.Equal(t, 1, x.r.Attempts)
		require.Len(t, x.r.History, 1)
		require.Equal(t, "flaky", x.r.History[0].Err)
	})
	t.Run("Step records no lost attempt if the lease was not counted", func(t *testing.T) {
		x := leased(t, evenly(3, sec))
		x.r.Attempts, x.r.History = 0, nil
		x.step(1, ending(errFlaky))
		require.Equal(t, 1, x.r.Attempts)
		require.Len(t, x.r.History, 1)
	})
	t.Run("Step records a lost attempt before it makes the next", func(t *testing.T) {
		x := leased(t, evenly(3, sec))
		x.c.pass(sec)
		require.Equal(t, retryjob.Succeeded, x.step(2, ending(nil)).Status)
		require.Len(t, x.r.History, 2)
		require.Equal(t, retryjob.Attempt{
			ID: x.r.AttemptID(1), Number: 1, Start: epoch, Due: epoch.Add(sec), Status: retryjob.WaitingRetry, Err: retryjob.ErrLost.Error(),
		}, x.r.History[0])
	})
	t.Run("Lost records the leased attempt", func(t *testing.T) {
		x := leased(t, evenly(3, sec))
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(sec)}, x.lost(1))
		require.Len(t, x.r.History, 1)
	})
	t.Run("a gate takes the lease back: the attempt does not count", func(t *testing.T) {
		p, wait := evenly(1, sec), sec
		p.Gate = func(context.Context) time.Duration { return wait }
		x := leased(t, p)
		next := x.step(1, never(t))
		require.Equal(t, retryjob.Next{Status: retryjob.Pending, Due: epoch.Add(sec), Deferred: true}, next)
		require.Zero(t, x.r.Attempts)
		require.Empty(t, x.r.History)
		wait, x.c.now = 0, next.Due
		require.Equal(t, retryjob.Succeeded, x.step(1, ending(nil)).Status)
	})
	t.Run("a shutdown takes the lease back", func(t *testing.T) {
		x := leased(t, evenly(1, sec))
		ctx, cancel := context.WithCancelCause(t.Context())
		next := x.stepIn(ctx, 1, func(ctx context.Context) error { cancel(retryjob.ErrShutdown); return ctx.Err() })
		require.Equal(t, retryjob.Next{Status: retryjob.Pending, Due: epoch, Deferred: true}, next)
		x.step(1, ending(nil))
	})
	t.Run("a leased job that expires unattempted has made no attempt", func(t *testing.T) {
		x := leased(t, retry.Policy{TTL: sec})
		x.c.pass(2 * sec)
		require.Equal(t, retry.TTLElapsed, x.step(1, never(t)).Reason)
		require.Zero(t, x.r.Attempts)
		require.Empty(t, x.r.History)
	})
}

func TestLostAttempts(t *testing.T) {
	t.Run("lost attempts are recorded and decided about before the next is made", func(t *testing.T) {
		x := newTrial(t, evenly(4, sec))
		next := x.step(3, func(ctx context.Context) error {
			require.Equal(t, 2, x.r.Attempts)
			info, _ := retryjob.AttemptFrom(ctx)
			require.Equal(t, 3, info.Number)
			return errFlaky
		})
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(sec)}, next)
		require.Equal(t, 3, x.r.Attempts)
		require.Len(t, x.r.History, 3)
		for n, a := range x.r.History[:2] {
			require.False(t, a.Due.IsZero(), "another attempt followed")
			a.Due = time.Time{}
			require.Equal(t, retryjob.Attempt{ID: x.r.AttemptID(n + 1), Number: n + 1, Status: retryjob.WaitingRetry, Err: retryjob.ErrLost.Error()}, a)
		}
	})
	t.Run("the last attempt, lost, ends the job", func(t *testing.T) {
		exhausted := retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.AttemptsExhausted}
		terminal := retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.TerminalError}
		budget := evenly(9, sec)
		for _, row := range []struct {
			name     string
			policy   retry.Policy
			tokens   int // of a budget; 0 means none
			lost     int // attempts
			want     retryjob.Next
			attempts int
		}{
			{"all that the policy allows", evenly(3, sec), 0, 3, exhausted, 3},
			{"no more are recorded than the policy allows", evenly(3, sec), 0, 99, exhausted, 3},
			{"a classifier may call lost attempts terminal", retry.Policy{Classify: retry.StopOn(retryjob.ErrLost)}, 0, 1, terminal, 1},
			{"under a disabled policy the job has failed", retry.Policy{Disabled: true}, 0, 1, retryjob.Next{Status: retryjob.FailedNoRetries, Reason: retry.RetriesDisabled}, 1},
			{"a budget without tokens makes a dead letter", budget, 2, 6, retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.BudgetExhausted}, 3},
		} {
			for name, notice := range map[string]func(*trial) retryjob.Next{
				"Step": func(x *trial) retryjob.Next { return x.step(row.lost+1, never(t)) },
				"Lost": func(x *trial) retryjob.Next { return x.lost(row.lost) },
			} {
				if row.tokens > 0 {
					row.policy.Budget = retry.NewBudget(retry.BudgetConfig{Initial: row.tokens})
				}
				x := newTrial(t, row.policy)
				require.Equal(t, row.want, notice(x), "%s: %s", row.name, name)
				require.Equal(t, row.attempts, x.r.Attempts, row.name)
				require.Len(t, x.r.History, row.attempts, row.name)
				last := retryjob.Attempt{ID: x.r.AttemptID(row.attempts), Number: row.attempts, Status: row.want.Status, Reason: row.want.Reason, Err: retryjob.ErrLost.Error()}
				require.Equal(t, last, x.r.Last(), row.name)
				require.Equal(t, epoch, x.r.Ended, row.name)
			}
		}
	})
	t.Run("Lost gives the delay that a failure would have had", func(t *testing.T) {
		p := retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}}
		lost := newTrial(t, p)
		next := lost.lost(1)
		require.Equal(t, newTrial(t, p).step(1, ending(errFlaky)), next)
		require.Equal(t, next.Due, lost.r.History[0].Due, "an attempt records when the attempt after it is due")
	})
	t.Run("Lost expires what the TTL forbids to wait for", func(t *testing.T) {
		for delay, want := range map[time.Duration]retryjob.Next{
			3 * sec:   {Status: retryjob.WaitingRetry, Due: epoch.Add(5 * sec)},
			3*sec + 1: {Status: retryjob.Expired, Reason: retry.TTLElapsed},
		} {
			p := evenly(5, delay)
			p.TTL = 5 * sec
			x := newTrial(t, p)
			x.c.pass(2 * sec)
			require.Equal(t, want, x.lost(1))
			require.Equal(t, 1, x.r.Attempts)
		}
	})
	t.Run("a delay that is over is not asked for again: Step heeds the TTL of the attempt alone", func(t *testing.T) {
		p := evenly(5, 3*sec)
		p.TTL = 5 * sec
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
		x := newTrial(t, p)
		x.c.pass(5 * sec)
		require.Equal(t, retryjob.Succeeded, x.step(2, ending(nil)).Status)
		require.InDelta(t, 0.1, p.Budget.Tokens(), 1e-9, "the retry was paid for")
		x = newTrial(t, p)
		x.c.pass(5*sec + 1)
		require.Equal(t, retryjob.Next{Status: retryjob.Expired, Reason: retry.TTLElapsed}, x.step(2, never(t)))
		require.InDelta(t, 0.1, p.Budget.Tokens(), 1e-9, "nothing is charged for what the TTL forbids")
	})
	t.Run("an attempt lost before a shut gate is recorded once", func(t *testing.T) {
		p, wait := evenly(3, sec), 9*sec
		p.Gate = func(context.Context) time.Duration { return wait }
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
		x := newTrial(t, p)
		next := x.step(2, never(t))
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(9 * sec), Deferred: true}, next)
		wait, x.c.now = 0, next.Due
		require.Equal(t, retryjob.Succeeded, x.step(2, ending(nil)).Status)
		require.Len(t, x.r.History, 2)
	})
	t.Run("of several only the wait after the last one has not passed", func(t *testing.T) {
		x := newTrial(t, retry.Policy{TTL: 10 * sec, Backoff: retry.Backoff{Delays: []time.Duration{time.Hour, sec, time.Hour}}})
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(sec)}, x.lost(2))
		require.Equal(t, retryjob.Next{Status: retryjob.Expired, Reason: retry.TTLElapsed}, x.lost(3))
		require.Equal(t, 3, x.r.Attempts)
	})
}

func TestTheEventOfALostAttemptIsOfWhenItWasFoundLost(t *testing.T) {
	for name, row := range map[string]struct {
		step  func(*trial)
		delay time.Duration
	}{
		"Lost waits":      {func(x *trial) { x.lost(1) }, sec},
		"Step has waited": {func(x *trial) { x.step(2, ending(nil)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var events told
			p := evenly(3, sec)
			p.Observe = events.observe
			x := leased(t, p)
			x.c.pass(9 * sec)
			row.step(x)
			lost := events[0]
			require.Equal(t, []time.Duration{9 * sec, row.delay, row.delay, sec},
				[]time.Duration{lost.Elapsed, lost.Attempt.Delay, lost.Decision.Delay, lost.Decision.Backoff})
			require.Equal(t, epoch, lost.Attempt.Start)
			require.Equal(t, epoch.Add(9*sec+row.delay), x.r.History[0].Due)
		})
	}
}
