package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// openMaria returns a pool for the test's own database, in which the setup was executed.
func openMaria(t *testing.T, setup []string) *sql.DB {
	t.Helper()
	s, name := newMaria(t)
	db := goMySQL.open(t, s.address, name)
	exec1(t, db, setup...)
	return db
}

func TestAMariaDBDeadlockIsRetried(t *testing.T) {
	t.Parallel()
	deadlock(t, openMaria(t, pairs), "1213", returned, byExec)
}

// TestAMariaDBDeadlockThatFnPassesOverLosesNothing: the server undoes the whole transaction. What fn writes afterward
// would be outside any transaction, so a commit could not save the earlier work, and a rollback could not undo the
// later.
func TestAMariaDBDeadlockThatFnPassesOverLosesNothing(t *testing.T) {
	t.Parallel()
	deadlock(t, openMaria(t, pairs), "1213", passed, byExec)
}

// TestAMariaDBLockWaitIsRetriedAsAWhole: the server undoes only the statement, so a commit would keep the other one. It
// reports that in place of a row, so only Scan and a watched connection see it.
func TestAMariaDBLockWaitIsRetriedAsAWhole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		lock     string
		code     string
		passOver func(error) error
	}{
		{name: "where fn returns the error", lock: "select n from counter for update", code: "1205", passOver: returned},
		{name: "where fn passes over it", lock: "select n from counter for update", code: "1205", passOver: passed},
		{name: "with NOWAIT", lock: "select n from counter for update nowait", code: "1205", passOver: returned},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, name := newMaria(t)
			db := goMySQL.watched(t, s.address, name)
			exec1(t, db, append(counter, "create table done (n integer)")...)
			holder, err := db.Begin()
			require.NoError(t, err)
			defer holder.Rollback()
			_, err = holder.Exec("update counter set n = n + 10")
			require.NoError(t, err)
			p, last := observed(4, func(int) { require.NoError(t, holder.Commit()) })

			err = retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if _, err := tx.ExecContext(ctx, "insert into done values (1)"); err != nil {
					return err
				}
				var n int
				if err := tx.QueryRowContext(ctx, test.lock).Scan(&n); err != nil {
					return test.passOver(err)
				}
				_, err := tx.ExecContext(ctx, "update counter set n = ?", n+1)
				return err
			})

			require.NoError(t, err)
			require.Equal(t, run{
				Status: retry.Succeeded, Attempts: 2,
				Failures: []failure{{retrysql.Statement, retrysql.LockTimeout, test.code}},
			}, *last)
			require.Equal(t, 11, number(t, db, "select n from counter"))
			require.Equal(t, 1, number(t, db, "select count(*) from done"))
		})
	}
}

// TestAKilledMariaDBConnectionIsRetried kills the connection between two statements.
func TestAKilledMariaDBConnectionIsRetried(t *testing.T) {
	t.Parallel()
	db := openMaria(t, counter)
	p, last := observed(4, nil)
	killed := false

	err := retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		if _, err := tx.ExecContext(ctx, "update counter set n = n + 1"); err != nil {
			return err
		}
		if !killed {
			killed = true
			var id int64
			if err := tx.QueryRowContext(ctx, "select connection_id()").Scan(&id); err != nil {
				return err
			}
			if _, err := db.ExecContext(ctx, "kill ?", id); err != nil { //retryvet:ignore attemptctx it ends the connection of the transaction
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "update counter set n = n + 10")
		return err
	})

	require.NoError(t, err)
	require.Equal(t, retry.Succeeded, last.Status)
	require.Len(t, last.Failures, 1)
	require.Contains(t, []retrysql.Reason{retrysql.ConnectionLost, retrysql.AdminShutdown}, last.Failures[0].Reason)
	require.Equal(t, 11, number(t, db, "select n from counter"))
}

// TestADeadlockInRowsThatAreLeftOpenIsRetried: the server reports it after the first rows, which fn has not read.
func TestADeadlockInRowsThatAreLeftOpenIsRetried(t *testing.T) {
	t.Parallel()
	s, name := newMaria(t)
	db := goMySQL.open(t, s.address, name)
	exec1(t, db, "create table done (n integer)", "create table weight (n integer)", "create table first (n integer)", "insert into first values (0)",
		"create table wide (id integer primary key, pad text)", "insert into wide select seq, repeat('x', 1000) from seq_1_to_400")
	attempts := 0
	other := make(chan error, 1)
	err := retrysql.Tx(t.Context(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		if attempts++; attempts > 1 {
			_, err := tx.ExecContext(ctx, "insert into done values (10)")
			return err
		}
		for _, query := range []string{"insert into done values (1)", "update first set n = 1"} {
			if _, err := tx.ExecContext(ctx, query); err != nil {
				return err
			}
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
