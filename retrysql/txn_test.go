package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

// dbtx is what sqlc generates.
type dbtx interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	PrepareContext(context.Context, string) (*sql.Stmt, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

var (
	_ dbtx = (*retrysql.Txn)(nil)
	_ dbtx = (*retrysql.Conn)(nil)
)

func drain(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return rows.Err()
}

// TestWhichWayNoticesWhat checks the table in README.md: a conflict that fn ignores, for each way to send its
// statement.
func TestWhichWayNoticesWhat(t *testing.T) {
	scan := func(row *sql.Row) error { return row.Scan(new(int)) }
	inQuery := faults{{Query: "select", Err: deadlock}}
	afterRow := append([]answer{{[]int64{1}, deadlock, 0}}, one...)
	noRow := append([]answer{{nil, deadlock, 0}}, one...)
	for _, row := range []struct {
		name    string
		faults  faults
		answers []answer
		send    func(context.Context, *retrysql.Txn) error
		noticed bool // without Watch
	}{
		{"ExecContext", faults{{Query: "update", Err: deadlock}}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			return stmtErr(tx.ExecContext(ctx, "update"))
		}, true},
		{"QueryContext", inQuery, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			return stmtErr(tx.QueryContext(ctx, "select"))
		}, true},
		{"the rows of QueryContext", nil, afterRow, func(ctx context.Context, tx *retrysql.Txn) error {
			return drain(tx.QueryContext(ctx, "select"))
		}, true},
		{"QueryRowContext", inQuery, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			return scan(tx.QueryRowContext(ctx, "select"))
		}, true},
		{"the row of QueryRowContext", nil, noRow, func(ctx context.Context, tx *retrysql.Txn) error {
			return scan(tx.QueryRowContext(ctx, "select"))
		}, false},
		{"PrepareContext", inQuery, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			stmt, err := tx.PrepareContext(ctx, "select")
			require.NoError(t, err)
			return scan(stmt.QueryRowContext(ctx))
		}, false},
		{"Unwrap", inQuery, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			return drain(tx.Unwrap().QueryContext(ctx, "select"))
		}, false},
	} {
		for watched, around := range map[bool]func(driver.Connector) driver.Connector{false: plain, true: retrysql.Watch} {
			t.Run(fmt.Sprintf("%s, watched %v", row.name, watched), func(t *testing.T) {
				db, log := openDBWith(t, &base{answers: row.answers}, row.faults, around)
				attempts := 0
				err := retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
					if attempts++; attempts > 1 {
						return nil
					}
					err := row.send(ctx, tx)
					require.Error(t, err)
					_, err = tx.ExecContext(ctx, "insert")
					require.Equal(t, row.noticed || watched, errors.Is(err, deadlock), "what follows is refused: %v", err)
					return nil
				})
				require.NoError(t, err)
				require.Equal(t, row.noticed || watched, attempts == 2)
				require.Equal(t, !row.noticed && !watched, strings.Contains(log(), "insert"))
			})
		}
	}
}

func TestRowsThatAreLeftOpenHideNoConflict(t *testing.T) {
	for name, row := range map[string]struct {
		around func(driver.Connector) driver.Connector
		send   func(context.Context, *retrysql.Txn)
	}{
		"rows": {plain, func(ctx context.Context, tx *retrysql.Txn) {
			rows, err := tx.QueryContext(ctx, "select")
			require.NoError(t, err)
			require.True(t, rows.Next())
		}},
		"a row, watched":     {retrysql.Watch, func(ctx context.Context, tx *retrysql.Txn) { tx.QueryRowContext(ctx, "select") }},
		"of Unwrap, watched": {retrysql.Watch, func(ctx context.Context, tx *retrysql.Txn) { tx.Unwrap().QueryRowContext(ctx, "select") }},
	} {
		t.Run(name, func(t *testing.T) {
			db, log := openDBWith(t, &base{answers: append([]answer{{[]int64{1, 2}, deadlock, 0}}, one...)}, nil, row.around)
			require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				row.send(ctx, tx)
				return nil
			}))
			require.Equal(t, "begin select rollback begin select commit", log())
		})
	}
}

