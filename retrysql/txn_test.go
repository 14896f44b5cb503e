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
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrysql/allerrors"
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
	_ dbtx = (*retrysql.Single)(nil)
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
		noticed bool // without package allerrors
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
		{"PrepareContext", nil, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			return stmtErr(tx.PrepareContext(ctx, "bad"))
		}, true},
		{"the *sql.Stmt of PrepareContext", inQuery, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			stmt, err := tx.PrepareContext(ctx, "select")
			require.NoError(t, err)
			return scan(stmt.QueryRowContext(ctx))
		}, false},
		{"Unwrap", inQuery, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			return drain(tx.Unwrap().QueryContext(ctx, "select"))
		}, false},
	} {
		for name, around := range bothWays {
			watched := name == "watched"
			t.Run(row.name+", "+name, func(t *testing.T) {
				db, log := openDB(t, &base{answers: row.answers, badErr: deadlock}, row.faults, around)
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

// TestAConfirmThatFoundNothing is believed if the server is certainly not PostgreSQL.
func TestAConfirmThatFoundNothing(t *testing.T) {
	for name, row := range map[string]struct {
		version  string
		faults   faults
		believed bool
	}{
		"on PostgreSQL":                            {version: "PostgreSQL 15.4 on x86_64"},
		"on PostgreSQL that is overloaded first":   {version: "PostgreSQL 15.4", faults: faults{{Query: "VERSION", Err: state("53300")}}},
		"on PostgreSQL that does not answer first": {version: "PostgreSQL 15.4", faults: faults{{Query: "VERSION", Lost: true}}},
		"on one that may not be asked":             {faults: faults{{Query: "VERSION", Err: state("28P01")}}},
		"on MariaDB":                               {version: "10.11.6-MariaDB", believed: true},
		"on CockroachDB":                           {version: "CockroachDB CCL v23", believed: true},
		"on SQLite":                                {faults: faults{{Query: "VERSION", Err: &sqliteError{1}}}, believed: true},
		"on SQL Server":                            {faults: faults{{Query: "VERSION", Err: mssqlError{Number: 195}}}, believed: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			db, log := openDB(t, &base{version: row.version}, append(faults{{On: retrytest.Commit, Lost: true}}, row.faults...))
			opts := &retrysql.Options{Confirm: func(context.Context) (bool, error) { return false, nil }}
			err := retrysql.Tx(t.Context(), db, atOnce, opts, nothing)
			require.Equal(t, row.believed, err == nil, "%v", err)
			require.Equal(t, !row.believed, errors.Is(err, retrysql.ErrCommitAmbiguous))
			require.Equal(t, row.believed, strings.Count(log(), "begin") == 2)
		})
	}
	t.Run("without a pool", func(t *testing.T) {
		db, _ := openDB(t, &base{}, faults{{On: retrytest.Commit, Lost: true}})
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		opts := &retrysql.Options{Confirm: func(context.Context) (bool, error) { return false, nil }}
		err = retrysql.Tx(t.Context(), conn, atOnce, opts, nothing)
		require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.ErrorContains(t, err, "no other connection")
	})
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
		"a row, watched":     {allerrors.Connector, func(ctx context.Context, tx *retrysql.Txn) { tx.QueryRowContext(ctx, "select") }},
		"of Unwrap, watched": {allerrors.Connector, func(ctx context.Context, tx *retrysql.Txn) { tx.Unwrap().QueryRowContext(ctx, "select") }},
	} {
		t.Run(name, func(t *testing.T) {
			db, log := openDB(t, &base{answers: append([]answer{{[]int64{1, 2}, deadlock, 0}}, one...)}, nil, row.around)
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
	for name, around := range bothWays {
		t.Run(name, func(t *testing.T) {
			db, log := openDB(t, &base{}, faults{{Query: "update", Err: deadlock}}, around)
			outside, err := db.PrepareContext(t.Context(), "outside")
			require.NoError(t, err)
			defer outside.Close()
			err = retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if retry.AttemptNumber(ctx) > 1 {
					return nil
				}
				prepared, err := tx.PrepareContext(ctx, "prepared")
				require.NoError(t, err)
				known := tx.Unwrap().StmtContext(ctx, outside)
				require.Error(t, stmtErr(tx.ExecContext(ctx, "update")))
				require.Error(t, stmtErr(prepared.ExecContext(ctx)))
				require.Error(t, stmtErr(known.ExecContext(ctx)))
				require.Error(t, stmtErr(tx.Unwrap().ExecContext(ctx, "insert")))
				require.ErrorIs(t, tx.QueryRowContext(ctx, "select").Scan(new(int)), deadlock)
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, "begin update! rollback begin commit", log())
		})
	}
}

func TestAConflictOfRowsIsSettledByTheNextStatement(t *testing.T) {
	db, log := openDB(t, &base{answers: append([]answer{{[]int64{1}, deadlock, 0}}, one...)}, nil)
	require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		if retry.AttemptNumber(ctx) > 1 {
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

// TestAHookEndsByItself: the caller may be gone, and the hook has as long as a rollback.
func TestAHookEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Hour)
		db, _ := openDB(t, &base{commit: cancel}, nil)
		hooks := 0
		hook := func(ctx context.Context) {
			require.NoError(t, ctx.Err())
			require.Equal(t, "value", ctx.Value(key{}))
			begun := time.Now()
			<-ctx.Done()
			require.Equal(t, 2*time.Second, time.Since(begun))
			hooks++
		}
		require.NoError(t, retrysql.Tx(ctx, db, atOnce, &retrysql.Options{EndTimeout: 2 * time.Second}, func(_ context.Context, tx *retrysql.Txn) error {
			tx.AfterCommit(hook)
			tx.AfterCommit(hook)
			return nil
		}))
		require.Equal(t, 2, hooks)
	})
}

func TestHooksRunOnceAfterACertainCommit(t *testing.T) {
	lost := faults{{On: retrytest.Commit, Err: driver.ErrBadConn}}
	committed := func(yes bool, err error) *retrysql.Options {
		return &retrysql.Options{Confirm: func(context.Context) (bool, error) { return yes, err }}
	}
	for _, row := range []struct {
		name   string
		faults faults
		opts   *retrysql.Options
		mark   bool
		fnErr  error
		ran    []string
	}{
		{name: "after a commit", ran: []string{"1a", "1b"}},
		{name: "of the attempt that was committed alone", faults: faults{{On: retrytest.Commit, Err: conflict}}, ran: []string{"2a", "2b"}},
		{name: "none for a commit whose outcome is not known", faults: lost},
		{name: "none if the probe does not know", faults: lost, opts: committed(false, errBusiness)},
		{name: "for one that the probe has found", faults: lost, opts: committed(true, nil), ran: []string{"1a", "1b"}},
		{name: "for the one after it, of an idempotent transaction", faults: lost, mark: true, ran: []string{"2a", "2b"}},
		{name: "none after an error of fn", fnErr: errBusiness},
	} {
		t.Run(row.name, func(t *testing.T) {
			db, log := openDB(t, &base{}, row.faults)
			var ran []string
			attempts := 0
			_ = retrysql.Tx(idempotent(t, row.mark), db, atOnce, row.opts, func(ctx context.Context, tx *retrysql.Txn) error {
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

func TestBadArgumentsAreRefusedBeforeAnythingIsDone(t *testing.T) {
	var (
		ctx  = t.Context()
		none context.Context
		d    db
		bad  = retry.Policy{MaxAttempts: -2}
		opts = &retrysql.Options{EndTimeout: -1}
	)
	db, log := openDB(t, &base{}, nil)
	_, noFn := retrysql.TxValue[int](ctx, db, atOnce, nil, nil)
	for _, row := range []struct {
		err  error
		want string
	}{
		{retrysql.Tx(none, db, atOnce, nil, nothing), "retrysql: ctx is nil"},
		{retrysql.Tx(ctx, nil, atOnce, nil, nothing), "retrysql: db is nil"},
		{retrysql.Tx(ctx, (*sql.DB)(nil), atOnce, nil, nothing), "retrysql: db is nil"},
		{retrysql.Tx(ctx, db, atOnce, nil, nil), "retrysql: fn is nil"},
		{noFn, "retrysql: fn is nil"},
		{retrysql.Do(none, db, atOnce, update), "retrysql: ctx is nil"},
		{retrysql.Do(ctx, nil, atOnce, update), "retrysql: db is nil"},
		{retrysql.Do(ctx, db, atOnce, nil), "retrysql: fn is nil"},
		{retrysql.Run(none, atOnce, nil, d.begin, statements()), "retrysql: ctx is nil"},
		{retrysql.Run(ctx, atOnce, nil, nil, statements()), "retrysql: begin is nil"},
		{retrysql.Run[*tx](ctx, atOnce, nil, d.begin, nil), "retrysql: fn is nil"},
		{retrysql.Run(ctx, retry.Policy{TTL: -1}, nil, d.begin, statements()), "retry: Policy.TTL -1ns is negative"},
		{retrysql.Run(ctx, atOnce, opts, d.begin, statements()), "retrysql: Options.EndTimeout -1ns is negative"},
		{retrysql.Run(ctx, bad, opts, d.begin, statements()),
			"retrysql: Options.EndTimeout -1ns is negative; retry: Policy.MaxAttempts -2 is below -1, which is Unlimited"},
		{opts.Validate(), "retrysql: Options.EndTimeout -1ns is negative"},
	} {
		require.EqualError(t, row.err, row.want)
		require.NotErrorAs(t, row.err, new(*retry.Error))
	}
	require.ErrorAs(t, opts.Validate(), new(*retry.FieldError))
	require.Empty(t, d.log)
	require.Empty(t, log())
	require.EqualError(t, retrysql.Tx(ctx, db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error { return tx.Savepoint(ctx, nil) }), "retrysql: fn is nil")
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

func TestATxInATx(t *testing.T) {
	// both works in the caller's transaction if there is one, as the comment of TxnFromContext says.
	both := func(ctx context.Context, db *sql.DB, fn func(context.Context, *retrysql.Txn) error) error {
		if tx, ok := retrysql.TxnFromContext(ctx, db); ok {
			return fn(ctx, tx)
		}
		return retrysql.Tx(ctx, db, atOnce, nil, fn)
	}
	for name, row := range map[string]struct {
		inner    func(context.Context, *sql.DB, func(context.Context, *retrysql.Txn) error) error
		faults   faults
		log, err string
	}{
		"is refused on the same database": {inner: func(ctx context.Context, db *sql.DB, fn func(context.Context, *retrysql.Txn) error) error {
			return retrysql.Tx(ctx, db, atOnce, nil, fn)
		}, log: "begin outer rollback", err: "use TxnFromContext"},
		"works in it, and the outer one commits": {inner: both, log: "begin outer inner commit"},
		"a conflict in it begins the outer one again": {inner: both, faults: faults{{Query: "inner", Err: conflict}},
			log: "begin outer inner! rollback begin outer inner commit"},
	} {
		t.Run(name, func(t *testing.T) {
			db, log := openDB(t, &base{}, row.faults)
			err := both(t.Context(), db, func(ctx context.Context, tx *retrysql.Txn) error {
				return errors.Join(sends("outer")(ctx, tx), row.inner(ctx, db, sends("inner")))
			})
			require.Equal(t, row.log, log())
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.err)
			}
		})
	}
	t.Run("Do on the same database is refused, and not on another or with another context", func(t *testing.T) {
		db, log := openDB(t, &base{}, nil)
		other, otherLog := openDB(t, &base{}, nil)
		write := func(ctx context.Context, c *retrysql.Single) error { return stmtErr(c.ExecContext(ctx, "write")) }
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, _ *retrysql.Txn) error {
			err := retrysql.Do(ctx, db, atOnce, write)
			require.EqualError(t, err, "retrysql: Do is called in the fn of a Tx on the same database: use its Txn")
			require.NoError(t, retrysql.Do(ctx, other, atOnce, write))
			return retrysql.Do(t.Context(), db, atOnce, write)
		}))
		require.Equal(t, "begin write commit", log())
		require.Equal(t, "write", otherLog())
	})
	t.Run("through another database", func(t *testing.T) {
		db, log := openDB(t, &base{}, nil)
		other, otherLog := openDB(t, &base{}, nil)
		require.NoError(t, both(t.Context(), db, func(ctx context.Context, _ *retrysql.Txn) error {
			return both(ctx, other, func(ctx context.Context, _ *retrysql.Txn) error { return both(ctx, db, sends("inner")) })
		}))
		require.Equal(t, "begin inner commit", log())
		require.Equal(t, "begin commit", otherLog())
	})
	t.Run("one with a context from outside is a transaction of its own", func(t *testing.T) {
		db, log := openDB(t, &base{}, nil)
		require.NoError(t, both(t.Context(), db, func(context.Context, *retrysql.Txn) error { return both(t.Context(), db, sends("own")) }))
		require.Equal(t, "begin begin own commit commit", log())
	})
	t.Run("after the end of fn its context belongs to no transaction", func(t *testing.T) {
		db, log := openDB(t, &base{}, nil)
		require.NoError(t, both(t.Context(), db, func(ctx context.Context, tx *retrysql.Txn) error {
			tx.AfterCommit(func(context.Context) { require.NoError(t, both(ctx, db, sends("later"))) })
			return nil
		}))
		require.Equal(t, "begin commit begin later commit", log())
	})
	for name, end := range map[string]func() error{"an error": func() error { return conflict }, "a panic": func() error { panic("a bug") }} {
		t.Run("after "+name+" its context belongs to no transaction", func(t *testing.T) {
			db, _ := openDB(t, &base{}, nil)
			var old context.Context
			_ = func() (err error) {
				defer func() { _ = recover() }()
				return both(t.Context(), db, func(ctx context.Context, _ *retrysql.Txn) error { old = ctx; return end() })
			}()
			_, ok := retrysql.TxnFromContext(old, db)
			require.False(t, ok)
		})
	}
	t.Run("on another database, its conflict that gave up is an error of fn's own", func(t *testing.T) {
		for name, answers := range map[string][]answer{"alone": nil, "after a row, whose error is not seen": one} {
			db, log := openDB(t, &base{answers: answers}, nil)
			other, otherLog := openDB(t, &base{}, faults{{Query: "inner", Err: conflict, Times: retrytest.Forever}})
			err := both(t.Context(), db, func(ctx context.Context, tx *retrysql.Txn) error {
				if answers != nil {
					require.NoError(t, tx.QueryRowContext(ctx, "select").Scan(new(int)))
				}
				return both(ctx, other, sends("inner"))
			})
			require.ErrorIs(t, err, retry.AttemptsExhausted)
			require.Equal(t, 1, strings.Count(log(), "begin"), name)
			require.Equal(t, 3, strings.Count(otherLog(), "begin"))
			var run *retry.Error
			require.ErrorAs(t, err, &run)
			require.Equal(t, 3, run.Attempts, "it is the inner one's")
		}
	})
	t.Run("a conflict of a row that only its Scan returns repeats it", func(t *testing.T) {
		db, log := openDB(t, &base{answers: append([]answer{{nil, conflict, 0}}, one...)}, nil)
		require.NoError(t, both(t.Context(), db, func(ctx context.Context, tx *retrysql.Txn) error {
			return tx.QueryRowContext(ctx, "select").Scan(new(int))
		}))
		require.Equal(t, "begin select rollback begin select commit", log())
	})
}

func TestSavepoint(t *testing.T) {
	const sp, release, back = "SAVEPOINT retrysql_1", "RELEASE SAVEPOINT retrysql_1", "ROLLBACK TO SAVEPOINT retrysql_1"
	for _, row := range []struct {
		name   string
		faults faults
		fn     func(context.Context, *retrysql.Txn) error
		first  string // attempt's log; a second attempt is without a failure
		again  bool
		is     error // of Savepoint in the first attempt
	}{
		{name: "a success", fn: sends("update"), first: sp + " update " + release},
		{name: "an error of fn undoes its part", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			_ = sends("update")(ctx, tx)
			return errBusiness
		}, first: sp + " update " + back + " " + release, is: errBusiness},
		{name: "a conflict that is undone does not count", fn: sends("update"), faults: faults{{Query: "update", Err: deadlock}},
			first: sp + " update! " + back + " " + release, is: deadlock},
		{name: "one that cannot be undone does", fn: sends("update"),
			faults: faults{{Query: "update", Err: deadlock}, {Query: "ROLLBACK TO", Err: errNoSavepoint}},
			first:  sp + " update! " + back + "!", again: true, is: deadlock},
		{name: "one that was not noticed, but only returned, does", fn: func(context.Context, *retrysql.Txn) error { return deadlock },
			faults: faults{{Query: "ROLLBACK TO", Err: errNoSavepoint}},
			first:  sp + " " + back + "!", again: true, is: deadlock},
		{name: "a conflict that fn passes over is not released", fn: func(ctx context.Context, tx *retrysql.Txn) error {
			_ = sends("update")(ctx, tx)
			return nil
		}, faults: faults{{Query: "update", Err: deadlock}}, first: sp + " update!", again: true, is: deadlock},
		{name: "a conflict at SAVEPOINT", fn: nothing, faults: faults{{Query: "SAVEPOINT", Err: deadlock}}, first: sp + "!", again: true, is: deadlock},
		{name: "a conflict at RELEASE", fn: nothing, faults: faults{{Query: "RELEASE", Err: deadlock}}, first: sp + " " + release + "!", again: true, is: deadlock},
	} {
		for name, around := range bothWays {
			t.Run(row.name+", "+name, func(t *testing.T) {
				db, log := openDB(t, &base{}, row.faults, around)
				err := retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
					if retry.AttemptNumber(ctx) > 1 {
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
		db, log := openDB(t, &base{}, faults{{Query: "update", Err: deadlock}}, allerrors.Connector)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			err := tx.Savepoint(ctx, func(ctx context.Context) error {
				tx.Unwrap()
				return sends("update")(ctx, tx)
			})
			require.Equal(t, deadlock, err)
			return nil
		}))
		require.Equal(t, "begin "+sp+" update! "+back+" "+release+" commit", log())
	})
	t.Run("what cannot be released is not committed", func(t *testing.T) {
		db, log := openDB(t, &base{}, faults{{Query: "RELEASE", Err: errNoSavepoint}})
		err := retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			require.ErrorIs(t, tx.Savepoint(ctx, func(context.Context) error { return nil }), errNoSavepoint)
			return nil // whatever it was
		})
		require.ErrorIs(t, err, errNoSavepoint)
		require.NotContains(t, log(), "commit")
	})
	t.Run("rows that fn leaves open are closed first, and the caller's are not", func(t *testing.T) {
		db, log := openDB(t, &base{answers: []answer{{[]int64{1, 2}, io.EOF, 0}}}, nil)
		require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			outer, err := tx.QueryContext(ctx, "outer")
			require.NoError(t, err)
			require.True(t, outer.Next())
			for _, end := range []error{errBusiness, nil} {
				var inner *sql.Rows
				require.Equal(t, end, tx.Savepoint(ctx, func(ctx context.Context) (err error) {
					inner, err = tx.QueryContext(ctx, "inner")
					require.NoError(t, err)
					return end
				}))
				require.False(t, inner.Next(), "it is closed")
			}
			require.True(t, outer.Next())
			return outer.Close()
		}))
		require.Contains(t, log(), "inner "+back)
	})
}

// errNoSavepoint is MySQL's error after a deadlock.
var errNoSavepoint = &mysqlError{Number: 1305}
