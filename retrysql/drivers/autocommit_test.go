package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

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
	onEach(t, serverDrivers, []string{ledger}, func(t *testing.T, s site) {
		db, p := s.behind(t, at(text, loseReply))
		test(t, s.driver, db, s.db)
		require.EqualValues(t, 1, p.cuts.Load())
	})
}

func TestAStatementOfDoWhoseReplyIsLost(t *testing.T) {
	read := func(ctx context.Context, c *retrysql.Single) error {
		return c.QueryRowContext(ctx, entries).Scan(new(int))
	}
	for name, row := range map[string]struct {
		statement string
		fn        func(context.Context, *retrysql.Single) error
		mark      bool // WithIdempotent
		attempts  int
		entries   int
	}{
		"an insert is ambiguous, and not repeated": {statement: insert, fn: enterAlone, attempts: 1, entries: 1},
		"an insert that may be repeated is":        {statement: insert, fn: enterAlone, mark: true, attempts: 2, entries: 2},
		"a read is repeated":                       {statement: entries, fn: read, attempts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			withLostReply(t, row.statement, func(t *testing.T, _ driver, db, direct *sql.DB) {
				ctx := t.Context()
				if row.mark {
					ctx = retrysql.WithIdempotent(ctx)
				}
				p, last := observed(4, nil)
				err := retrysql.Do(ctx, db, p, row.fn)
				require.Equal(t, row.attempts == 1, errors.Is(err, retrysql.ErrStatementAmbiguous))
				require.Equal(t, row.attempts == 2, err == nil)
				require.Equal(t, row.attempts, last.Attempts)
				require.Equal(t, []failure{{Phase: retrysql.Autocommit, Reason: retrysql.ConnectionLost}}, last.Failures)
				require.Equal(t, row.entries, number(t, direct, entries))
			})
		})
	}
}

// TestWithoutDoAnInsertWhoseReplyIsLostIsAppliedTwiceByWhatDriversSay shows why Do exists: database/sql repeats a statement
// that the driver says was not sent. A fixed driver would insert one row.
func TestWithoutDoAnInsertWhoseReplyIsLostIsAppliedTwiceByWhatDriversSay(t *testing.T) {
	rows := map[string]int{libpq.name: 2, pgxStdlib.name: 2, goMySQL.name: 1}
	withLostReply(t, insert, func(t *testing.T, d driver, db, direct *sql.DB) {
		_, err := db.Exec(insert)

		require.Equal(t, rows[d.name], number(t, direct, entries))
		require.Equal(t, rows[d.name] == 2, err == nil)
	})
}
