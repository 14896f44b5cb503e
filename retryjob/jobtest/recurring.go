package jobtest

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
)

// recurring has the claims about jobs that come back.
var recurring = []scenario{
	{claim: "a recurring job is due a delay after the end of the one before it, and retried by its policy", play: func(s *stage) {
		var d diary
		s.recur(&d, retryjob.AfterEnd(s.unit))
		made := s.occurrences(3)
		for n, i := range made {
			require.Equal(s.t, retryjob.Succeeded, i.Status)
			require.Equal(s.t, 2, i.Attempts, "its policy retried it")
			require.Equal(s.t, []string{"recurring", "recurring_beat"}, i.Tags)
			if n > 0 {
				require.WithinDuration(s.t, made[n-1].Ended.Add(s.unit), i.FirstDue, 2*time.Millisecond)
				require.GreaterOrEqual(s.t, i.History[0].Start.Sub(made[n-1].Ended), s.unit-2*time.Millisecond)
			}
		}
	}},

	{claim: "a recurring job comes back once after a crash", needs: aCrash, play: func(s *stage) {
		var d diary
		s.recur(&d, retryjob.AtRate(s.unit))
		s.occurrences(1)
		s.crash()
		s.occurrences(4)
	}},

	{claim: "two engines on the same data make each occurrence once", needs: aSuspension, play: func(s *stage) {
		var d diary
		s.recur(&d, retryjob.AfterEnd(s.unit/2))
		other, resume := s.h.Suspend(s.t, s.q)
		resume()
		defer func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, _ = other.Shutdown(ctx)
		}()
		s.occurrences(4)
		counts := map[string]int{}
		for _, a := range d.all() {
			counts[a.AttemptID]++
			require.Equal(s.t, 1, counts[a.AttemptID])
		}
	}},
}

// recur opens an engine whose job "beat" comes back. Its first attempt fails.
func (s *stage) recur(d *diary, next func(due, ended time.Time) time.Time) {
	s.openWith(retryjob.Options{
		Policies:  retryjob.FromMap(policies{"p": fixed(2, short)}),
		Handlers:  map[string]retryjob.Handler{kind: d.script(errFlaky)},
		Recurring: []retryjob.Recurring{{Name: "beat", Job: retryjob.Job{Kind: kind, Policy: "p"}, Next: next}},
	})
}

// occurrences waits until at least n occurrences have ended, and returns them, the first one first. At no time are
// there two that have not.
func (s *stage) occurrences(n int) (made []retryjob.Info) {
	s.t.Helper()
	s.poll("the occurrences have ended", func() bool {
		made = nil
		open := 0
		for i, err := range s.q.List(s.t.Context(), retryjob.Filter{Tags: []string{"recurring_beat"}}) {
			require.NoError(s.t, err)
			if i.Status.Final() {
				made = append(made, i)
			} else {
				open++
			}
		}
		require.LessOrEqual(s.t, open, 1)
		return len(made) >= n
	})
	slices.Reverse(made)
	for n, i := range made[1:] {
		require.False(s.t, i.History[0].Start.Before(made[n].Ended.Add(-time.Millisecond)), "two of one name overlap")
	}
	return made
}
