package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

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
				s, database := d.newDatabase(t)
				db := open(d, t, s.address, database)
				exec1(t, db, "create table done (n integer unique)")
				test(t, db)
			})
		}
	}
}

func TestASavepointUndoesItsPartAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, db *sql.DB) {
		insert := func(ctx context.Context, tx *retrysql.Txn, query string) error {
			_, err := tx.ExecContext(ctx, "insert into done values "+query)
			return err
		}
		err := retrysql.Tx(t.Context(), db, retry.Policy{MaxAttempts: 1}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			if err := insert(ctx, tx, "(1)"); err != nil {
				return err
			}
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
		p, last := observed(1, nil)
		require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			if _, err := tx.ExecContext(ctx, "insert into done values (1), (2)"); err != nil {
				return err
			}
			rows, err := tx.QueryContext(ctx, "select n from done")
			if err != nil {
				return err
			}
			rows.Next()
			return nil
		}))
		require.Equal(t, retry.Succeeded, last.Status)
		require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			if _, err := tx.ExecContext(ctx, "insert into done values (10)"); err != nil {
				return err
			}
			tx.QueryRowContext(ctx, "select n from done")
			return nil
		}))
		require.Equal(t, 13, number(t, db, "select sum(n) from done"))
	})
}

func TestASavepointUndoesAStatementThatPostgreSQLCanceled(t *testing.T) {
	t.Parallel()
	for _, d := range []driver{libpq, pgxStdlib} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s, database := d.newDatabase(t)
			db := d.open(t, s.address, database)
			exec1(t, db, "create table done (n integer)")
			p, last := observed(4, nil)
			require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if _, err := tx.ExecContext(ctx, "insert into done values (1)"); err != nil {
					return err
				}
				err := tx.Savepoint(ctx, func(ctx context.Context) error {
					if _, err := tx.ExecContext(ctx, "set local statement_timeout = 20"); err != nil {
						return err
					}
					_, err := tx.ExecContext(ctx, "select pg_sleep(60)")
					return err
				})
				require.Equal(t, retrysql.QueryCanceled, retrysql.ReasonOf(err))
				_, err = tx.ExecContext(ctx, "insert into done values (10)")
				return err
			}))
			require.Equal(t, 1, last.Attempts)
			require.Equal(t, 11, number(t, db, "select sum(n) from done"))
		})
	}
}

func TestReadOnlyWritesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, db *sql.DB) {
		if _, ok := db.Driver().(*sqlite.Driver); ok {
			err := retrysql.Tx(t.Context(), db, retry.Policy{}, &retrysql.Options{ReadOnly: true}, func(context.Context, *retrysql.Txn) error { return nil })
			require.ErrorContains(t, err, "drivers of SQLite ignore it")
			return
		}
		err := retrysql.Tx(t.Context(), db, retry.Policy{MaxAttempts: 1}, &retrysql.Options{ReadOnly: true}, func(ctx context.Context, tx *retrysql.Txn) error {
			_, err := tx.ExecContext(ctx, "insert into done values (1)")
			return err
		})
		require.Error(t, err)
		require.Equal(t, 0, number(t, db, "select count(*) from done"))
	})
}

func TestAWatchedConnectionHasTheTypesOfTheDriver(t *testing.T) {
	t.Parallel()
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
	for _, d := range serverDrivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s, database := d.newDatabase(t)
			plain := d.open(t, s.address, database)
			exec1(t, plain, "create table kinds (n integer not null, price decimal(7, 2), name varchar(20))")
			want := describe(t, plain)
			require.Len(t, want, 3)
			require.Equal(t, want, describe(t, d.watched(t, s.address, database)))
		})
	}
}