// deadlock is MySQL's, after which the session continues outside any transaction.
var deadlock = &mysqlError{Number: 1213}

func TestWhatFnHoldsSendsNothingAfterAConflict(t *testing.T) {
	for name, around := range map[string]func(driver.Connector) driver.Connector{"plain": plain, "watched": retrysql.Watch} {
		t.Run(name, func(t *testing.T) {
			db, log := openDBWith(t, &base{}, faults{{Query: "update", Err: deadlock}}, around)
			outside, err := db.PrepareContext(t.Context(), "outside")
			require.NoError(t, err)
			defer outside.Close()
			attempts := 0
			err = retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if attempts++; attempts > 1 {
					return nil
				}
				prepared, err := tx.PrepareContext(ctx, "prepared")
				require.NoError(t, err)
				known := tx.StmtContext(ctx, outside)
				require.Error(t, stmtErr(tx.ExecContext(ctx, "update")))
				require.Error(t, stmtErr(prepared.ExecContext(ctx)))
				require.Error(t, stmtErr(known.ExecContext(ctx)))
				require.Error(t, stmtErr(tx.Unwrap().ExecContext(ctx, "insert")))
				require.ErrorIs(t, stmtErr(tx.StmtContext(ctx, outside).ExecContext(ctx)), deadlock)
				require.ErrorIs(t, tx.QueryRowContext(ctx, "select").Scan(new(int)), deadlock)
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, "begin update! rollback begin commit", log())
		})
	}
}

func TestAWatchedConnectionRefusesWhatMySQLCommits(t *testing.T) {
	for version, refused := range map[string]bool{"8.0.36": true, "PostgreSQL 15": false, "": false} {
		t.Run(version, func(t *testing.T) {
			db, _ := openDBWith(t, &base{version: version}, nil, retrysql.Watch)
			err := retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				return stmtErr(tx.Unwrap().ExecContext(ctx, "TRUNCATE t"))
			})
			require.Equal(t, refused, errors.Is(err, retrysql.ErrTransactionEnded))
			require.Equal(t, !refused, err == nil)
		})
	}
}

func TestAConflictOfRowsIsSettledByTheNextStatement(t *testing.T) {
	db, log := openDB(t, &base{answers: append([]answer{{[]int64{1}, deadlock, 0}}, one...)}, nil)
	attempts := 0
	require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		if attempts++; attempts > 1 {
			return nil
		}
		prepared, err := tx.PrepareContext(ctx, "prepared")
		require.NoError(t, err)
		require.ErrorIs(t, drain(tx.QueryContext(ctx, "select")), deadlock)
		require.ErrorIs(t, stmtErr(tx.ExecContext(ctx, "update")), deadlock)
		require.Error(t, stmtErr(prepared.ExecContext(ctx)))
		return nil
	}))
	require.Equal(t, "begin select rollback begin commit", log())
}

func TestReadOnlyIsEnforcedOnADriverThatIgnoresIt(t *testing.T) {
	readOnly := &retrysql.Options{ReadOnly: true}
	for query, refused := range map[string]bool{
		"SELECT 1": false, "WITH a AS (SELECT 1) SELECT replace('a', 'b', 'c') FROM a": false, "EXPLAIN SELECT 1": false,
		"PRAGMA table_info(t)": false, "SELECT 'a; DELETE FROM t'": false, "/* INSERT */ SELECT 1": false,
		"INSERT INTO t VALUES (1)": true, "update t set n = 1": true, "SELECT 1; DELETE FROM t": true, "REPLACE INTO t VALUES (1)": true,
		"WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a": true, "WITH a AS (SELECT 1) UPDATE t SET n = 1": true,
		"WITH a AS (SELECT 1) DELETE FROM t": true, "WITH a AS (SELECT 1) REPLACE INTO t SELECT * FROM a": true,
		"CREATE TABLE t (n)": true, "DROP TABLE t": true, "ALTER TABLE t ADD m": true, "VACUUM": true, "REINDEX": true, "TRUNCATE t": true, "MERGE INTO t": true,
	} {
		for name, send := range map[string]func(context.Context, *retrysql.Txn) error{
			"Txn":    func(ctx context.Context, tx *retrysql.Txn) error { return stmtErr(tx.ExecContext(ctx, query)) },
			"Unwrap": func(ctx context.Context, tx *retrysql.Txn) error { return stmtErr(tx.Unwrap().ExecContext(ctx, query)) },
		} {
			t.Run(name+" "+query, func(t *testing.T) {
				db, log := openDBWith(t, &base{}, nil, retrysql.Watch)
				err := retrysql.Tx(t.Context(), db, atOnce, readOnly, send)
				if !refused {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, "Options.ReadOnly")
				require.Equal(t, "begin read only rollback", log())
			})
		}
	}
}

