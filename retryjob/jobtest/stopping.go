package jobtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// sharing has the claims about jobs that share workers.
var sharing = []scenario{
	{claim: "no more attempts run at once than Concurrency, and all get their turn", play: func(s *stage) {
		var running, most atomic.Int64
		begun, release := make(chan struct{}), make(chan error)
		hold := wait(begun, release)
		s.openWith(retryjob.Options{
			Policies: retryjob.FromMap(policies{"p": s.held(retry.Policy{})}),
			Handlers: map[string]retryjob.Handler{kind: func(ctx context.Context, job retryjob.Job) error {
				now := running.Add(1)
				defer running.Add(-1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				return hold(ctx, job)
			}},
			Concurrency: 2,
		})
		var made []string
		for range 7 {
			made = append(made, s.enqueue("", "p").ID())
		}
		receive(s, begun, "the first attempt")
		receive(s, begun, "the second attempt beside it")
		for n := range made {
			send(s, release, nil)
			if n+2 < len(made) {
				receive(s, begun, "the next attempt")
			}
		}
		for _, id := range made {
			require.Equal(s.t, retryjob.Succeeded, s.final(id).Status)
		}
		require.EqualValues(s.t, 2, most.Load())
	}},

	{claim: "a job that waits holds no worker", play: func(s *stage) {
		var d diary
		s.openWith(retryjob.Options{
			Policies:    retryjob.FromMap(policies{"p": fixed(2, 10*s.unit)}), // long enough for all first attempts on a slow machine
			Handlers:    map[string]retryjob.Handler{kind: d.script(errFlaky), "other": d.script()},
			Concurrency: 1,
		})
		for _, id := range []string{"one", "two", "three"} {
			s.enqueue(id, "p")
			s.reaches(id, retryjob.WaitingRetry)
		}
		s.put(retryjob.Job{ID: "quick", Kind: "other", Policy: "p"})
		quick := s.final("quick")
		for _, id := range []string{"one", "two", "three"} {
			i := s.final(id)
			require.Equal(s.t, retryjob.Succeeded, i.Status)
			require.True(s.t, quick.Ended.Before(i.Last().Start))
		}
	}},

	{claim: "jobs that wait for a worker get one in the order of their Priority, and then of their due times", play: func(s *stage) {
		var d diary
		free := s.busy(policies{"p": {}}, d.script())
		start := time.Now().Add(s.unit)
		var jobs []retryjob.Info
		for n, due := range []time.Duration{4, 2, 5, 3, 1, 3, 6} {
			id := fmt.Sprint("job-", n)
			s.put(retryjob.Job{ID: id, Kind: kind, Policy: "p", Priority: []int{0, 1, 0, 4, 1, 2, 0}[n], Due: start.Add(due * s.unit / 6)})
			jobs = append(jobs, s.get(id))
		}
		s.pass(time.Until(start.Add(2 * s.unit)))
		free(nil)
		slices.SortStableFunc(jobs, func(a, b retryjob.Info) int { // by the stored times, since a slow machine enqueues some when they are overdue
			return cmp.Or(max(a.Priority, 1)-max(b.Priority, 1), a.Due.Compare(b.Due))
		})
		s.final("job-3")
		var want []string
		for _, i := range jobs {
			want = append(want, i.JobID)
		}
		require.Equal(s.t, want, d.jobs())
	}},
}

// stopping has the claims about Shutdown.
var stopping = []scenario{
	{claim: "Shutdown takes no more jobs, waits for the attempt under way, whose failure counts, and starts and loses nothing that comes due", play: func(s *stage) {
		var d diary
		free := s.busy(policies{"p": {}}, d.script())
		s.put(retryjob.Job{ID: "next", Kind: kind, Policy: "p", Due: time.Now().Add(s.unit)})
		done := s.shutdown(context.Background())
		refused := func() bool {
			_, err := s.q.Enqueue(s.t.Context(), retryjob.Job{Kind: kind, Policy: "p", Due: time.Now().Add(99 * s.unit)})
			if err != nil {
				require.ErrorIs(s.t, err, retryjob.ErrShutdown)
			}
			return err != nil
		}
		s.poll("no job is taken", refused)
		s.pass(2 * s.unit)
		require.Empty(s.t, done, "it did not wait")
		free(errFlaky)
		was := receive(s, done, "the shutdown")
		require.NoError(s.t, was.err)
		require.True(s.t, refused())
		require.Empty(s.t, d.all())
		if i := s.kept(was.jobs, "next"); s.h.Crash == nil {
			require.Equal(s.t, retryjob.Pending, i.Status)
		} else {
			require.Equal(s.t, retryjob.Succeeded, s.final("next").Status)
		}
		busy := s.kept(was.jobs, "busy")
		require.Equal(s.t, []any{1, retryjob.WaitingRetry, errFlaky.Error()}, []any{busy.Attempts, busy.History[0].Status, busy.History[0].Err})
	}},

	{claim: "when Shutdown's context ends, so does a first attempt, with ErrShutdown as the cause, and it does not count", play: func(s *stage) {
		s.interrupt(0, retryjob.Pending)
	}},

	{claim: "a second attempt that Shutdown ends does not count, and the first one does", play: func(s *stage) {
		s.interrupt(1, retryjob.WaitingRetry)
	}},

	{claim: "after Shutdown no attempt starts, and no job that waits is lost, nor one that has ended left", play: func(s *stage) {
		var d diary
		far := s.far() // Shutdown comes first
		s.open(policies{"p": fixed(2, far)}, d.script(errFlaky))
		s.enqueue("waiting", "p")
		waiting := s.reaches("waiting", retryjob.WaitingRetry)
		s.put(retryjob.Job{ID: "canceled", Kind: kind, Policy: "p", Due: time.Now().Add(far)})
		require.NoError(s.t, s.q.Cancel(s.t.Context(), "canceled"))
		s.put(retryjob.Job{ID: "pending", Kind: kind, Policy: "p", Due: time.Now().Add(far), Payload: []byte(`{"a":1}`)})
		pending := s.get("pending")
		was := receive(s, s.shutdown(context.Background()), "the shutdown")
		require.NoError(s.t, was.err)
		s.pass(far + s.unit)
		require.Len(s.t, d.all(), 1)
		for _, before := range []retryjob.Info{waiting, pending} {
			i := s.kept(was.jobs, before.JobID)
			if s.h.Crash == nil {
				require.Equal(s.t, asJSON(s, before), asJSON(s, i))
				continue
			}
			s.ends(before.JobID, retryjob.Succeeded, 0, 2)
		}
		if s.h.Crash == nil {
			require.Len(s.t, was.jobs, 2)
		}
	}},
}

// interrupt shuts an engine down during an attempt of a job after the given number of failed attempts, and checks the
// remaining job.
func (s *stage) interrupt(failed int, status retryjob.Status) {
	s.t.Helper()
	var d diary
	begun, causes := make(chan struct{}, 1), make(chan error, 1)
	var reopened, returned atomic.Bool
	s.open(policies{"p": s.held(fixed(2, short))}, func(ctx context.Context, job retryjob.Job) error {
		a := d.note(ctx, job)
		switch {
		case reopened.Load():
			return nil
		case a.Number <= failed:
			return errFlaky
		}
		begun <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		s.pass(s.unit / 4) // Shutdown waits still
		returned.Store(true)
		return ctx.Err()
	})
	s.enqueue("cut", "p")
	receive(s, begun, "the attempt")
	ctx, cancel := context.WithTimeout(context.Background(), s.unit/2)
	defer cancel()
	was := receive(s, s.shutdown(ctx), "the shutdown")
	require.True(s.t, returned.Load(), "the attempt was not waited for")
	require.ErrorIs(s.t, receive(s, causes, "the cause"), retryjob.ErrShutdown)
	reopened.Store(true)
	i := s.kept(was.jobs, "cut")
	if s.h.Crash == nil {
		require.Equal(s.t, []any{status, failed}, []any{i.Status, i.Attempts})
		require.Len(s.t, i.History, failed)
		require.False(s.t, i.Due.IsZero())
		return
	}
	i = s.ends("cut", retryjob.Succeeded, 0, failed+1)
	all := d.all()
	require.Len(s.t, all, failed+2, "begun")
	require.Equal(s.t, failed+1, all[failed+1].Number)
}

// stopped is the result of Shutdown.
type stopped struct {
	jobs []retryjob.Info
	err  error
}

// shutdown shuts the engine down while the scenario goes on.
func (s *stage) shutdown(ctx context.Context) <-chan stopped {
	s.down = true
	q, done := s.q, make(chan stopped, 1)
	go func() {
		jobs, err := q.Shutdown(ctx)
		done <- stopped{jobs, err}
	}()
	return done
}

// kept returns a job that outlives the Shutdown that left these: one of them, or none if the engine is durable, which
// is then reopened.
func (s *stage) kept(left []retryjob.Info, id string) retryjob.Info {
	s.t.Helper()
	if s.h.Crash != nil {
		require.Empty(s.t, left, "nothing of a durable engine is gone with its process")
		if s.down {
			s.crash()
		}
		return s.get(id)
	}
	for _, i := range left {
		if i.JobID == id {
			return i
		}
	}
	require.FailNow(s.t, "a job is lost", "%s is not among the %d left", id, len(left))
	return retryjob.Info{}
}

// pass lets time pass.
func (s *stage) pass(d time.Duration) { <-time.NewTimer(d).C }
