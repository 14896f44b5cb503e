package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// withPostgres runs a test in parallel with each driver for PostgreSQL, each with its own database in which the setup
// was executed.
func withPostgres(t *testing.T, setup []string, test func(t *testing.T, d driver, db *sql.DB)) {
	t.Helper()
	t.Parallel()
	for _, d := range []driver{libpq, pgxStdlib} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s, name := newPostgres(t)
			db := d.open(t, s.address, name)
			exec1(t, db, setup...)
			test(t, d, db)
		})
	}
}

var counter = []string{"create table counter (n integer not null)", "insert into counter values (0)"}

// contended is a policy for transactions that often conflict.
var contended = retry.Policy{
	MaxAttempts: 100,
	Backoff:     retry.Backoff{Base: time.Millisecond, Cap: 50 * time.Millisecond, Jitter: retry.FullJitter},
}

// TestWriteSkewLeavesOneDoctorOnCall: each of many goes off call if another one is on. All of them read before any of
// them writes, so under a weaker isolation no doctor would be left.
func TestWriteSkewLeavesOneDoctorOnCall(t *testing.T) {
	const doctors = 12
	withPostgres(t, []string{
		"create table doctors (id integer primary key, on_call boolean not null)",
		"insert into doctors select id, true from generate_series(1, 12) id",
	}, func(t *testing.T, _ driver, db *sql.DB) {
		p, count := counted(contended)
		var looked sync.WaitGroup
		looked.Add(doctors)
		var all sync.WaitGroup
		failed := make([]error, doctors)
		for doctor := range doctors {
			lookedOnce := sync.OnceFunc(func() { looked.Done(); looked.Wait() })
			all.Go(func() {
				opts := &retrysql.Options{Isolation: sql.LevelSerializable}
				failed[doctor] = retrysql.Tx(t.Context(), db, p, opts, func(ctx context.Context, tx *retrysql.Txn) error {
					var others int
					err := tx.QueryRowContext(ctx, "select count(*) from doctors where on_call and id <> $1", doctor+1).Scan(&others)
					if err != nil {
						return err
					}
					lookedOnce()
					if others == 0 {
						return nil
					}
					_, err = tx.ExecContext(ctx, "update doctors set on_call = false where id = $1", doctor+1)
					return err
				})
			})
		}
		all.Wait()

		require.Equal(t, make([]error, doctors), failed)
		require.Equal(t, 1, number(t, db, "select count(*) from doctors where on_call"))
		conflicts := count.of(func(f failure) bool { return f.Reason == retrysql.SerializationFailure && f.Code == "40001" })
		require.GreaterOrEqual(t, conflicts, doctors-1) // of those that have read at the same time one can succeed
		require.Equal(t, count.attempts-doctors, conflicts)
		t.Log(count)
	})
}

// deadlock has two transactions write the same two rows in opposite orders, each its first row before the other's
// second. The server ends one of them with the code, and deadlock requires that both take effect once. The retried one
// can meet the other again. passOver handles an error in fn, send sends a statement.
func deadlock(t *testing.T, db *sql.DB, code string, passOver func(error) error, send way) {
	t.Helper()
	p, count := counted(contended)
	var first, all sync.WaitGroup
	first.Add(2)
	failed := make([]error, 2)
	for i, queries := range [][2]string{
		{"update pairs set n = n + 1 where id = 1", "update pairs set n = n + 1 where id = 2"},
		{"update pairs set n = n + 1 where id = 2", "update pairs set n = n + 1 where id = 1"},
	} {
		firstOnce := sync.OnceFunc(func() { first.Done(); first.Wait() })
		all.Go(func() {
			failed[i] = retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if err := send(ctx, tx, queries[0]); err != nil {
					return err
				}
				firstOnce()
				if err := send(ctx, tx, queries[1]); passOver(err) != nil {
					return err
				}
				return passOver(send(ctx, tx, "insert into done values (1)"))
			})
		})
	}
	all.Wait()

	require.Equal(t, make([]error, 2), failed)
	require.Equal(t, 4, number(t, db, "select sum(n) from pairs"))
	require.Equal(t, 2, number(t, db, "select count(*) from done"))
	deadlocks := count.of(func(f failure) bool { return f == failure{retrysql.Statement, retrysql.Deadlock, code} })
	require.Positive(t, deadlocks)
	require.Equal(t, count.attempts-2, deadlocks)
}

// way is a way to send a statement.
type way func(ctx context.Context, tx *retrysql.Txn, query string) error

func byExec(ctx context.Context, tx *retrysql.Txn, query string) error {
	_, err := tx.ExecContext(ctx, query)
	return err
}

