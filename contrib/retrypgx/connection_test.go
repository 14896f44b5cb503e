package retrypgx_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx"
	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/retrysql"
)

func testCommit(t *testing.T, server *pgtest.Server) {
	// once makes the first COMMIT meet a fault.
	once := func(found fault) func(string) fault {
		var seen atomic.Bool
		return func(request string) fault {
			if strings.HasSuffix(request, commitText) && seen.CompareAndSwap(false, true) {
				return found
			}
			return pass
		}
	}
	lost := []string{"commit connection_lost"}
	for _, row := range []struct {
		name     string // of the commit
		fault    fault
		mark     bool // retrysql.WithIdempotent
		opts     retrypgx.Options
		confirm  bool // looks for the row
		query    string
		failures []string
		want     error
		total    int
	}{
		{name: "whose answer is lost is ambiguous, although pgx before 5.13 says that it is safe to retry", fault: loseReply, query: increment,
			failures: lost, want: retrysql.ErrCommitAmbiguous, total: 1},
		{name: "whose answer is lost is repeated if the transaction is idempotent", fault: loseReply, mark: true, query: increment, failures: lost, total: 2},
		{name: "whose answer is lost is repeated if the transaction is read-only", fault: loseReply,
			opts: retrypgx.Options{TxOptions: pgx.TxOptions{AccessMode: pgx.ReadOnly}}, query: "select 1", failures: lost},
		{name: "whose answer is lost is a success if the probe says so", fault: loseReply, opts: retrypgx.Options{Probe: true}, query: increment, total: 1},
		{name: "whose answer is lost is a success if Confirm finds the row", fault: loseReply, confirm: true, query: increment, total: 1},
		{name: "that is lost is repeated if the probe says that it did not happen", fault: loseRequest, opts: retrypgx.Options{Probe: true}, query: increment,
			failures: lost, total: 1},
	} {
		t.Run("a commit "+row.name, func(t *testing.T) {
			db := newDatabase(t, server)
			behind := openPool(t, newProxy(t, server.Addr(), once(row.fault)))
			ctx := t.Context()
			if row.mark {
				ctx = retrysql.WithIdempotent(ctx)
			}
			if row.confirm {
				row.opts.Confirm = func(context.Context) (bool, error) { return db.total(t) > 0, nil }
			}
			r := behind.attempt(ctx, &row.opts, func(ctx context.Context, tx pgx.Tx, _ int) error { return execute(ctx, tx, row.query) })
			returned(t, behind.Pool)
			require.ErrorIs(t, r.err, row.want)
			require.Equal(t, row.failures, r.failures)
			require.Equal(t, row.total, db.total(t))
		})
	}
	t.Run("a commit that is canceled is ambiguous as well", func(t *testing.T) {
		newDatabase(t, server)
		ctx, cancel := context.WithCancel(t.Context())
		behind := openPool(t, newProxy(t, server.Addr(), func(request string) fault {
			if strings.HasSuffix(request, commitText) {
				cancel()
				return loseReply
			}
			return pass
		}))
		r := behind.attempt(ctx, nil, func(ctx context.Context, tx pgx.Tx, _ int) error { return execute(ctx, tx, increment) })
		returned(t, behind.Pool)
		require.ErrorIs(t, r.err, retrysql.ErrCommitAmbiguous)
		require.ErrorIs(t, r.err, retry.CallerCanceled)
	})
}

func testConnections(t *testing.T, server *pgtest.Server) {
	for name, end := range map[string]func(t *testing.T){
		"killed": func(t *testing.T) {
			server.Kill(t)
			server.Up(t)
		},
		"restarted": func(t *testing.T) { server.Restart(t) },
	} {
		t.Run("a server that is "+name+" in the middle", func(t *testing.T) {
			db := newDatabase(t, server)
			r := db.attempt(t.Context(), nil, func(ctx context.Context, tx pgx.Tx, attempt int) error {
				if err := execute(ctx, tx, increment); err != nil {
					return err
				}
				if attempt == 1 {
					end(t)
				}
				return execute(ctx, tx, "select 1")
			})
			returned(t, db.Pool)
			require.NoError(t, r.err)
			require.Equal(t, 2, r.attempts)
			require.Equal(t, 1, db.total(t))
		})
	}
	t.Run("a server that comes back", func(t *testing.T) {
		db := newDatabase(t, server)
		db.Reset() // no connection that still looks usable
		server.Kill(t)
		p := quick(3)
		attempts := 0
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Outcome == nil {
				attempts++
				require.Equal(t, "connect cannot_connect", describe(e.Attempt.Err))
				server.Up(t)
			}
		}
		err := retrypgx.Tx(t.Context(), db.Pool, p, nil, func(ctx context.Context, tx pgx.Tx) error { return execute(ctx, tx, increment) })
		require.NoError(t, err)
		require.Equal(t, 1, attempts)
		require.Equal(t, 1, db.total(t))
	})
	t.Run("a connection instead of a pool", func(t *testing.T) {
		db := newDatabase(t, server)
		conn, err := pgx.Connect(t.Context(), server.DSN())
		require.NoError(t, err)
		defer conn.Close(context.Background())
		attempt := 0
		require.NoError(t, retrypgx.Tx(t.Context(), conn, quick(3), nil, func(ctx context.Context, tx pgx.Tx) error {
			if attempt++; attempt == 1 {
				return execute(ctx, tx, increment, conflict)
			}
			return execute(ctx, tx, increment)
		}))
		require.Equal(t, 2, attempt)
		require.Equal(t, 1, db.total(t))
		var run *retry.Error
		err = retrypgx.Tx(t.Context(), conn, quick(3), nil, func(ctx context.Context, tx pgx.Tx) error { return execute(ctx, tx, cutOff) })
		require.ErrorContains(t, err, "conn closed")
		require.ErrorAs(t, err, &run)
		require.Equal(t, 2, run.Attempts, "the second one cannot begin, and a third one could not either")
	})
}

