package retrypgx_test

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync"
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

// database is a pool and the table test(id int primary key, n int) with the rows 1 and 2, whose n is 0.
type database struct{ *pgxpool.Pool }

// newDatabase recreates the table and returns a pool that is closed with the test. It checks that all connections were
// returned.
func newDatabase(t *testing.T, server *pgtest.Server) database {
	t.Helper()
	db := openPool(t, server.Addr())
	db.exec(t, "drop table if exists test", "create table test (id int primary key, n int not null)", "insert into test values (1, 0), (2, 0)")
	return db
}

func openPool(t *testing.T, addr string, configure ...func(*pgxpool.Config)) database {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.DSN(addr) + "&pool_max_conns=16")
	require.NoError(t, err)
	for _, f := range configure {
		f(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() {
		returned(t, pool)
		pool.Close()
	})
	return database{pool}
}

// returned waits until no connection is acquired: the pool closes broken ones in the background.
func returned(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for pool.Stat().AcquiredConns() > 0 {
		require.NoError(t, ctx.Err(), "a connection is still acquired")
		runtime.Gosched()
	}
}

func (d database) exec(t *testing.T, queries ...string) {
	t.Helper()
	for _, query := range queries {
		_, err := d.Exec(t.Context(), query)
		require.NoError(t, err, query)
	}
}

// total returns the sum of n.
func (d database) total(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, d.QueryRow(t.Context(), "select sum(n)::int from test").Scan(&n))
	return n
}

// Statements of the tests.
const (
	increment  = "update test set n = n + 1 where id = 1"
	duplicate  = "insert into test values (1, 0)"
	conflict   = "do $$ begin raise exception 'a conflict' using errcode = '40001'; end $$"
	sleep      = "do $$ begin raise notice 'it has begun'; perform pg_sleep(60); end $$"
	cutOff     = "select pg_terminate_backend(pg_backend_pid())"
	commitText = "Q\x00\x00\x00\x0bcommit\x00"      // what pgx sends to commit: a simple query, with its length
	cancelText = "\x00\x00\x00\x10\x04\xd2\x16\x2e" // CancelRequest, on a separate connection
)

// run is the result of one run of Tx.
type run struct {
	err      error
	attempts int      // how often fn has run
	failures []string // phase, reason and code of each attempt that failed
}

// attempt makes the run with at most three attempts, and passes fn the number of the attempt.
func (d database) attempt(ctx context.Context, opts *retrypgx.Options, fn func(ctx context.Context, tx pgx.Tx, attempt int) error) run {
	var r run
	p := quick(3)
	p.Observe = func(_ context.Context, e retry.Event) {
		if e.Outcome == nil {
			r.failures = append(r.failures, describe(e.Attempt.Err))
		}
	}
	r.err = retrypgx.Tx(ctx, d.Pool, p, opts, func(ctx context.Context, tx pgx.Tx) error {
		r.attempts++
		return fn(ctx, tx, r.attempts)
	})
	return r
}

func describe(err error) string {
	failed, ok := find[*retrysql.AttemptError](err)
	if !ok {
		return err.Error()
	}
	return strings.TrimSpace(failed.Phase.String() + " " + string(failed.Reason) + " " + failed.Code)
}

// quick is a policy with waits too short to notice.
func quick(attempts int) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Microsecond}}
}

// fault is the action of a proxy on a request of a client.
type fault int

const (
	pass        fault = iota
	loseRequest       // the server does not receive it, and both sides are cut
	loseReply         // both sides are cut when the reply comes
	cutBoth           // the server receives it, and both sides are cut at once
)

// newProxy starts a proxy in front of a server, which ends with the test, and returns its address. judge is called with
// each piece that a client sends.
func newProxy(t *testing.T, server string, judge func(request string) fault) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(all.Wait) // after the pool, which uses these connections
	t.Cleanup(func() { _ = listener.Close() })
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { serve(&all, client, server, judge) })
		}
	})
	return listener.Addr().String()
}

func serve(all *sync.WaitGroup, client net.Conn, addr string, judge func(request string) fault) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	var lost atomic.Bool // the reply to what was sent last
	all.Go(func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || lost.Load() {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		found := judge(string(buf[:n]))
		lost.Store(found == loseReply)
		if found == loseRequest {
			return
		}
		if _, err := server.Write(buf[:n]); err != nil || found == cutBoth {
			return
		}
	}
}
