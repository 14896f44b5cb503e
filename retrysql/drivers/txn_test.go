package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

var errUndo = errors.New("undo this")

// everywhere runs a test on each database, watched and not, each time in its own table "done".
func everywhere(t *testing.T, test func(t *testing.T, db *sql.DB)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db := newSQLite(t, "wal")
		exec1(t, db, "create table done (n integer unique)")
		test(t, db)
	})
	for _, d := range serverDrivers {
		for name, open := range map[string]func(driver, *testing.T, string, string) *sql.DB{"": driver.open, ", watched": driver.watched} {
			t.Run(d.name+name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, d, "create table done (n integer unique)")
				test(t, open(d, t, s.address, s.name))
			})
		}
	}
}

func TestASavepointUndoesItsPartAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, db *sql.DB) {
		insert := func(ctx context.Context, tx *retrysql.Txn, values string) error {
			return execute(ctx, tx, "insert into done values "+values)
		}
		err := retrysql.Tx(t.Context(), db, retry.Policy{MaxAttempts: 1}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			require.NoError(t, insert(ctx, tx, "(1)"))
			require.Equal(t, errUndo, tx.Savepoint(ctx, func(ctx context.Context) error {
				require.NoError(t, insert(ctx, tx, "(10)"))
				require.NoError(t, tx.Savepoint(ctx, func(ctx context.Context) error { return insert(ctx, tx, "(20)") }))
				return errUndo
			}))
			require.Error(t, tx.Savepoint(ctx, func(ctx context.Context) error { return insert(ctx, tx, "(1)") }), "a unique violation")
			return tx.Savepoint(ctx, func(ctx context.Context) error { return insert(ctx, tx, "(100)") })
		})
		require.NoError(t, err)
		require.Equal(t, 101, number(t, db, "select sum(n) from done"))
	})
}

func TestWhatIsLeftOpenIsCommitted(t *testing.T) {
	everywhere(t, func(t *testing.T, db *sql.DB) {
		exec1(t, db, "insert into done values (1), (2)")
		for query, leave := range map[string]func(context.Context, *retrysql.Txn){
			"insert into done values (10)": func(ctx context.Context, tx *retrysql.Txn) {
				rows, err := tx.QueryContext(ctx, "select n from done")
				require.NoError(t, err)
				require.True(t, rows.Next())
			},
			"insert into done values (20)": func(ctx context.Context, tx *retrysql.Txn) { tx.QueryRowContext(ctx, "select n from done") },
		} {
			p, _ := observed(1, nil)
			require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if err := execute(ctx, tx, query); err != nil {
					return err
				}
				leave(ctx, tx)
				return nil
			}))
		}
		require.Equal(t, 33, number(t, db, "select sum(n) from done"))
	})
}

func TestASavepointUndoesAStatementThatPostgreSQLCanceled(t *testing.T) {
	withPostgres(t, []string{"create table done (n integer)"}, func(t *testing.T, _ driver, db *sql.DB) {
		p, last := observed(4, nil)
		require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			if err := execute(ctx, tx, "insert into done values (1)"); err != nil {
				return err
			}
			err := tx.Savepoint(ctx, func(ctx context.Context) error {
				return execute(ctx, tx, "set local statement_timeout = 20", "select pg_sleep(60)")
			})
			require.Equal(t, retrysql.QueryCanceled, retrysql.ReasonOf(err))
			return execute(ctx, tx, "insert into done values (10)")
		}))
		require.Equal(t, 1, last.Attempts)
		require.Equal(t, 11, number(t, db, "select sum(n) from done"))
	})
}

func TestReadOnlyWritesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, db *sql.DB) {
		if _, ok := db.Driver().(*sqlite.Driver); ok {
			err := retrysql.Tx(t.Context(), db, retry.Policy{}, &retrysql.Options{ReadOnly: true}, func(context.Context, *retrysql.Txn) error { return nil })
			require.ErrorContains(t, err, "drivers of SQLite ignore it")
			return
		}
		err := retrysql.Tx(t.Context(), db, retry.Policy{MaxAttempts: 1}, &retrysql.Options{ReadOnly: true}, func(ctx context.Context, tx *retrysql.Txn) error {
			return execute(ctx, tx, "insert into done values (1)")
		})
		require.Error(t, err)
		require.Equal(t, 0, number(t, db, "select count(*) from done"))
	})
}

func TestAWatchedConnectionHasTheTypesOfTheDriver(t *testing.T) {
	describe := func(t *testing.T, db *sql.DB) (all []string) {
		t.Helper()
		err := retrysql.Tx(t.Context(), db, retry.Policy{MaxAttempts: 1}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			rows, err := tx.QueryContext(ctx, "select * from kinds")
			if err != nil {
				return err
			}
			defer rows.Close()
			types, err := rows.ColumnTypes()
			for _, c := range types {
				all = append(all, fmt.Sprint(c.Name(), c.DatabaseTypeName(), c.ScanType()))
			}
			return err
		})
		require.NoError(t, err)
		return all
	}
	onEach(t, serverDrivers, []string{"create table kinds (n integer not null, price decimal(7, 2), name varchar(20))"}, func(t *testing.T, s site) {
		want := describe(t, s.db)
		require.Len(t, want, 3)
		require.Equal(t, want, describe(t, s.watched(t, s.address, s.name)))
	})
}

// TestASavepointWithOpenRowsIsUndone: a server that is asked for rows does not accept another statement.
func TestASavepointWithOpenRowsIsUndone(t *testing.T) {
	everywhere(t, func(t *testing.T, db *sql.DB) {
		exec1(t, db, "insert into done values (100), (200), (300)")
		for _, end := range []error{errUndo, nil} {
			p, last := observed(4, nil)
			require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				require.Equal(t, end, tx.Savepoint(ctx, func(ctx context.Context) error {
					require.NoError(t, execute(ctx, tx, "insert into done values (1)"))
					rows, err := tx.QueryContext(ctx, "select n from done")
					require.NoError(t, err)
					require.True(t, rows.Next())
					return end
				}))
				return execute(ctx, tx, "insert into done values (10)", "delete from done where n = 10")
			}))
			require.Equal(t, 1, last.Attempts)
		}
		require.Equal(t, 601, number(t, db, "select sum(n) from done"))
	})
}

func stmtErr[T any](_ T, err error) error { return err }
