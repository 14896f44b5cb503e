package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// withCancel makes calls with each driver that talks to a server. For each of the first requests of a call, and each
// fault, it makes one call whose context is canceled when the client has sent that request, which then meets the fault.
// work makes the call with connections of its own and writes id into the ledger. The ledger has that row once if work
// succeeded, at most once if the error is the one for an unknown outcome, and not at all after any other error.
func withCancel(t *testing.T, requests int, unknown error, work func(ctx context.Context, t *testing.T, b *bank, db *sql.DB, id int) error) {
	t.Helper()
	onEach(t, serverDrivers, nil, func(t *testing.T, s site) {
		b := newBank(t, s.driver, s.db, 2)
		faults := []fault{pass, loseRequest, loseReply}
		outcomes := make([]error, requests*len(faults))
		for id := range outcomes {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var seen atomic.Int32
			db, _ := s.behind(t, func(string) fault {
				if int(seen.Add(1)) != id/len(faults)+1 {
					return pass
				}
				cancel()
				return faults[id%len(faults)]
			})
			outcomes[id] = work(ctx, t, b, db, id)
		}

		// A transaction that the server is still running holds a lock on one of these rows.
		exec1(t, b.direct, "update accounts set balance = balance")
		for id, err := range outcomes {
			rows := number(t, b.direct, b.bind("select count(*) from ledger where id = ?"), id)
			request := fmt.Sprintf("request %d, fault %d: %v", id/len(faults)+1, faults[id%len(faults)], err)
			switch {
			case err == nil:
				require.Equal(t, 1, rows, request)
			case errors.Is(err, unknown):
				require.LessOrEqual(t, rows, 1, request)
			default:
				require.Zero(t, rows, request)
				require.ErrorIs(t, err, context.Canceled)
			}
		}
	})
}

func TestATransactionThatIsCancelledIsRolledBackOrAmbiguous(t *testing.T) {
	withCancel(t, 16, retrysql.ErrCommitAmbiguous, func(ctx context.Context, t *testing.T, b *bank, db *sql.DB, id int) error {
		p, _ := observed(4, nil)
		return retrysql.Tx(ctx, db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			return b.apply(ctx, tx, transfer{id, 0, 1, 10})
		})
	})
}

func TestAStatementThatIsCancelledIsNotDoneOrAmbiguous(t *testing.T) {
	withCancel(t, 6, retrysql.ErrStatementAmbiguous, func(ctx context.Context, t *testing.T, b *bank, db *sql.DB, id int) error {
		p, _ := observed(4, nil)
		return retrysql.Do(ctx, db, p, func(ctx context.Context, c *retrysql.Single) error {
			return stmtErr(c.ExecContext(ctx, b.bind("insert into ledger values (?, 0, 1, 10)"), id))
		})
	})
}

// TestAnAttemptThatTimesOutOnALockIsRetried: however drivers and servers report that the attempt's context ended.
func TestAnAttemptThatTimesOutOnALockIsRetried(t *testing.T) {
	onEach(t, serverDrivers, counter, func(t *testing.T, s site) {
		holder, err := s.db.Begin()
		require.NoError(t, err)
		_, err = holder.Exec("update counter set n = n + 10")
		require.NoError(t, err)
		p, last := observed(retry.Unlimited, func(attempt int) {
			if attempt == 2 {
				require.NoError(t, holder.Commit())
			}
		})
		p.AttemptTimeout = 200 * time.Millisecond // enough for an attempt that waits for no lock

		err = retrysql.Tx(t.Context(), s.db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			return execute(ctx, tx, "update counter set n = n + 1")
		})

		require.NoError(t, err)
		require.Greater(t, last.Attempts, 2)
		for _, failed := range last.Failures[:2] {
			require.Equal(t, retrysql.AttemptTimeout, failed.Reason)
		}
		require.Equal(t, 11, number(t, s.db, "select n from counter"))
	})
}

// TestAnAttemptTimeoutInACommitIsTheReason: the reply comes after it, within EndTimeout, or not at all.
func TestAnAttemptTimeoutInACommitIsTheReason(t *testing.T) {
	withPostgres(t, slowCommits, func(t *testing.T, _ driver, db *sql.DB) {
		db.SetMaxOpenConns(1)
		exec1(t, db, "create or replace function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(3); return null; end $$")
		for limit, want := range map[time.Duration]error{50 * time.Millisecond: retrysql.ErrCommitAmbiguous, time.Minute: nil} {
			p, last := observed(1, nil)
			p.AttemptTimeout = 2 * time.Second // enough to begin and insert on a busy machine, not for the COMMIT
			err := retrysql.Tx(t.Context(), db, p, &retrysql.Options{EndTimeout: limit}, enter)
			require.ErrorIs(t, err, want)
			exec1(t, db, "select 1") // waits for the connection
			if want != nil {
				require.Equal(t, []failure{{Phase: retrysql.Commit, Reason: retrysql.AttemptTimeout}}, last.Failures)
			}
		}
	})
}