func TestATypedNilDatabaseIsAnError(t *testing.T) {
	var db *sql.DB
	fn := func(context.Context, *retrysql.Txn) error { panic("not run") }
	require.EqualError(t, retrysql.Tx(t.Context(), db, atOnce, nil, fn), "retrysql: db is nil")
	require.EqualError(t, retrysql.Tx(t.Context(), nil, atOnce, nil, fn), "retrysql: db is nil")
}

func TestHooksAllRun(t *testing.T) {
	db, log := openDB(t, &base{}, nil)
	var ran []string
	hook := func(name string) func(context.Context) { return func(context.Context) { ran = append(ran, name) } }
	require.PanicsWithValue(t, "a bug", func() {
		_ = retrysql.Tx(t.Context(), db, atOnce, nil, func(_ context.Context, tx *retrysql.Txn) error {
			tx.AfterCommit(hook("first"))
			tx.AfterCommit(func(context.Context) {
				tx.AfterCommit(hook("added by a hook"))
				panic("a bug")
			})
			tx.AfterCommit(hook("last"))
			return nil
		})
	})
	require.Equal(t, []string{"first", "last", "added by a hook"}, ran)
	require.PanicsWithValue(t, "retrysql: Txn.AfterCommit: hook is nil", func() {
		_ = retrysql.Tx(t.Context(), db, atOnce, nil, func(_ context.Context, tx *retrysql.Txn) error {
			tx.AfterCommit(nil)
			return nil
		})
	})
	require.Equal(t, "begin commit begin rollback", log())
}

func TestWhatIsNilIsAnError(t *testing.T) {
	var none context.Context
	db, log := openDB(t, &base{}, nil)
	nothing := func(context.Context, *retrysql.Txn) error { return nil }
	begin := func(context.Context) (retrysql.Transaction, error) { panic("not begun") }
	require.EqualError(t, retrysql.Tx(none, db, atOnce, nil, nothing), "retrysql: ctx is nil")
	require.EqualError(t, retrysql.Run(none, atOnce, nil, begin, func(context.Context, retrysql.Transaction) error { return nil }), "retrysql: ctx is nil")
	require.EqualError(t, retrysql.Do(none, db, atOnce, func(context.Context, *retrysql.Conn) error { return nil }), "retrysql: ctx is nil")
	require.Empty(t, log())
	require.EqualError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		return tx.Savepoint(ctx, nil)
	}), "retrysql: fn is nil")
	require.Equal(t, "begin rollback", log())
}

func TestAPanicThatFnRecoversFromIsNotCommitted(t *testing.T) {
	db, log := openDB(t, &base{}, nil)
	err := retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		defer func() { _ = recover() }()
		return tx.Savepoint(ctx, func(ctx context.Context) error {
			_, _ = tx.ExecContext(ctx, "insert")
			panic("a bug")
		})
	})
	require.ErrorContains(t, err, "the fn of a Savepoint did not return")
	require.Equal(t, "begin SAVEPOINT retrysql_1 insert rollback", log())
}

