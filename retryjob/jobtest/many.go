package jobtest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
)

// many has the claims about many jobs at once.
var many = []scenario{
	{claim: "EnqueueMany keeps all jobs, in their order", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {}}, d.script())
		var jobs []retryjob.Job
		for i := range 200 {
			jobs = append(jobs, retryjob.Job{ID: fmt.Sprintf("job-%03d", i), Kind: kind, Policy: "p", Payload: fmt.Appendf(nil, `{"n":%d}`, i)})
		}
		jobs[7].ID, jobs[8].Due = "", time.Now().Add(s.unit)
		handles, err := s.q.EnqueueMany(s.t.Context(), jobs)
		require.NoError(s.t, err)
		require.Len(s.t, handles, len(jobs))
		require.Empty(s.t, jobs[7].ID, "the caller's own")
		for i, h := range handles {
			if i != 7 {
				require.Equal(s.t, jobs[i].ID, h.ID())
			}
			info, err := h.Wait(s.t.Context())
			require.NoError(s.t, err)
			require.Equal(s.t, retryjob.Succeeded, info.Status)
			require.JSONEq(s.t, string(jobs[i].Payload), string(info.Payload))
		}
		require.Len(s.t, d.all(), len(jobs))
		none, err := s.q.EnqueueMany(s.t.Context(), nil)
		require.NoError(s.t, err)
		require.Empty(s.t, none)
	}},

	{claim: "EnqueueMany with one job that is refused keeps none", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {}}, d.script())
		s.enqueue("there", "p")
		s.final("there")
		for _, refused := range []struct {
			job retryjob.Job
			err error
		}{
			{retryjob.Job{ID: "there", Kind: kind, Policy: "p"}, retryjob.ErrDuplicate},
			{retryjob.Job{ID: "first", Kind: kind, Policy: "p"}, retryjob.ErrDuplicate},
			{retryjob.Job{Kind: kind, Policy: "q"}, retryjob.ErrUnknownPolicy},
			{retryjob.Job{Kind: "nobody", Policy: "p"}, retryjob.ErrUnknownKind},
		} {
			_, err := s.q.EnqueueMany(s.t.Context(), []retryjob.Job{
				{ID: "first", Kind: kind, Policy: "p"}, refused.job, {ID: "last", Kind: kind, Policy: "p"},
			})
			require.ErrorIs(s.t, err, refused.err)
		}
		require.Equal(s.t, []string{"there"}, ids(s, s.q.List(s.t.Context(), retryjob.Filter{})))
		require.Len(s.t, d.all(), 1)
	}},

	{claim: "a list goes on after any of its jobs, also after one that is gone", play: func(s *stage) {
		s.deadLetters(7)
		ctx := s.t.Context()
		var all []retryjob.Info
		for i, err := range s.q.List(ctx, retryjob.Filter{}) {
			require.NoError(s.t, err)
			all = append(all, i)
		}
		require.Len(s.t, all, 7)
		for n := range all {
			var want []string
			for _, i := range all[n+1:] {
				want = append(want, i.JobID)
			}
			require.Equal(s.t, want, ids(s, s.q.List(ctx, retryjob.Filter{After: all[n].Cursor(), PageSize: 2})))
		}
		_, err := s.q.Purge(ctx, retryjob.Filter{IDs: []string{all[2].JobID}})
		require.NoError(s.t, err)
		require.Equal(s.t, []string{all[3].JobID}, ids(s, s.q.List(ctx, retryjob.Filter{After: all[2].Cursor(), Limit: 1})))
	}},
}
