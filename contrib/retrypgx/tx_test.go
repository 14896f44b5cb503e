package retrypgx_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx"
	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/retrysql"
)

var errBusiness = errors.New("insufficient funds")

func find[T error](err error) (T, bool) {
	var target T
	ok := errors.As(err, &target)
	return target, ok
}

// TestPostgres tests the package with a real server.
func TestPostgres(t *testing.T) {
	server := pgtest.Start(t, "deadlock_timeout=10ms")
	for _, part := range []struct {
		name string
		test func(*testing.T, *pgtest.Server)
	}{
		{"outcomes", testOutcomes},
		{"conflicts", testConflicts},
		{"savepoints", testSavepoints},
		{"ended by fn", testEnded},
		{"a commit without an answer", testCommit},
		{"connections", testConnections},
		{"elsewhere", testElsewhere},
		{"the caller", testCaller},
		{"probe", testProbe},
		{"copy", testCopy},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, server) })
	}
}

// execute executes statements until one fails.
func execute(ctx context.Context, tx pgx.Tx, queries ...string) error {
	for _, query := range queries {
		if _, err := tx.Exec(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

func testOutcomes(t *testing.T, server *pgtest.Server) {
	for _, row := range []struct {
		name     string
		fn       func(ctx context.Context, tx pgx.Tx, attempt int) error
		attempts int
		failures []string
		want     error           // nil means a success, which has incremented once
		answer   retrysql.Reason // of a plain error
	}{
		{name: "a success is committed", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			return execute(ctx, tx, increment)
		}, attempts: 1},
		{name: "a conflict is repeated", fn: func(ctx context.Context, tx pgx.Tx, attempt int) error {
			if attempt == 1 {
				return execute(ctx, tx, increment, conflict)
			}
			return execute(ctx, tx, increment)
		}, attempts: 2, failures: []string{"statement serialization_failure 40001"}},
		{name: "a conflict that fn passes over is rolled back and repeated", fn: func(ctx context.Context, tx pgx.Tx, attempt int) error {
			_, _ = tx.Exec(ctx, increment)
			if attempt == 1 {
				_, _ = tx.Exec(ctx, conflict)
				_, _ = tx.Exec(ctx, increment) // 25P02
			}
			return nil
		}, attempts: 2, failures: []string{"statement serialization_failure 40001"}},
		{name: "a conflict of which fn makes another error too", fn: func(ctx context.Context, tx pgx.Tx, attempt int) error {
			_, _ = tx.Exec(ctx, increment)
			if attempt == 1 && execute(ctx, tx, conflict) != nil {
				return errBusiness
			}
			return nil
		}, attempts: 2, failures: []string{"statement serialization_failure 40001"}},
		{name: "a conflict that only fn sees is repeated", fn: func(ctx context.Context, tx pgx.Tx, attempt int) error {
			if attempt == 1 {
				_, err := tx.Conn().Exec(ctx, conflict)
				return err
			}
			return execute(ctx, tx, increment)
		}, attempts: 2, failures: []string{"statement serialization_failure 40001"}},
		{name: "a lost connection that fn passes over is repeated", fn: func(ctx context.Context, tx pgx.Tx, attempt int) error {
			_, _ = tx.Exec(ctx, increment)
			if attempt == 1 {
				_, _ = tx.Exec(ctx, cutOff)
			}
			return nil
		}, attempts: 2, failures: []string{"statement admin_shutdown 57P01"}},
		{name: "a connection that is lost unseen is neither committed nor ambiguous", fn: func(ctx context.Context, tx pgx.Tx, attempt int) error {
			if attempt == 1 {
				_, _ = tx.Conn().Exec(ctx, cutOff)
				return nil
			}
			return execute(ctx, tx, increment)
		}, attempts: 2, failures: []string{"statement connection_lost"}},
		{name: "savepoints nest, and can be committed and rolled back", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			return pgx.BeginFunc(ctx, tx, func(outer pgx.Tx) error {
				inner, err := outer.Begin(ctx)
				if err != nil {
					return err
				}
				if err := errors.Join(execute(ctx, inner, increment, increment), inner.Rollback(ctx)); err != nil {
					return err
				}
				if !errors.Is(inner.Rollback(ctx), pgx.ErrTxClosed) {
					return errBusiness
				}
				return execute(ctx, outer, increment)
			})
		}, attempts: 1},
		{name: "a deferred Rollback is harmless, also to a savepoint", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			nested, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			defer tx.Rollback(ctx)
			defer nested.Rollback(ctx)
			return errors.Join(execute(ctx, nested, increment), nested.Commit(ctx))
		}, attempts: 1},
		{name: "a deferred Rollback is harmless to a savepoint that was begun before", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			err := execute(ctx, tx, increment)
			nested, failed := tx.Begin(ctx)
			if failed != nil {
				return failed
			}
			defer nested.Rollback(ctx)
			defer tx.Rollback(ctx)
			return errors.Join(err, execute(ctx, nested, increment))
		}, attempts: 1},
		{name: "a deferred Rollback leaves a conflict one that is repeated", fn: func(ctx context.Context, tx pgx.Tx, attempt int) error {
			defer tx.Rollback(ctx)
			if err := execute(ctx, tx, increment); err != nil || attempt > 1 {
				return err
			}
			return execute(ctx, tx, conflict)
		}, attempts: 2, failures: []string{"statement serialization_failure 40001"}},
		{name: "a Rollback whose error fn ignores does not roll back", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			err := execute(ctx, tx, increment)
			if left := tx.Rollback(ctx); left == nil || !strings.Contains(left.Error(), "return an error to roll back") {
				return errBusiness
			}
			return err
		}, attempts: 1},
		{name: "a violation that fn returns ends the run", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			return execute(ctx, tx, increment, duplicate)
		}, attempts: 1, answer: retrysql.UniqueViolation},
		{name: "a violation that fn passes over is reported", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			_ = execute(ctx, tx, increment, duplicate)
			return nil
		}, attempts: 1, failures: []string{"commit transaction_aborted"}, want: pgx.ErrTxCommitRollback},
		{name: "an abort that was not seen is reported", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			_, _ = tx.Conn().Exec(ctx, conflict)
			return nil
		}, attempts: 1, failures: []string{"commit transaction_aborted"}, want: pgx.ErrTxCommitRollback},
		{name: "an error that fn makes up ends the run", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			return errors.Join(execute(ctx, tx, increment), errBusiness)
		}, attempts: 1, want: errBusiness},
		{name: "a scan that fails does not undo anything", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			var n int
			if err := tx.QueryRow(ctx, "select 'x'").Scan(&n); err == nil {
				return errBusiness
			}
			return execute(ctx, tx, increment)
		}, attempts: 1},
		{name: "values that cannot be read do not either", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			rows, _ := tx.Query(ctx, "select 1")
			_ = rows.Next() && rows.Scan(new(int), new(int)) == nil
			if rows.Err() == nil {
				return errBusiness
			}
			return execute(ctx, tx, increment)
		}, attempts: 1},
		{name: "an error that pgx hides behind that of a scan is not committed", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			rows, _ := tx.Query(ctx, "select 1 / (3 - i) from generate_series(1, 3) i")
			_ = rows.Next() && rows.Scan(new(int), new(int)) == nil
			return nil
		}, attempts: 1, failures: []string{"commit transaction_aborted"}, want: pgx.ErrTxCommitRollback},
		{name: "no rows do not either", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			var n int
			if err := tx.QueryRow(ctx, "select n from test where id = 0").Scan(&n); !errors.Is(err, pgx.ErrNoRows) {
				return errBusiness
			}
			return execute(ctx, tx, increment)
		}, attempts: 1},
		{name: "rows that fn leaves open end the run", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			_, err := tx.Query(ctx, "select 1 from generate_series(1, 100000)")
			return err
		}, attempts: 1, failures: []string{"statement"}, want: retry.TerminalError},
		{name: "a deferred constraint fails at the commit", fn: func(ctx context.Context, tx pgx.Tx, _ int) error {
			return execute(ctx, tx, increment, "create temp table later (n int unique deferrable initially deferred) on commit drop", "insert into later values (1), (1)")
		}, attempts: 1, answer: retrysql.UniqueViolation},
	} {
		t.Run(row.name, func(t *testing.T) {
			db := newDatabase(t, server)
			r := db.attempt(t.Context(), nil, row.fn)
			returned(t, db.Pool)
			require.Equal(t, row.attempts, r.attempts)
			require.Equal(t, row.failures, r.failures)
			require.NotErrorIs(t, r.err, retrysql.ErrCommitAmbiguous)
			require.NotErrorIs(t, r.err, pgx.ErrTxClosed)
			if row.want == nil && row.answer == "" {
				require.NoError(t, r.err)
				require.Equal(t, 1, db.total(t))
				return
			}
			if row.answer != "" {
				require.Equal(t, row.answer, retrysql.ReasonOf(r.err))
				require.NotErrorAs(t, r.err, new(*retry.Error))
			} else {
				require.ErrorIs(t, r.err, row.want)
			}
			require.NotContains(t, r.err.Error(), "\n")
			require.Equal(t, 0, db.total(t))
			if strings.Contains(row.name, "violation") {
				violation, ok := find[*pgconn.PgError](r.err)
				require.True(t, ok)
				require.Equal(t, "23505", violation.Code)
			}
		})
	}
	t.Run("every way to execute a statement notes its error", func(t *testing.T) {
		for name, way := range ways {
			t.Run(name, func(t *testing.T) {
				db := newDatabase(t, server)
				db.exec(t, `create or replace function fail() returns int language plpgsql as
					'begin raise exception ''a conflict'' using errcode = ''40001''; end'`,
					"drop table if exists picky", "create table picky (n int check (fail() = n))")
				r := db.attempt(t.Context(), nil, func(ctx context.Context, tx pgx.Tx, attempt int) error {
					if attempt == 1 {
						way(ctx, tx)
					} else {
						_, _ = tx.Exec(ctx, increment)
					}
					return nil
				})
				require.NoError(t, r.err)
				require.Equal(t, []string{"statement serialization_failure 40001"}, r.failures)
				require.Equal(t, 1, db.total(t))
			})
		}
	})
	t.Run("the value is that of the attempt that was committed", func(t *testing.T) {
		db := newDatabase(t, server)
		attempt := 0
		got, err := retrypgx.TxValue(t.Context(), db, quick(3), nil, func(ctx context.Context, tx pgx.Tx) (int, error) {
			if attempt++; attempt == 1 {
				return -1, execute(ctx, tx, conflict)
			}
			return attempt, nil
		})
		require.NoError(t, err)
		require.Equal(t, 2, got)
		got, err = retrypgx.TxValue(t.Context(), db, quick(3), nil, func(context.Context, pgx.Tx) (int, error) { return -1, errBusiness })
		require.ErrorIs(t, err, errBusiness)
		require.Zero(t, got)
	})
	t.Run("a panic rolls back and goes on", func(t *testing.T) {
		db := newDatabase(t, server)
		require.PanicsWithValue(t, "boom", func() {
			db.attempt(t.Context(), nil, func(ctx context.Context, tx pgx.Tx, _ int) error {
				require.NoError(t, execute(ctx, tx, increment))
				panic("boom")
			})
		})
		returned(t, db.Pool)
		require.Equal(t, 0, db.total(t))
	})
}