func TestATxInATxJoinsOrIsRefused(t *testing.T) {
	joins := &retrysql.Options{Join: true}
	exec := func(query string) func(context.Context, *retrysql.Txn) error {
		return func(ctx context.Context, tx *retrysql.Txn) error { return stmtErr(tx.ExecContext(ctx, query)) }
	}
	for _, row := range []struct {
		name         string
		outer, inner *retrysql.Options
		faults       faults
		fn           func(context.Context, *retrysql.Txn) error // of the inner one
		swallow      bool
		log, err     string
	}{
		{name: "it joins, and the outer one commits", inner: joins, fn: exec("inner"), log: "begin outer inner commit"},
		{name: "without Join it is refused", fn: exec("inner"), log: "begin outer rollback", err: "without Options.Join"},
		{name: "a conflict in it begins the outer one again", inner: joins, fn: exec("inner"), faults: faults{{Query: "inner", Err: conflict}},
			log: "begin outer inner! rollback begin outer inner commit"},
		{name: "also if it is ignored", inner: joins, fn: exec("inner"), faults: faults{{Query: "inner", Err: conflict}}, swallow: true,
			log: "begin outer inner! rollback begin outer inner commit"},
		{name: "an error of its own ends the outer one", inner: joins, fn: func(context.Context, *retrysql.Txn) error { return errBusiness },
			log: "begin outer rollback", err: errBusiness.Error()},
		{name: "also if it is ignored, since a part of it may be done", inner: joins, swallow: true,
			fn:  func(context.Context, *retrysql.Txn) error { return errBusiness },
			log: "begin outer rollback", err: errBusiness.Error()},
		{name: "the isolation must be the same", inner: &retrysql.Options{Join: true, Isolation: sql.LevelSerializable}, fn: exec("inner"),
			log: "begin outer rollback", err: "cannot join"},
		{name: "and is", inner: &retrysql.Options{Join: true, Isolation: sql.LevelSerializable}, outer: &retrysql.Options{Isolation: sql.LevelSerializable},
			fn: exec("inner"), log: "begin serializable outer inner commit"},
		{name: "one that may write cannot join one that is read-only", inner: joins, outer: &retrysql.Options{ReadOnly: true}, fn: exec("inner"),
			log: "begin read only outer rollback", err: "may write"},
	} {
		t.Run(row.name, func(t *testing.T) {
			db, log := openDB(t, &base{}, row.faults)
			err := retrysql.Tx(t.Context(), db, atOnce, row.outer, func(ctx context.Context, tx *retrysql.Txn) error {
				if err := exec("outer")(ctx, tx); err != nil {
					return err
				}
				err := retrysql.Tx(ctx, db, atOnce, row.inner, row.fn)
				if row.swallow {
					return nil
				}
				return err
			})
			require.Equal(t, row.log, log())
			if row.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.err)
		})
	}
	t.Run("Do on the same database is refused, and not on another or with another context", func(t *testing.T) {
		db, log := openDB(t, &base{}, nil)
		other, otherLog := openDB(t, &base{}, nil)
		write := func(ctx context.Context, c *retrysql.Conn) error { return stmtErr(c.ExecContext(ctx, "write")) }
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, _ *retrysql.Txn) error {
			err := retrysql.Do(ctx, db, atOnce, write)
			require.EqualError(t, err, "retrysql: Do is called in the fn of a Tx on the same database: use its Txn")
			require.NoError(t, retrysql.Do(ctx, other, atOnce, write))
			return retrysql.Do(t.Context(), db, atOnce, write)
		}))
		require.Equal(t, "begin write commit", log())
		require.Equal(t, "write", otherLog())
	})
	t.Run("its options and policy must be valid", func(t *testing.T) {
		for want, wrong := range map[string]struct {
			p    retry.Policy
			opts *retrysql.Options
		}{
			"Options.RollbackTimeout": {atOnce, &retrysql.Options{Join: true, RollbackTimeout: -1}},
			"Policy.TTL":              {retry.Policy{TTL: -1}, joins},
		} {
			db, log := openDB(t, &base{}, nil)
			require.ErrorContains(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, _ *retrysql.Txn) error {
				return retrysql.Tx(ctx, db, wrong.p, wrong.opts, exec("inner"))
			}), want)
			require.Equal(t, "begin rollback", log())
		}
	})
	t.Run("through another database", func(t *testing.T) {
		db, log := openDB(t, &base{}, nil)
		other, otherLog := openDB(t, &base{}, nil)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, _ *retrysql.Txn) error {
			return retrysql.Tx(ctx, other, atOnce, nil, func(ctx context.Context, _ *retrysql.Txn) error {
				return retrysql.Tx(ctx, db, atOnce, joins, exec("inner"))
			})
		}))
		require.Equal(t, "begin inner commit", log())
		require.Equal(t, "begin commit", otherLog())
	})
	t.Run("a panic in it that the outer one recovers from is not committed", func(t *testing.T) {
		db, log := openDB(t, &base{}, nil)
		require.Error(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, _ *retrysql.Txn) error {
			defer func() { _ = recover() }()
			return retrysql.Tx(ctx, db, atOnce, joins, func(context.Context, *retrysql.Txn) error { panic("a bug") })
		}))
		require.Equal(t, "begin rollback", log())
	})
	t.Run("one with a context from outside is a transaction of its own", func(t *testing.T) {
		db, log := openDB(t, &base{}, nil)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(context.Context, *retrysql.Txn) error {
			return retrysql.Tx(t.Context(), db, atOnce, nil, exec("own"))
		}))
		require.Equal(t, "begin begin own commit commit", log())
	})
}

