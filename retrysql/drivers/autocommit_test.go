package drivers_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

const (
	insert  = "insert into ledger values (1)"
	entries = "select count(*) from ledger"
	ledger  = "create table ledger (id integer not null)"
)

// withLostReply runs a test in parallel with each driver that talks to a server. It passes two pools: one whose
// connections lose the reply to the first request that contains the text, and one whose connections do not.
func withLostReply(t *testing.T, text string, test func(t *testing.T, d driver, db, direct *sql.DB)) {
	t.Helper()
	t.Parallel()
	for _, d := range serverDrivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s, name := d.newDatabase(t)
			direct := d.open(t, s.address, name)
			exec1(t, direct, ledger)
			p := newProxy(t, s.address, at(text, loseReply))
			test(t, d, d.open(t, p.address, name), direct)
			require.EqualValues(t, 1, p.cuts.Load())
		})
	}
}

func TestAnInsertWhoseReplyIsLostIsAmbiguousAndNotRepeated(t *testing.T) {
	withLostReply(t, insert, func(t *testing.T, _ driver, db, direct *sql.DB) {
		p, last := observed(4, nil)

		err := retrysql.Do(t.Context(), db, p, func(ctx context.Context, c *retrysql.Single) error {
			_, err := c.ExecContext(ctx, insert)
			return err
		})

		require.ErrorIs(t, err, retrysql.ErrStatementAmbiguous)
		require.Equal(t, run{
			Status: retry.DeadLettered, Attempts: 1,
			Failures: []failure{{Phase: retrysql.Autocommit, Reason: retrysql.ConnectionLost}},
		}, *last)
		require.Equal(t, 1, number(t, direct, entries))
	})
}

// TestDatabaseSQLInsertsTwice shows why Do exists: database/sql repeats a statement that the driver says was not sent.
// A fixed driver would insert one row.
func TestWithoutDoAnInsertWhoseReplyIsLostIsAppliedTwiceByWhatDriversSay(t *testing.T) {
	rows := map[string]int{libpq.name: 2, pgxStdlib.name: 2, goMySQL.name: 1}
	withLostReply(t, insert, func(t *testing.T, d driver, db, direct *sql.DB) {
		_, err := db.Exec(insert)

		require.Equal(t, rows[d.name], number(t, direct, entries))
		require.Equal(t, rows[d.name] == 2, err == nil)
	})
}

func TestAnInsertThatMayBeRepeatedIs(t *testing.T) {
	withLostReply(t, insert, func(t *testing.T, _ driver, db, direct *sql.DB) {
		p, last := observed(4, nil)

		err := retrysql.Do(retrysql.WithIdempotent(t.Context()), db, p, func(ctx context.Context, c *retrysql.Single) error {
			_, err := c.ExecContext(ctx, insert)
			return err
		})

		require.NoError(t, err)
		require.Equal(t, 2, last.Attempts)
		require.Equal(t, 2, number(t, direct, entries))
	})
}

func TestAReadWhoseReplyIsLostIsRepeated(t *testing.T) {
	withLostReply(t, entries, func(t *testing.T, _ driver, db, direct *sql.DB) {
		exec1(t, direct, insert)
		p, last := observed(4, nil)
		var n int

		err := retrysql.Do(t.Context(), db, p, func(ctx context.Context, c *retrysql.Single) error {
			return c.QueryRowContext(ctx, entries).Scan(&n)
		})

		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, 2, last.Attempts)
	})
}
