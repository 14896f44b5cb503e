package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrysql/allerrors"
	"github.com/retrygo/retry/retrytest"
)

func TestTx(t *testing.T) {
	read := func(ctx context.Context, tx *retrysql.Txn) error {
		return tx.QueryRowContext(ctx, "select").Scan(new(int))
	}
	// goesOn ignores the errors of all queries but the last one.
	goesOn := func(queries ...string) func(context.Context, *retrysql.Txn) error {
		return func(ctx context.Context, tx *retrysql.Txn) (err error) {
			for _, query := range queries {
				err = sends(query)(ctx, tx)
			}
			return err
		}
	}
	ignore := func(queries ...string) func(context.Context, *retrysql.Txn) error {
		return func(ctx context.Context, tx *retrysql.Txn) error {
			_ = goesOn(queries...)(ctx, tx)
			return nil
		}
	}
	// fails makes the first query fail, after its first row.
	fails := func(err error) []answer { return append([]answer{{[]int64{1}, err, 0}}, one...) }
	for _, row := range []struct {
		name    string
		faults  faults
		answers []answer
		fn      func(context.Context, *retrysql.Txn) error
		log     string
		watched string  // the log with package allerrors; empty means the same
		is      []error // none for a success or an answer; of an unwatched run
		text    string  // of an answer
	}{
		{name: "a success", fn: sends("update"), log: "begin update commit"},
		{name: "too many connections at begin", faults: faults{{On: retrytest.Begin, Err: state("53300")}}, fn: sends("update"),
			log: "begin! begin update commit"},
		{name: "a conflict in Exec", faults: faults{{Query: "update", Err: conflict}}, fn: sends("update"),
			log: "begin update! rollback begin update commit"},
		{name: "what follows a conflict is not sent, since MySQL would commit it by itself", faults: faults{{Query: "update", Err: conflict}},
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				stmt, err := tx.PrepareContext(ctx, "insert")
				if err != nil {
					return err
				}
				if sends("update")(ctx, tx) != nil {
					for _, err := range []error{sends("insert")(ctx, tx), read(ctx, tx), stmtErr(stmt.ExecContext(ctx)), stmtErr(stmt.QueryContext(ctx)), stmtErr(tx.PrepareContext(ctx, "insert"))} {
						if !errors.Is(err, conflict) {
							return errBusiness
						}
					}
				}
				return nil
			}, log: "begin update! rollback begin update commit"},
		{name: "a conflict after the first row of QueryRow, which sql.Row would have ignored too", answers: fails(conflict),
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				_ = read(ctx, tx)
				return nil
			}, log: "begin select commit"},
		{name: "a conflict in a prepared statement", faults: faults{{Query: "update", Err: conflict}},
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				stmt, err := tx.PrepareContext(ctx, "update")
				if err != nil {
					return err
				}
				_, _ = stmt.ExecContext(ctx)
				return stmt.Close()
			}, log: "begin update! commit!", watched: "begin update! rollback begin update commit", is: []error{retry.TerminalError}},
		{name: "a statement that cannot be prepared", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			return stmtErr(tx.PrepareContext(ctx, "bad"))
		}, log: "begin prepare bad! rollback", is: []error{duplicate}},
		{name: "a row that does not fit", answers: one, fn: func(ctx context.Context, tx *retrysql.Txn) error {
			return tx.QueryRowContext(ctx, "select").Scan(new(time.Time))
		}, log: "begin select rollback", text: "sql: Scan error on column index 0, name \"value\": unsupported Scan, storing driver.Value type int64 into type *time.Time"},
		{name: "no row is an answer", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			if err := read(ctx, tx); !errors.Is(err, sql.ErrNoRows) {
				return errBusiness
			}
			return nil
		}, log: "begin select commit"},
		{name: "sql.ErrNoRows ends the run", fn: read, log: "begin select rollback", text: "sql: no rows in result set"},
		{name: "a commit whose reply is lost", faults: faults{{On: retrytest.Commit, Err: driver.ErrBadConn}}, fn: sends("update"),
			log: "begin update commit!", is: []error{retrysql.ErrCommitAmbiguous, driver.ErrBadConn}},
		{name: "a conflict at the commit", faults: faults{{On: retrytest.Commit, Err: conflict}}, fn: sends("update"),
			log: "begin update commit! begin update commit"},
		{name: "fn that commits by itself", fn: func(_ context.Context, tx *retrysql.Txn) error { return tx.Unwrap().Commit() },
			log: "begin commit", is: []error{retrysql.ErrTransactionEnded}},
		{name: "fn that commits by itself and fails", fn: func(_ context.Context, tx *retrysql.Txn) error {
			_ = tx.Unwrap().Commit()
			return conflict
		}, log: "begin commit", is: []error{retrysql.ErrTransactionEnded, conflict}},
		{name: "fn that rolls back by itself", fn: func(_ context.Context, tx *retrysql.Txn) error { return tx.Unwrap().Rollback() },
			log: "begin rollback", is: []error{retrysql.ErrTransactionEnded}},
		{name: "fn that commits by a statement is refused", fn: sends("COMMIT"), log: "begin rollback", is: []error{retrysql.ErrTransactionEnded}},
		{name: "fn that commits by a statement is not repeated, even if it fails with a conflict", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			_, _ = tx.ExecContext(ctx, "COMMIT")
			return conflict
		}, log: "begin rollback", is: []error{retrysql.ErrTransactionEnded, conflict}},
		{name: "fn that prepares a commit is refused", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			return stmtErr(tx.PrepareContext(ctx, "COMMIT"))
		}, log: "begin rollback", is: []error{retrysql.ErrTransactionEnded}},
		{name: "a statement that only MySQL would commit by, on another server", fn: sends("TRUNCATE t"),
			log: "begin SELECT VERSION()! TRUNCATE t commit"},
		{name: "an aborted transaction names the first error, which aborted it",
			faults: faults{{Query: "insert", Err: duplicate}}, // what follows has 25P02
			fn:     goesOn("insert", "update"), log: "begin insert! update! rollback", is: []error{duplicate}},
		{name: "a timeout of fn's own that it ignored", faults: faults{{Query: "update", Err: context.DeadlineExceeded}},
			fn: ignore("update"), log: "begin update! rollback begin update commit"},
		{name: "a statement that the server canceled, which fn ignored", faults: faults{{Query: "update", Err: my(1317, "70100")}},
			fn: ignore("update"), log: "begin update! rollback begin update commit"},
		{name: "a cancellation of fn's own that it ignored, and a statement after it", faults: faults{{Query: "update", Err: context.Canceled}},
			fn: goesOn("update", "insert"), log: "begin update! rollback begin update insert commit"},
		{name: "rows that a context has ended", answers: fails(context.DeadlineExceeded),
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				_ = drain(tx.QueryContext(ctx, "select"))
				return nil
			}, log: "begin select rollback begin select commit"},
		{name: "an error with which SQLite ended the transaction, so that BEGIN succeeds", faults: faults{{Query: "update", Err: &sqliteError{2067}}},
			fn: sends("update"), log: "begin update! BEGIN rollback", text: "sqlite 2067"},
		{name: "an error with which SQLite ended the transaction, which fn ignores: nothing that follows is sent", faults: faults{{Query: "update", Err: errFull}}, fn: ignore("update", "insert"),
			log: "begin update! BEGIN rollback", is: []error{errFull, retry.TerminalError}},
		{name: "one that is not what BEGIN should fail with", faults: faults{{Query: "update", Err: errFull}, {Query: "BEGIN", Err: errBusiness}},
			fn: ignore("update", "insert"), log: "begin update! BEGIN! rollback", is: []error{errFull, retry.TerminalError}},
		{name: "one with which it did not end it", faults: faults{{Query: "update", Err: &sqliteError{2067}}, {Query: "BEGIN", Err: &sqliteError{1}}},
			fn: ignore("update", "insert"), log: "begin update! BEGIN! insert commit"},
		{name: "a timeout of fn's own that it returns", faults: faults{{Query: "update", Err: context.DeadlineExceeded}}, fn: sends("update"),
			log: "begin update! rollback", is: []error{context.DeadlineExceeded, retry.TerminalError}},
		{name: "fn that rolls back by a statement is not committed", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			_, _ = tx.QueryContext(ctx, "rollback")
			_, _ = tx.PrepareContext(ctx, "commit")
			return nil
		}, log: "begin rollback", is: []error{retrysql.ErrTransactionEnded}},
	} {
		for name, way := range bothWays {
			t.Run(row.name+", "+name, func(t *testing.T) {
				db, log := openDB(t, &base{answers: row.answers}, row.faults, way)
				row := row
				if name == "watched" && row.watched != "" {
					row.log, row.is, row.text = row.watched, nil, ""
				}
				err := retrysql.Tx(t.Context(), db, atOnce, nil, row.fn)
				require.Equal(t, row.log, log())
				switch {
				case row.text != "":
					require.EqualError(t, err, row.text)
					require.NotErrorAs(t, err, new(*retry.Error))
				case row.is == nil:
					require.NoError(t, err)
				}
				for _, is := range row.is {
					require.ErrorIs(t, err, is)
				}
				require.Equal(t, len(row.is) > 0 && row.is[0] == retrysql.ErrCommitAmbiguous, errors.Is(err, retrysql.ErrCommitAmbiguous))
			})
		}
	}
	for version, refused := range map[string]bool{
		"10.11.6-MariaDB": true, "8.0.36": true, "5.7.25-TiDB-v7.5.0": true,
		"PostgreSQL 15.4": false, "CockroachDB CCL v23": false, "": false,
	} {
		for name, row := range map[string]struct {
			around func(driver.Connector) driver.Connector
			fn     func(context.Context, *retrysql.Txn) error
		}{
			"": {plain, sends("TRUNCATE t", "CREATE TABLE t (a int)")},
			", by Unwrap of a watched connection": {allerrors.Connector, func(ctx context.Context, tx *retrysql.Txn) error {
				return stmtErr(tx.Unwrap().ExecContext(ctx, "TRUNCATE t"))
			}},
		} {
			t.Run("a statement that commits by itself, of a server of version "+version+name, func(t *testing.T) {
				db, log := openDB(t, &base{version: version}, nil, row.around)
				err := retrysql.Tx(t.Context(), db, atOnce, nil, row.fn)
				require.Equal(t, refused, errors.Is(err, retrysql.ErrTransactionEnded))
				require.Equal(t, !refused, err == nil)
				require.Equal(t, 1, strings.Count(log(), "VERSION"), "it is asked once")
				require.Equal(t, !refused, strings.Contains(log(), "TRUNCATE"))
			})
		}
	}
	for name, around := range bothWays {
		t.Run("a server that could not say its version is asked again, "+name, func(t *testing.T) {
			asked := map[string]int{"plain": 1, "watched": 2}[name] // noted by the Txn, and by its connection
			db, log := openDB(t, &base{version: "8.0.36"}, faults{{Query: "VERSION", Err: errors.New("busy buffer"), Times: asked}}, around)
			err := retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if _, err := tx.ExecContext(ctx, "TRUNCATE t"); err != nil {
					return err
				}
				return stmtErr(tx.ExecContext(ctx, "TRUNCATE t"))
			})
			require.ErrorIs(t, err, retrysql.ErrTransactionEnded)
			require.Equal(t, "begin "+strings.Repeat("SELECT VERSION()! ", asked)+"TRUNCATE t SELECT VERSION() rollback", log())
		})
		t.Run("fn may use it in several goroutines, "+name, func(t *testing.T) {
			db, _ := openDB(t, &base{version: "PostgreSQL 15"}, nil, around)
			var hooks atomic.Int64
			require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						tx.AfterCommit(func(context.Context) { hooks.Add(1) })
						_, _ = tx.ExecContext(ctx, "TRUNCATE t")
						_ = drain(tx.QueryContext(ctx, "select"))
						_ = tx.QueryRowContext(ctx, "select").Scan(new(int))
						_, _ = tx.PrepareContext(ctx, "select")
						tx.Unwrap()
					})
				}
				all.Wait()
				return nil
			}))
			require.EqualValues(t, 8, hooks.Load())
		})
	}
	t.Run("a second result set whose end is ignored", func(t *testing.T) {
		db, log := openDB(t, &base{answers: []answer{{end: conflict}, {end: io.EOF}}}, nil)
		err := retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			rows, err := tx.QueryContext(ctx, "select")
			if err != nil {
				return err
			}
			_ = rows.NextResultSet()
			return rows.Close()
		})
		require.NoError(t, err)
		require.Equal(t, "begin select rollback begin select commit", log())
	})
	t.Run("a *sql.Conn begins transactions too", func(t *testing.T) {
		db, _ := openDB(t, &base{}, nil)
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		require.NoError(t, retrysql.Tx(t.Context(), conn, atOnce, nil, sends("update")))
		require.NoError(t, conn.Close())
	})
	for name, limit := range map[string]time.Duration{"by database/sql": 0, "by Tx, which waits for it": time.Hour} {
		inBubble(t, "cancelled in a statement: rolled back "+name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if limit > 0 {
				ctx, cancel = context.WithTimeout(ctx, limit)
			}
			db, log := openDB(t, &base{}, nil)
			err := retrysql.Tx(ctx, db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				cancel()
				return sends("update")(ctx, tx)
			})
			require.ErrorIs(t, err, retry.CallerCanceled)
			require.NotErrorIs(t, err, retrysql.ErrCommitAmbiguous)
			require.NotErrorIs(t, err, retrysql.ErrTransactionEnded)
			if limit == 0 {
				synctest.Wait()
			}
			require.Equal(t, "begin rollback", log())
		})
	}
	inBubble(t, "cancelled while it begins: rolled back", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		db, log := openDB(t, &base{began: func(context.Context, driver.TxOptions) { cancel() }}, nil)
		err := retrysql.Tx(ctx, db, atOnce, nil, func(context.Context, *retrysql.Txn) error { panic("not run") })
		require.ErrorIs(t, err, retry.CallerCanceled)
		synctest.Wait()
		require.Equal(t, "begin rollback", log())
	})
	t.Run("a hundred goroutines share a database and a policy", func(t *testing.T) {
		var group sync.WaitGroup
		db, _ := openDB(t, &base{}, faults{{Query: "update", Err: conflict, Times: 30}})
		p := retry.Policy{MaxAttempts: retry.Unlimited, Backoff: atOnce.Backoff}
		for range 100 {
			group.Go(func() {
				if err := retrysql.Tx(context.Background(), db, p, nil, sends("update")); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	})
}

func TestTxValue(t *testing.T) {
	db, _ := openDB(t, &base{}, faults{{Query: "update", Err: conflict}})
	n := 0
	value, err := retrysql.TxValue(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) (int, error) {
		n++
		return n, sends("update")(ctx, tx)
	})
	require.NoError(t, err)
	require.Equal(t, 2, value, "the value is that of the attempt that was committed")
	value, err = retrysql.TxValue(t.Context(), db, atOnce, nil, func(context.Context, *retrysql.Txn) (int, error) {
		return 7, errBusiness
	})
	require.ErrorIs(t, err, errBusiness)
	require.Zero(t, value, "what was rolled back is not a value")
}

func TestDo(t *testing.T) {
	exec := func(queries ...string) func(context.Context, *retrysql.Single) error {
		return func(ctx context.Context, c *retrysql.Single) error {
			for _, query := range queries {
				if _, err := c.ExecContext(ctx, query); err != nil {
					return err
				}
			}
			return nil
		}
	}
	query := func(query string) func(context.Context, *retrysql.Single) error {
		return func(ctx context.Context, c *retrysql.Single) error {
			return c.QueryRowContext(ctx, query).Scan(new(int))
		}
	}
	// cut makes the rows of the first query end in err.
	cut := func(err error) []answer { return append([]answer{{nil, err, 0}}, one...) }
	for _, row := range []struct {
		name       string
		faults     faults
		answers    []answer
		idempotent bool
		fn         func(context.Context, *retrysql.Single) error
		log        string
		is         []error
		text       string // of an error of the package's own
	}{
		{name: "a success", fn: exec("INSERT"), log: "INSERT"},
		{name: "a read after a lost connection is repeated", faults: faults{{Query: "SELECT 1", Err: driver.ErrBadConn}}, answers: one, fn: query("SELECT 1"),
			log: "SELECT 1! SELECT 1"},
		{name: "a read that is cut is repeated", answers: cut(driver.ErrBadConn), fn: query("SELECT 2"), log: "SELECT 2 SELECT 2"},
		{name: "a write after a lost connection is not, not even by database/sql", faults: faults{{Query: "INSERT", Err: driver.ErrBadConn}}, fn: exec("INSERT"),
			log: "INSERT!", is: []error{retrysql.ErrStatementAmbiguous, driver.ErrBadConn, retry.TerminalError}},
		{name: "a write that returns rows is not repeated", faults: faults{{Query: "INSERT RETURNING", Err: driver.ErrBadConn}}, fn: query("INSERT RETURNING"),
			log: "INSERT RETURNING!", is: []error{retrysql.ErrStatementAmbiguous}},
		{name: "a write whose rows are cut is not repeated", answers: cut(driver.ErrBadConn), fn: query("INSERT RETURNING"),
			log: "INSERT RETURNING", is: []error{retrysql.ErrStatementAmbiguous}},
		{name: "a write whose rows are cut while fn reads them is not repeated", answers: cut(driver.ErrBadConn), fn: func(ctx context.Context, c *retrysql.Single) error {
			return drain(c.QueryContext(ctx, "INSERT RETURNING"))
		}, log: "INSERT RETURNING", is: []error{retrysql.ErrStatementAmbiguous}},
		{name: "a write whose rows are cut by a timeout is not repeated", answers: cut(context.DeadlineExceeded), fn: query("INSERT RETURNING"),
			log: "INSERT RETURNING", is: []error{retrysql.ErrStatementAmbiguous}},
		{name: "a write is not repeated after another connection was lost", answers: one, fn: func(ctx context.Context, c *retrysql.Single) error {
			require.NoError(t, query("INSERT RETURNING")(ctx, c))
			return io.ErrUnexpectedEOF
		}, log: "INSERT RETURNING", is: []error{retrysql.ErrStatementAmbiguous, io.ErrUnexpectedEOF}},
		{name: "a write is not repeated if fn passes over its row and fails later", answers: append([]answer{{nil, conflict, 0}}, answer{nil, conflict, 0}), fn: func(ctx context.Context, c *retrysql.Single) error {
			_ = query("INSERT RETURNING")(ctx, c)
			return query("SELECT 2")(ctx, c)
		}, log: "INSERT RETURNING", is: []error{retrysql.ErrStatementAmbiguous}},
		{name: "a write is not repeated if fn makes up an error of it", answers: one, fn: func(ctx context.Context, c *retrysql.Single) error {
			require.NoError(t, query("INSERT RETURNING")(ctx, c))
			return errBusiness
		}, log: "INSERT RETURNING", is: []error{retrysql.ErrStatementAmbiguous, errBusiness}},
		{name: "a second statement is refused, after a read", answers: one, fn: func(ctx context.Context, c *retrysql.Single) error {
			require.NoError(t, query("SELECT 1")(ctx, c))
			return query("SELECT 2")(ctx, c)
		}, log: "SELECT 1", text: "one statement"},
		{name: "a second statement with rows", fn: func(ctx context.Context, c *retrysql.Single) error {
			require.NoError(t, exec("SELECT 1")(ctx, c))
			return stmtErr(c.QueryContext(ctx, "SELECT 2"))
		}, log: "SELECT 1", text: "one statement"},
		{name: "a second statement that is prepared", fn: func(ctx context.Context, c *retrysql.Single) error {
			return stmtErr(c.PrepareContext(ctx, "SELECT 1"))
		}, text: "does not prepare"},
		{name: "an error of fn after a read is its own", fn: func(ctx context.Context, c *retrysql.Single) error {
			require.NoError(t, exec("SELECT 1")(ctx, c))
			return driver.ErrBadConn
		}, log: "SELECT 1", is: []error{driver.ErrBadConn}},
		{name: "a write without a row is an answer", fn: query("UPDATE RETURNING"), log: "UPDATE RETURNING", is: []error{sql.ErrNoRows}},
		{name: "a write that the server has undone is repeated", faults: faults{{Query: "INSERT", Err: conflict}}, fn: exec("INSERT"), log: "INSERT! INSERT"},
		{name: "a write that the server has undone is repeated while its rows are read", answers: cut(conflict), fn: query("INSERT RETURNING"), log: "INSERT RETURNING INSERT RETURNING"},
		{name: "a write declared idempotent is repeated", idempotent: true, faults: faults{{Query: "INSERT", Err: driver.ErrBadConn}}, fn: exec("INSERT"),
			log: "INSERT! INSERT"},
		{name: "a write declared idempotent says so if it may have taken effect and cannot be repeated", idempotent: true,
			faults: faults{{Query: "INSERT", Err: driver.ErrBadConn}, {Query: "INSERT", Err: duplicate}}, fn: exec("INSERT"),
			log: "INSERT! INSERT!", is: []error{retrysql.ErrStatementAmbiguous, duplicate}},
		{name: "a write that a timeout has cut is ambiguous", faults: faults{{Query: "INSERT", Err: context.DeadlineExceeded}}, fn: exec("INSERT"),
			log: "INSERT!", is: []error{retrysql.ErrStatementAmbiguous}},
		{name: "a write with an error that no rule knows is in doubt", faults: faults{{Query: "INSERT", Err: errors.New("ORA-03113: end-of-file")}}, fn: exec("INSERT"),
			log: "INSERT!", is: []error{retrysql.ErrStatementAmbiguous, retry.TerminalError}},
		{name: "unless database/sql has not sent it", faults: faults{{Query: "INSERT", Err: errors.New("sql: converting argument $1 type")}}, fn: exec("INSERT"),
			log: "INSERT!", text: "converting argument"},
		{name: "a constraint ends the run", faults: faults{{Query: "INSERT", Err: duplicate}}, fn: exec("INSERT"), log: "INSERT!", is: []error{duplicate}},
		{name: "nothing is repeated after a write that succeeded", fn: exec("INSERT", "SELECT 1"),
			log: "INSERT", is: []error{retrysql.ErrStatementAmbiguous, retry.TerminalError}},
		{name: "what was ambiguous stays so, whatever fn makes of it", faults: faults{{Query: "INSERT", Err: driver.ErrBadConn}},
			fn: func(ctx context.Context, c *retrysql.Single) error {
				_, _ = c.ExecContext(ctx, "INSERT")
				return conflict
			}, log: "INSERT!", is: []error{retrysql.ErrStatementAmbiguous, driver.ErrBadConn, conflict}},
		{name: "a connection that cannot be had is asked for again", faults: faults{{On: retrytest.Connect, Err: state("53300"), Times: 2}}, fn: exec("INSERT"),
			log: "connect! connect! INSERT"},
		{name: "an error that fn makes up ends the run", fn: func(context.Context, *retrysql.Single) error { return errBusiness }, is: []error{errBusiness}},
		{name: "rows that are left open do not hold the connection", answers: one, fn: func(ctx context.Context, c *retrysql.Single) error {
			return stmtErr(c.QueryContext(ctx, "SELECT 1"))
		}, log: "SELECT 1"},
		{name: "a row that is not scanned does not hold the connection", answers: one, fn: func(ctx context.Context, c *retrysql.Single) error {
			c.QueryRowContext(ctx, "SELECT 1")
			return nil
		}, log: "SELECT 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := idempotent(t, row.idempotent)
			db, log := openDB(t, &base{answers: row.answers}, row.faults)
			err := retrysql.Do(ctx, db, atOnce, row.fn)
			require.Equal(t, row.log, log())
			if row.text != "" {
				require.ErrorContains(t, err, row.text)
			} else if row.is == nil {
				require.NoError(t, err)
			}
			for _, is := range row.is {
				require.ErrorIs(t, err, is)
			}
			require.Equal(t, len(row.is) > 0 && row.is[0] == retrysql.ErrStatementAmbiguous, errors.Is(err, retrysql.ErrStatementAmbiguous))
		})
	}
	t.Run("its failures are of the phase autocommit", func(t *testing.T) {
		db, _ := openDB(t, &base{}, faults{{Query: "SELECT 1", Err: driver.ErrBadConn, Times: retrytest.Forever}})
		err := retrysql.Do(t.Context(), db, atOnce, exec("SELECT 1"))
		var run *retry.Error
		require.ErrorAs(t, err, &run)
		require.Equal(t, []string{"autocommit connection_lost", "autocommit connection_lost", "autocommit connection_lost"}, reasons(t, run.Outcome))
	})
	t.Run("the doubt of a run in fn is not repeated", func(t *testing.T) {
		inner := db{commits: []error{driver.ErrBadConn}}
		db, _ := openDB(t, &base{}, nil)
		err := retrysql.Do(t.Context(), db, atOnce, func(ctx context.Context, _ *retrysql.Single) error {
			return retrysql.Run(ctx, atOnce, nil, inner.begin, statements())
		})
		require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.Equal(t, []string{"begin", "exec", "commit!", "rollback"}, inner.log)
		var failed *retrysql.AttemptError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, retrysql.Statement, failed.Phase)
	})
	t.Run("a write declared idempotent is in doubt if no attempt is left to repeat it", func(t *testing.T) {
		db, _ := openDB(t, &base{}, faults{{Query: "INSERT", Err: driver.ErrBadConn}})
		err := retrysql.Do(retrysql.WithIdempotent(t.Context()), db, retry.Policy{MaxAttempts: 1}, exec("INSERT"))
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.ErrorIs(t, err, retrysql.ErrStatementAmbiguous)
	})
}

