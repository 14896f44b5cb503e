package retryriver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// TestManyIDs: more IDs than a statement has arguments, and each query is by an index.
func TestManyIDs(t *testing.T) {
	if raceDetector {
		t.Skip("with the race detector SQLite takes half a minute")
	}
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		c.exec(c.copies, 3000)
		s := c.store(t)
		var ids []string
		for i := range 70_000 {
			ids = append(ids, fmt.Sprintf("dead-%d", i+1))
		}
		require.Len(t, page(t, s.List(t.Context(), retryjob.Filter{IDs: ids}), 70_000), 3000)
		require.Equal(t, 3000, counted(t, s, retryjob.Filter{IDs: ids}))
		n, err := s.Purge(t.Context(), retryjob.Filter{IDs: ids[1000:1400]})
		require.NoError(t, err)
		require.Equal(t, 400, n)
		n, err = s.ReplayAll(t.Context(), retryjob.Filter{IDs: ids, Limit: 700})
		require.NoError(t, err)
		require.Equal(t, 700, n)
		require.Len(t, page(t, s.List(t.Context(), retryjob.Filter{IDs: ids, Statuses: []retryjob.Status{retryjob.DeadLettered}}), 70_000), 3000-400-700)

		text, args := retryriver.IDsQuery(c.onSQLite(), ids[:2])
		if c.onSQLite() {
			for _, line := range c.query("EXPLAIN QUERY PLAN "+text, args...) {
				require.NotRegexp(t, `SCAN river_job\b`, line[3])
			}
			return
		}
		require.NotContains(t, strings.Join(c.explain(text, args...), "\n"), "Seq Scan")
	})
}

func TestAnInterruptedPurgeSaysThatItWasInterrupted(t *testing.T) {
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		if !c.onSQLite() {
			return
		}
		c.exec(c.copies, 10)
		for _, at := range []string{"DELETE", "COMMIT"} {
			ctx, cancel := context.WithCancel(t.Context())
			db, err := retryriver.FaultySQLite(c.database, func(statement string) error {
				if strings.Contains(statement, at) {
					cancel()
				}
				return nil
			})
			require.NoError(t, err)
			s, err := retryriver.StoreOn(db, db.Close)
			require.NoError(t, err)
			_, err = s.Purge(ctx, retryjob.Filter{})
			require.NotContains(t, fmt.Sprint(err), "already been committed", at)
			require.NoError(t, s.Close())
		}
	})
}

func TestMigrateBringsAnExistingDatabaseUpToDate(t *testing.T) {
	dir := t.TempDir()
	require.ErrorIs(t, retryriver.Migrate(t.Context(), filepath.Join(dir, "none.db")), retryriver.ErrNoDatabase)
	_, err := os.Stat(filepath.Join(dir, "none.db"))
	require.ErrorIs(t, err, os.ErrNotExist, "it was made")
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		require.NoError(t, retryriver.Migrate(t.Context(), c.database), "it is up to date")
		c.exec("DROP INDEX retryjob_changed")
		_, err := retryriver.OpenStore(t.Context(), c.database)
		require.ErrorIs(t, err, retryriver.ErrNotMigrated)
		require.NoError(t, retryriver.Migrate(t.Context(), c.database))
		require.Len(t, page(t, c.store(t).List(t.Context(), retryjob.Filter{}), 9), 2)
		c.exec("DROP TABLE river_job")
		require.ErrorIs(t, retryriver.Migrate(t.Context(), c.database), retryriver.ErrNotMigrated, "the database of another program")
	})
	empty := newDatabase(t)
	require.ErrorIs(t, retryriver.Migrate(t.Context(), empty), retryriver.ErrNotMigrated)
	pool, err := pgxpool.New(t.Context(), empty)
	require.NoError(t, err)
	defer pool.Close()
	var tables int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables))
	require.Zero(t, tables)
}
