package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// cancelRequest is what pgx sends to PostgreSQL on a new connection after it has lost another.
const cancelRequest = "\x00\x00\x00\x10\x04\xd2\x16\x2e"

// inFlight returns a judge that finds a fault in the first commit, which the server receives, and drops requests to
// cancel it. before is called before the server receives it; nil means nothing.
func inFlight(d driver, how fault, before func()) func(request string) fault {
	var seen atomic.Bool
	return func(request string) fault {
		switch {
		case strings.Contains(request, d.commit) && seen.CompareAndSwap(false, true):
			if before != nil {
				before()
			}
			return how
		case strings.HasPrefix(request, cancelRequest):
			return loseRequest
		default:
			return pass
		}
	}
}

// slowCommits makes commits of inserts into PostgreSQL's ledger slow.
var slowCommits = []string{
	ledger,
	"create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.3); return null; end $$",
	"create constraint trigger slow after insert on ledger deferrable initially deferred for each row execute function slow()",
}

// enter and enterAlone are the fn of a Tx and of a Do.
func enter(ctx context.Context, tx *retrysql.Txn) error { return execute(ctx, tx, insert) }
func enterAlone(ctx context.Context, c *retrysql.Single) error {
	return stmtErr(c.ExecContext(ctx, insert))
}

func TestACommitThatIsUnderWayWhenItsConnectionIsLost(t *testing.T) {
	t.Run("is waited for by Options.Probe", func(t *testing.T) {
		onEach(t, postgresDrivers, slowCommits, func(t *testing.T, s site) {
			db, _ := s.behind(t, inFlight(s.driver, cutInFlight, nil))
			p, last := observed(4, nil)
			require.NoError(t, retrysql.Tx(t.Context(), db, p, &retrysql.Options{Probe: true}, enter))
			require.Equal(t, 1, last.Attempts)
			require.Equal(t, 1, number(t, s.db, entries))
		})
	})
	t.Run("is not seen by a query of PostgreSQL for the row, so that its answer does not count", func(t *testing.T) {
		onEach(t, postgresDrivers, slowCommits, func(t *testing.T, s site) {
			db, _ := s.behind(t, inFlight(s.driver, cutInFlight, nil))
			p, last := observed(4, nil)
			opts := &retrysql.Options{Confirm: func(context.Context) (bool, error) { return number(t, s.db, entries) > 0, nil }}
			err := retrysql.Tx(t.Context(), db, p, opts, enter)
			require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
			require.ErrorContains(t, err, "set Options.Probe")
			require.Equal(t, 1, last.Attempts)
			exec1(t, s.db, "do $$ begin lock table ledger; end $$") // after it
			require.Equal(t, 1, number(t, s.db, entries))
		})
	})
	t.Run("is waited for by FOR UPDATE on MariaDB", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, goMySQL, ledger)
		direct := s.db
		holder, err := direct.Conn(t.Context())
		require.NoError(t, err)
		defer holder.Close()
		do := func(query string) {
			_, err := holder.ExecContext(context.Background(), query)
			require.NoError(t, err)
		}
		db, _ := s.behind(t, inFlight(goMySQL, leaveInFlight, func() { // MariaDB rolls back a commit that waits if its client is gone
			do("backup stage start")
			do("backup stage block_commit") // so that commits take until its end
		}))
		p, last := observed(4, nil)
		const asking = "select count(*) from information_schema.processlist where info like 'select id %for update wait 60' and time_ms > 100"
		var releases sync.WaitGroup
		opts := &retrysql.Options{EndTimeout: 2 * time.Minute, Confirm: func(ctx context.Context) (bool, error) {
			var answered atomic.Bool
			releases.Go(func() {
				defer do("backup stage end")
				for !answered.Load() && number(t, direct, asking) == 0 {
					runtime.Gosched()
				}
			})
			var id int
			err := direct.QueryRowContext(ctx, "select id from ledger where id = 1 for update wait 60").Scan(&id)
			answered.Store(true)
			if errors.Is(err, sql.ErrNoRows) {
				return false, nil
			}
			return err == nil, err
		}}
		require.NoError(t, retrysql.Tx(t.Context(), db, p, opts, enter))
		releases.Wait()
		require.Equal(t, 1, last.Attempts)
		require.Equal(t, 1, number(t, direct, entries))
	})
}