// errFull is SQLite's for a full disk.
var errFull = &sqliteError{13}

func TestAttemptErrorText(t *testing.T) {
	for want, e := range map[string]retrysql.AttemptError{
		"retrysql: statement: serialization_failure (40001): ERROR 40001": {
			Phase: retrysql.Statement, Verdict: retrysql.Judge(retrysql.Statement, conflict), Err: conflict},
		"retrysql: commit: connection_lost: driver: bad connection (the transaction may or may not be committed) (the probe failed: ERROR 40001) (the rollback failed: ERROR 23505)": {
			Phase: retrysql.Commit, Verdict: retrysql.Judge(retrysql.Commit, driver.ErrBadConn), Err: driver.ErrBadConn, ProbeErr: conflict, RollbackErr: duplicate},
		"retrysql: statement: insufficient funds (fn ignored: ERROR 40001)": {
			Phase: retrysql.Statement, Err: errBusiness, Swallowed: conflict},
		"retrysql: autocommit: connection_lost: driver: bad connection (the statement may or may not have taken effect)": {
			Phase: retrysql.Autocommit, Verdict: retrysql.Judge(retrysql.Autocommit, driver.ErrBadConn), Err: driver.ErrBadConn},
	} {
		require.EqualError(t, &e, want)
	}
}