func TestSavepoint(t *testing.T) {
	const sp, release, back = "SAVEPOINT retrysql_1", "RELEASE SAVEPOINT retrysql_1", "ROLLBACK TO SAVEPOINT retrysql_1"
	exec := func(query string) func(context.Context, *retrysql.Txn) error {
		return func(ctx context.Context, tx *retrysql.Txn) error { return stmtErr(tx.ExecContext(ctx, query)) }
	}
	pass := func(context.Context, *retrysql.Txn) error { return nil }
	for _, row := range []struct {
		name   string
		faults faults
		fn     func(context.Context, *retrysql.Txn) error
		first  string // attempt's log; a second attempt is without a failure
		again  bool
		is     error // of Savepoint in the first attempt
	}{
		{name: "a success", fn: exec("update"), first: sp + " update " + release},
		{name: "an error of fn undoes its part", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			_ = exec("update")(ctx, tx)
			return errBusiness
		}, first: sp + " update " + back + " " + release, is: errBusiness},
		{name: "a conflict that is undone does not count", fn: exec("update"), faults: faults{{Query: "update", Err: deadlock}},
			first: sp + " update! " + back + " " + release, is: deadlock},
		{name: "one that cannot be undone does", fn: exec("update"),
			faults: faults{{Query: "update", Err: deadlock}, {Query: "ROLLBACK TO", Err: errNoSavepoint}},
			first:  sp + " update! " + back + "!", again: true, is: deadlock},
		{name: "also if it was not noticed, but only returned", fn: func(context.Context, *retrysql.Txn) error { return deadlock },
			faults: faults{{Query: "ROLLBACK TO", Err: errNoSavepoint}},
			first:  sp + " " + back + "!", again: true, is: deadlock},
		{name: "a conflict that fn passes over is not released", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			_ = exec("update")(ctx, tx)
			return nil
		}, faults: faults{{Query: "update", Err: deadlock}}, first: sp + " update!", again: true, is: deadlock},
		{name: "a conflict at SAVEPOINT", fn: pass, faults: faults{{Query: "SAVEPOINT", Err: deadlock}}, first: sp + "!", again: true, is: deadlock},
		{name: "a conflict at RELEASE", fn: pass, faults: faults{{Query: "RELEASE", Err: deadlock}}, first: sp + " " + release + "!", again: true, is: deadlock},
	} {
		for name, around := range map[string]func(driver.Connector) driver.Connector{"": plain, ", watched": retrysql.Watch} {
			t.Run(row.name+name, func(t *testing.T) {
				db, log := openDBWith(t, &base{}, row.faults, around)
				attempts := 0
				err := retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
					if attempts++; attempts > 1 {
						return nil
					}
					err := tx.Savepoint(ctx, func(ctx context.Context) error { return row.fn(ctx, tx) })
					require.ErrorIs(t, err, row.is)
					return nil // whatever it was
				})
				require.NoError(t, err)
				if row.again {
					require.Equal(t, "begin "+row.first+" rollback begin commit", log())
				} else {
					require.Equal(t, "begin "+row.first+" commit", log())
				}
			})
		}
	}
	t.Run("a conflict that is undone does not count on a watched database, even if fn has the *sql.Tx", func(t *testing.T) {
		db, log := openDBWith(t, &base{}, faults{{Query: "update", Err: deadlock}}, retrysql.Watch)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			err := tx.Savepoint(ctx, func(ctx context.Context) error {
				tx.Unwrap()
				return exec("update")(ctx, tx)
			})
			require.Equal(t, deadlock, err)
			return nil
		}))
		require.Equal(t, "begin "+sp+" update! "+back+" "+release+" commit", log())
	})
	t.Run("a joined Tx that failed in one does not end the outer one", func(t *testing.T) {
		db, log := openDB(t, &base{}, nil)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			err := tx.Savepoint(ctx, func(ctx context.Context) error {
				return retrysql.Tx(ctx, db, atOnce, &retrysql.Options{Join: true}, func(context.Context, *retrysql.Txn) error { return errBusiness })
			})
			require.Equal(t, errBusiness, err)
			return exec("update")(ctx, tx)
		}))
		require.Equal(t, "begin "+sp+" "+back+" "+release+" update commit", log())
	})
}