// TestOptionsProbeOnAnotherServerFailsBeforeTheCommit: the option is for PostgreSQL only.
func TestOptionsProbeOnAnotherServerFailsBeforeTheCommit(t *testing.T) {
	t.Parallel()
	for _, db := range []*sql.DB{newSite(t, goMySQL).db, newSQLite(t, "wal")} {
		exec1(t, db, ledger)
		p, _ := observed(4, nil)
		err := retrysql.Tx(t.Context(), db, p, &retrysql.Options{Probe: true}, enter)
		require.ErrorContains(t, err, "retrysql: Options.Probe, which needs PostgreSQL 13 or later: ")
		require.Equal(t, retrysql.SyntaxOrAccess, retrysql.ReasonOf(err))
		require.Equal(t, 0, number(t, db, entries))
	}
}

// TestAProbeIsNotDeceivedByTheSearchPath: another schema, which comes first, has a function of the same name.
func TestAProbeIsNotDeceivedByTheSearchPath(t *testing.T) {
	onEach(t, postgresDrivers, []string{
		ledger, "create schema first",
		"create function first.pg_xact_status(xid8) returns text language sql as $$ select 'aborted'::text $$",
		"create function first.pg_current_xact_id() returns xid8 language sql as $$ select '3'::xid8 $$",
	}, func(t *testing.T, s site) {
		exec1(t, s.db, "alter database "+s.name+" set search_path = first, public, pg_catalog")
		db, _ := s.behind(t, at(s.commit, loseReply))
		p, last := observed(4, nil)
		require.NoError(t, retrysql.Tx(t.Context(), db, p, &retrysql.Options{Probe: true}, enter))
		require.Equal(t, 1, last.Attempts)
		require.Equal(t, 1, number(t, s.db, entries))
	})
}

// TestAProbeThatIsSharedAnswersForItsTransaction: another transaction commits while the first is cut.
func TestAProbeThatIsSharedAnswersForItsTransaction(t *testing.T) {
	onEach(t, postgresDrivers, []string{ledger}, func(t *testing.T, s site) {
		db, _ := s.behind(t, at(s.commit, loseRequest))
		p, last := observed(4, nil)
		opts := &retrysql.Options{Probe: true}
		require.NoError(t, retrysql.Tx(t.Context(), db, p, opts, func(ctx context.Context, tx *retrysql.Txn) error {
			if err := enter(ctx, tx); err != nil || retry.AttemptNumber(ctx) > 1 {
				return err
			}
			return retrysql.Tx(ctx, s.db, retry.Policy{}, opts, enter)
		}))
		require.Equal(t, 2, last.Attempts)
		require.Equal(t, 2, number(t, s.db, entries))
	})
}

// TestAStatementThatCommitsIsRefused on MariaDB, since it would commit the earlier work of fn, which the next attempt would
// repeat.
func TestAStatementThatCommitsIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, goMySQL, ledger, "create table other (id integer)")
	// tried executes the query after an insert, in a transaction that is repeated once, and returns the number of inserts.
	tried := func(db *sql.DB, query string) (inserts int, err error) {
		exec1(t, db, "delete from ledger")
		p, _ := observed(4, nil)
		err = retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			if err := execute(ctx, tx, insert, query); err != nil || retry.AttemptNumber(ctx) > 1 {
				return err
			}
			return retry.Transient(errors.New("a conflict"))
		})
		return number(t, db, entries), err
	}
	for _, query := range []string{
		"TRUNCATE other", "create table another (id integer)", "ANALYZE TABLE other", "/*!40000 commit */", "/*M!100100 commit */",
		"alter table other add n integer", "drop table other", "lock tables other write", "set autocommit = 1", "create or replace table other (id integer)",
		`insert into other (id) select 1 from dual where 'x' in ('it\'s; commit; x')`, "insert into other values (7) # ; commit", // in vain
	} {
		inserts, err := tried(s.db, query)
		require.ErrorIs(t, err, retrysql.ErrTransactionEnded, query)
		require.Zero(t, inserts, query)
	}
	for _, query := range []string{
		`insert into other (id) select 1 from dual where 'x' in ('it''s; commit; x')`, "create temporary table if not exists scratch (id integer)",
		"drop temporary table if exists scratch", "insert into other values (7) -- ; commit",
		"analyze select * from other", "analyze format=json update other set id = id + 1", "analyze insert into other values (8)", "xa recover",
	} {
		inserts, err := tried(s.db, query)
		require.NoError(t, err, query)
		require.Equal(t, 1, inserts, query)
	}
	t.Run("by Unwrap of a watched connection", func(t *testing.T) {
		err := retrysql.Tx(t.Context(), s.watched(t, s.address, s.name), retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			return stmtErr(tx.Unwrap().ExecContext(ctx, "truncate ledger"))
		})
		require.ErrorIs(t, err, retrysql.ErrTransactionEnded)
		require.Equal(t, 1, number(t, s.db, entries))
	})
	t.Run("unless the server is PostgreSQL", func(t *testing.T) {
		withPostgres(t, []string{ledger}, func(t *testing.T, _ driver, db *sql.DB) {
			for _, query := range []string{"create table another (id integer)", "truncate another"} {
				inserts, err := tried(db, query)
				require.NoError(t, err, query)
				require.Equal(t, 1, inserts, query)
			}
		})
	})
}

