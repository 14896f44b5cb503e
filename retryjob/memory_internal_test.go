package retryjob

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// dead opens an engine with dead letters of these IDs.
func dead(t *testing.T, ids ...string) *Engine {
	e, err := New(Options{
		Policies:  FromMap(map[string]retry.Policy{"p": {MaxAttempts: 1}}),
		Handlers:  map[string]Handler{"work": func(context.Context, Job) error { return ErrLost }},
		Retention: time.Hour,
	})
	require.NoError(t, err)
	for _, id := range ids {
		_, err := e.Enqueue(t.Context(), Job{ID: id, Kind: "work", Policy: "p"})
		require.NoError(t, err)
	}
	synctest.Wait()
	return e
}

// kept returns the number of jobs in memory.
func kept(e *Engine) int {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.jobs)
}

func TestWhatIsTooOldIsRemovedThoughNoCallComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := dead(t, "a")
		<-time.After(30 * time.Minute)
		_, err := e.Enqueue(t.Context(), Job{ID: "b", Kind: "work", Policy: "p"})
		require.NoError(t, err)
		<-time.After(30*time.Minute - 1)
		require.Equal(t, 2, kept(e))
		<-time.After(time.Nanosecond)
		require.Equal(t, 1, kept(e))
		<-time.After(30 * time.Minute)
		require.Equal(t, 0, kept(e))
	})
}

func TestTheRemovalOfTheOldLosesLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := dead(t, "0")
		for n := range 63 {
			<-time.After(time.Minute)
			_, err := e.Enqueue(t.Context(), Job{ID: strconv.Itoa(n + 1), Kind: "work", Policy: "p"})
			require.NoError(t, err)
			synctest.Wait()
		}
		for left := range 60 { // it is three minutes past the hour of the first: 1 to 3 have gone
			require.InDelta(t, 60-left, kept(e), 1, "a sweep comes within 1/64 of an hour")
			<-time.After(time.Minute)
		}
		<-time.After(time.Minute)
		require.Zero(t, kept(e))
		require.Zero(t, e.armed, "nothing is left to remove, and no timer set")
	})
}

func TestALogIsAsLongAsItsJobsNeed(t *testing.T) {
	var l log
	jobs := make([]*job, 10_000)
	changes := uint64(0)
	push := func(j *job) {
		changes++
		j.changed = changes
		l.push(j)
	}
	for n := range jobs {
		jobs[n] = new(job)
		push(jobs[n])
	}
	read := l.spots
	for n, j := range jobs { // every second one leaves, then the others from the oldest on
		if n%2 == 1 {
			j.changed = 0
			l.leave()
		}
	}
	require.Zero(t, l.cut)
	require.Equal(t, jobs[0], l.oldest())
	require.Equal(t, 5_000, l.jobs)
	require.LessOrEqual(t, cap(l.spots), 12_000)
	for n := 0; n < len(jobs); n += 2 {
		require.Equal(t, jobs[n], l.oldest())
		jobs[n].changed = 0
		l.leave()
		if n == 0 {
			require.Positive(t, l.cut)
		}
		require.LessOrEqual(t, l.cut+len(l.spots), 2*l.jobs+1024)
	}
	require.Nil(t, l.oldest())
	for n, s := range read {
		require.Equal(t, spot{uint64(n + 1), jobs[n]}, s, "what a reader has does not change")
	}
	for range 100_000 { // a job that comes and goes
		push(jobs[0])
		jobs[0].changed = 0
		l.leave()
		require.LessOrEqual(t, l.cut+len(l.spots), 1024)
	}
}

func TestMostCanceledJobsLeaveTheAgenda(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := dead(t)
		for n := range 5000 {
			_, err := e.Enqueue(t.Context(), Job{ID: strconv.Itoa(n), Kind: "work", Policy: "p", Due: time.Now().Add(time.Hour)})
			require.NoError(t, err)
		}
		for n := range 4999 {
			require.NoError(t, e.Cancel(t.Context(), strconv.Itoa(n)))
			require.LessOrEqual(t, len(e.lanes[""].later), max(2*(4999-n), 0)+1024)
		}
		left, err := e.Shutdown(t.Context())
		require.NoError(t, err)
		require.Len(t, left, 1)
	})
}

func TestTheEndOfAJobBeatsAContextThatEndsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := dead(t)
		h, err := e.Enqueue(t.Context(), Job{ID: "a", Kind: "work", Policy: "p", Due: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan Info)
		go func() {
			i, err := h.Wait(ctx)
			require.NoError(t, err)
			ended <- i
		}()
		synctest.Wait()
		e.mu.Lock()
		cancel() // Wait is to look at the job next
		j := e.jobs["a"]
		j.at = e.clock.now()
		e.store(j, Canceled, j.at)
		e.mu.Unlock()
		require.Equal(t, Canceled, (<-ended).Status)
		<-time.After(time.Hour)
		synctest.Wait()
		require.Empty(t, e.jobs, "canceled jobs are removed too")
	})
}
