package jobtest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// lives has the claims about the statuses of a job.
var lives = []scenario{
	{claim: "a job goes from pending to leased to waiting_retry to leased to its end", play: func(s *stage) {
		begun, release := make(chan struct{}), make(chan error)
		free := s.busy(policies{"p": s.held(fixed(2, s.far()))}, wait(begun, release))
		due := time.Now().Add(s.unit).Round(time.Millisecond)
		handle := s.put(retryjob.Job{ID: "lived", Kind: kind, Policy: "p", Due: due})
		require.Equal(s.t, "lived", handle.ID())
		inspect := func() retryjob.Info {
			i, err := handle.Inspect(s.t.Context())
			require.NoError(s.t, err)
			return i
		}
		i := inspect()
		require.Equal(s.t, []any{retryjob.Pending, 0}, []any{i.Status, i.Attempts})
		require.False(s.t, i.Due.Before(due))

		free(nil)
		receive(s, begun, "the first attempt")
		i = inspect()
		require.Equal(s.t, retryjob.Leased, i.Status)
		require.True(s.t, i.Due.IsZero() && i.Ended.IsZero())

		failed := time.Now()
		send(s, release, errFlaky)
		i = s.reaches("lived", retryjob.WaitingRetry)
		require.Equal(s.t, 1, i.Attempts)
		require.GreaterOrEqual(s.t, i.Due.Sub(failed), s.far()-time.Millisecond)
		require.True(s.t, i.Due.Equal(i.Last().Due), "%v is not %v", i.Due, i.Last().Due)
		require.True(s.t, i.Ended.IsZero())

		receive(s, begun, "the second attempt")
		i = inspect()
		require.Equal(s.t, retryjob.Leased, i.Status)
		require.Len(s.t, finished(i), 1)

		send(s, release, nil)
		i = s.ends("lived", retryjob.Succeeded, 0, 2)
		require.False(s.t, i.Ended.IsZero())
	}},

	{claim: "Wait returns the job as it ended, until it is removed", play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(2, s.unit/4)}, d.always(errFlaky))
		handle := s.enqueue("awaited", "p")
		ctx, cancel := s.patience()
		defer cancel()
		i, err := handle.Wait(ctx)
		require.NoError(s.t, err)
		require.Equal(s.t, []any{retryjob.DeadLettered, 2}, []any{i.Status, i.Attempts})
		require.Error(s.t, s.q.Cancel(ctx, "awaited"), "what is final is not canceled")
		again, err := handle.Wait(ctx)
		require.NoError(s.t, err, "of a job that has ended long since")
		require.Equal(s.t, asJSON(s, i), asJSON(s, again))
		n, err := s.q.Purge(s.t.Context(), retryjob.Filter{})
		require.NoError(s.t, err)
		require.Equal(s.t, 1, n)
		_, err = handle.Wait(ctx)
		require.ErrorIs(s.t, err, retryjob.ErrUnknownJob)
		_, err = handle.Inspect(ctx)
		require.ErrorIs(s.t, err, retryjob.ErrUnknownJob)
	}},

	{claim: "Wait gives up with its context, and the job goes on", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {}}, d.script())
		handle := s.put(retryjob.Job{ID: "far", Kind: kind, Policy: "p", Due: time.Now().Add(2 * s.unit)})
		ctx, cancel := context.WithTimeout(s.t.Context(), s.unit/2)
		defer cancel()
		_, err := handle.Wait(ctx)
		require.ErrorIs(s.t, err, context.DeadlineExceeded)
		require.Equal(s.t, retryjob.Succeeded, s.final("far").Status)
	}},

	{claim: "a job that is canceled during an attempt ends its context with ErrCanceled, and is canceled even if it succeeds", play: func(s *stage) {
		causes, begun := make(chan error, 1), make(chan struct{}, 9)
		s.open(policies{"p": fixed(5, short)}, func(ctx context.Context, _ retryjob.Job) error {
			begun <- struct{}{}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		})
		s.enqueue("running", "p")
		receive(s, begun, "the attempt")
		require.NoError(s.t, s.q.Cancel(s.t.Context(), "running"))
		require.ErrorIs(s.t, receive(s, causes, "the cause"), retryjob.ErrCanceled)
		i := s.until("running", "has its attempt", func(i retryjob.Info) bool { return len(finished(i)) == 1 })
		s.ends("running", retryjob.Canceled, retry.CallerCanceled, 1)
		require.Equal(s.t, retryjob.Succeeded, i.Last().Status, "the record says what was done")
		require.Error(s.t, s.q.Cancel(s.t.Context(), "running"))
	}},
}

