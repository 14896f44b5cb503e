package retryriver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// TestManyIDs: more IDs than a statement has arguments, and each query is by an index.
func TestManyIDs(t *testing.T) {
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		c.exec(c.copies, 3000)
		s, err := retryriver.OpenStore(t.Context(), c.database)
		require.NoError(t, err)
		defer s.Close()
		var ids []string
		for i := range 70_000 {
			ids = append(ids, fmt.Sprintf("dead-%d", i+1))
		}
		require.Len(t, page(t, s.List(t.Context(), retryjob.Filter{IDs: ids}), 70_000), 3000)
		counts, err := s.Count(t.Context(), retryjob.Filter{IDs: ids})
		require.NoError(t, err)
		require.Equal(t, 3000, counts[retryjob.DeadLettered].Jobs)
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
				require.NotRegexp(t, `SCAN (j|retryjob_job|river_job)\b`, line[3])
			}
			return
		}
		require.NotContains(t, strings.Join(c.explain(text, args...), "\n"), "Seq Scan")
	})
}

// TestAVersion1JobSortsByWhenItWasEnqueued: its record has no such time, and it is due in the future.
func TestAVersion1JobSortsByWhenItWasEnqueued(t *testing.T) {
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		record := `{"retryjob":[{"v":1,"job":"old","policy":"slow","first":"2099-01-01T00:00:00Z","changed":4070908800000000}]}`
		object, states := "jsonb('"+record+"')", "255)"
		if !c.onSQLite() {
			object, states = "'"+record+"'", "B'11111111')"
		}
		c.exec("INSERT INTO river_job (kind, max_attempts, args, state, created_at, scheduled_at, unique_key, metadata, unique_states) VALUES " +
			"('mail', 1, '{}', 'scheduled', '2026-01-01 00:00:00', '2099-01-01 00:00:00', " + c.key("old") + ", " + object + ", " + states)
		s, err := retryriver.OpenStore(t.Context(), c.database)
		require.NoError(t, err)
		defer s.Close()
		require.Equal(t, "old", page(t, s.List(t.Context(), retryjob.Filter{}), 9)[2], "the oldest is the last")
		old := page(t, s.List(t.Context(), retryjob.Filter{Until: time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)}), 9)
		require.Equal(t, []string{"old"}, old)
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
		c.exec("UPDATE river_migration SET version = 1 WHERE line = 'retryjob'")
		c.exec("ALTER TABLE retryjob_job RENAME COLUMN tags TO labels")
		_, err := retryriver.OpenStore(t.Context(), c.database)
		require.ErrorIs(t, err, retryriver.ErrNotMigrated)
		require.NoError(t, retryriver.Migrate(t.Context(), c.database))
		s, err := retryriver.OpenStore(t.Context(), c.database)
		require.NoError(t, err)
		defer s.Close()
		require.Len(t, page(t, s.List(t.Context(), retryjob.Filter{}), 9), 2)
		c.exec("DROP TABLE river_job")
		require.ErrorIs(t, retryriver.Migrate(t.Context(), c.database), retryriver.ErrNotMigrated, "the database of another program")
	})
	server := pgtest.Start(t)
	require.ErrorIs(t, retryriver.Migrate(t.Context(), server.DSN()), retryriver.ErrNotMigrated)
	pool, err := pgxpool.New(t.Context(), server.DSN())
	require.NoError(t, err)
	defer pool.Close()
	var tables int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables))
	require.Zero(t, tables)
}