// TestTheWaitsForAServerThatRestarts are those of the comment of DefaultPolicy.
func TestTheWaitsForAServerThatRestarts(t *testing.T) {
	p := retrysql.DefaultPolicy()
	p.MaxAttempts, p.Cap, p.Jitter = 16, 5*time.Second, retry.EqualJitter
	require.NoError(t, p.Validate())
	lo, hi := p.TotalWait()
	require.Equal(t, []time.Duration{17 * time.Second, 35 * time.Second}, []time.Duration{lo.Truncate(time.Second), hi.Truncate(time.Second)})
}

func stmtErr[T any](_ T, err error) error { return err }

// watched is a context that counts the functions that wait for its end.
type watched struct {
	context.Context
	waiting atomic.Int64
}

func (w *watched) AfterFunc(f func()) (stop func() bool) {
	w.waiting.Add(1)
	inner := context.AfterFunc(w.Context, f)
	return func() bool {
		w.waiting.Add(-1)
		return inner()
	}
}

func TestNothingIsLeftAtTheCallersContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	w := &watched{Context: ctx}
	db, _ := openDB(t, &base{}, faults{{On: retrytest.Begin, Err: state("53300")}, {Query: "update", Err: conflict}, {On: retrytest.Commit, Err: conflict}})
	p := atOnce
	p.MaxAttempts = 4
	require.NoError(t, retrysql.Tx(w, db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		return stmtErr(tx.ExecContext(ctx, "update"))
	}))
	require.Zero(t, w.waiting.Load())
}

