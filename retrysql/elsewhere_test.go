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
	"testing/synctest"

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

func (c *clusterConn) Begin() (driver.Tx, error)           { panic("not without options") }
func (c *clusterConn) Prepare(string) (driver.Stmt, error) { panic("nothing is prepared") }
func (c *clusterConn) Ping(context.Context) error          { return c.do(c.number, "ping") }
func (c *clusterConn) Commit() error                       { return c.do(c.number, "commit") }
func (c *clusterConn) Rollback() error                     { return c.do(c.number, "rollback") }
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

var exec = sends("UPDATE")

// once makes what fail with err on its first call.
func once(what string, err error) func(int, string) error {
	return func(_ int, did string) error {
		if did != what || err == nil {
			return nil
		}
		first := err
		err = nil
		return first
	}
}

// update is an fn of Do.
func update(ctx context.Context, s *retrysql.Single) error {
	return stmtErr(s.ExecContext(ctx, "UPDATE"))
}

// wrapper is a type that has a pool, and its own way to begin.
type wrapper struct{ *sql.DB }

func TestTheRetryGoesElsewhere(t *testing.T) {
	const statement, begin, commit = "1:begin 1:exec! 1:rollback", "1:begin!", "1:begin 1:exec 1:commit!" // the first attempt fails there
	standby := &pgError{"0A000", "cannot set transaction read-write mode during recovery"}
	for _, row := range []struct {
		name  string
		fails func(int, string) error
		first string // attempt's log
	}{
		{"PostgreSQL, a read-only server", on(1, "exec", pg("25006")), statement},
		{"MySQL, a read-only server", on(1, "exec", my(1290, "HY000")), statement},
		{"MySQL, a read-only transaction", on(1, "exec", my(1792, "25006")), statement},
		{"MySQL, a server that has become read-only before the commit", on(1, "commit", my(1290, "HY000")), commit},
		{"SQL Server, a read-only database", on(1, "exec", mssqlError{Number: 3906}), statement},
		{"lib/pq, a standby, which refuses its BEGIN", on(1, "begin", standby), begin},
		{"Galera, a node that is not ready", on(1, "exec", my(1047, "08S01")), statement},
		{"a server that shuts down", on(1, "exec", pg("57P01")), statement},
		{"a session that was idle for too long", on(1, "exec", pg("25P03")), statement},
		{"Azure SQL, a failover", on(1, "exec", mssqlError{Number: 40197}), statement},
		{"a connection that is lost, of which the driver says nothing more", on(1, "exec", errors.New("conn closed")), statement},
		{"a connection that is dead before the begin, in the same attempt", on(1, "begin", driver.ErrBadConn), begin},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &cluster{fails: row.fails}
			require.NoError(t, retrysql.Tx(t.Context(), c.pool(t, 0), atOnce, nil, exec))
			require.Equal(t, row.first+" 2:begin 2:exec 2:commit", strings.Join(c.log, " "))
			require.Equal(t, 2, c.made)
		})
	}
	for name, err := range map[string]error{
		"a conflict":                             conflict,
		"a stale plan, which the driver forgets": &pgError{"0A000", "cached plan must not change result type"},
		"a lock that was not free":               my(1205, "HY000"),
	} {
		t.Run("the same connection after "+name, func(t *testing.T) {
			c := &cluster{fails: once("exec", err)}
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

func TestAReadOnlyServerIsFinalIfThereIsNoOther(t *testing.T) {
	one := func(t *testing.T, db *sql.DB) retrysql.Beginner {
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close()) })
		return conn
	}
	pool := func(_ *testing.T, db *sql.DB) retrysql.Beginner { return db }
	standby := &pgError{"0A000", "cannot set transaction read-write mode during recovery"}
	for _, row := range []struct {
		name  string
		fails func(int, string) error
		from  func(*testing.T, *sql.DB) retrysql.Beginner
		opts  *retrysql.Options
		log   string
		phase retrysql.Phase
	}{
		{name: "the caller's connection", fails: on(9, "exec", pg("25006")), from: one, log: "1:begin 1:exec! 1:rollback", phase: retrysql.Statement},
		{name: "the caller's connection, at the begin", fails: on(9, "begin", standby), from: one, log: "1:begin!", phase: retrysql.Connect},
		{name: "the caller's connection, at the commit", fails: on(9, "commit", my(1290, "HY000")), from: one, log: "1:begin 1:exec 1:commit!", phase: retrysql.Commit},
		{name: "a type that may begin in its own way", fails: on(9, "exec", pg("25006")),
			from: func(_ *testing.T, db *sql.DB) retrysql.Beginner { return wrapper{db} }, log: "1:begin 1:exec! 1:rollback", phase: retrysql.Statement},
		{name: "a transaction that is to be read-only", fails: on(9, "exec", pg("25006")), from: pool, opts: &retrysql.Options{ReadOnly: true},
			log: "1:begin 1:exec! 1:rollback", phase: retrysql.Statement},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &cluster{fails: row.fails}
			err := retrysql.Tx(t.Context(), row.from(t, c.pool(t, 0)), atOnce, row.opts, exec)
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, row.log, strings.Join(c.log, " "))
			var failed *retrysql.AttemptError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, row.phase, failed.Phase)
			require.Equal(t, retrysql.ReadOnlyServer, failed.Reason)
			require.Equal(t, retry.Terminal, failed.Class)
		})
	}
	t.Run("fn may go on after a read-only transaction", func(t *testing.T) {
		c := &cluster{fails: on(1, "exec", my(1792, "25006"))}
		opts := &retrysql.Options{ReadOnly: true}
		require.NoError(t, retrysql.Tx(t.Context(), c.pool(t, 0), atOnce, opts, func(ctx context.Context, tx *retrysql.Txn) error {
			_ = exec(ctx, tx)
			return nil
		}))
		require.Equal(t, "1:begin 1:exec! 1:commit", strings.Join(c.log, " "))
	})
	t.Run("the loss of the caller's connection is final", func(t *testing.T) {
		c := &cluster{fails: on(9, "begin", driver.ErrBadConn)}
		conn, err := c.pool(t, 0).Conn(t.Context())
		require.NoError(t, err)
		err = retrysql.Tx(t.Context(), conn, atOnce, nil, exec)
		require.ErrorIs(t, err, retry.TerminalError)
		require.ErrorIs(t, err, sql.ErrConnDone)
		var run *retry.Error
		require.ErrorAs(t, err, &run)
		require.Equal(t, 2, run.Attempts, "the second one finds it closed")
	})
	t.Run("of any driver", func(t *testing.T) {
		for _, elsewhere := range []bool{false, true} {
			d := db{elsewhere: elsewhere}
			err := retrysql.Run(t.Context(), atOnce, nil, d.begin, statements(pg("25006")))
			require.Equal(t, elsewhere, err == nil)
			require.Equal(t, []retrysql.Reason{retrysql.ReadOnlyServer}, d.discarded)
		}
		d := db{elsewhere: true}
		require.Error(t, retrysql.Run(t.Context(), atOnce, &retrysql.Options{ReadOnly: true}, d.begin, statements(pg("25006"))))
	})
}

