package retryjob

import (
	"context"
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
				kept += s.jobs
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
