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

func TestAQueueRefusesMoreWorkersThanRiverHas(t *testing.T) {
	for _, row := range []struct {
		concurrency int
		queues      map[string]int
		field       string // empty means that they are taken
	}{
		{10_001, nil, "Options.Concurrency"},
		{0, map[string]int{"bulk": 10_001, "a": 1}, `Options.Queues["bulk"]`},
		{10_000, map[string]int{"bulk": 10_000}, ""},
	} {
		o := fine
		o.Concurrency, o.Queues = row.concurrency, row.queues
		q, err := retryriver.NewSQLite(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), o)
		if row.field == "" {
			require.NoError(t, err)
			require.NoError(t, q.Close())
			continue
		}
		var bad *retry.FieldError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, retry.FieldError{Package: "retryriver", Field: row.field, Value: "10001", Rule: "is above 10000"}, *bad)
	}
}

func TestAQueueThatIsShutDownTakesNoJobs(t *testing.T) {
	both(t, fine, func(t *testing.T, q *retryriver.Queue) {
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
	both(t, retryjob.Options{Policies: catalog, Handlers: broken}, func(t *testing.T, q *retryriver.Queue) {
		h, err := q.Enqueue(t.Context(), retryjob.Job{ID: "dead", Kind: "kind", Policy: "once"})
		require.NoError(t, err)
		require.Equal(t, retryjob.DeadLettered, ended(t, h).Status)
		_, err = q.Shutdown(t.Context())
		require.NoError(t, err)
		require.NoError(t, q.Replay(t.Context(), "dead"))
		i, err := h.Inspect(t.Context())
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
		s := c.store(t)
		n, err := s.ReplayAll(t.Context(), retryjob.Filter{})
		require.NoError(t, err)
		require.Equal(t, 2001, n)
		most := c.query("SELECT max(n) FROM (SELECT count(*) AS n FROM river_job WHERE metadata#>>'{retryjob,0,replays}' = '1' GROUP BY xmin::text) AS transactions")
		require.LessOrEqual(t, most[0][0], int64(500))
	})
}
