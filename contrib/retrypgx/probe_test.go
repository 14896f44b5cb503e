package retrypgx_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx"
	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/retrysql"
)

func testProbe(t *testing.T, server *pgtest.Server) {
	// tracked returns a probe for a transaction that has ended as fn has.
	tracked := func(t *testing.T, db database, err error) *retrypgx.Probe {
		t.Helper()
		probe := &retrypgx.Probe{Pool: db.Pool}
		require.ErrorIs(t, retrypgx.Tx(t.Context(), db, quick(1), nil, func(ctx context.Context, tx pgx.Tx) error {
			require.NoError(t, probe.Track(ctx, tx))
			return err
		}), err)
		return probe
	}
	t.Run("committed", func(t *testing.T) {
		committed, err := tracked(t, newDatabase(t, server), nil).Committed(t.Context())
		require.NoError(t, err)
		require.True(t, committed)
	})
	t.Run("rolled back", func(t *testing.T) {
		committed, err := tracked(t, newDatabase(t, server), errBusiness).Committed(t.Context())
		require.NoError(t, err)
		require.False(t, committed)
	})
	t.Run("not tracked", func(t *testing.T) {
		probe := retrypgx.Probe{Pool: newDatabase(t, server).Pool}
		_, err := probe.Committed(t.Context())
		require.ErrorContains(t, err, "has not called Probe.Track")
	})
	t.Run("tracked in another attempt", func(t *testing.T) {
		db := newDatabase(t, server)
		probe := tracked(t, db, errBusiness)
		_ = retry.Do(t.Context(), quick(2), func(ctx context.Context) error {
			if _, err := probe.Committed(ctx); retry.AttemptNumber(ctx) == 2 {
				require.ErrorContains(t, err, "has not called Probe.Track in this attempt")
			}
			return errBusiness
		})
	})
	t.Run("under way until the context ends", func(t *testing.T) {
		db := newDatabase(t, server)
		probe := &retrypgx.Probe{Pool: db.Pool}
		require.NoError(t, retrypgx.Tx(t.Context(), db, quick(1), nil, func(ctx context.Context, tx pgx.Tx) error {
			require.NoError(t, probe.Track(ctx, tx))
			ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			_, err := probe.Committed(ctx)
			failed, ok := find[*retry.Error](err)
			require.True(t, ok)
			require.ErrorContains(t, failed.History[0].Err, "is in progress") // the last query may have been cut off
			return nil
		}))
	})
	t.Run("under way until it is committed", func(t *testing.T) {
		db := newDatabase(t, server)
		probe := &retrypgx.Probe{Pool: db.Pool}
		answer := make(chan bool)
		require.NoError(t, retrypgx.Tx(t.Context(), db, quick(1), nil, func(ctx context.Context, tx pgx.Tx) error {
			require.NoError(t, probe.Track(ctx, tx))
			go func() {
				committed, err := probe.Committed(t.Context())
				answer <- committed && err == nil
			}()
			return nil
		}))
		require.True(t, <-answer)
	})
	t.Run("restarted", func(t *testing.T) {
		db := newDatabase(t, server)
		probe := tracked(t, db, nil)
		server.Restart(t)
		_, err := probe.Committed(t.Context())
		require.ErrorContains(t, err, "restarted or replaced")
	})
	t.Run("crashed, and its number given to others that are committed", func(t *testing.T) {
		db := newDatabase(t, server)
		probe := tracked(t, db, errBusiness)
		server.Kill()
		server.Up(t)
		db.Reset()
		for range 100 {
			db.exec(t, increment)
		}
		_, err := probe.Committed(t.Context())
		require.ErrorContains(t, err, "restarted or replaced")
	})
	t.Run("crashed without the postmaster", func(t *testing.T) {
		db := newDatabase(t, server)
		probe := tracked(t, db, nil)
		db.Reset()
		crash(t, db)
		_, err := probe.Committed(t.Context())
		require.ErrorContains(t, err, "restarted or replaced")
	})
}

// crash has a backend die as by the kernel's hand, and waits until the server has ended all others because of that.
func crash(t *testing.T, db database) {
	t.Helper()
	victim, witness := acquire(t, db), acquire(t, db)
	defer victim.Release()
	defer witness.Release()
	process, err := os.FindProcess(int(victim.Conn().PgConn().PID()))
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	_, err = witness.Conn().WaitForNotification(t.Context())
	require.Equal(t, retrysql.ConnectionLost, retrysql.ReasonOf(err))
}

func acquire(t *testing.T, db database) *pgxpool.Conn {
	t.Helper()
	conn, err := db.Acquire(t.Context())
	require.NoError(t, err)
	return conn
}