// TestAStatementsOwnTimeoutThatIsPassedOverIsNoDoubt: the drivers close the connection, so no COMMIT is sent.
func TestAStatementsOwnTimeoutThatIsPassedOverIsNoDoubt(t *testing.T) {
	sleeps := map[string]string{libpq.name: "select pg_sleep(60)", pgxStdlib.name: "select pg_sleep(60)", goMySQL.name: "select sleep(60)"}
	onEach(t, serverDrivers, []string{ledger}, func(t *testing.T, s site) {
		p, last := observed(4, nil)
		err := retrysql.Tx(t.Context(), s.db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			if err := enter(ctx, tx); err != nil || retry.AttemptNumber(ctx) > 1 {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			require.Error(t, execute(ctx, tx, sleeps[s.driver.name]))
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 2, last.Attempts)
		require.Equal(t, 1, number(t, s.db, entries))
	})
}

// TestDoAfterARestart: lib/pq notices that connections in the pool are dead only when it uses them, so a write is lost
// with each, in doubt. There is none if the pool has closed them before, as after SetConnMaxIdleTime.
func TestDoAfterARestart(t *testing.T) {
	const connections = 15
	for _, row := range []struct {
		driver
		closed bool // by the pool
		doubts int
	}{{libpq, false, connections}, {libpq, true, 0}, {pgxStdlib, false, 0}} {
		t.Run(fmt.Sprintf("%s, idle connections are closed: %v", row.name, row.closed), func(t *testing.T) {
			s, name := newPostgres(t)
			db := row.open(t, s.address, name)
			db.SetMaxIdleConns(connections)
			exec1(t, db, ledger)
			fill(t, db, connections)
			if row.closed {
				db.SetConnMaxIdleTime(time.Nanosecond)
				for db.Stats().OpenConnections > 0 {
					runtime.Gosched()
				}
			}
			require.NoError(t, s.restart(fast))
			doubts := 0
			for range connections {
				p, last := observed(4, nil)
				err := retrysql.Do(t.Context(), db, p, enterAlone)
				require.Equal(t, 1, last.Attempts)
				if err != nil {
					require.ErrorIs(t, err, retrysql.ErrStatementAmbiguous)
					doubts++
				}
			}
			require.Equal(t, row.doubts, doubts)
			require.Equal(t, connections-doubts, number(t, db, entries))
		})
	}
}

// TestAPauseThatPostgreSQLEnds: idle_in_transaction_session_timeout ends the session while fn works on something else.
// lib/pq reports a lost connection, pgx the code.
func TestAPauseThatPostgreSQLEnds(t *testing.T) {
	withPostgres(t, []string{ledger}, func(t *testing.T, d driver, db *sql.DB) {
		for _, opts := range []*retrysql.Options{nil, {Probe: true}} {
			before := number(t, db, entries)
			p, last := observed(4, nil)
			err := retrysql.Tx(t.Context(), db, p, opts, func(ctx context.Context, tx *retrysql.Txn) error {
				if err := enter(ctx, tx); err != nil || retry.AttemptNumber(ctx) > 1 {
					return err
				}
				if err := execute(ctx, tx, "set local idle_in_transaction_session_timeout = '20ms'"); err != nil {
					return err
				}
				for number(t, db, "select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'") > 0 {
					runtime.Gosched()
				}
				if opts == nil { // what follows meets it; otherwise the probe does
					return enter(ctx, tx)
				}
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, 2, last.Attempts)
			require.Equal(t, before+1, number(t, db, entries))
		}
	})
}