// errNoSavepoint is MySQL's error after a deadlock.
var errNoSavepoint = &mysqlError{Number: 1305}

func TestHooksRunOnceAfterACertainCommit(t *testing.T) {
	lost := faults{{On: retrytest.Commit, Err: driver.ErrBadConn}}
	committed := func(yes bool, err error) *retrysql.Options {
		return &retrysql.Options{Committed: func(context.Context) (bool, error) { return yes, err }}
	}
	for _, row := range []struct {
		name   string
		faults faults
		opts   *retrysql.Options
		fnErr  error
		ran    []string
	}{
		{name: "after a commit", ran: []string{"1a", "1b"}},
		{name: "of the attempt that was committed alone", faults: faults{{On: retrytest.Commit, Err: conflict}}, ran: []string{"2a", "2b"}},
		{name: "not for a commit whose outcome is not known", faults: lost},
		{name: "nor if the probe does not know", faults: lost, opts: committed(false, errBusiness)},
		{name: "for one that the probe has found", faults: lost, opts: committed(true, nil), ran: []string{"1a", "1b"}},
		{name: "for the one after it, of an idempotent transaction", faults: lost, opts: &retrysql.Options{Idempotent: true}, ran: []string{"2a", "2b"}},
		{name: "not after an error of fn", fnErr: errBusiness},
	} {
		t.Run(row.name, func(t *testing.T) {
			db, log := openDB(t, &base{}, row.faults)
			var ran []string
			attempts := 0
			_ = retrysql.Tx(t.Context(), db, atOnce, row.opts, func(ctx context.Context, tx *retrysql.Txn) error {
				attempts++
				for _, name := range []string{"a", "b"} {
					tx.AfterCommit(func(ctx context.Context) {
						require.NoError(t, ctx.Err())
						require.Contains(t, log(), "commit")
						ran = append(ran, fmt.Sprint(attempts, name))
					})
				}
				_ = tx.Savepoint(ctx, func(context.Context) error {
					tx.AfterCommit(func(context.Context) { t.Error("a savepoint that was undone") })
					return errBusiness
				})
				return row.fnErr
			})
			require.Equal(t, row.ran, ran)
		})
	}
}