// enqueuing has the claims about jobs that are accepted or refused.
var enqueuing = []scenario{
	{claim: "EnqueueMany keeps all jobs, in their order, and gives each without an ID one of its own", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {}}, d.script())
		var jobs []retryjob.Job
		for i := range 200 {
			jobs = append(jobs, retryjob.Job{ID: fmt.Sprintf("job-%03d", i), Kind: kind, Policy: "p", Payload: fmt.Appendf(nil, `{"n":%d}`, i)})
		}
		jobs[7].ID, jobs[8].Due, jobs[9].ID = "", time.Now().Add(s.unit), ""
		handles, err := s.q.EnqueueMany(s.t.Context(), jobs)
		require.NoError(s.t, err)
		require.Len(s.t, handles, len(jobs))
		require.Empty(s.t, jobs[7].ID, "the caller's own")
		seen := map[string]bool{"": true}
		for i, h := range handles {
			require.False(s.t, seen[h.ID()], h.ID())
			seen[h.ID()] = true
			require.Equal(s.t, cmp.Or(jobs[i].ID, h.ID()), h.ID())
			info, err := h.Wait(s.t.Context())
			require.NoError(s.t, err)
			require.Equal(s.t, retryjob.Succeeded, info.Status)
			require.JSONEq(s.t, string(jobs[i].Payload), string(info.Payload))
		}
		require.Len(s.t, d.all(), len(jobs))
		for _, a := range d.all() {
			require.Equal(s.t, a.JobID, a.job.ID)
		}
		none, err := s.q.EnqueueMany(s.t.Context(), nil)
		require.NoError(s.t, err)
		require.Empty(s.t, none)
	}},

	{claim: "an invalid job, one without a handler, one that is there and one with an ended context is refused, alone and among others", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {}, "bad": {MaxAttempts: -7}}, d.script()) //retryvet:ignore policy it is to be refused
		ctx, first := s.t.Context(), retryjob.Job{ID: "first", Kind: kind, Policy: "p"}
		there := retryjob.Job{ID: "there", Kind: kind, Policy: "p", Due: time.Now().Add(s.unit)}
		s.put(there)
		_, err := s.q.Enqueue(ctx, there)
		require.ErrorIs(s.t, err, retryjob.ErrDuplicate)
		s.final("there")
		for _, refused := range []struct {
			job retryjob.Job
			err error
		}{
			{there, retryjob.ErrDuplicate},
			{retryjob.Job{ID: "kind", Kind: "nobody", Policy: "p"}, retryjob.ErrUnknownKind},
			{retryjob.Job{ID: "policy", Kind: kind, Policy: "q"}, retryjob.ErrUnknownPolicy},
			{retryjob.Job{ID: "invalid", Kind: kind, Policy: "bad"}, nil},
			{retryjob.Job{ID: "none", Kind: kind}, retryjob.ErrUnknownPolicy},
			{retryjob.Job{ID: "queue", Kind: kind, Policy: "p", Queue: "Upper"}, nil},
			{retryjob.Job{ID: "priority", Kind: kind, Policy: "p", Priority: 5}, nil},
			{retryjob.Job{ID: "tag", Kind: kind, Policy: "p", Tags: []string{"a,b"}}, nil},
			{retryjob.Job{ID: "payload", Kind: kind, Policy: "p", Payload: []byte("{")}, nil},
			{retryjob.Job{ID: "no\x00text", Kind: kind, Policy: "p"}, nil},
		} {
			_, alone := s.q.Enqueue(ctx, refused.job)
			_, among := s.q.EnqueueMany(ctx, []retryjob.Job{first, refused.job, {ID: "last", Kind: kind, Policy: "p"}})
			for _, err := range []error{alone, among} {
				require.Error(s.t, err, refused.job.ID)
				if refused.err != nil {
					require.ErrorIs(s.t, err, refused.err)
				}
			}
		}
		_, err = s.q.EnqueueMany(ctx, []retryjob.Job{first, first})
		require.ErrorIs(s.t, err, retryjob.ErrDuplicate)
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err = s.q.Enqueue(over, first)
		require.ErrorIs(s.t, err, context.Canceled)
		require.Equal(s.t, []string{"there"}, ids(s, s.q.List(ctx, retryjob.Filter{})))
		require.Len(s.t, d.all(), 1)
	}},

	{claim: "a refused duplicate changes nothing of the job that is there, waiting or ended, whatever its kind and whoever made its ID", play: func(s *stage) {
		var d diary
		s.openWith(retryjob.Options{
			Policies: retryjob.FromMap(policies{"p": {}, "q": {}}),
			Handlers: map[string]retryjob.Handler{kind: d.script(), "other": d.script()},
		})
		ctx := s.t.Context()
		s.put(retryjob.Job{ID: "ended", Kind: kind, Policy: "p"})
		s.final("ended")
		due := time.Now().Add(s.far()) // after the duplicates
		waiting := retryjob.Job{Kind: kind, Policy: "p", Payload: []byte(`{"to":"ann"}`), Due: due}
		generated, err := s.q.Enqueue(ctx, waiting)
		require.NoError(s.t, err)
		waiting.ID = "waiting"
		s.put(waiting)
		for _, id := range []string{"ended", "waiting", generated.ID()} {
			before := asJSON(s, s.get(id))
			other := retryjob.Job{ID: id, Kind: "other", Policy: "q", Priority: 4, Tags: []string{"other"}, Payload: []byte(`{"amount":7}`)}
			_, err := s.q.Enqueue(ctx, other)
			require.ErrorIs(s.t, err, retryjob.ErrDuplicate)
			_, err = s.q.EnqueueMany(ctx, []retryjob.Job{{ID: "first", Kind: "other", Policy: "q"}, other})
			require.ErrorIs(s.t, err, retryjob.ErrDuplicate)
			require.Equal(s.t, before, asJSON(s, s.get(id)))
		}
		s.final("waiting")
		s.final(generated.ID())
		for _, a := range d.all() {
			require.Equal(s.t, kind, a.job.Kind, "the handler of another kind got job %s", a.JobID)
		}
		require.Len(s.t, d.all(), 3)
	}},

	{claim: "a generated ID stays that of its job over a replay, and is free once the job is purged", play: func(s *stage) {
		var d diary
		s.open(policies{"p": {MaxAttempts: 1}}, d.mended(errFlaky))
		ctx := s.t.Context()
		h, err := s.q.Enqueue(ctx, retryjob.Job{Kind: kind, Policy: "p"})
		require.NoError(s.t, err)
		again := retryjob.Job{ID: h.ID(), Kind: kind, Policy: "p"}
		require.Equal(s.t, retryjob.DeadLettered, s.final(h.ID()).Status)
		require.Equal(s.t, []string{h.ID()}, ids(s, s.q.List(ctx, retryjob.Filter{IDs: []string{h.ID()}})))
		require.NoError(s.t, s.q.Replay(ctx, h.ID()))
		_, err = s.q.Enqueue(ctx, again)
		require.ErrorIs(s.t, err, retryjob.ErrDuplicate)
		i := s.final(h.ID())
		require.Equal(s.t, []any{retryjob.Succeeded, 1}, []any{i.Status, i.Replays})
		_, err = s.q.Enqueue(ctx, again)
		require.ErrorIs(s.t, err, retryjob.ErrDuplicate)
		require.NoError(s.t, retryjob.PurgeOne(ctx, s.q, h.ID()))
		_, err = h.Inspect(ctx)
		require.ErrorIs(s.t, err, retryjob.ErrUnknownJob)
		s.put(again)
		i = s.final(h.ID())
		require.Equal(s.t, []any{retryjob.DeadLettered, 0}, []any{i.Status, i.Replays})
		require.Len(s.t, d.all(), 3)
	}},
}

// send passes v to the goroutine that waits for it.
func send[T any](s *stage, to chan<- T, v T) {
	s.t.Helper()
	ctx, cancel := s.patience()
	defer cancel()
	select {
	case to <- v:
	case <-ctx.Done():
		require.FailNow(s.t, "waited in vain", "for a goroutine to take %v", v)
	}
}

// finished returns the attempts that have ended.
func finished(i retryjob.Info) (ended []retryjob.Attempt) {
	for _, a := range i.History {
		if a.Status != retryjob.Leased {
			ended = append(ended, a)
		}
	}
	return ended
}

// dead returns f for dead letters only.
func dead(f retryjob.Filter) retryjob.Filter {
	f.Statuses = []retryjob.Status{retryjob.DeadLettered}
	return f
}

// ids returns the IDs of a list.
func ids(s *stage, list iter.Seq2[retryjob.Info, error]) (found []string) {
	s.t.Helper()
	for i, err := range list {
		require.NoError(s.t, err)
		found = append(found, i.JobID)
	}
	return found
}
