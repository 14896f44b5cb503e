package retrypgx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx"
	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/retrysql"
)

func testEnded(t *testing.T, server *pgtest.Server) {
	for _, row := range []struct {
		name string
		fn   func(context.Context, pgx.Tx) error
		took int // effect
	}{
		{"by COMMIT", func(ctx context.Context, tx pgx.Tx) error { return execute(ctx, tx, "commit") }, 1},
		{"by COMMIT, in a query", func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "commit")
			if err != nil {
				return err
			}
			rows.Close()
			return rows.Err()
		}, 1},
		{"by COMMIT, in a batch", func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue("commit")
			return tx.SendBatch(ctx, b).Close()
		}, 1},
		{"by COMMIT, in a savepoint", func(ctx context.Context, tx pgx.Tx) error {
			return pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error { return execute(ctx, nested, "commit") })
		}, 1},
		{"by ROLLBACK", func(ctx context.Context, tx pgx.Tx) error { return execute(ctx, tx, "rollback") }, 0},
		{"by COMMIT AND CHAIN", func(ctx context.Context, tx pgx.Tx) error { return execute(ctx, tx, "commit and chain") }, 1},
		{"by BEGIN, which does nothing", func(ctx context.Context, tx pgx.Tx) error { return execute(ctx, tx, "begin") }, 0},
		{"by the connection", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, "commit")
			return errors.Join(err, errBusiness)
		}, 1},
		{"by COMMIT, which is refused", func(ctx context.Context, tx pgx.Tx) error {
			return execute(ctx, tx, "create temp table later (n int unique deferrable initially deferred) on commit drop",
				"insert into later values (1), (1)", "commit")
		}, 0},
	} {
		for _, swallows := range []bool{false, true} {
			name := "a transaction that fn ended " + row.name
			if swallows {
				name += ", and ignored"
			}
			t.Run(name, func(t *testing.T) {
				db := newDatabase(t, server)
				r := db.attempt(t.Context(), nil, func(ctx context.Context, tx pgx.Tx, _ int) error {
					require.NoError(t, execute(ctx, tx, increment))
					err := row.fn(ctx, tx)
					require.Error(t, err)
					if swallows {
						return nil
					}
					return err
				})
				returned(t, db.Pool)
				require.ErrorIs(t, r.err, retrysql.ErrTransactionEnded)
				require.ErrorIs(t, r.err, retry.TerminalError)
				require.NotErrorIs(t, r.err, retrysql.ErrCommitAmbiguous)
				require.Equal(t, []string{"statement transaction_ended"}, r.failures)
				require.Equal(t, 1, r.attempts)
				require.Equal(t, row.took, db.total(t))
			})
		}
	}
	t.Run("the error of a Rollback ends the run", func(t *testing.T) {
		db := newDatabase(t, server)
		r := db.attempt(t.Context(), nil, func(ctx context.Context, tx pgx.Tx, _ int) error {
			require.NoError(t, execute(ctx, tx, increment))
			return tx.Rollback(ctx)
		})
		require.ErrorIs(t, r.err, retrysql.ErrTransactionEnded)
		require.ErrorIs(t, r.err, retry.TerminalError)
		require.Equal(t, 1, r.attempts)
		require.Equal(t, 0, db.total(t))
	})
	t.Run("no statement is executed after the end of the transaction", func(t *testing.T) {
		db := newDatabase(t, server)
		r := db.attempt(t.Context(), nil, func(ctx context.Context, tx pgx.Tx, _ int) error {
			_, _ = tx.Exec(ctx, "rollback")
			for name, way := range statements {
				require.ErrorIs(t, way(ctx, tx), retrysql.ErrTransactionEnded, name)
			}
			return nil
		})
		require.ErrorIs(t, r.err, retrysql.ErrTransactionEnded)
		require.Equal(t, 0, db.total(t))
	})
	for name, row := range map[string]struct {
		end      func(context.Context, pgx.Tx) error
		attempts int
	}{
		"a run around it does not repeat what may have taken effect": {func(ctx context.Context, tx pgx.Tx) error { return execute(ctx, tx, "commit") }, 1},
		"a run around it repeats what was refused":                   {func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			db := newDatabase(t, server)
			attempts := 0
			err := retry.Do(t.Context(), quick(3), func(ctx context.Context) error {
				return retrypgx.Tx(ctx, db.Pool, quick(3), nil, func(ctx context.Context, tx pgx.Tx) error {
					attempts++
					return errors.Join(execute(ctx, tx, increment), row.end(ctx, tx))
				})
			})
			require.ErrorIs(t, err, retrysql.ErrTransactionEnded)
			require.Equal(t, row.attempts, attempts)
			require.LessOrEqual(t, db.total(t), 1)
		})
	}
	t.Run("a policy cannot have an ended transaction repeated", func(t *testing.T) {
		db := newDatabase(t, server)
		p := quick(3)
		p.Classify = retry.Otherwise(retry.Retryable)
		err := retrypgx.Tx(t.Context(), db.Pool, p, nil, func(ctx context.Context, tx pgx.Tx) error {
			_ = execute(ctx, tx, increment, "commit")
			return retry.Transient(errBusiness)
		})
		require.ErrorIs(t, err, retrysql.ErrTransactionEnded)
		require.ErrorIs(t, err, errBusiness)
		require.Equal(t, 1, db.total(t))
	})
}

// statements are the ways to execute one, with its error.
var statements = map[string]func(context.Context, pgx.Tx) error{
	"Begin": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Begin(ctx); return err },
	"CopyFrom": func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"test"}, []string{"id", "n"}, pgx.CopyFromRows([][]any{{3, 1}}))
		return err
	},
	"SendBatch": func(ctx context.Context, tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(increment)
		return tx.SendBatch(ctx, b).Close()
	},
	"Prepare": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Prepare(ctx, "p", increment); return err },
	"Exec":    func(ctx context.Context, tx pgx.Tx) error { return execute(ctx, tx, increment) },
	"Query": func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, increment)
		rows.Close()
		return rows.Err()
	},
	"QueryRow": func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, increment+" returning n").Scan(new(int))
	},
}
