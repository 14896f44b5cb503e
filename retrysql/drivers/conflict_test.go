package drivers_test

import (
	"cmp"
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

// withPostgres is onEach for the drivers of PostgreSQL.
func withPostgres(t *testing.T, setup []string, test func(t *testing.T, d driver, db *sql.DB)) {
	t.Helper()
	onEach(t, postgresDrivers, setup, func(t *testing.T, s site) { test(t, s.driver, s.db) })
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
// can meet the other again. send sends a statement. If passOver is set, fn ignores the deadlock and goes on.
func deadlock(t *testing.T, db *sql.DB, code string, send way, passOver bool) {
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
				err := errors.Join(send(ctx, tx, queries[1]), send(ctx, tx, "insert into done values (1)"))
				if passOver {
					return nil
				}
				return err
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

// TestADeadlockLosesNothing: MariaDB undoes the whole transaction, so what fn sends afterward would be
// committed without its beginning. Only a watched connection sees the errors of some ways to send a statement.
func TestADeadlockLosesNothing(t *testing.T) {
	t.Parallel()
	exec := func(ctx context.Context, tx *retrysql.Txn, query string) error {
		return stmtErr(tx.ExecContext(ctx, query))
	}
	for name, row := range map[string]struct {
		open     func(driver, *testing.T, string, string) *sql.DB
		send     way
		passOver bool
	}{
		"ExecContext, whose error fn returns": {open: driver.open, send: exec},
		"ExecContext, whose error fn ignores": {open: driver.open, send: exec, passOver: true},
		"Unwrap, whose error fn ignores": {open: driver.watched, passOver: true, send: func(ctx context.Context, tx *retrysql.Txn, query string) error {
			return stmtErr(tx.Unwrap().ExecContext(ctx, query))
		}},
		"PrepareContext, whose error fn ignores": {open: driver.watched, passOver: true, send: func(ctx context.Context, tx *retrysql.Txn, query string) error {
			stmt, err := tx.PrepareContext(ctx, query)
			if err != nil {
				return err
			}
			return errors.Join(stmtErr(stmt.ExecContext(ctx)), stmt.Close())
		}},
		"a row's Scan, whose error fn ignores": {open: driver.watched, passOver: true, send: func(ctx context.Context, tx *retrysql.Txn, query string) error {
			err := tx.Unwrap().QueryRowContext(ctx, query).Scan()
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			return err
		}},
	} {
		for _, d := range serverDrivers {
			t.Run(d.name+", "+name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, d, pairs...)
				code := "40P01"
				if d.name == goMySQL.name {
					code = "1213"
				}
				deadlock(t, row.open(d, t, s.address, s.name), code, row.send, row.passOver)
			})
		}
	}
}

// TestADeadlockInRowsThatAreLeftOpenIsRetried: MariaDB reports it after the first rows, which fn has not read.
func TestADeadlockInRowsThatAreLeftOpenIsRetried(t *testing.T) {
	t.Parallel()
	db := newSite(t, goMySQL, "create table done (n integer)", "create table weight (n integer)", "create table first (n integer)", "insert into first values (0)",
		"create table wide (id integer primary key, pad text)", "insert into wide select seq, repeat('x', 1000) from seq_1_to_400").db
	attempts := 0
	other := make(chan error, 1)
	err := retrysql.Tx(t.Context(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		if attempts++; attempts > 1 {
			return execute(ctx, tx, "insert into done values (10)")
		}
		if err := execute(ctx, tx, "insert into done values (1)", "update first set n = 1"); err != nil {
			return err
		}
		rival, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		for _, query := range []string{"insert into weight select seq from seq_1_to_2000", "update wide set pad = 'y' where id = 400"} {
			_, err = rival.Exec(query)
			require.NoError(t, err)
		}
		rows, err := tx.QueryContext(ctx, "select id, pad from wide order by id for update")
		if err != nil {
			return err
		}
		require.True(t, rows.Next())
		go func() {
			_, err := rival.Exec("update first set n = 2")
			other <- errors.Join(err, rival.Commit())
		}()
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, <-other)
	require.Equal(t, 2, attempts)
	require.Equal(t, 10, number(t, db, "select sum(n) from done"))
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
				return execute(ctx, tx, fmt.Sprintf("update pairs set n = %d where id = %d", n+1, row))
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

var pairs = []string{
	"create table pairs (id integer primary key, n integer not null)", "insert into pairs values (1, 0), (2, 0)",
	"create table done (n integer)",
}

// TestALockThatIsNotFreeIsRetriedAsAWhole: MariaDB undoes only the statement, so a commit would keep the one before it. It
// reports that in place of a row, so only Scan and a watched connection see it.
func TestALockThatIsNotFreeIsRetriedAsAWhole(t *testing.T) {
	t.Parallel()
	const wait, nowait = "select n from counter for update", "select n from counter for update nowait"
	for _, row := range []struct {
		name     string
		driver   driver
		prepare  string
		lock     string
		code     string
		passOver bool
	}{
		{name: "lib/pq, NOWAIT", driver: libpq, lock: nowait, code: "55P03"},
		{name: "lib/pq, lock_timeout", driver: libpq, prepare: "set local lock_timeout = '10ms'", lock: wait, code: "55P03"},
		{name: "pgx, NOWAIT", driver: pgxStdlib, lock: nowait, code: "55P03"},
		{name: "pgx, lock_timeout", driver: pgxStdlib, prepare: "set local lock_timeout = '10ms'", lock: wait, code: "55P03"},
		{name: "MariaDB, NOWAIT", driver: goMySQL, lock: nowait, code: "1205"},
		{name: "MariaDB, innodb_lock_wait_timeout", driver: goMySQL, lock: wait, code: "1205"},
		{name: "MariaDB, which fn passes over", driver: goMySQL, lock: wait, code: "1205", passOver: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, row.driver, append(counter, "create table done (n integer)")...)
			db := s.watched(t, s.address, s.name)
			holder, err := db.Begin()
			require.NoError(t, err)
			defer holder.Rollback()
			_, err = holder.Exec("update counter set n = n + 10")
			require.NoError(t, err)
			p, last := observed(4, func(int) { require.NoError(t, holder.Commit()) })
			update := "update counter set n = ?" // whose argument the driver checks
			if row.driver.name != goMySQL.name {
				update = dollars(update)
			}

			err = retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if err := execute(ctx, tx, "insert into done values (1)", cmp.Or(row.prepare, "select 1")); err != nil {
					return err
				}
				var n int
				if err := tx.QueryRowContext(ctx, row.lock).Scan(&n); err != nil {
					if row.passOver {
						return nil
					}
					return err
				}
				return stmtErr(tx.ExecContext(ctx, update, n+1))
			})

			require.NoError(t, err)
			require.Equal(t, run{
				Status: retry.Succeeded, Attempts: 2,
				Failures: []failure{{retrysql.Statement, retrysql.LockTimeout, row.code}},
			}, *last)
			require.Equal(t, 11, number(t, db, "select n from counter"))
			require.Equal(t, 1, number(t, db, "select count(*) from done"))
		})
	}
}

// TestTooManyConnectionsIsRetriedUntilOneIsFree uses a user with a limit of one connection. The server needs a moment
// to notice that it was closed.
func TestTooManyConnectionsIsRetriedUntilOneIsFree(t *testing.T) {
	withPostgres(t, counter, func(t *testing.T, d driver, db *sql.DB) {
		s, name := required(t, postgres), text(t, db, "select current_database()")
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
		require.Greater(t, last.Attempts, 3)
		for _, failed := range last.Failures {
			require.Equal(t, failure{retrysql.Connect, retrysql.TooManyConnections, "53300"}, failed)
		}
		require.Equal(t, 1, number(t, db, "select n from counter"))
	})
}
