package retryriver_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// TestNothingInAnErrorKeepsOthersFromBeingRecorded is for PostgreSQL, whose JSON does not allow NUL: River writes the
// results of many jobs at once.
func TestNothingInAnErrorKeepsOthersFromBeingRecorded(t *testing.T) {
	both(t, retryjob.Options{Policies: catalog, Handlers: map[string]retryjob.Handler{
		"error": func(context.Context, retryjob.Job) error { return errors.New("a\x00b\xff") },
		"panic": func(context.Context, retryjob.Job) error { panic("a\x00b\xff") },
		"fine":  func(context.Context, retryjob.Job) error { return nil },
	}}, func(t *testing.T, q *retryriver.Queue) {
		want := map[string]retryjob.Status{"error": retryjob.DeadLettered, "panic": retryjob.DeadLettered, "fine": retryjob.Succeeded}
		handles := map[string]retryjob.Handle{}
		for kind := range want {
			handles[kind] = enqueue(t, q, kind)
		}
		for kind, h := range handles {
			require.Equal(t, want[kind], ended(t, h).Status, kind)
		}
	})
}

func TestAHandlerThatEndsItsGoroutineHasFailed(t *testing.T) {
	both(t, retryjob.Options{Policies: catalog, Concurrency: 1, Handlers: map[string]retryjob.Handler{
		"goexit": func(context.Context, retryjob.Job) error { runtime.Goexit(); return nil },
		"fine":   func(context.Context, retryjob.Job) error { return nil },
	}}, func(t *testing.T, q *retryriver.Queue) {
		i := ended(t, enqueue(t, q, "goexit"))
		require.Equal(t, retryjob.DeadLettered, i.Status)
		require.Equal(t, "retryjob: the handler ended its goroutine", i.Last().Err)
		require.Equal(t, retryjob.Succeeded, ended(t, enqueue(t, q, "fine")).Status, "its worker lives on")
	})
}

func TestASecondShutdownCutsTheFirstShort(t *testing.T) {
	started := make(chan struct{})
	q := queue(t, filepath.Join(t.TempDir(), "jobs.db"), retryjob.Options{
		Policies: catalog, Handlers: map[string]retryjob.Handler{"waits": func(ctx context.Context, _ retryjob.Job) error {
			close(started)
			<-ctx.Done()
			return ctx.Err()
		}},
	})
	h := enqueue(t, q, "waits")
	<-started
	first := make(chan error)
	go func() {
		_, err := q.Shutdown(context.Background())
		first <- err
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := q.Shutdown(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, <-first, context.Canceled)
	i, err := h.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, retryjob.Pending, i.Status, "the attempt counts as not made")
}

func TestARunningJobThatIsCanceledTellsItsEndOnce(t *testing.T) {
	started := make(chan struct{})
	var ends []retry.Status
	p := retry.Policy{MaxAttempts: 2, Observe: func(_ context.Context, e retry.Event) {
		if e.Outcome != nil {
			ends = append(ends, e.Outcome.Status)
		}
	}}
	q, _, err := retryriver.NewMortalSQLite(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"once": p}),
		Handlers: map[string]retryjob.Handler{"waits": func(ctx context.Context, _ retryjob.Job) error {
			close(started)
			<-ctx.Done()
			return ctx.Err()
		}},
	}, nil)
	require.NoError(t, err)
	h := enqueue(t, q, "waits")
	<-started
	require.NoError(t, q.Cancel(t.Context(), h.ID()))
	require.Equal(t, retryjob.Canceled, ended(t, h).Status)
	require.NoError(t, q.Close())
	require.Equal(t, []retry.Status{retry.Canceled}, ends)
}
