package retrypgx_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx"
	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/retrysql"
)

func testConflicts(t *testing.T, server *pgtest.Server) {
	serializable := &retrypgx.Options{TxOptions: pgx.TxOptions{IsoLevel: pgx.Serializable}}
	t.Run("write skew fails at the commit and is repeated", func(t *testing.T) {
		db := newDatabase(t, server)
		// Each sets its own row to one more than the sum: 1 and 2, in either order.
		raise := func(ctx context.Context, tx pgx.Tx, id int) error {
			_, err := tx.Exec(ctx, "update test set n = (select sum(n) + 1 from test) where id = $1", id)
			return err
		}
		r := db.attempt(t.Context(), serializable, func(ctx context.Context, tx pgx.Tx, attempt int) error {
			if err := raise(ctx, tx, 1); err != nil || attempt > 1 {
				return err
			}
			return retrypgx.Tx(t.Context(), db.Pool, quick(1), serializable, func(ctx context.Context, tx pgx.Tx) error { return raise(ctx, tx, 2) })
		})
		require.NoError(t, r.err)
		require.Equal(t, []string{"commit serialization_failure 40001"}, r.failures)
		require.Equal(t, 3, db.total(t))
	})
	t.Run("many workers lose no update", func(t *testing.T) {
		const workers, each = 8, 20
		db := newDatabase(t, server)
		p := retrysql.DefaultPolicy()
		p.MaxAttempts, p.Base = retry.Unlimited, time.Millisecond
		var failed atomic.Int64
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Outcome == nil {
				failed.Add(1)
			}
		}
		var all sync.WaitGroup
		for worker := range workers {
			all.Go(func() {
				for range each {
					err := retrypgx.Tx(t.Context(), db.Pool, p, serializable, func(ctx context.Context, tx pgx.Tx) error {
						var sum int
						if err := tx.QueryRow(ctx, "select sum(n)::int from test").Scan(&sum); err != nil {
							return err
						}
						_, err := tx.Exec(ctx, "insert into test values ($1, $2)", 10+sum, 1)
						return err
					})
					if err != nil {
						t.Errorf("worker %d: %v", worker, err)
						return
					}
				}
			})
		}
		all.Wait()
		returned(t, db.Pool)
		require.Equal(t, workers*each, db.total(t))
		t.Logf("%d transactions, %d attempts failed", workers*each, failed.Load())
	})
}

func testSavepoints(t *testing.T, server *pgtest.Server) {
	for way, fail := range map[string]func(ctx context.Context, tx pgx.Tx, query string) error{
		"a savepoint": func(ctx context.Context, tx pgx.Tx, query string) error {
			return pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error { return execute(ctx, nested, increment, query) })
		},
		"ROLLBACK TO SAVEPOINT": func(ctx context.Context, tx pgx.Tx, query string) error {
			return errors.Join(execute(ctx, tx, "savepoint here", increment, query), execute(ctx, tx, "rollback to here"))
		},
	} {
		for name, query := range map[string]string{"a violation": duplicate, "a conflict": conflict} {
			t.Run(name+" that "+way+" has undone counts no more", func(t *testing.T) {
				db := newDatabase(t, server)
				r := db.attempt(t.Context(), nil, func(ctx context.Context, tx pgx.Tx, _ int) error {
					require.Error(t, fail(ctx, tx, query))
					return execute(ctx, tx, increment)
				})
				require.NoError(t, r.err)
				require.Equal(t, 1, r.attempts)
				require.Equal(t, 1, db.total(t))
			})
		}
	}
	t.Run("the error that is named is the one after it", func(t *testing.T) {
		db := newDatabase(t, server)
		r := db.attempt(t.Context(), nil, func(ctx context.Context, tx pgx.Tx, _ int) error {
			_ = pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error { return execute(ctx, nested, duplicate) })
			_ = execute(ctx, tx, "select 1/0")
			return nil
		})
		violation, ok := find[*pgconn.PgError](r.err)
		require.True(t, ok)
		require.Equal(t, "22012", violation.Code)
	})
}