// TestADeadlockThatALayerPassesOverLosesNothing is about errors that only a watched connection sees. MariaDB ends the
// transaction, so otherwise the rest would be committed without its beginning.
func TestADeadlockThatALayerPassesOverLosesNothing(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]way{
		"by Unwrap": func(ctx context.Context, tx *retrysql.Txn, query string) error {
			_, err := tx.Unwrap().ExecContext(ctx, query)
			return err
		},
		"by PrepareContext": func(ctx context.Context, tx *retrysql.Txn, query string) error {
			stmt, err := tx.PrepareContext(ctx, query)
			if err != nil {
				return err
			}
			_, err = stmt.ExecContext(ctx)
			return errors.Join(err, stmt.Close())
		},
		"by a row's Scan": func(ctx context.Context, tx *retrysql.Txn, query string) error {
			err := tx.Unwrap().QueryRowContext(ctx, query).Scan()
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			return err
		},
	} {
		for _, d := range serverDrivers {
			t.Run(d.name+" "+name, func(t *testing.T) {
				t.Parallel()
				s, database := d.newDatabase(t)
				code := "40P01"
				if d.name == goMySQL.name {
					code = "1213"
				}
				db := d.watched(t, s.address, database)
				exec1(t, db, pairs...)
				deadlock(t, db, code, passed, send)
			})
		}
	}
}

// TestPostgreSQLsDefaultIsolationLosesAnUpdate: PostgreSQL does not report that a row has changed since it was read, so
// nothing is retried.
func TestPostgreSQLsDefaultIsolationLosesAnUpdate(t *testing.T) {
	withPostgres(t, counter, func(t *testing.T, _ driver, db *sql.DB) {
		for _, test := range []struct {
			isolation sql.IsolationLevel
			want      int
		}{
			{sql.LevelDefault, 1},
			{sql.LevelRepeatableRead, 11},
			{sql.LevelSerializable, 11},
		} {
			exec1(t, db, "update counter set n = 0")
			meddle := sync.OnceFunc(func() { exec1(t, db, "update counter set n = n + 10") })
			err := retrysql.Tx(t.Context(), db, contended, &retrysql.Options{Isolation: test.isolation}, func(ctx context.Context, tx *retrysql.Txn) error {
				return increment(ctx, tx, meddle)
			})
			require.NoError(t, err)
			require.Equal(t, test.want, number(t, db, "select n from counter"), test.isolation)
		}
	})
}

// TestSerializableTransactionsConflictOverASmallTable: PostgreSQL reads a table of one page as a whole, so that transactions
// with different rows conflict, unless their isolation looks at rows alone.
func TestSerializableTransactionsConflictOverASmallTable(t *testing.T) {
	withPostgres(t, append(slices.Clone(pairs), "analyze pairs"), func(t *testing.T, _ driver, db *sql.DB) {
		move := func(opts *retrysql.Options, row int, between func()) (attempts int) {
			err := retrysql.Tx(t.Context(), db, contended, opts, func(ctx context.Context, tx *retrysql.Txn) error {
				attempts++
				var n int
				if err := tx.QueryRowContext(ctx, fmt.Sprintf("select n from pairs where id = %d", row)).Scan(&n); err != nil {
					return err
				}
				between()
				_, err := tx.ExecContext(ctx, fmt.Sprintf("update pairs set n = %d where id = %d", n+1, row))
				return err
			})
			require.NoError(t, err)
			return attempts
		}
		for isolation, want := range map[sql.IsolationLevel]int{sql.LevelRepeatableRead: 1, sql.LevelSerializable: 2} {
			opts := &retrysql.Options{Isolation: isolation}
			other := sync.OnceFunc(func() { require.Equal(t, 1, move(opts, 2, func() {})) })
			require.Equal(t, want, move(opts, 1, other), isolation)
		}
	})
}

// passed is an fn's handling of an error that it ignores.
func passed(error) error { return nil }

// returned is an fn's handling of an error by default.
func returned(err error) error { return err }

var pairs = []string{
	"create table pairs (id integer primary key, n integer not null)", "insert into pairs values (1, 0), (2, 0)",
	"create table done (n integer)",
}

func TestADeadlockIsRetried(t *testing.T) {
	withPostgres(t, pairs, func(t *testing.T, _ driver, db *sql.DB) { deadlock(t, db, "40P01", returned, byExec) })
}

func TestADeadlockThatFnPassesOverIsRetried(t *testing.T) {
	withPostgres(t, pairs, func(t *testing.T, _ driver, db *sql.DB) { deadlock(t, db, "40P01", passed, byExec) })
}

func TestALockThatIsNotHadIsRetriedUntilItIs(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare string
		lock    string
	}{
		{name: "NOWAIT", lock: "select n from counter for update nowait"},
		{name: "lock_timeout", prepare: "set local lock_timeout = '10ms'", lock: "select n from counter for update"},
	} {
		t.Run(test.name, func(t *testing.T) {
			withPostgres(t, counter, func(t *testing.T, _ driver, db *sql.DB) {
				holder, err := db.Begin()
				require.NoError(t, err)
				_, err = holder.Exec("update counter set n = n + 10")
				require.NoError(t, err)
				p, last := observed(4, func(attempt int) {
					if attempt == 2 {
						require.NoError(t, holder.Commit())
					}
				})

				err = retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
					if test.prepare != "" {
						if _, err := tx.ExecContext(ctx, test.prepare); err != nil {
							return err
						}
					}
					var n int
					if err := tx.QueryRowContext(ctx, test.lock).Scan(&n); err != nil {
						return err
					}
					_, err := tx.ExecContext(ctx, "update counter set n = $1", n+1)
					return err
				})

				require.NoError(t, err)
				timeout := failure{retrysql.Statement, retrysql.LockTimeout, "55P03"}
				require.Equal(t, run{Status: retry.Succeeded, Attempts: 3, Failures: []failure{timeout, timeout}}, *last)
				require.Equal(t, 11, number(t, db, "select n from counter"))
			})
		})
	}
}

