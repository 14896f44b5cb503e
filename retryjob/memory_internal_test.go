package retryjob

import (
	"context"
	"slices"
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

func TestWhatIsTooOldIsRemovedThoughNoCallComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := dead(t, "a")
		<-time.After(30 * time.Minute)
		_, err := e.Enqueue(t.Context(), Job{ID: "b", Kind: "work", Policy: "p"})
		require.NoError(t, err)
		count := func() int {
			synctest.Wait()
			kept := 0
			for i := range e.shards {
				s := &e.shards[i]
				s.mu.Lock()
				kept += len(s.named)
				s.mu.Unlock()
			}
			return kept
		}
		<-time.After(30*time.Minute - 1)
		require.Equal(t, 2, count())
		<-time.After(time.Nanosecond)
		require.Equal(t, 1, count())
		<-time.After(30 * time.Minute)
		require.Equal(t, 0, count())
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
		kept := func() (n int) {
			synctest.Wait()
			for i := range e.shards {
				e.shards[i].mu.Lock()
				n += len(e.shards[i].named)
				e.shards[i].mu.Unlock()
			}
			return n
		}
		for left := range 60 { // it is three minutes past the hour of the first: 1 to 3 have gone
			require.InDelta(t, 60-left, kept(), 1, "a sweep comes within 1/64 of an hour")
			<-time.After(time.Minute)
		}
		<-time.After(time.Minute)
		require.Zero(t, kept())
		require.Zero(t, e.sweepAt.Load(), "nothing is left to remove, and no timer set")
	})
}

func TestRemovedJobsLeaveNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := dead(t)
		_, err := e.EnqueueMany(t.Context(), slices.Repeat([]Job{{Kind: "work", Policy: "p"}}, 1000))
		require.NoError(t, err)
		synctest.Wait()
		pages := func() (n int) {
			for i := range e.shards {
				n += len(e.shards[i].made)
			}
			return n
		}
		require.Equal(t, 2*shards, pages(), "a shard has up to 16 of the jobs, and a page 8")
		purged, err := e.Purge(t.Context(), Filter{})
		require.NoError(t, err)
		require.Equal(t, 1000, purged)
		require.Zero(t, pages())
	})
}
