package jobtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// replaying has the claims about replays.
var replaying = []scenario{
	{claim: "a replay is the same job from its first attempt on, and keeps how it had failed and whether its work may have been done", play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(3, short)}, d.script(errFlaky, retry.Ambiguous(errFlaky)))
		s.put(retryjob.Job{ID: "again", Kind: kind, Policy: "p", Correlation: "trace"})
		var lives []retryjob.Life
		seen := map[string]bool{}
		for n := range 10 {
			before := time.Now()
			if n > 0 {
				require.NoError(s.t, s.q.Replay(s.t.Context(), "again"))
			}
			i := s.until("again", "has failed", func(i retryjob.Info) bool { return i.Status.Final() && i.Replays == n })
			require.Equal(s.t, []any{retryjob.DeadLettered, retry.TerminalError, "trace", 2}, []any{i.Status, i.Reason, i.Correlation, i.Attempts})
			require.NoError(s.t, i.Validate())
			require.Len(s.t, i.History, 2)
			require.Equal(s.t, []any{1, 2, true}, []any{i.History[0].Number, i.Last().Number, i.Last().Ambiguous})
			if n > 0 {
				require.False(s.t, i.FirstDue.Before(before.Truncate(time.Millisecond)), "FirstDue is the old one")
				s.onTime(i.FirstDue, i.History[0].Start)
			}
			require.Len(s.t, i.Earlier, min(n, 8))
			for earlier, life := range i.Earlier {
				was := lives[n-len(i.Earlier)+earlier]
				require.WithinDuration(s.t, was.FirstDue, life.FirstDue, time.Millisecond)
				require.WithinDuration(s.t, was.Ended, life.Ended, time.Millisecond)
				life.FirstDue, life.Ended = was.FirstDue, was.Ended
				require.Equal(s.t, was, life)
			}
			lives = append(lives, retryjob.Life{FirstDue: i.FirstDue, Ended: i.Ended, Status: i.Status, Reason: i.Reason, Attempts: 2, Err: i.Last().Err, Ambiguous: true})
			for number, a := range d.all()[2*n:] {
				require.Equal(s.t, []any{"again", "trace", n, number + 1}, []any{a.JobID, a.Correlation, a.Replays, a.Number})
				require.False(s.t, seen[a.AttemptID], a.AttemptID)
				seen[a.AttemptID] = true
			}
		}
		require.Len(s.t, seen, 20)
		require.Equal(s.t, []string{"again"}, ids(s, s.q.List(s.t.Context(), retryjob.Filter{})), "it is one job still")
	}},

	{claim: "other jobs cannot be replayed", play: func(s *stage) {
		s.zoo()
		for _, id := range []string{"pending", "waiting", "succeeded", "canceled"} {
			before := asJSON(s, s.get(id))
			require.ErrorIs(s.t, s.q.Replay(s.t.Context(), id), retryjob.ErrNotReplayable, id)
			require.Equal(s.t, before, asJSON(s, s.get(id)))
		}
	}},

	{claim: "of many who replay a job at once one succeeds", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {}}, d.mended(retry.Permanent(errFlaky)))
		s.enqueue("wanted", "p")
		s.final("wanted")
		var group sync.WaitGroup
		errs := make([]error, 8)
		for n := range errs {
			group.Go(func() { errs[n] = s.q.Replay(s.t.Context(), "wanted") })
		}
		group.Wait()
		errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
		require.Len(s.t, errs, 7)
		for _, err := range errs {
			require.ErrorIs(s.t, err, retryjob.ErrNotReplayable)
		}
		require.Equal(s.t, 1, s.ends("wanted", retryjob.Succeeded, 0, 1).Replays)
	}},

	{claim: "ReplayAll replays what is selected of the dead letters, expired and failed jobs, and returns how many", play: func(s *stage) {
		s.zoo()
		ctx := s.t.Context()
		for _, row := range []struct {
			filter retryjob.Filter
			want   int
		}{
			{retryjob.Filter{Policies: []string{"two"}, Kinds: []string{kind}}, 1}, // exhausted, but neither pending nor succeeded
			{retryjob.Filter{PageSize: 1}, 3},                                      // terminal, expired, failed
			{statuses(retryjob.Canceled, retryjob.Pending, retryjob.WaitingRetry), 0},
		} {
			n, err := s.q.ReplayAll(ctx, row.filter)
			require.NoError(s.t, err)
			require.Equal(s.t, row.want, n)
		}
		for _, id := range []string{"terminal", "exhausted", "expired", "failed"} {
			require.Equal(s.t, 1, s.ends(id, retryjob.Succeeded, 0, 1).Replays, id)
		}
		require.Empty(s.t, ids(s, s.q.List(ctx, dead(retryjob.Filter{}))))
	}},

	{claim: "ReplayAll leaves out jobs in doubt unless it is asked for them, and lists, counts and groups select by doubt", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {}, "off": {Disabled: true}}, func(ctx context.Context, job retryjob.Job) error {
			switch {
			case d.note(ctx, job).Replays > 0 || job.Correlation == "succeeds":
				return nil
			case job.Correlation == "in doubt":
				return retry.Ambiguous(errFlaky)
			default:
				return retry.Permanent(errFlaky)
			}
		})
		var ended time.Time // the first one
		for _, job := range []retryjob.Job{
			{ID: "lost-1", Policy: "p", Correlation: "in doubt"},
			{ID: "lost-2", Policy: "p", Correlation: "in doubt"},
			{ID: "lost-3", Policy: "p", Correlation: "in doubt"},
			{ID: "lost-once", Policy: "off", Correlation: "in doubt"},
			{ID: "refused", Policy: "p"},
			{ID: "done", Policy: "p", Correlation: "succeeds"},
		} {
			job.Kind, job.Due = kind, time.Now().Add(s.unit/10)
			s.put(job)
			i := s.final(job.ID)
			require.Equal(s.t, job.Correlation == "in doubt", i.InDoubt(), job.ID)
			if ended.IsZero() {
				ended = i.Ended
			}
		}
		ctx := s.t.Context()
		var lost, others = []string{"lost-1", "lost-2", "lost-3", "lost-once"}, []string{"refused", "done"}
		for _, row := range []struct {
			filter retryjob.Filter
			want   []string
		}{
			{retryjob.Filter{}, slices.Concat(lost, others)},
			{retryjob.Filter{InDoubt: retryjob.InDoubtToo}, slices.Concat(lost, others)},
			{retryjob.Filter{InDoubt: retryjob.OnlyInDoubt}, lost},
			{retryjob.Filter{InDoubt: retryjob.NotInDoubt}, others},
			{retryjob.Filter{InDoubt: retryjob.OnlyInDoubt, Policies: []string{"off"}}, []string{"lost-once"}},
			{retryjob.Filter{InDoubt: retryjob.OnlyInDoubt, Statuses: []retryjob.Status{retryjob.Succeeded}}, nil},
			{retryjob.Filter{Causes: []string{errFlaky.Error()}}, append(slices.Clone(lost), "refused")},
			{retryjob.Filter{InDoubt: retryjob.OnlyInDoubt, Causes: []string{errFlaky.Error()}}, lost},
			{retryjob.Filter{InDoubt: retryjob.NotInDoubt, Causes: []string{errFlaky.Error()}}, []string{"refused"}},
			{retryjob.Filter{InDoubt: retryjob.OnlyInDoubt, IDs: []string{"lost-2", "refused"}}, []string{"lost-2"}},
		} {
			require.ElementsMatch(s.t, row.want, ids(s, s.q.List(ctx, row.filter)), "%+v", row.filter)
			counts, err := s.q.Count(ctx, row.filter)
			require.NoError(s.t, err)
			jobs := 0
			for _, tally := range counts {
				jobs += tally.Jobs
			}
			require.Equal(s.t, len(row.want), jobs, "%+v", row.filter)
		}
		groups, err := s.q.Groups(ctx, statuses(retryjob.DeadLettered))
		require.NoError(s.t, err)
		jobs := map[bool]int{}
		for _, g := range groups {
			require.Equal(s.t, []any{errFlaky.Error(), retry.TerminalError}, []any{g.Cause, g.Reason})
			require.Equal(s.t, g.InDoubt, g.Newest.InDoubt())
			jobs[g.InDoubt] = g.Jobs
		}
		require.Equal(s.t, map[bool]int{true: 3, false: 1}, jobs)
		failures := retryjob.FailuresOf(groups, retryjob.DeadLettered)
		require.Len(s.t, failures, 1)
		require.Equal(s.t, []any{4, 3, "refused"}, []any{failures[0].Jobs, failures[0].InDoubt, failures[0].Newest})
		require.WithinDuration(s.t, ended, failures[0].First, 10*time.Millisecond)

		for _, row := range []struct {
			name   string
			filter retryjob.Filter
			want   int
		}{
			{"not asked for them", retryjob.Filter{Causes: []string{errFlaky.Error()}, PageSize: 1}, 1},
			{"again, with their IDs", retryjob.Filter{IDs: lost}, 0},
			{"only one of them", retryjob.Filter{InDoubt: retryjob.OnlyInDoubt, Limit: 1}, 1},
			{"one of them with the others", retryjob.Filter{InDoubt: retryjob.InDoubtToo, IDs: append(slices.Clone(others), "lost-1")}, 1},
		} {
			n, err := s.q.ReplayAll(ctx, row.filter)
			require.NoError(s.t, err, row.name)
			require.Equal(s.t, row.want, n, row.name)
		}
		left := ids(s, s.q.List(ctx, retryjob.Filter{InDoubt: retryjob.OnlyInDoubt}))
		require.ElementsMatch(s.t, []string{"lost-2", "lost-3"}, left)
		require.NoError(s.t, s.q.Replay(ctx, "lost-2"), "one by its ID")
		i := s.ends("lost-2", retryjob.Succeeded, 0, 1)
		require.False(s.t, i.InDoubt())
		require.True(s.t, i.Earlier[0].Ambiguous)
	}},

	{claim: "ReplayAll replays each job once, also if it fails again at once, and heeds Limit", play: func(s *stage) {
		made := s.deadLetters(5)
		n, err := s.q.ReplayAll(s.t.Context(), retryjob.Filter{PageSize: 1})
		require.NoError(s.t, err)
		require.Equal(s.t, 5, n)
		for _, id := range made {
			s.until(id, "is a dead letter again", func(i retryjob.Info) bool {
				return i.Status == retryjob.DeadLettered && i.Replays == 1
			})
		}
		n, err = s.q.ReplayAll(s.t.Context(), retryjob.Filter{Limit: 3, PageSize: 2})
		require.NoError(s.t, err)
		require.Equal(s.t, 3, n)
	}},
}

