package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

func TestTx(t *testing.T) {
	exec := func(query string) func(context.Context, *retrysql.Txn) error {
		return func(ctx context.Context, tx *retrysql.Txn) error {
			_, err := tx.Exec(ctx, query)
			return err
		}
	}
	read := func(ctx context.Context, tx *retrysql.Txn) error {
		var n int
		return tx.QueryRow(ctx, "select").Scan(&n)
	}
	one := func(string) ([]int64, error) { return []int64{1}, nil }
	// fails makes the first query fail, after its first row.
	fails := func(err error) func(string) ([]int64, error) {
		n := 0
		return func(string) ([]int64, error) {
			if n++; n == 1 {
				return []int64{1}, err
			}
			return []int64{1}, nil
		}
	}
	for _, row := range []struct {
		name string
		db   *fake
		opts *retrysql.Options
		fn   func(context.Context, *retrysql.Txn) error
		log  string
		is   []error // none is a success
	}{
		{name: "a success", fn: exec("update"), log: "begin update commit"},
		{name: "the options reach the driver", fn: exec("update"), log: "begin read only Serializable update commit",
			opts: &retrysql.Options{Isolation: sql.LevelSerializable, ReadOnly: true}},
		{name: "too many connections at begin", db: &fake{begin: times(1, state("53300"))}, fn: exec("update"),
			log: "begin! begin update commit"},
		{name: "a conflict in Exec", db: &fake{exec: on("update", 1, conflict)}, fn: exec("update"),
			log: "begin update! rollback begin update commit"},
		{name: "a conflict in Exec that is passed over", db: &fake{exec: on("update", 1, conflict)},
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				_ = exec("update")(ctx, tx)
				return nil
			}, log: "begin update! rollback begin update commit"},
		{name: "what follows a conflict is not sent, since MySQL would commit it by itself", db: &fake{exec: on("update", 1, conflict)},
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				stmt, err := tx.Prepare(ctx, "insert")
				if err != nil {
					return err
				}
				if exec("update")(ctx, tx) != nil {
					for _, err := range []error{exec("insert")(ctx, tx), read(ctx, tx), stmtErr(stmt.Exec(ctx)), stmtErr(stmt.Query(ctx)), stmtErr(tx.Prepare(ctx, "insert"))} {
						if !errors.Is(err, conflict) {
							return errBusiness
						}
					}
				}
				return nil
			}, log: "begin update! rollback begin update commit"},
		{name: "a conflict in Query", db: &fake{exec: on("select", 1, conflict), rows: one}, fn: read,
			log: "begin select! rollback begin select commit"},
		{name: "a conflict after the rows, which is passed over", db: &fake{rows: fails(conflict)},
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				rows, err := tx.Query(ctx, "select")
				if err != nil {
					return err
				}
				for rows.Next() {
				}
				return nil
			}, log: "begin select rollback begin select commit"},
		{name: "a conflict after the first row of QueryRow, which sql.Row would have passed over too", db: &fake{rows: fails(conflict)},
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				var n int
				_ = tx.QueryRow(ctx, "select").Scan(&n)
				return nil
			}, log: "begin select commit"},
		{name: "a conflict in a prepared statement", db: &fake{exec: on("update", 1, conflict)},
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				stmt, err := tx.Prepare(ctx, "update")
				if err != nil {
					return err
				}
				_, _ = stmt.Exec(ctx)
				return stmt.Close()
			}, log: "begin update! rollback begin update commit"},
		{name: "a conflict in a prepared query", db: &fake{exec: on("select", 1, conflict), rows: one},
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				stmt, err := tx.Prepare(ctx, "select")
				if err != nil {
					return err
				}
				var n int
				_ = stmt.QueryRow(ctx).Scan(&n)
				return nil
			}, log: "begin select! rollback begin select commit"},
		{name: "a statement that cannot be prepared", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			_, err := tx.Prepare(ctx, "bad")
			return err
		}, log: "begin prepare! rollback", is: []error{duplicate}},
		{name: "a row that does not fit, and one that is not there", db: &fake{rows: one}, fn: func(ctx context.Context, tx *retrysql.Txn) error {
			row := tx.QueryRow(ctx, "select")
			if err := row.Err(); err != nil {
				return err
			}
			var when time.Time
			return row.Scan(&when)
		}, log: "begin select rollback", is: []error{retry.TerminalError}},
		{name: "no row is an answer", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			if err := read(ctx, tx); !errors.Is(err, sql.ErrNoRows) {
				return errBusiness
			}
			return nil
		}, log: "begin select commit"},
		{name: "sql.ErrNoRows ends the run", fn: read, log: "begin select rollback", is: []error{sql.ErrNoRows, retry.TerminalError}},
		{name: "RawBytes are refused as by sql.Row", db: &fake{rows: one}, fn: func(ctx context.Context, tx *retrysql.Txn) error {
			var raw sql.RawBytes
			return tx.QueryRow(ctx, "select").Scan(&raw)
		}, log: "begin select rollback", is: []error{retry.TerminalError}},
		{name: "a commit whose reply is lost", db: &fake{commit: times(1, driver.ErrBadConn)}, fn: exec("update"),
			log: "begin update commit!", is: []error{retrysql.ErrCommitAmbiguous, driver.ErrBadConn}},
		{name: "a conflict at the commit", db: &fake{commit: times(1, conflict)}, fn: exec("update"),
			log: "begin update commit! begin update commit"},
		{name: "fn that commits by itself", fn: func(_ context.Context, tx *retrysql.Txn) error { return tx.Unwrap().Commit() },
			log: "begin commit", is: []error{retrysql.ErrTransactionEnded}},
		{name: "fn that commits by itself and fails", fn: func(_ context.Context, tx *retrysql.Txn) error {
			_ = tx.Unwrap().Commit()
			return conflict
		}, log: "begin commit", is: []error{retrysql.ErrTransactionEnded, conflict}},
		{name: "fn that rolls back by itself", fn: func(_ context.Context, tx *retrysql.Txn) error { return tx.Unwrap().Rollback() },
			log: "begin rollback", is: []error{retrysql.ErrTransactionEnded}},
		{name: "fn that commits by a statement is refused", fn: exec("COMMIT"), log: "begin rollback", is: []error{retrysql.ErrTransactionEnded}},
		{name: "or repeated, though it fails with a conflict", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			_, _ = tx.Exec(ctx, "COMMIT")
			return conflict
		}, log: "begin rollback", is: []error{retrysql.ErrTransactionEnded, conflict}},
		{name: "fn that rolls back by a statement is not committed", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			_, _ = tx.Query(ctx, "rollback")
			_, _ = tx.Prepare(ctx, "commit")
			return nil
		}, log: "begin rollback", is: []error{retrysql.ErrTransactionEnded}},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := row.db
			if f == nil {
				f = new(fake)
			}
			err := retrysql.Tx(t.Context(), openFake(t, f), atOnce, row.opts, row.fn)
			require.Equal(t, row.log, strings.Join(f.log, " "))
			if row.is == nil {
				require.NoError(t, err)
			}
			for _, is := range row.is {
				require.ErrorIs(t, err, is)
			}
			require.Equal(t, len(row.is) > 0 && row.is[0] == retrysql.ErrCommitAmbiguous, errors.Is(err, retrysql.ErrCommitAmbiguous))
		})
	}
	t.Run("a second result set whose end is passed over", func(t *testing.T) {
		n := 0
		f := &fake{rows: func(string) ([]int64, error) {
			if n++; n == 1 {
				return nil, conflict
			}
			return nil, nil
		}}
		err := retrysql.Tx(t.Context(), openFake(t, f), atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			rows, err := tx.Query(ctx, "select")
			if err != nil {
				return err
			}
			_ = rows.NextResultSet()
			return rows.Close()
		})
		require.NoError(t, err)
		require.Equal(t, "begin select rollback begin select commit", strings.Join(f.log, " "))
	})
	t.Run("a *sql.Conn begins transactions too", func(t *testing.T) {
		f := &fake{}
		conn, err := openFake(t, f).Conn(t.Context())
		require.NoError(t, err)
		require.NoError(t, retrysql.Tx(t.Context(), conn, atOnce, nil, exec("update")))
		require.NoError(t, conn.Close())
	})
	t.Run("cancelled in a statement, without a deadline: rolled back by database/sql", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		rolledBack := make(chan struct{})
		f := &fake{rollback: func() error { close(rolledBack); return nil }}
		err := retrysql.Tx(ctx, openFake(t, f), atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			cancel()
			_, err := tx.Exec(ctx, "update")
			return err
		})
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.NotErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.NotErrorIs(t, err, retrysql.ErrTransactionEnded)
		<-rolledBack
	})
	t.Run("cancelled in a statement: rolled back", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		f := &fake{}
		err := retrysql.Tx(ctx, openFake(t, f), atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			cancel()
			_, err := tx.Exec(ctx, "update")
			return err
		})
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.NotErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.Equal(t, []string{"begin", "rollback"}, f.log, "and that is waited for")
	})
	inBubble(t, "a wait for a connection ends with the caller, and with the attempt, which is repeated", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		db := openFake(t, &fake{})
		db.SetMaxOpenConns(1)
		held, err := db.Conn(t.Context())
		require.NoError(t, err)
		time.AfterFunc(time.Minute, cancel)
		start := time.Now()
		require.ErrorIs(t, retrysql.Tx(ctx, db, atOnce, nil, exec("update")), retry.CallerCanceled)
		require.Equal(t, time.Minute, time.Since(start))
		time.AfterFunc(90*time.Second, func() { _ = held.Close() })
		p := atOnce
		p.AttemptTimeout = time.Minute
		require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, exec("update")))
	})
	t.Run("cancelled while it begins: rolled back", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		f := &fake{begin: func() error { cancel(); return nil }}
		err := retrysql.Tx(ctx, openFake(t, f), atOnce, nil, func(context.Context, *retrysql.Txn) error { panic("not run") })
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.Equal(t, "begin", f.seen()[0])
		require.NotContains(t, f.seen(), "commit")
	})
	t.Run("a hundred goroutines share a database and a policy", func(t *testing.T) {
		var group sync.WaitGroup
		f := &fake{exec: on("update", 30, conflict)}
		db := openFake(t, f)
		p := retry.Policy{MaxAttempts: retry.Unlimited, Backoff: atOnce.Backoff}
		for range 100 {
			group.Go(func() {
				if err := retrysql.Tx(context.Background(), db, p, nil, exec("update")); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	})
}

func TestTxValue(t *testing.T) {
	f := &fake{exec: on("update", 1, conflict)}
	n := 0
	value, err := retrysql.TxValue(t.Context(), openFake(t, f), atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) (int, error) {
		n++
		_, err := tx.Exec(ctx, "update")
		return n, err
	})
	require.NoError(t, err)
	require.Equal(t, 2, value, "the value is that of the attempt that was committed")
	value, err = retrysql.TxValue(t.Context(), openFake(t, &fake{}), atOnce, nil, func(context.Context, *retrysql.Txn) (int, error) {
		return 7, errBusiness
	})
	require.ErrorIs(t, err, errBusiness)
	require.Zero(t, value, "what was rolled back is no value")
	_, err = retrysql.TxValue[int](t.Context(), openFake(t, &fake{}), atOnce, nil, nil)
	require.ErrorContains(t, err, "fn is nil")
}

func TestDo(t *testing.T) {
	exec := func(queries ...string) func(context.Context, *retrysql.Conn) error {
		return func(ctx context.Context, c *retrysql.Conn) error {
			for _, query := range queries {
				if _, err := c.Exec(ctx, query); err != nil {
					return err
				}
			}
			return nil
		}
	}
	query := func(query string) func(context.Context, *retrysql.Conn) error {
		return func(ctx context.Context, c *retrysql.Conn) error {
			var n int
			return c.QueryRow(ctx, query).Scan(&n)
		}
	}
	// cut makes the rows of the first query end in err.
	cut := func(err error) func(string) ([]int64, error) {
		n := 0
		return func(string) ([]int64, error) {
			if n++; n == 1 {
				return nil, err
			}
			return []int64{1}, nil
		}
	}
	one := func(string) ([]int64, error) { return []int64{1}, nil }
	for _, row := range []struct {
		name       string
		db         *fake
		idempotent bool
		fn         func(context.Context, *retrysql.Conn) error
		log        string
		is         []error
	}{
		{name: "a success", fn: exec("INSERT"), log: "INSERT"},
		{name: "a read after a lost connection is repeated", db: &fake{exec: on("SELECT 1", 1, driver.ErrBadConn), rows: one}, fn: query("SELECT 1"),
			log: "SELECT 1! SELECT 1"},
		{name: "a read that is cut is repeated", db: &fake{rows: cut(driver.ErrBadConn)}, fn: query("SELECT 1"), log: "SELECT 1 SELECT 1"},
		{name: "a write after a lost connection is not, not even by database/sql", db: &fake{exec: on("INSERT", 1, driver.ErrBadConn)}, fn: exec("INSERT"),
			log: "INSERT!", is: []error{retrysql.ErrAmbiguous, driver.ErrBadConn, retry.TerminalError}},
		{name: "a write that returns rows neither", db: &fake{exec: on("INSERT RETURNING", 1, driver.ErrBadConn)}, fn: query("INSERT RETURNING"),
			log: "INSERT RETURNING!", is: []error{retrysql.ErrAmbiguous}},
		{name: "nor when these are cut", db: &fake{rows: cut(driver.ErrBadConn)}, fn: query("INSERT RETURNING"),
			log: "INSERT RETURNING", is: []error{retrysql.ErrAmbiguous}},
		{name: "a write that the server has undone is repeated", db: &fake{exec: on("INSERT", 1, conflict)}, fn: exec("INSERT"), log: "INSERT! INSERT"},
		{name: "also while its rows are read", db: &fake{rows: cut(conflict)}, fn: query("INSERT RETURNING"), log: "INSERT RETURNING INSERT RETURNING"},
		{name: "a write declared idempotent is repeated", idempotent: true, db: &fake{exec: on("INSERT", 1, driver.ErrBadConn)}, fn: exec("INSERT"),
			log: "INSERT! INSERT"},
		{name: "a constraint ends the run", db: &fake{exec: on("INSERT", 1, duplicate)}, fn: exec("INSERT"), log: "INSERT!", is: []error{duplicate}},
		{name: "nothing is repeated after a write that succeeded", db: &fake{exec: on("SELECT 1", 1, conflict)}, fn: exec("INSERT", "SELECT 1"),
			log: "INSERT SELECT 1!", is: []error{conflict, retry.TerminalError}},
		{name: "what was ambiguous stays so, whatever fn makes of it", db: &fake{exec: on("INSERT", 1, driver.ErrBadConn)},
			fn: func(ctx context.Context, c *retrysql.Conn) error {
				_, _ = c.Exec(ctx, "INSERT")
				return conflict
			}, log: "INSERT!", is: []error{retrysql.ErrAmbiguous, driver.ErrBadConn, conflict}},
		{name: "an error that fn makes up ends the run", fn: func(context.Context, *retrysql.Conn) error { return errBusiness }, is: []error{errBusiness}},
		{name: "rows that are left open do not hold the connection", db: &fake{rows: one}, fn: func(ctx context.Context, c *retrysql.Conn) error {
			_, err := c.Query(ctx, "SELECT 1")
			return err
		}, log: "SELECT 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := t.Context()
			if row.idempotent {
				ctx = retrysql.MarkIdempotent(ctx)
			}
			f := row.db
			if f == nil {
				f = new(fake)
			}
			err := retrysql.Do(ctx, openFake(t, f), atOnce, row.fn)
			require.Equal(t, row.log, strings.Join(f.log, " "))
			if row.is == nil {
				require.NoError(t, err)
			}
			for _, is := range row.is {
				require.ErrorIs(t, err, is)
			}
			require.Equal(t, len(row.is) > 0 && row.is[0] == retrysql.ErrAmbiguous, errors.Is(err, retrysql.ErrAmbiguous))
		})
	}
	t.Run("a write declared idempotent that may have taken effect, and cannot be repeated, says so", func(t *testing.T) {
		n := 0
		f := &fake{exec: func(string) error {
			if n++; n == 1 {
				return driver.ErrBadConn
			}
			return duplicate
		}}
		err := retrysql.Do(retrysql.MarkIdempotent(t.Context()), openFake(t, f), atOnce, exec("INSERT"))
		require.ErrorIs(t, err, duplicate)
		require.ErrorIs(t, err, retrysql.ErrAmbiguous)
	})
	t.Run("also where there is no attempt left to repeat it", func(t *testing.T) {
		ctx, f := retrysql.MarkIdempotent(t.Context()), &fake{exec: on("INSERT", 1, driver.ErrBadConn)}
		err := retrysql.Do(ctx, openFake(t, f), retry.Policy{MaxAttempts: 1}, exec("INSERT"))
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.ErrorIs(t, err, retrysql.ErrAmbiguous)
	})
	t.Run("a connection that cannot be had is asked for again", func(t *testing.T) {
		n := 0
		db := sql.OpenDB(connector(func() (driver.Conn, error) {
			if n++; n <= 2 {
				return nil, state("53300")
			}
			return &fakeConn{&fake{}}, nil
		}))
		require.NoError(t, retrysql.Do(t.Context(), db, atOnce, exec("INSERT")))
		require.NoError(t, db.Close())
		require.Equal(t, 3, n)
	})
	t.Run("a write that a timeout has cut is ambiguous", func(t *testing.T) {
		f := &fake{exec: on("INSERT", 1, context.DeadlineExceeded)}
		err := retrysql.Do(t.Context(), openFake(t, f), atOnce, exec("INSERT"))
		require.ErrorIs(t, err, retrysql.ErrAmbiguous)
		require.Equal(t, []string{"INSERT!"}, f.log)
	})
}

