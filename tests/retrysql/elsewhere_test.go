package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// cluster is a database whose connections are numbered, and can differ.
type cluster struct {
	fails func(conn int, what string) error // nil if nothing does

	mu   sync.Mutex
	made int      // connections
	open int      // of these
	log  []string // what was done on which connection: "1:begin"
}

// do logs what is done on a connection, and returns its error.
func (c *cluster) do(conn int, what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.fails != nil {
		err = c.fails(conn, what)
	}
	entry := fmt.Sprintf("%d:%s", conn, what)
	if err != nil {
		entry += "!"
	}
	c.log = append(c.log, entry)
	return err
}

func (c *cluster) Driver() driver.Driver { return nil }

func (c *cluster) Connect(context.Context) (driver.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	c.open++
	return &clusterConn{c, c.made}, nil
}

// clusterConn is a connection, its statements and its transaction.
type clusterConn struct {
	*cluster
	number int
}

func (c *clusterConn) Begin() (driver.Tx, error) { panic("not without options") }

func (c *clusterConn) Prepare(string) (driver.Stmt, error) { panic("nothing is prepared") }

func (c *clusterConn) Ping(context.Context) error { return c.do(c.number, "ping") }

func (c *clusterConn) Commit() error { return c.do(c.number, "commit") }

func (c *clusterConn) Rollback() error { return c.do(c.number, "rollback") }

func (c *clusterConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return c, c.do(c.number, "begin")
}

func (c *clusterConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.do(c.number, "exec")
}

func (c *clusterConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	return nil
}

// cluster returns a pool of it with the given number of idle connections. The pool must be whole again at the end.
func (c *cluster) pool(t *testing.T, idle int) *sql.DB {
	t.Helper()
	db := sql.OpenDB(c)
	db.SetMaxIdleConns(100)
	held := make([]*sql.Conn, idle)
	for i := range held {
		var err error
		held[i], err = db.Conn(t.Context())
		require.NoError(t, err)
	}
	for _, conn := range held {
		require.NoError(t, conn.Close())
	}
	t.Cleanup(func() {
		require.Zero(t, db.Stats().InUse)
		require.NoError(t, db.Close())
		require.Zero(t, c.open)
	})
	return db
}

// on makes what fail with err on the first connections, up to the given number.
func on(conns int, what string, err error) func(int, string) error {
	return func(conn int, did string) error {
		if conn <= conns && did == what {
			return err
		}
		return nil
	}
}

func TestTheRetryGoesElsewhere(t *testing.T) {
	standby := &pgError{"0A000", "cannot set transaction read-write mode during recovery"}
	for _, row := range []struct {
		name  string
		fails func(int, string) error
		log   string
	}{
		{"PostgreSQL, a read-only server", on(1, "exec", pg("25006")), "1:begin 1:exec! 1:rollback 2:begin 2:exec 2:commit"},
		{"MySQL, a read-only server", on(1, "exec", my(1290, "HY000")), "1:begin 1:exec! 1:rollback 2:begin 2:exec 2:commit"},
		{"MySQL, a read-only transaction", on(1, "exec", my(1792, "25006")), "1:begin 1:exec! 1:rollback 2:begin 2:exec 2:commit"},
		{"MySQL, a server that has become read-only before the commit", on(1, "commit", my(1290, "HY000")), "1:begin 1:exec 1:commit! 2:begin 2:exec 2:commit"},
		{"SQL Server, a read-only database", on(1, "exec", mssqlError{Number: 3906}), "1:begin 1:exec! 1:rollback 2:begin 2:exec 2:commit"},
		{"lib/pq, a standby, which refuses its BEGIN", on(1, "begin", standby), "1:begin! 2:begin 2:exec 2:commit"},
		{"Galera, a node that is not ready", on(1, "exec", my(1047, "08S01")), "1:begin 1:exec! 1:rollback 2:begin 2:exec 2:commit"},
		{"a server that shuts down", on(1, "exec", pg("57P01")), "1:begin 1:exec! 1:rollback 2:begin 2:exec 2:commit"},
		{"a session that was idle for too long", on(1, "exec", pg("25P03")), "1:begin 1:exec! 1:rollback 2:begin 2:exec 2:commit"},
		{"Azure SQL, a failover", on(1, "exec", mssqlError{Number: 40197}), "1:begin 1:exec! 1:rollback 2:begin 2:exec 2:commit"},
		{"a connection that is lost, of which the driver says nothing more", on(1, "exec", errors.New("conn closed")), "1:begin 1:exec! 1:rollback 2:begin 2:exec 2:commit"},
		{"a connection that is dead before the begin, in the same attempt", on(1, "begin", driver.ErrBadConn), "1:begin! 2:begin 2:exec 2:commit"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &cluster{fails: row.fails}
			require.NoError(t, retrysql.Tx(t.Context(), c.pool(t, 0), atOnce, nil, exec))
			require.Equal(t, row.log, strings.Join(c.log, " "))
			require.Equal(t, 2, c.made)
		})
	}
	for _, row := range []struct {
		name string
		err  error
	}{
		{"a conflict", conflict},
		{"a stale plan, which the driver forgets", &pgError{"0A000", "cached plan must not change result type"}},
		{"a lock that was not free", my(1205, "HY000")},
	} {
		t.Run("the same connection after "+row.name, func(t *testing.T) {
			first := true
			c := &cluster{fails: func(_ int, what string) error {
				if what != "exec" || !first {
					return nil
				}
				first = false
				return row.err
			}}
			require.NoError(t, retrysql.Tx(t.Context(), c.pool(t, 0), atOnce, nil, exec))
			require.Equal(t, "1:begin 1:exec! 1:rollback 1:begin 1:exec 1:commit", strings.Join(c.log, " "))
		})
	}
	t.Run("the same connection after an error of another database, which is fn's own", func(t *testing.T) {
		c := &cluster{}
		readOnly := pg("25006")
		db := c.pool(t, 0)
		err := retrysql.Tx(t.Context(), db, atOnce, nil, func(context.Context, *retrysql.Txn) error { return readOnly })
		require.ErrorIs(t, err, readOnly)
		require.Equal(t, "1:begin 1:rollback", strings.Join(c.log, " "))
		require.Equal(t, 1, db.Stats().OpenConnections)
	})
}

