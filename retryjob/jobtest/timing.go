package jobtest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// timing is when attempts start.
var timing = []scenario{
	{claim: "a job that its handler puts off makes the same attempt later, is no failure and takes no token, and its record counts it", play: func(s *stage) {
		var d diary
		var observed atomic.Int32
		budget := retry.NewBudget(retry.BudgetConfig{Burst: 1})
		before := budget.Tokens()
		p := fixed(2, s.unit/2)
		p.Budget = budget
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Outcome == nil {
				observed.Add(1)
			}
		}
		first := s.far() // until looks between the turns
		turns := []error{retryjob.Snooze(first), fmt.Errorf("not ready: %w", retryjob.Snooze(s.unit)), errFlaky, retryjob.Snooze(0), nil}
		s.open(policies{"p": p}, func(ctx context.Context, job retryjob.Job) error {
			d.note(ctx, job)
			return turns[len(d.all())-1]
		})
		s.enqueue("later", "p")
		i := s.until("later", "is put off", func(i retryjob.Info) bool { return i.PutOff == 1 && i.Status == retryjob.Pending })
		require.Equal(s.t, []any{0, ""}, []any{i.Attempts, i.LastErr()})
		require.Equal(s.t, before, budget.Tokens())
		i = s.ends("later", retryjob.Succeeded, 0, 2)
		require.Equal(s.t, 3, i.PutOff)
		require.Len(s.t, i.History, 2)
		require.EqualValues(s.t, 1, observed.Load(), "the one failure")
		attempts := d.all()
		var numbers []int
		for _, a := range attempts {
			numbers = append(numbers, a.Number)
		}
		require.Equal(s.t, []int{1, 1, 1, 2, 2}, numbers)
		for n, wait := range []time.Duration{first, s.unit} {
			require.GreaterOrEqual(s.t, attempts[n+1].at.Sub(attempts[n].at), wait-time.Millisecond)
		}
	}},

	{claim: "an attempt that got something done counts as the first, in the record too", play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(2, short)}, func(ctx context.Context, job retryjob.Job) error {
			switch n := d.note(ctx, job).Number; {
			case n <= 5:
				return retry.Progressed(errFlaky)
			case n == 6:
				return errFlaky
			}
			return nil
		})
		s.enqueue("long", "p")
		i := s.ends("long", retryjob.DeadLettered, retry.AttemptsExhausted, 6)
		require.Equal(s.t, 4, i.Forgiven)
	}},

	{claim: "a job that is put off beyond its TTL is expired at once", play: func(s *stage) {
		var d diary
		p := fixed(5, s.unit)
		p.TTL = 9 * s.unit
		s.open(policies{"p": p}, d.always(retryjob.Snooze(10*s.unit)))
		s.enqueue("late", "p")
		i := s.ends("late", retryjob.Expired, retry.TTLElapsed, 0)
		require.Len(s.t, d.all(), 1)
		require.Zero(s.t, i.PutOff)
		require.Less(s.t, i.Ended.Sub(i.FirstDue), 9*s.unit, "no later than it is known")
	}},

	{claim: "a new job starts at once, the delays of a list are kept to the letter, and no attempt is early", play: func(s *stage) {
		var d diary
		delays := []time.Duration{s.unit, 3 * s.unit, 2 * s.unit}
		s.open(policies{"p": {Backoff: retry.Backoff{Delays: delays}}}, d.always(errFlaky))
		before := time.Now()
		s.enqueue("listed", "p")
		i := s.final("listed")
		require.False(s.t, i.FirstDue.Before(before.Truncate(time.Millisecond)))
		all := d.all()
		require.Len(s.t, all, 4)
		require.Len(s.t, i.History, 4)
		s.onTime(i.FirstDue, all[0].at)
		for n, delay := range delays {
			require.Equal(s.t, delay, i.History[n].Due.Sub(i.History[n].End), "the wait after attempt %d", n+1)
			s.onTime(i.History[n].Due, all[n+1].at)
		}
		require.Equal(s.t, retry.AttemptsExhausted, i.Reason)
	}},

	{claim: "a job with a due time waits for it, and its TTL begins then, or at once for a time in the past", play: func(s *stage) {
		var d diary
		p := fixed(2, s.unit/4)
		p.TTL = 8 * s.unit
		s.open(policies{"p": p}, d.script(errFlaky))
		due := time.Now().Add(9 * s.unit).Round(time.Millisecond)
		s.put(retryjob.Job{ID: "later", Kind: kind, Policy: "p", Due: due})
		i := s.get("later")
		require.Equal(s.t, retryjob.Pending, i.Status)
		require.True(s.t, i.Due.Equal(due), "%v is not %v", i.Due, due)
		require.True(s.t, i.FirstDue.Equal(due), "%v is not %v", i.FirstDue, due)
		require.Equal(s.t, retryjob.Succeeded, s.final("later").Status)
		s.onTime(due, d.all()[0].at)
		s.put(retryjob.Job{ID: "at once", Kind: kind, Policy: "p", Due: time.Now().Add(-99 * s.unit)})
		i = s.final("at once")
		require.Equal(s.t, retryjob.Succeeded, i.Status, "the TTL counts from the enqueuing")
		s.onTime(i.FirstDue, i.History[0].Start)
	}},

	{claim: "decorrelated jitter remembers its last delay from attempt to attempt", play: func(s *stage) {
		p := retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Base: s.unit / 4, Cap: s.unit, Jitter: retry.DecorrelatedJitter}}
		var d diary
		s.open(policies{"p": p}, d.always(errFlaky))
		s.enqueue("grown", "p")
		i := s.final("grown")
		require.Len(s.t, i.History, 5)
		prev := p.Base
		for _, a := range i.History[:4] {
			wait := a.Due.Sub(a.End)
			require.GreaterOrEqual(s.t, wait, p.Base)
			require.LessOrEqual(s.t, wait, min(3*prev, p.Cap))
			prev = wait
		}
	}},

	{claim: "an attempt's context ends after AttemptTimeout with ErrAttemptTimeout as its cause, and its record says so", play: func(s *stage) {
		var d diary
		causes := make(chan error, 2)
		p := fixed(2, short)
		p.AttemptTimeout = s.unit
		s.open(policies{"p": p}, func(ctx context.Context, job retryjob.Job) error {
			d.note(ctx, job)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		s.enqueue("slow", "p")
		i := s.final("slow")
		require.Equal(s.t, retry.AttemptsExhausted, i.Reason, "an attempt's own timeout is retried")
		require.Len(s.t, i.History, 2)
		for n, a := range i.History {
			require.ErrorIs(s.t, receive(s, causes, "the cause"), retry.ErrAttemptTimeout)
			require.Equal(s.t, "attempt timeout: context deadline exceeded", a.Err)
			s.onTime(d.all()[n].at.Add(s.unit), a.End)
		}
	}},

	{claim: "the HTTP status of an error is recorded, and its Retry-After obeyed, without an option", play: func(s *stage) {
		var d diary
		p := fixed(2, s.unit/10)
		p.MaxHint = 4 * s.unit
		s.open(policies{"p": p}, d.script(fmt.Errorf("delivery: %w", &refusal{429, 2 * s.unit})))
		s.enqueue("refused", "p")
		i := s.final("refused")
		require.Equal(s.t, "429", i.History[0].Code)
		require.Equal(s.t, 2*s.unit, i.History[0].Due.Sub(i.History[0].End))
		s.onTime(i.History[0].Due, d.all()[1].at)
		require.Empty(s.t, i.History[1].Code)
	}},

	{claim: "a gate defers an attempt, the first or the second, and does not count it", play: func(s *stage) {
		var d diary
		p := fixed(2, short)
		var mu sync.Mutex
		opens := map[int]time.Time{}
		p.Gate = func(ctx context.Context) time.Duration { // closed once before each attempt, so that each other asking finds it open
			mu.Lock()
			defer mu.Unlock()
			a, _ := retryjob.AttemptFrom(ctx)
			if opens[a.Number].IsZero() {
				opens[a.Number] = time.Now().Add(s.far())
			}
			return time.Until(opens[a.Number])
		}
		s.open(policies{"p": p}, d.script(errFlaky))
		s.enqueue("shut out", "p")
		i := s.until("shut out", "is deferred or done", func(i retryjob.Info) bool {
			return i.Status.Final() || i.Status == retryjob.Pending && i.Due.After(i.FirstDue.Add(s.unit/2))
		})
		require.Equal(s.t, []any{retryjob.Pending, 0}, []any{i.Status, i.Attempts})
		require.Empty(s.t, i.History)
		s.ends("shut out", retryjob.Succeeded, 0, 2)
		all := d.all()
		require.Len(s.t, all, 2)
		mu.Lock()
		defer mu.Unlock()
		for n, a := range all {
			require.Equal(s.t, n+1, a.Number)
			require.False(s.t, a.at.Before(opens[n+1].Add(-time.Millisecond)), "attempt %d was early", n+1)
		}
	}},

	{claim: "a job whose TTL is over before a worker is free expires unattempted", play: func(s *stage) {
		var d diary
		free := s.busy(policies{"brief": {TTL: s.unit}}, d.script())
		i := s.get(s.enqueue("crowded out", "brief").ID())
		s.pass(time.Until(i.FirstDue.Add(2 * s.unit)))
		free(nil)
		i = s.ends("crowded out", retryjob.Expired, retry.TTLElapsed, 0)
		require.Empty(s.t, i.History)
		require.Empty(s.t, d.all())
	}},
}

// wait returns a handler that sends to begun when it starts, and ends with the next error from release, with nil once that
// is closed, or with its context.
func wait(begun chan<- struct{}, release <-chan error) retryjob.Handler {
	return func(ctx context.Context, _ retryjob.Job) error {
		select {
		case begun <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-release:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
