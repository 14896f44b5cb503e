package jobtest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// observing has the claims about the calls of a policy's Observe and Budget.
var observing = []scenario{
	{claim: "Observe can replay a job from its final event", play: func(s *stage) {
		var d diary
		replayed := make(chan error, 1)
		p := fixed(1, short)
		p.Observe = func(ctx context.Context, e retry.Event) {
			if info, _ := retryjob.AttemptFrom(ctx); e.Outcome != nil && e.Outcome.Status == retry.DeadLettered {
				replayed <- s.q.Replay(ctx, info.JobID)
			}
		}
		s.open(policies{"p": p}, d.mended(errFlaky))
		s.enqueue("again", "p")
		require.NoError(s.t, receive(s, replayed, "the final event"))
		i := s.until("again", "is replayed", func(i retryjob.Info) bool { return i.Status.Final() && i.Replays == 1 })
		require.Equal(s.t, retryjob.Succeeded, i.Status)
	}},

	{claim: "a panic of Observe at a failed attempt leaves its error, the decision and the token", play: func(s *stage) {
		var d diary
		var mu sync.Mutex
		told := 0
		p := fixed(3, short)
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 3, Ratio: 0.001})
		p.Observe = func(_ context.Context, e retry.Event) {
			mu.Lock()
			defer mu.Unlock()
			if told++; e.Outcome == nil {
				panic("the log is full")
			}
		}
		s.open(policies{"p": p}, d.script(errFlaky))
		s.enqueue("observed", "p")
		i := s.ends("observed", retryjob.Succeeded, 0, 2)
		require.Len(s.t, d.all(), 2)
		require.Contains(s.t, i.History[0].Err, errFlaky.Error())
		require.Contains(s.t, i.History[0].Err, `after it was decided: retryjob: a function of policy "p" panicked: the log is full`)
		s.poll("the end is told", func() bool { mu.Lock(); defer mu.Unlock(); return told == 2 })
		require.InDelta(s.t, 2, p.Budget.Tokens(), 0.01)
	}},

	{claim: "a waiting job that is canceled runs no more, gives its end to Observe, and its token back", play: func(s *stage) {
		var d diary
		ends := make(chan retry.Event, 2)
		p := fixed(5, s.far())
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 3})
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Outcome != nil {
				ends <- e
			}
		}
		s.open(policies{"p": p, "last": fixed(2, 99*s.unit)}, d.always(errFlaky))
		s.enqueue("waiting", "p")
		s.reaches("waiting", retryjob.WaitingRetry)
		s.put(retryjob.Job{ID: "pending", Kind: kind, Policy: "p", Due: time.Now().Add(s.far())})
		require.InDelta(s.t, 2, p.Budget.Tokens(), 0.01)
		for attempts, id := range []string{1: "waiting", 0: "pending"} {
			require.NoError(s.t, s.q.Cancel(s.t.Context(), id))
			e := receive(s, ends, "the end of "+id)
			require.Equal(s.t, []any{retry.Canceled, retry.CallerCanceled, attempts}, []any{e.Outcome.Status, e.Outcome.Reason, e.Outcome.Attempts})
			require.ErrorIs(s.t, e.Err, retry.CallerCanceled)
			i := s.ends(id, retryjob.Canceled, retry.CallerCanceled, attempts)
			require.True(s.t, i.Due.IsZero() && !i.Ended.IsZero())
			require.Error(s.t, s.q.Cancel(s.t.Context(), id), "what is final is not canceled again")
		}
		require.InDelta(s.t, 3, p.Budget.Tokens(), 0.01)
		s.put(retryjob.Job{ID: "after", Kind: kind, Policy: "last", Due: time.Now().Add(s.far() + s.unit)})
		s.reaches("after", retryjob.WaitingRetry)
		require.Len(s.t, d.all(), 2, "of waiting and after, one each")
		require.Empty(s.t, ends, "each ends once")
	}},

	{claim: "an ID that is used again while its canceled attempt runs never has two attempts of one AttemptID", play: func(s *stage) {
		var d diary
		begun, release := make(chan struct{}, 9), make(chan struct{})
		free := sync.OnceFunc(func() { close(release) })
		p := fixed(3, short)
		p.AttemptTimeout = s.unit
		s.open(policies{"p": p}, func(ctx context.Context, job retryjob.Job) error {
			d.note(ctx, job)
			begun <- struct{}{}
			<-release // whatever ctx says
			return nil
		})
		s.t.Cleanup(free)
		again := retryjob.Job{ID: "again", Kind: kind, Policy: "p"}
		s.put(again)
		receive(s, begun, "the attempt")
		s.pass(s.unit / 50) // in virtual time, both jobs could be due at the same nanosecond
		require.NoError(s.t, s.q.Cancel(s.t.Context(), "again"))
		_, err := s.q.Purge(s.t.Context(), retryjob.Filter{})
		require.NoError(s.t, err)
		if _, err = s.q.Enqueue(s.t.Context(), again); err != nil {
			require.ErrorIs(s.t, err, retryjob.ErrDuplicate)
		} else {
			receive(s, begun, "the attempt of the second job")
		}
		free()
		s.poll("the ID is free again", func() bool {
			_, _ = s.q.Purge(s.t.Context(), retryjob.Filter{})
			_, err := s.q.Enqueue(s.t.Context(), again)
			return err == nil
		})
		s.final("again")
		seen := map[string]bool{}
		for _, a := range d.all() {
			require.False(s.t, seen[a.AttemptID], a.AttemptID)
			seen[a.AttemptID] = true
		}
	}},
}
