package retrypgx_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
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

// slowCommit makes a commit that changes the table take the given number of seconds.
func slowCommit(seconds string) []string {
	return []string{
		"create or replace function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(" + seconds + "); return null; end $$",
		"create constraint trigger slow after update on test deferrable initially deferred for each row execute function slow()",
	}
}

func testProbe(t *testing.T, server *pgtest.Server) {
	// behind returns a pool whose first commit meets the fault that judge returns.
	behind := func(t *testing.T, judge func() fault) database {
		var seen atomic.Bool
		return openPool(t, newProxy(t, server.Addr(), func(request string) fault {
			switch {
			case strings.HasSuffix(request, commitText) && seen.CompareAndSwap(false, true):
				return judge()
			case strings.HasPrefix(request, cancelText): // pgx sends it after the connection is lost
				return loseRequest
			default:
				return pass
			}
		}))
	}
	work := func(ctx context.Context, tx pgx.Tx, _ int) error { return execute(ctx, tx, increment) }
	cut := func() fault { return cutBoth }

	t.Run("a probe waits for a commit that is under way", func(t *testing.T) {
		db := newDatabase(t, server)
		db.exec(t, slowCommit("0.3")...)
		r := behind(t, cut).attempt(t.Context(), &retrypgx.Options{Probe: true}, work)
		require.NoError(t, r.err)
		require.Empty(t, r.failures)
		require.Equal(t, 1, db.total(t))
	})
	t.Run("a query of the rows does not wait for it, so that only true counts", func(t *testing.T) {
		db := newDatabase(t, server)
		db.exec(t, slowCommit("0.3")...)
		opts := &retrypgx.Options{Confirm: func(context.Context) (bool, error) { return db.total(t) > 0, nil }}
		r := behind(t, cut).attempt(t.Context(), opts, work)
		require.ErrorIs(t, r.err, retrysql.ErrCommitAmbiguous)
		require.ErrorContains(t, r.err, "set Options.Probe")
		db.exec(t, "update test set n = n where id = 1") // waits for it
		require.Equal(t, 1, db.total(t))
	})
	t.Run("a probe gives up with EndTimeout", func(t *testing.T) {
		db := newDatabase(t, server)
		db.exec(t, slowCommit("60")...)
		r := behind(t, cut).attempt(t.Context(), &retrypgx.Options{Probe: true, EndTimeout: 3 * time.Second}, work)
		require.ErrorIs(t, r.err, retrysql.ErrCommitAmbiguous)
		failed, ok := find[*retrysql.AttemptError](r.err)
		require.True(t, ok)
		probe, ok := find[*retry.Error](failed.ProbeErr)
		require.True(t, ok)
		require.ErrorContains(t, probe.History[0].Err, "is in progress") // the last query may have been cut off
		db.exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where query = 'commit'")
	})
	for _, row := range []struct {
		name string
		then func(t *testing.T, db database) // after the commit has met the fault
	}{
		{"restarted", func(t *testing.T, _ database) { server.Restart(t) }},
		{"crashed, and its number given to others that are committed", func(t *testing.T, db database) {
			server.Kill(t)
			server.Up(t)
			db.Reset()
			for range 100 {
				db.exec(t, increment)
			}
		}},
		{"crashed without the postmaster", func(t *testing.T, db database) {
			db.Reset()
			crash(t, db)
		}},
	} {
		t.Run(row.name+": it does not know", func(t *testing.T) {
			db := newDatabase(t, server)
			done := make(chan bool)
			r := behind(t, func() fault {
				defer close(done)
				row.then(t, db)
				return loseRequest
			}).attempt(t.Context(), &retrypgx.Options{Probe: true}, work)
			<-done
			require.ErrorIs(t, r.err, retrysql.ErrCommitAmbiguous)
			require.ErrorContains(t, r.err, "restarted or replaced")
		})
	}
	t.Run("a probe needs a pool", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), server.DSN())
		require.NoError(t, err)
		defer conn.Close(context.Background())
		err = retrypgx.Tx(t.Context(), conn, quick(1), &retrypgx.Options{Probe: true}, func(context.Context, pgx.Tx) error { return nil })
		require.EqualError(t, err, "retrypgx: Options.Probe needs a *pgxpool.Pool, not a *pgx.Conn")
	})
}

func testCopy(t *testing.T, server *pgtest.Server) {
	copied := func(ctx context.Context, tx pgx.Tx, src pgx.CopyFromSource) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"test"}, []string{"id", "n"}, src)
		return err
	}
	rows := func() pgx.CopyFromSource { return pgx.CopyFromRows([][]any{{3, 1}, {4, 1}}) }
	for _, row := range []struct {
		name  string // of the source
		fn    func(ctx context.Context, tx pgx.Tx, src pgx.CopyFromSource, attempt int) error
		text  string // of the error
		total int
	}{
		{name: "made outside fn that the first attempt has read is refused", fn: func(ctx context.Context, tx pgx.Tx, src pgx.CopyFromSource, _ int) error {
			if err := copied(ctx, tx, src); err != nil {
				return err
			}
			return execute(ctx, tx, conflict)
		}, text: "retrypgx: the pgx.CopyFromSource was read by an earlier attempt (create it in fn)"},
		{name: "that no attempt has read is copied", fn: func(ctx context.Context, tx pgx.Tx, src pgx.CopyFromSource, attempt int) error {
			if attempt == 1 {
				_, err := tx.CopyFrom(ctx, pgx.Identifier{"missing"}, []string{"id"}, src)
				return retry.Transient(err)
			}
			return copied(ctx, tx, src)
		}, total: 2},
		{name: "made in fn is copied, and twice in one attempt", fn: func(ctx context.Context, tx pgx.Tx, _ pgx.CopyFromSource, attempt int) error {
			src := rows()
			if err := copied(ctx, tx, src); err != nil {
				return err
			}
			if attempt == 1 {
				return execute(ctx, tx, conflict)
			}
			return copied(ctx, tx, src) // no rows are left
		}, total: 2},
	} {
		t.Run("a source "+row.name, func(t *testing.T) {
			db, src := newDatabase(t, server), rows()
			r := db.attempt(t.Context(), nil, func(ctx context.Context, tx pgx.Tx, attempt int) error { return row.fn(ctx, tx, src, attempt) })
			if row.text == "" {
				require.NoError(t, r.err)
			} else {
				require.EqualError(t, r.err, row.text)
			}
			require.Equal(t, 2, r.attempts)
			require.Equal(t, row.total, db.total(t))
		})
	}
	t.Run("sources that look alike are told apart", func(t *testing.T) {
		db := newDatabase(t, server)
		for name, src := range map[string]pgx.CopyFromSource{"value": noRows{}, "pointer": &noRows{}} {
			r := db.attempt(t.Context(), nil, func(ctx context.Context, tx pgx.Tx, attempt int) error {
				if err := copied(ctx, tx, src); err != nil || attempt == 1 {
					return retry.Transient(errBusiness)
				}
				return nil
			})
			require.NoError(t, r.err, name)
		}
	})
}

// noRows is a source without state.
type noRows struct{}

func (noRows) Next() bool             { return false }
func (noRows) Values() ([]any, error) { return nil, nil }
func (noRows) Err() error             { return nil }

// crash kills a backend as the kernel would, and waits until the server has ended all others because of that.
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