func testElsewhere(t *testing.T, server *pgtest.Server) {
	const idle = 8
	wide := func(config *pgxpool.Config) { config.MaxConns = idle }
	// each uses all connections of a pool at once, twice, since pgx pings a connection before its first reuse.
	each := func(t *testing.T, db database, use func(*pgxpool.Conn)) {
		for range 2 {
			held := make([]*pgxpool.Conn, idle)
			for i := range held {
				held[i] = acquire(t, db)
				use(held[i])
			}
			for _, conn := range held {
				conn.Release()
			}
		}
	}
	readOnly := func(conn *pgxpool.Conn) {
		_, err := conn.Exec(t.Context(), "set default_transaction_read_only = on")
		require.NoError(t, err)
	}
	work := func(ctx context.Context, tx pgx.Tx, _ int) error { return execute(ctx, tx, increment) }
	t.Run("a run does not meet all read-only connections of a pool", func(t *testing.T) {
		direct := newDatabase(t, server)
		db := openPool(t, server.Addr(), wide)
		each(t, db, readOnly)
		r := db.attempt(t.Context(), nil, work)
		returned(t, db.Pool)
		require.NoError(t, r.err)
		require.Equal(t, []string{"statement read_only_server 25006"}, r.failures)
		require.Equal(t, 1, direct.total(t))
	})
	t.Run("a read-only transaction stays on a read-only connection", func(t *testing.T) {
		newDatabase(t, server)
		db := openPool(t, server.Addr(), wide)
		r := db.attempt(t.Context(), &retrypgx.Options{TxOptions: pgx.TxOptions{AccessMode: pgx.ReadOnly}}, work)
		require.ErrorIs(t, r.err, retry.TerminalError)
		require.Equal(t, 1, r.attempts)
	})
	t.Run("a single read-only connection ends the run", func(t *testing.T) {
		newDatabase(t, server)
		conn, err := pgx.Connect(t.Context(), server.DSN())
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), "set default_transaction_read_only = on")
		require.NoError(t, err)
		err = retrypgx.Tx(t.Context(), conn, quick(3), nil, func(ctx context.Context, tx pgx.Tx) error { return work(ctx, tx, 1) })
		var failed *retrysql.AttemptError
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, err, retry.TerminalError)
		require.Equal(t, retry.Terminal, failed.Class)
		require.False(t, conn.IsClosed(), "it is the caller's")
	})
	t.Run("connections that died in the pool cost no attempt", func(t *testing.T) {
		direct := newDatabase(t, server)
		db := openPool(t, server.Addr(), wide)
		pids := map[uint32]bool{}
		each(t, db, func(conn *pgxpool.Conn) { pids[conn.Conn().PgConn().PID()] = true })
		require.Len(t, pids, idle)
		for pid := range pids {
			direct.exec(t, fmt.Sprintf("select pg_terminate_backend(%d, 60000)", pid))
		}
		r := db.attempt(t.Context(), nil, work)
		returned(t, db.Pool)
		require.NoError(t, r.err)
		require.Empty(t, r.failures, "an attempt that cannot begin is a failure, too")
		require.Equal(t, 1, r.attempts)
		require.Equal(t, 1, direct.total(t))
	})
	t.Run("a server that stays silent is tried again", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		pool, err := pgxpool.New(t.Context(), pgtest.DSN(listener.Addr().String())+"&connect_timeout=1")
		require.NoError(t, err)
		defer pool.Close()
		err = retrypgx.Tx(t.Context(), pool, quick(2), nil, func(context.Context, pgx.Tx) error { return nil })
		require.ErrorIs(t, err, retry.AttemptsExhausted)
	})
	t.Run("a closed pool is not tried again", func(t *testing.T) {
		pool, err := pgxpool.New(t.Context(), server.DSN())
		require.NoError(t, err)
		pool.Close()
		err = retrypgx.Tx(t.Context(), pool, quick(3), nil, func(context.Context, pgx.Tx) error { return nil })
		require.ErrorIs(t, err, retry.TerminalError)
		require.Equal(t, retrysql.PoolClosed, retrysql.ReasonOf(err))
	})
}