// TestAConflictThatFnPassesOverIsRolledBackAndRetried: if the error were not noted, the transaction would go on to the
// commit, which reports a rollback, but not its cause.
func TestAConflictThatFnPassesOverIsRolledBackAndRetried(t *testing.T) {
	withPostgres(t, counter, func(t *testing.T, _ driver, db *sql.DB) {
		p, last := observed(4, nil)
		interfere := sync.OnceFunc(func() { exec1(t, db, "update counter set n = n + 10") })
		opts := &retrysql.Options{Isolation: sql.LevelRepeatableRead}

		err := retrysql.Tx(t.Context(), db, p, opts, func(ctx context.Context, tx *retrysql.Txn) error {
			_ = increment(ctx, tx, interfere)
			return nil
		})

		require.NoError(t, err)
		require.Equal(t, run{
			Status: retry.Succeeded, Attempts: 2,
			Failures: []failure{{retrysql.Statement, retrysql.SerializationFailure, "40001"}},
		}, *last)
		require.Equal(t, 11, number(t, db, "select n from counter"))
	})
}

// TestAnUnnoticedAbortIsNoSuccess ignores an error of the sql.Tx itself, so that the commit is the first to report it.
func TestAnUnnoticedAbortIsNoSuccess(t *testing.T) {
	withPostgres(t, counter, func(t *testing.T, _ driver, db *sql.DB) {
		p, last := observed(4, nil)

		err := retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			if err := increment(ctx, tx, nil); err != nil {
				return err
			}
			_, err := tx.Unwrap().ExecContext(ctx, "select nothing from nowhere")
			require.Error(t, err)
			return nil
		})

		require.Error(t, err)
		require.NotErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.Equal(t, run{
			Status: retry.DeadLettered, Attempts: 1,
			Failures: []failure{{Phase: retrysql.Commit, Reason: retrysql.TransactionAborted}},
		}, *last)
		require.Equal(t, 0, number(t, db, "select n from counter"))
	})
}

func TestAStatementTimeoutIsNotRetried(t *testing.T) {
	withPostgres(t, counter, func(t *testing.T, _ driver, db *sql.DB) {
		p, last := observed(4, nil)

		err := retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			if err := increment(ctx, tx, nil); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "set local statement_timeout = '10ms'"); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "select pg_sleep(3600)")
			return err
		})

		require.ErrorIs(t, err, retry.TerminalError)
		require.Equal(t, run{
			Status: retry.DeadLettered, Attempts: 1,
			Failures: []failure{{retrysql.Statement, retrysql.QueryCanceled, "57014"}},
		}, *last)
		require.Equal(t, 0, number(t, db, "select n from counter"))
	})
}

// TestTooManyConnectionsIsRetriedUntilOneIsFree uses a user with a limit of one connection. The server needs a moment
// to notice that it was closed.
func TestTooManyConnectionsIsRetriedUntilOneIsFree(t *testing.T) {
	withPostgres(t, counter, func(t *testing.T, d driver, db *sql.DB) {
		name := database(t, db)
		s := required(t, postgres)
		exec1(t, db, "create role "+name+" login connection limit 1", "grant all on counter to "+name)
		t.Cleanup(func() { exec1(t, db, "drop owned by "+name, "drop role "+name) })
		holder := d.openAs(t, name, s.address, name)
		require.NoError(t, holder.Ping())
		p, last := observed(retry.Unlimited, func(attempt int) {
			if attempt == 3 {
				require.NoError(t, holder.Close())
			}
		})

		err := retrysql.Tx(t.Context(), d.openAs(t, name, s.address, name), p, nil,
			func(ctx context.Context, tx *retrysql.Txn) error { return increment(ctx, tx, nil) })

		require.NoError(t, err)
		require.Equal(t, retry.Succeeded, last.Status)
		require.Greater(t, last.Attempts, 3)
		for _, failed := range last.Failures {
			require.Equal(t, failure{retrysql.Connect, retrysql.TooManyConnections, "53300"}, failed)
		}
		require.Equal(t, 1, number(t, db, "select n from counter"))
	})
}

// database returns the name of the pool's database.
func database(t *testing.T, db *sql.DB) string {
	t.Helper()
	var name string
	require.NoError(t, db.QueryRow("select current_database()").Scan(&name))
	return name
}