// purging has the claims about the removal of jobs, by request and by age.
var purging = []scenario{
	{claim: "Purge removes what is selected and final, and returns how many, and an unknown ID gives ErrUnknownJob everywhere", play: func(s *stage) {
		s.zoo()
		ctx := s.t.Context()
		for _, row := range []struct {
			name   string
			filter retryjob.Filter
			want   int
		}{
			{"not final", statuses(retryjob.Pending, retryjob.WaitingRetry), 0},
			{"a reason", retryjob.Filter{Reasons: []retry.Reason{retry.TerminalError}}, 1},
			{"again", retryjob.Filter{Reasons: []retry.Reason{retry.TerminalError}}, 0},
			{"a policy, of which one waits", retryjob.Filter{Policies: []string{"two", "slow"}}, 3},
			{"one at most", retryjob.Filter{Limit: 1, PageSize: 5}, 1},
			{"the rest", retryjob.Filter{PageSize: 2}, 1},
		} {
			n, err := s.q.Purge(ctx, row.filter)
			require.NoError(s.t, err, row.name)
			require.Equal(s.t, row.want, n, row.name)
		}
		require.ElementsMatch(s.t, []string{"pending", "waiting"}, ids(s, s.q.List(ctx, retryjob.Filter{})))
		for _, id := range []string{"exhausted", "who"} {
			_, err := s.q.Get(ctx, id)
			require.ErrorIs(s.t, err, retryjob.ErrUnknownJob)
			require.ErrorIs(s.t, s.q.Replay(ctx, id), retryjob.ErrUnknownJob)
			require.ErrorIs(s.t, s.q.Cancel(ctx, id), retryjob.ErrUnknownJob)
		}
	}},

	{claim: "a job under way is neither purged nor replayed", play: func(s *stage) {
		begun, release := make(chan struct{}), make(chan error)
		s.open(policies{"p": s.held(retry.Policy{})}, wait(begun, release))
		s.enqueue("leased", "p")
		receive(s, begun, "the attempt")
		n, err := s.q.Purge(s.t.Context(), retryjob.Filter{})
		require.NoError(s.t, err)
		require.Equal(s.t, 0, n)
		require.ErrorIs(s.t, s.q.Replay(s.t.Context(), "leased"), retryjob.ErrNotReplayable)
		close(release)
		require.Equal(s.t, 0, s.ends("leased", retryjob.Succeeded, 0, 1).Replays)
	}},

	{claim: "final jobs are removed after Retention, and not before, and those that succeeded after KeepSucceeded", play: func(s *stage) {
		var d diary
		keep := 2 * s.unit
		s.openWith(retryjob.Options{
			Policies: retryjob.FromMap(policies{"succeeded": {}, "dead": fixed(1, short), "expired": s.unlucky(2), "failed": {Disabled: true}}),
			Handlers: map[string]retryjob.Handler{kind: func(ctx context.Context, job retryjob.Job) error {
				if d.note(ctx, job); job.ID == "succeeded" {
					return nil
				}
				return errFlaky
			}},
			Retention: keep, KeepSucceeded: 2 * keep,
		})
		kept, ended := map[string]time.Duration{"succeeded": 2 * keep, "dead": keep, "expired": keep, "failed": keep}, map[string]time.Time{}
		for id := range kept {
			s.enqueue(id, id)
		}
		for id := range kept {
			ended[id] = s.final(id).Ended
		}
		for id, atLeast := range kept {
			s.poll(id+" job is removed", func() bool {
				_, err := s.q.Get(s.t.Context(), id)
				if err == nil {
					return false
				}
				require.ErrorIs(s.t, err, retryjob.ErrUnknownJob)
				return true
			})
			require.GreaterOrEqual(s.t, time.Since(ended[id]), atLeast-time.Millisecond)
		}
		require.Empty(s.t, ids(s, s.q.List(s.t.Context(), retryjob.Filter{})))
		require.Len(s.t, d.all(), 4)
	}},
}
