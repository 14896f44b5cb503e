package drivers_test

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// newSQLite returns a pool for a new file with a counter. It does not wait for locks. journal is the journal_mode.
func newSQLite(t *testing.T, journal string) *sql.DB {
	t.Helper()
	source := url.URL{Scheme: "file", Opaque: filepath.ToSlash(filepath.Join(t.TempDir(), "test.db"))}
	source.RawQuery = url.Values{"_pragma": {"busy_timeout(0)", "journal_mode(" + journal + ")", "synchronous(off)"}}.Encode()
	db, err := sql.Open("sqlite", source.String())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	exec1(t, db, "create table counter (n integer not null)", "insert into counter values (0)")
	return db
}

// increment adds one to the counter after reading it. between is called between the two; nil means nothing.
func increment(ctx context.Context, tx *retrysql.Txn, between func()) error {
	var n int
	if err := tx.QueryRowContext(ctx, "select n from counter").Scan(&n); err != nil {
		return err
	}
	if between != nil {
		between()
	}
	_, err := tx.ExecContext(ctx, "update counter set n = $1", n+1)
	return err
}

// TestAConflictOfSQLiteIsRetried: another connection meddles between the read and the write of the first attempt.
func TestAConflictOfSQLiteIsRetried(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		journal string
		meddle  []string // of the other connection
		end     string   // of it, after the failure
		ignores bool     // fn does, the error
		want    failure
		n       int
	}{
		{name: "a lock of another writer", journal: "wal", meddle: []string{"begin immediate"}, end: "rollback",
			want: failure{retrysql.Statement, retrysql.Busy, "5"}, n: 1},
		{name: "a snapshot that is too old", journal: "wal", meddle: []string{"update counter set n = n + 10"}, end: "select 1",
			want: failure{retrysql.Statement, retrysql.BusySnapshot, "517"}, n: 11},
		{name: "a snapshot that is too old, which fn ignores", journal: "wal", meddle: []string{"update counter set n = n + 10"}, end: "select 1", ignores: true,
			want: failure{retrysql.Statement, retrysql.BusySnapshot, "517"}, n: 11},
		{name: "a reader that keeps a writer with a rollback journal from committing", journal: "delete", meddle: []string{"begin", "select n from counter"}, end: "rollback",
			want: failure{retrysql.Commit, retrysql.Busy, "5"}, n: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			db := newSQLite(t, row.journal)
			other, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer other.Close()
			do := func(queries ...string) {
				for _, query := range queries {
					require.NoError(t, stmtErr(other.ExecContext(t.Context(), query)), query)
				}
			}
			meddle := sync.OnceFunc(func() { do(row.meddle...) })
			p, last := observed(4, func(int) { do(row.end) })

			err = retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if err := increment(ctx, tx, meddle); !row.ignores {
					return err
				}
				return nil
			})

			require.NoError(t, err)
			require.Equal(t, run{Status: retry.Succeeded, Attempts: 2, Failures: []failure{row.want}}, *last)
			require.Equal(t, row.n, number(t, db, "select n from counter"))
		})
	}
}

func TestParallelSQLiteWritersLoseNoIncrement(t *testing.T) {
	t.Parallel()
	const writers, increments = 8, 50
	db := newSQLite(t, "wal")
	p, count := counted(retry.Policy{MaxAttempts: retry.Unlimited, Backoff: contended.Backoff})
	for _, err := range inParallel(writers, writers*increments, func(int) error {
		return retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error { return increment(ctx, tx, nil) })
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, writers*increments, number(t, db, "select n from counter"))
	t.Log(count)
}

// endless is a write that only its context ends. SQLite then undoes the whole transaction, and would commit later
// statements by themselves.
const endless = "insert into counter with recursive c(x) as (select 1 union all select x + 1 from c) select x from c"

func TestAnInterruptedSQLiteTransactionIsNotCommittedInPart(t *testing.T) {
	t.Parallel()
	passOver := func(ctx context.Context, tx *retrysql.Txn) error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, execute(ctx, tx, endless), context.DeadlineExceeded)
		return nil
	}
	for name, row := range map[string]struct {
		timeout time.Duration // of an attempt
		cut     func(context.Context, *retrysql.Txn) error
	}{
		"by a limit that fn passes over": {cut: passOver},
		"in a savepoint": {cut: func(ctx context.Context, tx *retrysql.Txn) error {
			return tx.Savepoint(ctx, func(ctx context.Context) error { return passOver(ctx, tx) })
		}},
		"by the attempt's end": {timeout: 200 * time.Millisecond, cut: func(ctx context.Context, tx *retrysql.Txn) error {
			return execute(ctx, tx, endless)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newSQLite(t, "wal")
			p, last := observed(4, nil)
			p.AttemptTimeout = row.timeout
			require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if err := execute(ctx, tx, "insert into counter values (1)"); err != nil {
					return err
				}
				if retry.AttemptNumber(ctx) == 1 {
					if err := row.cut(ctx, tx); err != nil {
						return err
					}
				}
				return execute(ctx, tx, "insert into counter values (10)")
			}))
			require.Equal(t, 2, last.Attempts)
			require.Equal(t, 11, number(t, db, "select sum(n) from counter"))
		})
	}
}