func TestWatchLeavesADatabaseAsItIs(t *testing.T) {
	db, log := openDBWith(t, &base{answers: one}, faults{{Query: "later", Err: conflict}}, retrysql.Watch)
	require.NoError(t, db.PingContext(t.Context()))
	rows, err := db.QueryContext(t.Context(), "select")
	require.NoError(t, err)
	columns, err := rows.ColumnTypes()
	require.NoError(t, err)
	require.Equal(t, "value", columns[0].Name())
	require.NoError(t, rows.Close())
	_, err = db.ExecContext(t.Context(), "later")
	require.ErrorIs(t, err, conflict)
	_, err = db.ExecContext(t.Context(), "COMMIT")
	require.NoError(t, err, "it is not a transaction of Tx")
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "insert")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.Equal(t, "select later! COMMIT begin insert commit", log())
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Raw(func(conn any) error {
		require.NotNil(t, conn.(interface{ Unwrap() driver.Conn }).Unwrap())
		return nil
	}))
	require.NoError(t, c.Close())
	t.Run("another transaction in fn is not noted", func(t *testing.T) {
		db, log := openDBWith(t, &base{}, faults{{Query: "other", Err: conflict}}, retrysql.Watch)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, _ *retrysql.Txn) error {
			other, err := db.BeginTx(ctx, nil)
			require.NoError(t, err)
			defer other.Rollback()
			require.Error(t, stmtErr(other.ExecContext(ctx, "other")))
			return nil
		}))
		require.Equal(t, "begin begin other! rollback commit", log())
	})
}

// bare is a driver without any of the newer interfaces.
type bare struct{}

func (bare) Open(string) (driver.Conn, error)             { return bare{}, nil }
func (bare) Begin() (driver.Tx, error)                    { return bare{}, nil }
func (bare) Commit() error                                { return nil }
func (bare) Rollback() error                              { return nil }
func (bare) Close() error                                 { return nil }
func (bare) Prepare(string) (driver.Stmt, error)          { return bare{}, nil }
func (bare) NumInput() int                                { return -1 }
func (bare) Exec(v []driver.Value) (driver.Result, error) { return driver.RowsAffected(len(v)), nil }
func (bare) Query([]driver.Value) (driver.Rows, error)    { return bare{}, nil }
func (bare) Columns() []string                            { return []string{"value"} }
func (bare) Next([]driver.Value) error                    { return io.EOF }
func (bare) ColumnConverter(int) driver.ValueConverter    { return driver.Int32 }

// contexts is a driver with a connector.
type contexts struct{ driver.Driver }

func (contexts) OpenConnector(name string) (driver.Connector, error) {
	if name == "bad" {
		return nil, errBusiness
	}
	return &base{driver: contexts{}}, nil
}

func init() {
	sql.Register("bare", bare{})
	sql.Register("contexts", contexts{})
}

func TestOpenIsThatOfSQL(t *testing.T) {
	_, err := retrysql.Open("no such driver", "")
	require.ErrorContains(t, err, "unknown driver")
	db, err := retrysql.Open("bare", "")
	require.NoError(t, err)
	defer db.Close()
	require.Equal(t, bare{}, db.Driver())
	for name, refused := range map[string]bool{"good": false, "bad": true} {
		db, err := retrysql.Open("contexts", name)
		require.Equal(t, refused, err != nil)
		if !refused {
			require.NoError(t, db.PingContext(t.Context()))
			require.NoError(t, db.Close())
		}
	}
	require.NoError(t, db.PingContext(t.Context()))
	work := func(ctx context.Context, tx *retrysql.Txn) error {
		result, err := tx.ExecContext(ctx, "update", 1, time.Second)
		require.NoError(t, err)
		n, err := result.RowsAffected()
		require.NoError(t, err)
		require.Equal(t, int64(2), n)
		require.ErrorContains(t, stmtErr(tx.ExecContext(ctx, "update", sql.Named("a", 1))), "Named Parameters")
		rows, err := tx.QueryContext(ctx, "select")
		require.NoError(t, err)
		types, err := rows.ColumnTypes()
		require.NoError(t, err)
		require.Equal(t, "", types[0].DatabaseTypeName())
		require.False(t, rows.NextResultSet())
		return rows.Close()
	}
	require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, work))
	err = retrysql.Tx(t.Context(), db, atOnce, &retrysql.Options{Isolation: sql.LevelSerializable}, work)
	require.ErrorContains(t, err, "isolation level")
}
