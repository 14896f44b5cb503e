package retryriver_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

var fine = map[string]retryjob.Handler{"kind": func(context.Context, retryjob.Job) error { return nil }}

func TestAQueueRefusesMoreWorkersThanRiverHas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.db")
	_, err := retryriver.NewSQLite(t.Context(), file, retryjob.Options{Policies: once, Handlers: fine, Concurrency: 10_001})
	var bad *retry.FieldError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, retry.FieldError{Package: "retryriver", Field: "Options.Concurrency", Value: "10001", Rule: "is above 10000"}, *bad)
	_, err = retryriver.NewSQLite(t.Context(), file, retryjob.Options{Policies: once, Handlers: fine, Queues: map[string]int{"bulk": 10_001, "a": 1}})
	require.ErrorAs(t, err, &bad)
	require.Equal(t, retry.FieldError{Package: "retryriver", Field: `Options.Queues["bulk"]`, Value: "10001", Rule: "is above 10000"}, *bad)
	q, err := retryriver.NewSQLite(t.Context(), file, retryjob.Options{Policies: once, Handlers: fine, Concurrency: 10_000, Queues: map[string]int{"bulk": 10_000}})
	require.NoError(t, err)
	require.NoError(t, q.Close())
}

func TestAQueueThatIsShutDownTakesNoJobs(t *testing.T) {
	both(t, retryjob.Options{Policies: once, Handlers: fine}, func(t *testing.T, q *retryriver.Queue) {
		_, err := q.Shutdown(t.Context())
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), retryjob.Job{ID: "one", Kind: "kind", Policy: "once"})
		require.ErrorIs(t, err, retryjob.ErrShutdown)
		_, err = q.EnqueueMany(t.Context(), []retryjob.Job{{ID: "one", Kind: "kind", Policy: "once"}})
		require.ErrorIs(t, err, retryjob.ErrShutdown)
		_, err = q.Get(t.Context(), "one")
		require.ErrorIs(t, err, retryjob.ErrUnknownJob)
	})
}

func TestAQueueThatIsShutDownStillChangesJobs(t *testing.T) {
	broken := map[string]retryjob.Handler{"kind": func(context.Context, retryjob.Job) error { return errors.New("broken") }}
	both(t, retryjob.Options{Policies: once, Handlers: broken}, func(t *testing.T, q *retryriver.Queue) {
		h, err := q.Enqueue(t.Context(), retryjob.Job{ID: "dead", Kind: "kind", Policy: "once"})
		require.NoError(t, err)
		i, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, retryjob.DeadLettered, i.Status)
		_, err = q.Shutdown(t.Context())
		require.NoError(t, err)
		require.NoError(t, q.Replay(t.Context(), "dead"))
		i, err = h.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, retryjob.Pending, i.Status)
		require.NoError(t, q.Cancel(t.Context(), "dead"))
		n, err := q.Purge(t.Context(), retryjob.Filter{})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

// TestManyJobsAreChangedInShortTransactions: SQLite allows no other writer during one.
func TestManyJobsAreChangedInShortTransactions(t *testing.T) {
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		if c.onSQLite() {
			t.Skip("PostgreSQL knows the transaction of each row")
		}
		c.exec(c.copies, 2000)
		s, err := retryriver.OpenStore(t.Context(), c.database)
		require.NoError(t, err)
		defer s.Close()
		n, err := s.ReplayAll(t.Context(), retryjob.Filter{})
		require.NoError(t, err)
		require.Equal(t, 2001, n)
		most := c.query("SELECT max(n) FROM (SELECT count(*) AS n FROM river_job WHERE metadata#>>'{retryjob,0,replays}' = '1' GROUP BY xmin::text) AS transactions")
		require.LessOrEqual(t, most[0][0], int64(500))
	})
}