func TestTheOtherIdleConnectionsToAReadOnlyServerAreClosedOnce(t *testing.T) {
	const idle = 16
	t.Run("a run needs one more attempt", func(t *testing.T) {
		c := &cluster{fails: on(idle, "exec", pg("25006"))}
		db := c.pool(t, idle)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, exec))
		require.Len(t, c.log, 6)
		require.Equal(t, idle+1, c.made)
		require.Equal(t, 1, db.Stats().OpenConnections)
	})
	t.Run("a run needs one more attempt if the begin meets it", func(t *testing.T) {
		c := &cluster{fails: on(idle, "begin", &pgError{"0A000", "cannot set transaction read-write mode during recovery"})}
		require.NoError(t, retrysql.Tx(t.Context(), c.pool(t, idle), atOnce, nil, exec))
		require.Len(t, c.log, 4)
	})
	t.Run("Do closes them too", func(t *testing.T) {
		c := &cluster{fails: on(idle, "exec", pg("25006"))}
		require.NoError(t, retrysql.Do(t.Context(), c.pool(t, idle), atOnce, update))
		require.Len(t, c.log, 2)
	})
	t.Run("those that another run has made since stay", func(t *testing.T) {
		c := &cluster{fails: on(1000, "exec", pg("25006"))}
		db := c.pool(t, 1)
		attempts := 0
		err := retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			attempts++
			other, err := db.Conn(ctx)
			require.NoError(t, err)
			require.NoError(t, other.Close())
			return exec(ctx, tx)
		})
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, 3, attempts)
		require.Equal(t, 5, c.made, "the third attempt has the connection that the second one has left in the pool")
	})
	t.Run("all stay after a lost connection", func(t *testing.T) {
		c := &cluster{fails: once("exec", driver.ErrBadConn)}
		db := c.pool(t, idle)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, exec))
		require.Equal(t, idle-1, db.Stats().OpenConnections)
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
	t.Run("of Do, but the first", func(t *testing.T) {
		c := &cluster{fails: dead("ping", "exec")}
		p := atOnce
		p.MaxAttempts = 2
		require.NoError(t, retrysql.Do(t.Context(), c.pool(t, idle), p, func(ctx context.Context, s *retrysql.Single) error {
			return stmtErr(s.ExecContext(ctx, "SELECT"))
		}))
		require.Equal(t, 1, strings.Count(strings.Join(c.log, " "), "exec!"))
		require.Equal(t, idle-1, strings.Count(strings.Join(c.log, " "), "ping!"))
	})
	t.Run("of Do, which does not ping before", func(t *testing.T) {
		c := &cluster{}
		require.NoError(t, retrysql.Do(t.Context(), c.pool(t, 1), atOnce, update))
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

// TestAPoolOfOneConnectionIsEnough: the transaction's connection is returned before Probe, Confirm and a hook need one.
func TestAPoolOfOneConnectionIsEnough(t *testing.T) {
	inBubble(t, "for Confirm and a hook", func(t *testing.T) {
		c := &cluster{fails: on(1, "commit", driver.ErrBadConn)}
		db := c.pool(t, 0)
		db.SetMaxOpenConns(1)
		asked := 0
		ask := func(ctx context.Context) {
			asked++
			require.NoError(t, db.PingContext(ctx))
		}
		opts := &retrysql.Options{Confirm: func(ctx context.Context) (bool, error) { ask(ctx); return true, nil }}
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, opts, func(ctx context.Context, tx *retrysql.Txn) error {
			tx.AfterCommit(ask)
			return exec(ctx, tx)
		}))
		require.Equal(t, 2, asked)
	})
	inBubble(t, "for Probe", func(t *testing.T) {
		db, _ := openDB(t, &base{statuses: [][]driver.Value{{true, "committed"}}}, faults{{On: "commit", Lost: true}})
		db.SetMaxOpenConns(1)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, &retrysql.Options{Probe: true}, exec))
	})
	inBubble(t, "after a panic, a caller that goes and errors of fn's own", func(t *testing.T) {
		c := &cluster{}
		db := c.pool(t, 0)
		db.SetMaxOpenConns(2)
		var all sync.WaitGroup
		for n := range 50 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				defer func() { _ = recover() }()
				_ = retrysql.Tx(ctx, db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
					switch n % 4 {
					case 0:
						panic("boom")
					case 1:
						cancel()
					case 2:
						return errBusiness
					}
					return exec(ctx, tx)
				})
			})
		}
		all.Wait()
		synctest.Wait() // database/sql opens a connection in the place of one that it has closed, also when nobody waits for it any more
	})
}