func TestConnectionsThatDiedInThePoolCostNoAttempt(t *testing.T) {
	const idle = 8
	once := retry.Policy{MaxAttempts: 1}
	dead := func(what ...string) func(int, string) error {
		return func(conn int, did string) error {
			if conn <= idle && strings.Contains(strings.Join(what, " "), did) {
				return errors.New("conn closed") // as pgx says: database/sql does not know that it is dead
			}
			return nil
		}
	}
	t.Run("of Tx", func(t *testing.T) {
		c := &cluster{fails: dead("begin")}
		require.NoError(t, retrysql.Tx(t.Context(), c.pool(t, idle), once, nil, exec))
		require.Equal(t, idle, strings.Count(strings.Join(c.log, " "), "begin!"))
		require.Equal(t, idle+1, c.made)
	})
	t.Run("of Do, but the first, of which nothing tells", func(t *testing.T) {
		c := &cluster{fails: dead("ping", "exec")}
		p := atOnce
		p.MaxAttempts = 2
		require.NoError(t, retrysql.Do(t.Context(), c.pool(t, idle), p, func(ctx context.Context, s *retrysql.Single) error {
			_, err := s.ExecContext(ctx, "SELECT")
			return err
		}))
		require.Equal(t, 1, strings.Count(strings.Join(c.log, " "), "exec!"))
		require.Equal(t, idle-1, strings.Count(strings.Join(c.log, " "), "ping!"))
	})
	t.Run("of Do, which does not ping before", func(t *testing.T) {
		c := &cluster{}
		require.NoError(t, retrysql.Do(t.Context(), c.pool(t, 1), atOnce, func(ctx context.Context, s *retrysql.Single) error {
			_, err := s.ExecContext(ctx, "UPDATE")
			return err
		}))
		require.Equal(t, []string{"1:exec"}, c.log)
	})
	t.Run("a server that ends each new connection costs an attempt", func(t *testing.T) {
		c := &cluster{fails: on(1000, "begin", pg("57P01"))}
		err := retrysql.Tx(t.Context(), c.pool(t, idle), once, nil, exec)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Len(t, c.log, idle+1)
	})
	t.Run("an error of another kind costs an attempt", func(t *testing.T) {
		c := &cluster{fails: on(1000, "begin", pg("53300"))}
		err := retrysql.Tx(t.Context(), c.pool(t, idle), once, nil, exec)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Len(t, c.log, 1)
	})
	t.Run("no other connection is taken after the caller's end", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := &cluster{fails: func(int, string) error { cancel(); return driver.ErrBadConn }}
		err := retrysql.Tx(ctx, c.pool(t, idle), atOnce, nil, exec)
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.Equal(t, []string{"8:begin!"}, c.log)
	})
}