// TestASavepointWithOpenRowsIsUndone: a server that is asked for rows does not accept another statement.
func TestASavepointWithOpenRowsIsUndone(t *testing.T) {
	everywhere(t, func(t *testing.T, db *sql.DB) {
		exec1(t, db, "insert into done values (100), (200), (300)")
		for _, end := range []error{errUndo, nil} {
			p, last := observed(4, nil)
			require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				require.Equal(t, end, tx.Savepoint(ctx, func(ctx context.Context) error {
					if _, err := tx.ExecContext(ctx, "insert into done values (1)"); err != nil {
						return err
					}
					rows, err := tx.QueryContext(ctx, "select n from done")
					if err != nil {
						return err
					}
					require.True(t, rows.Next())
					return end
				}))
				_, err := tx.ExecContext(ctx, "insert into done values (10)")
				return errors.Join(err, stmtErr(tx.ExecContext(ctx, "delete from done where n = 10")))
			}))
			require.Equal(t, 1, last.Attempts)
		}
		require.Equal(t, 601, number(t, db, "select sum(n) from done"))
	})
}

// TestAConflictOnAnotherDatabaseIsNotThisOnes: the transaction on the other one has given up.
func TestAConflictOnAnotherDatabaseIsNotThisOnes(t *testing.T) {
	everywhere(t, func(t *testing.T, db *sql.DB) {
		busy := newSQLite(t, "wal")
		writer, err := busy.Conn(t.Context())
		require.NoError(t, err)
		defer writer.Close()
		exec1On(t, writer, "begin immediate")
		var inner *retry.Error
		p, last := observed(4, nil)
		err = retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			var n int
			if err := tx.QueryRowContext(ctx, "select count(*) from done").Scan(&n); err != nil {
				return err
			}
			p, _ := observed(3, nil)
			return retrysql.Tx(ctx, busy, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				return stmtErr(tx.ExecContext(ctx, "update counter set n = n + 1"))
			})
		})
		exec1On(t, writer, "rollback")
		require.ErrorAs(t, err, &inner)
		require.Equal(t, 3, inner.Attempts)
		require.Equal(t, retry.Succeeded, last.Status)
		require.Equal(t, 1, last.Attempts)
	})
}

// TestAHookOutlivesTheCallerOfACertainCommit: the caller is canceled while the commit runs.
func TestAHookOutlivesTheCallerOfACertainCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, db *sql.DB) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ran := 0
		require.NoError(t, retrysql.Tx(ctx, db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			tx.AfterCommit(func(context.Context) { cancel() }) // as if during the commit
			tx.AfterCommit(func(ctx context.Context) {
				_, bounded := ctx.Deadline()
				require.True(t, bounded)
				_, err := db.ExecContext(ctx, "insert into done values (2)")
				require.NoError(t, err)
				ran++
			})
			return stmtErr(tx.ExecContext(ctx, "insert into done values (1)"))
		}))
		require.Equal(t, 1, ran)
		require.Equal(t, 3, number(t, db, "select sum(n) from done"))
	})
}

// TestTheContextOfAFnThatHasReturned belongs to no transaction, so a Tx with it is one of its own.
func TestTheContextOfAFnThatHasReturned(t *testing.T) {
	everywhere(t, func(t *testing.T, db *sql.DB) {
		insert := func(n string) func(context.Context, *retrysql.Txn) error {
			return func(ctx context.Context, tx *retrysql.Txn) error {
				return stmtErr(tx.ExecContext(ctx, "insert into done values ("+n+")"))
			}
		}
		require.NoError(t, retrysql.Tx(t.Context(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			tx.AfterCommit(func(context.Context) {
				_, ok := retrysql.TxnFromContext(ctx, db)
				require.False(t, ok)
				require.NoError(t, retrysql.Tx(ctx, db, retry.Policy{}, nil, insert("10")))
			})
			_, ok := retrysql.TxnFromContext(ctx, db)
			require.True(t, ok)
			return insert("1")(ctx, tx)
		}))
		require.Equal(t, 11, number(t, db, "select sum(n) from done"))
	})
}

func exec1On(t *testing.T, conn *sql.Conn, query string) {
	t.Helper()
	_, err := conn.ExecContext(t.Context(), query)
	require.NoError(t, err)
}

func stmtErr[T any](_ T, err error) error { return err }