// ways are the ways to execute a statement that fails with a conflict, which fn then ignores.
var ways = map[string]func(context.Context, pgx.Tx){
	"Exec": func(ctx context.Context, tx pgx.Tx) { _, _ = tx.Exec(ctx, "select fail()") },
	"Query and Close": func(ctx context.Context, tx pgx.Tx) {
		rows, _ := tx.Query(ctx, "select fail()")
		rows.Close()
	},
	"Query and Next": func(ctx context.Context, tx pgx.Tx) {
		rows, _ := tx.Query(ctx, "select case when i = 3 then fail() else i end from generate_series(1, 3) i")
		for rows.Next() {
			_, _ = rows.Values()
		}
		_, _ = rows.Values() // they are closed
	},
	"CollectRows": func(ctx context.Context, tx pgx.Tx) {
		rows, _ := tx.Query(ctx, "select fail()")
		_, _ = pgx.CollectRows(rows, pgx.RowTo[int])
	},
	"QueryRow": func(ctx context.Context, tx pgx.Tx) { _ = tx.QueryRow(ctx, "select fail()").Scan(new(int)) },
	"Prepare and Exec": func(ctx context.Context, tx pgx.Tx) {
		_, _ = tx.Prepare(ctx, "failing", "select fail()")
		_, _ = tx.Exec(ctx, "failing")
	},
	"CopyFrom": func(ctx context.Context, tx pgx.Tx) {
		_, _ = tx.CopyFrom(ctx, pgx.Identifier{"picky"}, []string{"n"}, pgx.CopyFromRows([][]any{{1}}))
	},
	"a batch's Close": func(ctx context.Context, tx pgx.Tx) { _ = tx.SendBatch(ctx, failingBatch()).Close() },
	"a batch's function": func(ctx context.Context, tx pgx.Tx) {
		b := failingBatch()
		b.QueuedQueries[0].QueryRow(func(row pgx.Row) error { _ = row.Scan(new(int)); return nil })
		_ = tx.SendBatch(ctx, b).Close()
	},
	"a batch's Exec": func(ctx context.Context, tx pgx.Tx) {
		results := tx.SendBatch(ctx, failingBatch())
		_, _ = results.Exec()
		_ = results.Close()
	},
	"a batch that is left open": func(ctx context.Context, tx pgx.Tx) { _, _ = tx.SendBatch(ctx, failingBatch()).Exec() },
	"a batch's Query": func(ctx context.Context, tx pgx.Tx) {
		results := tx.SendBatch(ctx, failingBatch())
		rows, _ := results.Query()
		rows.Close()
		_ = results.Close()
	},
	"a batch's QueryRow": func(ctx context.Context, tx pgx.Tx) {
		results := tx.SendBatch(ctx, failingBatch())
		_ = results.QueryRow().Scan(new(int))
		_ = results.Close()
	},
	"Begin": func(ctx context.Context, tx pgx.Tx) {
		_, _ = tx.Exec(ctx, "select fail()")
		_, _ = tx.Begin(ctx) // 25P02
	},
	"in a savepoint": func(ctx context.Context, tx pgx.Tx) {
		nested, err := tx.Begin(ctx)
		if err == nil {
			_, _ = nested.Exec(ctx, "select fail()")
			_ = nested.Commit(ctx)
		}
	},
}

func failingBatch() *pgx.Batch {
	b := &pgx.Batch{}
	b.Queue("select fail()")
	b.Queue("select 1")
	return b
}