type connector func() (driver.Conn, error)

func (c connector) Connect(context.Context) (driver.Conn, error) { return c() }
func (c connector) Driver() driver.Driver                        { return nil }

func TestAttemptErrorText(t *testing.T) {
	var none *retrysql.AttemptError
	require.EqualError(t, none, "<nil>")
	require.Nil(t, none.Unwrap())
	for want, e := range map[string]retrysql.AttemptError{
		"retrysql: statement: serialization_failure (40001): ERROR 40001": {
			Phase: retrysql.Statement, Verdict: retrysql.Judge(retrysql.Statement, conflict), Err: conflict},
		"retrysql: commit: connection_lost: driver: bad connection; the transaction may or may not be committed; the probe failed: ERROR 40001; the rollback failed: ERROR 23505": {
			Phase: retrysql.Commit, Verdict: retrysql.Judge(retrysql.Commit, driver.ErrBadConn), Err: driver.ErrBadConn, ProbeErr: conflict, RollbackErr: duplicate},
		"retrysql: statement: insufficient funds; fn passed over: ERROR 40001": {
			Phase: retrysql.Statement, Err: errBusiness, Swallowed: conflict},
		"retrysql: autocommit: connection_lost: driver: bad connection; the statement may or may not have taken effect": {
			Phase: retrysql.Autocommit, Verdict: retrysql.Judge(retrysql.Autocommit, driver.ErrBadConn), Err: driver.ErrBadConn},
	} {
		require.EqualError(t, &e, want)
	}
}

func TestDefaultPolicy(t *testing.T) {
	require.Equal(t, "sql: 5 attempts, exponential 10ms ×2, cap 1s, full jitter: 10ms 20ms 40ms 80ms (0s to 150ms in all)",
		retrysql.DefaultPolicy().String())
	require.NoError(t, retrysql.DefaultPolicy().Validate())
}

func stmtErr[T any](_ T, err error) error { return err }
