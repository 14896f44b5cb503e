package jobtest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// crashing has the claims about durable engines whose process dies.
var crashing = []scenario{
	{claim: "a crash loses no job that waits and no record of one that has ended", needs: aCrash, play: func(s *stage) {
		var d diary
		var mended atomic.Bool
		s.open(policies{"p": fixed(2, s.far()), "one": fixed(1, short)}, func(ctx context.Context, job retryjob.Job) error {
			d.note(ctx, job)
			if mended.Load() {
				return nil
			}
			return errFlaky
		})
		s.enqueue("dead", "one")
		dead := s.final("dead")
		s.put(retryjob.Job{ID: "pending", Kind: kind, Policy: "p", Due: time.Now().Add(s.far()), Payload: []byte(`{"a":1}`), Correlation: "trace"})
		s.enqueue("waiting", "p")
		waiting := s.reaches("waiting", retryjob.WaitingRetry)
		mended.Store(true)
		s.crash()
		require.Equal(s.t, asJSON(s, dead), asJSON(s, s.get("dead")))
		for id, attempts := range map[string]int{"waiting": 2, "pending": 1} {
			s.ends(id, retryjob.Succeeded, 0, attempts)
		}
		require.Equal(s.t, asJSON(s, waiting.History[0]), asJSON(s, s.get("waiting").History[0]))
		i := s.get("pending")
		require.Equal(s.t, "trace", i.Correlation)
		sameJSON(s, `{"a": 1}`, i.Payload)
		require.NoError(s.t, s.q.Replay(s.t.Context(), "dead"))
		s.until("dead", "is replayed", func(i retryjob.Info) bool { return i.Status == retryjob.Succeeded && i.Replays == 1 })
	}},

	{claim: "an attempt that was under way in a crash counts as lost, and the next one is made", needs: aCrash, play: func(s *stage) {
		made := s.dieIn("under way", fixed(3, short))
		i := s.ends("under way", retryjob.Succeeded, 0, 2)
		lost := i.History[0]
		require.Equal(s.t, 1, lost.Number)
		require.Equal(s.t, retryjob.WaitingRetry, lost.Status)
		require.Equal(s.t, retryjob.ErrLost.Error(), lost.Err)
		require.True(s.t, lost.End.IsZero())
		require.NotEqual(s.t, lost.ID, i.History[1].ID)
		require.Equal(s.t, []int{1, 2}, made())
	}},
}

// dieIn enqueues a job whose first attempt is under way in a crash two units later, or after its TTL if that is longer;
// later attempts succeed. It returns a function for the numbers of the attempts that were begun.
func (s *stage) dieIn(id string, p retry.Policy) (made func() []int) {
	s.t.Helper()
	var d diary
	begun, release := make(chan struct{}), make(chan error)
	s.t.Cleanup(func() { close(release) })
	var crashed atomic.Bool
	hold := wait(begun, release)
	s.open(policies{"p": p, "early": {}}, func(ctx context.Context, job retryjob.Job) error {
		if job.Policy == "early" {
			return nil
		}
		d.note(ctx, job)
		if crashed.Load() {
			return nil
		}
		return hold(ctx, job)
	})
	s.enqueue("early", "early") // so that the start of the engine takes nothing of a TTL
	s.until("early", "is done", func(i retryjob.Info) bool { return i.Status == retryjob.Succeeded })
	s.enqueue(id, "p")
	receive(s, begun, "the attempt")
	s.pass(max(2*s.unit, p.TTL))
	crashed.Store(true)
	s.crash()
	return func() (numbers []int) {
		for _, a := range d.all() {
			numbers = append(numbers, a.Number)
		}
		return numbers
	}
}