func TestATransactionBeginsWithItsOptions(t *testing.T) {
	for _, row := range []struct {
		opts *retrysql.Options
		want driver.TxOptions
	}{
		{nil, driver.TxOptions{}},
		{&retrysql.Options{ReadOnly: true}, driver.TxOptions{ReadOnly: true}},
		{&retrysql.Options{Isolation: sql.LevelSerializable}, driver.TxOptions{Isolation: driver.IsolationLevel(sql.LevelSerializable)}},
	} {
		var got driver.TxOptions
		db, _ := openDB(t, &base{began: func(_ context.Context, opts driver.TxOptions) { got = opts }}, nil)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, row.opts, nothing))
		require.Equal(t, row.want, got)
	}
}

// TestABeginIsCanceledByWhoseContext: the error is the same.
func TestABeginIsCanceledByWhoseContext(t *testing.T) {
	t.Run("by the driver's, it is repeated", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		db, log := openDB(t, &base{}, faults{{On: retrytest.Begin, Err: context.Canceled}})
		require.NoError(t, retrysql.Tx(ctx, db, atOnce, nil, nothing))
		require.Equal(t, "begin! begin commit", log())
	})
	t.Run("by the caller's, it is not", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		db, log := openDB(t, &base{}, nil)
		cancel()
		err := retrysql.Tx(ctx, db, retry.Policy{MaxAttempts: 3}, nil, nothing)
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.Empty(t, log())
		var run *retry.Error
		require.ErrorAs(t, err, &run)
		require.Equal(t, "sql", run.Policy, "of a policy without a name")
	})
}

func TestTheContextOfATransactionEndsWithIt(t *testing.T) {
	for name, answer := range map[string]error{"committed": nil, "rolled back": errBusiness} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var began context.Context
			db, _ := openDB(t, &base{began: func(ctx context.Context, _ driver.TxOptions) { began = ctx }}, nil)
			err := retrysql.Tx(ctx, db, atOnce, nil, func(context.Context, *retrysql.Txn) error {
				require.NoError(t, began.Err())
				return answer
			})
			require.Equal(t, answer, err)
			require.ErrorIs(t, began.Err(), context.Canceled)
			require.NoError(t, ctx.Err())
		})
	}
}
