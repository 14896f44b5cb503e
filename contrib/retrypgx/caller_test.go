package retrypgx_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx"
	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/retrysql"
)

func testCaller(t *testing.T, server *pgtest.Server) {
	why := errors.New("why")
	for _, row := range []struct {
		name  string
		fn    func(ctx context.Context, tx pgx.Tx, cancel func()) error
		judge func(request string, cancel func()) // sees each request; a notice from the server always cancels
	}{
		{name: "during BEGIN", judge: func(request string, cancel func()) {
			if strings.Contains(request, "begin") {
				cancel()
			}
		}, fn: func(ctx context.Context, tx pgx.Tx, _ func()) error { return execute(ctx, tx, increment) }},
		{name: "during a statement", fn: func(ctx context.Context, tx pgx.Tx, _ func()) error {
			return execute(ctx, tx, increment, sleep)
		}},
		{name: "during a statement, and fn passes over it", fn: func(ctx context.Context, tx pgx.Tx, _ func()) error {
			_ = execute(ctx, tx, increment, sleep)
			return nil
		}},
		{name: "between two statements", fn: func(ctx context.Context, tx pgx.Tx, cancel func()) error {
			err := execute(ctx, tx, increment)
			cancel()
			return errors.Join(err, execute(ctx, tx, increment))
		}},
		{name: "after the last statement", fn: func(ctx context.Context, tx pgx.Tx, cancel func()) error {
			defer cancel()
			return execute(ctx, tx, increment)
		}},
		{name: "with rows open", fn: func(ctx context.Context, tx pgx.Tx, cancel func()) error {
			rows, err := tx.Query(ctx, "select repeat('x', 10000), pg_sleep(60 * (i / 3)) from generate_series(0, 3) i")
			rows.Next()
			cancel()
			return err
		}},
		{name: "in a rollback", fn: func(ctx context.Context, tx pgx.Tx, _ func()) error {
			return execute(ctx, tx, increment, conflict)
		}, judge: func(request string, cancel func()) {
			if strings.Contains(request, "rollback") {
				cancel()
			}
		}},
	} {
		t.Run("a caller cancels "+row.name, func(t *testing.T) {
			db := newDatabase(t, server)
			ctx, cancel := context.WithCancelCause(t.Context())
			behind := openPool(t, newProxy(t, server.Addr(), func(request string) fault {
				if row.judge != nil {
					row.judge(request, func() { cancel(why) })
				}
				return pass
			}), func(config *pgxpool.Config) {
				config.ConnConfig.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { cancel(why) }
			})
			r := behind.attempt(ctx, nil, func(ctx context.Context, tx pgx.Tx, _ int) error {
				return row.fn(ctx, tx, func() { cancel(why) })
			})
			returned(t, behind.Pool)
			require.ErrorIs(t, r.err, retry.CallerCanceled)
			require.ErrorIs(t, r.err, context.Canceled)
			require.ErrorIs(t, r.err, why)
			require.NotErrorIs(t, r.err, retrysql.ErrCommitAmbiguous)
			require.LessOrEqual(t, r.attempts, 1)
			require.Equal(t, 0, db.total(t))
		})
	}
	t.Run("a caller cancels a wait", func(t *testing.T) {
		db := newDatabase(t, server)
		ctx, cancel := context.WithCancel(t.Context())
		p := retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Hour, Cap: time.Hour}, Observe: func(context.Context, retry.Event) {
			require.Zero(t, db.Stat().AcquiredConns(), "no connection is held")
			cancel()
		}}
		err := retrypgx.Tx(ctx, db.Pool, p, nil, func(ctx context.Context, tx pgx.Tx) error { return execute(ctx, tx, increment, conflict) })
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.Equal(t, 0, db.total(t))
	})
	t.Run("an attempt's own timeout is repeated", func(t *testing.T) {
		db := newDatabase(t, server)
		p := quick(2)
		p.AttemptTimeout = time.Second
		attempt := 0
		err := retrypgx.Tx(t.Context(), db.Pool, p, nil, func(ctx context.Context, tx pgx.Tx) error {
			if attempt++; attempt == 1 {
				return execute(ctx, tx, increment, sleep)
			}
			return execute(ctx, tx, increment)
		})
		require.NoError(t, err)
		require.Equal(t, 1, db.total(t))
	})
	t.Run("a caller cancels while it waits for a connection", func(t *testing.T) {
		db := newDatabase(t, server)
		var held []*pgxpool.Conn
		for range db.Config().MaxConns {
			held = append(held, acquire(t, db))
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := retrypgx.Tx(ctx, cancels{db, cancel}, quick(3), nil, func(context.Context, pgx.Tx) error { return nil })
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.NotErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		for _, conn := range held {
			conn.Release()
		}
	})
}

// cancels is a Beginner whose caller cancels during the begin.
type cancels struct {
	retrypgx.Beginner
	cancel func()
}

func (c cancels) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	go c.cancel()
	return c.Beginner.BeginTx(ctx, opts)
}
