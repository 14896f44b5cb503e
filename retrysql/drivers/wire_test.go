package drivers_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// TestMessagesOnTheWire counts what a client sends for a transaction of one statement.
func TestMessagesOnTheWire(t *testing.T) {
	onEach(t, serverDrivers, []string{ledger}, func(t *testing.T, s site) {
		var sent atomic.Int64
		db, _ := s.behind(t, func(request string) fault {
			if !strings.Contains(request, "-- ping") { // of pgx, for a connection that was idle
				sent.Add(1)
			}
			return pass
		})
		count := func(run func() error) int64 {
			require.NoError(t, run()) // connects, and lets pgx prepare its statements
			sent.Store(0)
			require.NoError(t, run())
			return sent.Load()
		}
		require.EqualValues(t, 3, count(func() error {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(t.Context(), insert); err != nil {
				return err
			}
			return tx.Commit()
		}), "bare")
		run := func(opts *retrysql.Options) func() error {
			return func() error { return retrysql.Tx(t.Context(), db, retry.Policy{}, opts, enter) }
		}
		require.EqualValues(t, 3, count(run(nil)), "Tx")
		confirm := func(context.Context) (bool, error) { return false, nil }
		require.EqualValues(t, 3, count(run(&retrysql.Options{Confirm: confirm})), "Confirm")
		if s.driver.name != goMySQL.name {
			require.EqualValues(t, 4, count(run(&retrysql.Options{Probe: true})), "Probe")
		}
	})
}
