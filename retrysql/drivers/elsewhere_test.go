package drivers_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// TestARunDoesNotMeetAllReadOnlyConnectionsOfAPool: each of them refuses a write, and a new one does not.
func TestARunDoesNotMeetAllReadOnlyConnectionsOfAPool(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		driver  driver
		setting string
		code    string
	}{
		{pgxStdlib, "set session characteristics as transaction read only", "25006"},
		{goMySQL, "set session transaction read only", "1792"},
	} {
		t.Run(row.driver.name, func(t *testing.T) {
			t.Parallel()
			db := newSite(t, row.driver, ledger).db
			db.SetMaxIdleConns(8)
			each(t, db, 8, func(conn *sql.Conn) {
				_, err := conn.ExecContext(t.Context(), row.setting)
				require.NoError(t, err)
			})
			p, last := observed(2, nil)
			require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, enter))
			require.Equal(t, []failure{{retrysql.Statement, retrysql.ReadOnlyServer, row.code}}, last.Failures)
			require.Equal(t, 1, number(t, db, "select count(*) from ledger"))
		})
	}
}

// each takes several connections at once, calls f for each, and leaves the pool with them.
func each(t *testing.T, db *sql.DB, connections int, f func(*sql.Conn)) {
	t.Helper()
	held := make([]*sql.Conn, connections)
	for i := range held {
		var err error
		held[i], err = db.Conn(t.Context())
		require.NoError(t, err)
		f(held[i])
	}
	for _, conn := range held {
		require.NoError(t, conn.Close())
	}
}

// TestIdleConnectionsThatDiedCostNoAttempt ends the sessions of all connections in a pool. The first statement of Do shows
// that one is dead, and a ping shows it of the others.
func TestIdleConnectionsThatDiedCostNoAttempt(t *testing.T) {
	t.Parallel()
	for _, d := range postgresDrivers {
		for _, row := range []struct {
			name     string
			attempts int
			call     func(context.Context, *sql.DB, retry.Policy) error
		}{
			{"Tx", 1, func(ctx context.Context, db *sql.DB, p retry.Policy) error {
				return retrysql.Tx(ctx, db, p, nil, enter)
			}},
			{"a read by Do", 2, func(ctx context.Context, db *sql.DB, p retry.Policy) error {
				return retrysql.Do(ctx, db, p, func(ctx context.Context, s *retrysql.Single) error {
					return drain(s.QueryContext(ctx, "select * from ledger"))
				})
			}},
		} {
			t.Run(d.name+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				const idle = 8
				s := newSite(t, d, ledger)
				db := s.open(t, s.address, s.name)
				db.SetMaxIdleConns(idle)
				var pids []int
				for range 2 { // pgx pings a connection before its first reuse
					pids = nil
					each(t, db, idle, func(conn *sql.Conn) {
						var pid int
						require.NoError(t, conn.QueryRowContext(t.Context(), "select pg_backend_pid()").Scan(&pid))
						pids = append(pids, pid)
					})
				}
				for _, pid := range pids {
					require.Equal(t, 1, number(t, s.db, "select pg_terminate_backend($1, 60000)::int", pid))
				}
				p, last := observed(row.attempts, nil)
				require.NoError(t, row.call(t.Context(), db, p))
				require.LessOrEqual(t, last.Attempts, row.attempts)
			})
		}
	}
}
