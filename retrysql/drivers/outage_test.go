package drivers_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// gone are the reasons of an attempt whose connection the server ended: the driver may or may not read why.
var gone = []retrysql.Reason{retrysql.AdminShutdown, retrysql.ConnectionLost}

// TestASessionThatTheAdministratorEnds in a transaction. A commit after that is ambiguous although it was not applied,
// since a server can also end a session between the commit and its reply.
func TestASessionThatTheAdministratorEnds(t *testing.T) {
	t.Parallel()
	for _, d := range serverDrivers {
		for _, row := range []struct {
			name   string
			failed retrysql.Phase
			want   error
			n      int
		}{
			{"before a statement, has a new transaction", retrysql.Statement, nil, 11},
			{"before the commit, leaves it ambiguous", retrysql.Commit, retrysql.ErrCommitAmbiguous, 0},
		} {
			t.Run(d.name+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				db := newSite(t, d, counter...).db
				p, last := observed(4, nil)

				err := retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
					if err := execute(ctx, tx, "update counter set n = n + 1"); err != nil {
						return err
					}
					if retry.AttemptNumber(ctx) == 1 {
						terminate(t, d, db, tx)
					}
					if row.failed == retrysql.Commit {
						return nil
					}
					return execute(ctx, tx, "update counter set n = n + 10")
				})

				require.ErrorIs(t, err, row.want)
				require.Len(t, last.Failures, 1)
				require.Equal(t, row.failed, last.Failures[0].Phase)
				require.Contains(t, gone, last.Failures[0].Reason)
				require.Equal(t, row.n, number(t, db, "select n from counter"))
			})
		}
	}
}

// terminate ends the session of a transaction. That of PostgreSQL is then over.
func terminate(t *testing.T, d driver, db *sql.DB, tx *retrysql.Txn) {
	t.Helper()
	if d.name == goMySQL.name {
		var id int
		require.NoError(t, tx.QueryRowContext(t.Context(), "select connection_id()").Scan(&id))
		exec1(t, db, fmt.Sprint("kill ", id))
		return
	}
	var pid int
	require.NoError(t, tx.QueryRowContext(t.Context(), "select pg_backend_pid()").Scan(&pid))
	require.Equal(t, 1, number(t, db, "select pg_terminate_backend($1, 60000)::int", pid))
}

// TestATransactionOutlivesARestartOfTheServer restarts it in the middle of the first attempt, with other connections in
// the pool, which are also lost.
func TestATransactionOutlivesARestartOfTheServer(t *testing.T) {
	for _, stop := range []struct {
		name   string
		signal syscall.Signal
	}{{"fast", fast}, {"immediate", immediate}, {"kill", kill}} {
		for _, d := range postgresDrivers {
			t.Run(stop.name+"/"+d.name, func(t *testing.T) {
				s := newSite(t, d, counter...)
				db := s.db
				db.SetMaxIdleConns(3)
				fill(t, db, 3)
				p, last := observed(4, nil)
				restart := sync.OnceFunc(func() { require.NoError(t, s.restart(stop.signal)) })

				err := retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
					return increment(ctx, tx, restart)
				})

				require.NoError(t, err)
				require.NotEmpty(t, last.Failures)
				require.Equal(t, retrysql.Statement, last.Failures[0].Phase)
				for _, failed := range last.Failures {
					require.Contains(t, gone, failed.Reason)
				}
				require.Equal(t, 1, number(t, db, "select n from counter"))
			})
		}
	}
}

// fill leaves the pool with idle connections.
func fill(t *testing.T, db *sql.DB, connections int) {
	t.Helper()
	each(t, db, connections, func(*sql.Conn) {})
}

// TestATransactionWaitsForAServerThatIsDown: the server comes back after the third failure.
func TestATransactionWaitsForAServerThatIsDown(t *testing.T) {
	for _, d := range postgresDrivers {
		t.Run(d.name, func(t *testing.T) {
			s := newSite(t, d, counter...)
			stop := sync.OnceFunc(func() { s.stop(fast) })
			p, last := observed(5, func(attempt int) {
				if attempt == 3 {
					require.NoError(t, s.start())
				}
			})

			err := retrysql.Tx(t.Context(), s.db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				return increment(ctx, tx, stop)
			})

			require.NoError(t, err)
			require.Equal(t, 4, last.Attempts)
			require.Contains(t, gone, last.Failures[0].Reason)
			refused := failure{Phase: retrysql.Connect, Reason: retrysql.CannotConnect}
			require.Equal(t, []failure{refused, refused}, last.Failures[1:])
			require.Equal(t, 1, number(t, s.db, "select n from counter"))
		})
	}
}

// TestACrashOfTheServerUnderLoadAppliesEachAcknowledgedTransactionOnce kills the server several times while many
// goroutines write. An ambiguous transaction may or may not be applied.
func TestACrashOfTheServerUnderLoadAppliesEachAcknowledgedTransactionOnce(t *testing.T) {
	const workers, transactions = 8, 480
	crashes := map[int]syscall.Signal{120: kill, 240: immediate, 360: fast} // before this transaction
	for _, d := range postgresDrivers {
		t.Run(d.name, func(t *testing.T) {
			s := newSite(t, d, ledger)
			db := s.db
			p, count := counted(retry.Policy{
				MaxAttempts: retry.Unlimited,
				Backoff:     retry.Backoff{Base: 10 * time.Millisecond, Cap: 50 * time.Millisecond, Jitter: retry.FullJitter},
			})
			outcomes := inParallel(workers, transactions, func(id int) error {
				if signal, crash := crashes[id]; crash { // in one worker, while the others go on
					if err := s.restart(signal); err != nil {
						return err
					}
				}
				return retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
					return stmtErr(tx.ExecContext(ctx, "insert into ledger values ($1)", id))
				})
			})

			requireExactlyOnce(t, db, "ledger", outcomes)
			t.Log(count)
		})
	}
}
