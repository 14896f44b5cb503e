package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

// TestAnAnswerIsASuccessOfTheRun: the caller gets the plain error, its observer a success, and the budget a deposit.
func TestAnAnswerIsASuccessOfTheRun(t *testing.T) {
	reading := fmt.Errorf("config: %w", io.ErrUnexpectedEOF)
	dialing := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, row := range []struct {
		name    string
		err     error // of the attempt's one statement, and of fn
		own     bool  // of fn only
		answer  bool
		attempt int // made; 0 means 1
		outside int // made outside a transaction, if that is not the same
	}{
		{name: "no rows", err: sql.ErrNoRows, answer: true},
		{name: "no rows, wrapped", err: fmt.Errorf("account 7: %w", sql.ErrNoRows), answer: true},
		{name: "a key that exists", err: duplicate, answer: true},
		{name: "another constraint", err: state("23514"), answer: true},
		{name: "a value that does not fit", err: state("22001"), answer: true},
		{name: "an exception of the server's own code", err: state("P0001"), answer: true},
		{name: "a table that is not there", err: state("42P01"), answer: true},
		{name: "an error that fn made up", err: errBusiness, own: true, answer: true},
		{name: "one that it marked", err: retry.Permanent(errBusiness), own: true, answer: true},
		{name: "an unexpected end of another thing", err: reading, own: true, answer: true},
		{name: "another connection that cannot be made", err: dialing, own: true, answer: true},
		{name: "another database whose connection is lost", err: driver.ErrBadConn, own: true, answer: true},

		{name: "an unexpected end of this connection", err: reading, attempt: 3},
		{name: "a conflict", err: conflict, attempt: 3},
		{name: "a conflict in another database", err: conflict, own: true, answer: true},
		{name: "an error that fn marked as transient", err: retry.Transient(errBusiness), own: true, attempt: 3},
		{name: "a full disk", err: state("53100")},
		{name: "a server with a bug", err: state("XX000")},
		{name: "a server that is read-only", err: state("25006"), outside: 3},
		{name: "a statement that takes too long", err: state("57014")},
		{name: "a context of fn's that has ended", err: context.DeadlineExceeded, own: true},
		{name: "doubt of a run in fn", err: retry.Ambiguous(retrysql.ErrCommitAmbiguous), own: true},
	} {
		check := func(t *testing.T, attempts int, call func(retry.Policy) error) {
			var outcome retry.Outcome
			budget := retry.NewBudget(retry.BudgetConfig{Ratio: 1, Initial: 5})
			p := atOnce
			p.Budget, p.Observe = budget, func(_ context.Context, e retry.Event) {
				if e.Outcome != nil {
					outcome = *e.Outcome
				}
			}
			err := call(p)
			require.ErrorIs(t, err, row.err)
			require.Equal(t, row.answer, err == row.err)
			require.Equal(t, row.answer, outcome.Status == retry.Succeeded)
			require.Equal(t, max(1, attempts), outcome.Attempts)
			require.Equal(t, row.answer, budget.Tokens() == 6)
		}
		t.Run(row.name+", in a transaction", func(t *testing.T) {
			check(t, row.attempt, func(p retry.Policy) error {
				return retrysql.Run(t.Context(), p, nil, new(db).begin, func(_ context.Context, tx *tx) error {
					if row.own {
						return row.err
					}
					return tx.exec(row.err)
				})
			})
		})
		t.Run(row.name+", outside", func(t *testing.T) {
			if row.err == reading && !row.own {
				t.Skip("it is ambiguous")
			}
			db, _ := openDB(t, &base{}, faults{{Query: "SELECT 1", Err: row.err, Times: retrytest.Forever}})
			check(t, max(row.attempt, row.outside), func(p retry.Policy) error {
				return retrysql.Do(t.Context(), db, p, func(ctx context.Context, c *retrysql.Single) error {
					if row.own {
						return row.err
					}
					_, err := c.ExecContext(ctx, "SELECT 1")
					return err
				})
			})
		})
	}
	t.Run("no answer if the policy repeats it, whose classifier is called once for each attempt", func(t *testing.T) {
		calls := 0
		p := atOnce
		p.Classify = func(error) retry.Class { calls++; return retry.Retryable }
		err := retrysql.Run(t.Context(), p, nil, new(db).begin, statements(duplicate, duplicate, duplicate))
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, 3, calls)
	})
	t.Run("no answer if the rollback fails", func(t *testing.T) {
		d := db{rollback: func(context.Context) error { return io.EOF }}
		require.ErrorIs(t, retrysql.Run(t.Context(), atOnce, nil, d.begin, statements(duplicate)), retry.TerminalError)
	})
	t.Run("no answer if the rollback shows that the connection is lost", func(t *testing.T) {
		d := db{rollback: func(context.Context) error { return driver.ErrBadConn }}
		n := 0
		require.NoError(t, retrysql.Run(t.Context(), atOnce, nil, d.begin, func(context.Context, *tx) error {
			if n++; n == 1 {
				return io.ErrUnexpectedEOF // of a statement that the Txn has not seen
			}
			return nil
		}))
		require.Equal(t, 2, n)
	})
	t.Run("no answer after a statement that fn ignored", func(t *testing.T) {
		require.ErrorIs(t, retrysql.Run(t.Context(), atOnce, nil, new(db).begin, func(_ context.Context, tx *tx) error {
			_ = tx.exec(duplicate)
			return aborted
		}), retry.TerminalError)
	})
	t.Run("no answer at begin", func(t *testing.T) {
		d := db{begins: []error{state("42501")}}
		require.ErrorIs(t, retrysql.Run(t.Context(), atOnce, nil, d.begin, statements()), retry.TerminalError)
	})
	t.Run("no answer of a caller who has gone", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := retrysql.Run(ctx, atOnce, nil, new(db).begin, func(context.Context, *tx) error { cancel(); return errBusiness })
		require.ErrorIs(t, err, retry.CallerCanceled)
	})
	t.Run("no earlier answer stays", func(t *testing.T) {
		require.NoError(t, retrysql.Run(t.Context(), atOnce, nil, new(db).begin, statements(conflict)))
	})
}

// recorded is a transaction of db with a record that can be asked.
type recorded struct {
	*tx
	track  error
	answer func() (bool, error)
}

func (r recorded) Ask(context.Context, []any, string, ...any) error {
	r.db.note("track", r.track)
	return r.exec(r.track)
}

func (r recorded) AskOutside(_ context.Context, dest []any, _ string, _ ...any) error {
	r.db.note("record", nil)
	committed, err := r.answer()
	status := map[bool]string{true: "committed", false: "aborted"}[committed]
	*dest[0].(*bool), *dest[1].(**string) = true, &status
	return err
}

func TestProbeOfTheServer(t *testing.T) {
	for _, row := range []struct {
		name      string
		committed bool
		err       error
		track     error
		opts      retrysql.Options
		fn        func(context.Context, *tx) error
		db        db
		log       []string
		is        []error
		isNot     error
	}{
		{name: "committed is a success", committed: true, db: db{commits: []error{io.EOF}}, log: []string{"begin", "exec", "track", "commit!", "rollback", "record"}},
		{name: "rolled back repeats it", db: db{commits: []error{io.EOF}},
			log: []string{"begin", "exec", "track", "commit!", "rollback", "record", "begin", "exec", "track", "commit"}},
		{name: "rolled back is certain, so no doubt remains", db: db{commits: []error{io.EOF}}, fn: statements(nil, duplicate),
			log: []string{"begin", "exec", "track", "commit!", "rollback", "record", "begin", "exec!", "rollback"}, is: []error{duplicate}, isNot: retrysql.ErrCommitAmbiguous},
		{name: "no answer leaves it unknown", err: retry.Permanent(errBusiness), db: db{commits: []error{io.EOF}},
			log: []string{"begin", "exec", "track", "commit!", "rollback", "record"}, is: []error{retrysql.ErrCommitAmbiguous, errBusiness}},
		{name: "no answer leaves it to Confirm", err: retry.Permanent(errBusiness), db: db{commits: []error{io.EOF}},
			opts: retrysql.Options{Confirm: func(context.Context) (bool, error) { return true, nil }},
			log:  []string{"begin", "exec", "track", "commit!", "rollback", "record"}},
		{name: "a connection that is lost before the commit is no doubt", track: driver.ErrBadConn,
			log: []string{"begin", "exec", "track!", "rollback", "begin", "exec", "track!", "rollback", "begin", "exec", "track!", "rollback"},
			is:  []error{retry.AttemptsExhausted}, isNot: retrysql.ErrCommitAmbiguous},
		{name: "it is not asked before an fn that failed, ignoring a conflict", fn: swallows(conflict),
			log: []string{"begin", "exec!", "rollback", "begin", "exec", "track", "commit"}},
		{name: "it is not asked of a read-only transaction, which is repeated", opts: retrysql.Options{ReadOnly: true}, db: db{commits: []error{io.EOF}},
			log: []string{"begin", "exec", "commit!", "rollback", "begin", "exec", "commit"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d, fn := row.db, row.fn
			if fn == nil {
				fn = statements()
			}
			row.opts.Probe = true
			begin := func(ctx context.Context) (recorded, error) {
				tx, err := d.begin(ctx)
				return recorded{tx, row.track, func() (bool, error) { return row.committed, row.err }}, err
			}
			err := retrysql.Run(t.Context(), atOnce, &row.opts, begin, func(ctx context.Context, r recorded) error { return fn(ctx, r.tx) })
			require.Equal(t, row.log, d.log)
			if row.is == nil {
				require.NoError(t, err)
			}
			for _, is := range row.is {
				require.ErrorIs(t, err, is)
			}
			if row.isNot != nil {
				require.NotErrorIs(t, err, row.isNot)
			}
		})
	}
	for _, row := range []struct {
		name     string
		statuses [][]driver.Value
		asked    int
		repeated bool
		text     string // of the error
	}{
		{name: "committed", statuses: [][]driver.Value{{true, "committed"}}, asked: 1},
		{name: "aborted", statuses: [][]driver.Value{{true, "aborted"}}, asked: 1, repeated: true},
		{name: "in progress, then committed", statuses: [][]driver.Value{{true, "in progress"}, {true, "in progress"}, {true, "committed"}}, asked: 3},
		{name: "another server", statuses: [][]driver.Value{{false, nil}}, asked: 1, text: "restarted or replaced"},
		{name: "forgotten", statuses: [][]driver.Value{{true, nil}}, asked: 1, text: "the server no longer knows transaction 742"},
		{name: "no row", statuses: [][]driver.Value{nil}, asked: 1, text: "sql: no rows in result set"},
	} {
		inBubble(t, "of PostgreSQL: "+row.name, func(t *testing.T) {
			db, log := openDB(t, &base{statuses: row.statuses}, faults{{On: retrytest.Commit, Lost: true}})
			err := retrysql.Tx(t.Context(), db, atOnce, &retrysql.Options{Probe: true}, func(context.Context, *retrysql.Txn) error { return nil })
			require.Equal(t, row.asked, strings.Count(log(), "pg_xact_status"))
			require.Equal(t, row.repeated, strings.Count(log(), "begin") == 2)
			if row.text == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
			require.ErrorContains(t, err, row.text)
		})
	}
	for name, failure := range map[string]error{
		"a driver's own time limit":    context.DeadlineExceeded,
		"an error of a dialer":         errors.New("Refresh error: 503"),
		"a server that is not yet up":  state("57P03"),
		"a connection that died there": driver.ErrBadConn,
	} {
		inBubble(t, "of PostgreSQL: asked again after "+name, func(t *testing.T) {
			db, log := openDB(t, &base{statuses: [][]driver.Value{{true, "committed"}}},
				faults{{On: retrytest.Commit, Lost: true}, {Query: "pg_xact_status", Err: failure}})
			require.NoError(t, retrysql.Tx(t.Context(), db, atOnce, &retrysql.Options{Probe: true}, func(context.Context, *retrysql.Txn) error { return nil }))
			require.Equal(t, 2, strings.Count(log(), "pg_xact_status"))
			require.Equal(t, 1, strings.Count(log(), "begin"))
		})
	}
	inBubble(t, "of PostgreSQL: in progress until the time is over", func(t *testing.T) {
		db, _ := openDB(t, &base{statuses: [][]driver.Value{{true, "in progress"}}}, faults{{On: retrytest.Commit, Lost: true}})
		start := time.Now()
		err := retrysql.Tx(t.Context(), db, atOnce, &retrysql.Options{Probe: true}, func(context.Context, *retrysql.Txn) error { return nil })
		require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.ErrorContains(t, err, "transaction 742 is in progress")
		require.LessOrEqual(t, time.Since(start), 5*time.Second)
	})
	t.Run("on another server the transaction fails before the commit", func(t *testing.T) {
		unknown := my(1305, "42000")
		db, log := openDB(t, &base{}, faults{{Query: "pg_current_xact_id", Err: unknown}})
		err := retrysql.Tx(t.Context(), db, atOnce, &retrysql.Options{Probe: true}, func(context.Context, *retrysql.Txn) error { return nil })
		require.ErrorIs(t, err, unknown)
		require.ErrorContains(t, err, "retrysql: Options.Probe, which needs PostgreSQL 13 or later: ")
		require.NotContains(t, log(), "commit")
	})
	t.Run("needs a pool", func(t *testing.T) {
		db, _ := openDB(t, &base{}, nil)
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		err = retrysql.Tx(t.Context(), conn, atOnce, &retrysql.Options{Probe: true}, func(context.Context, *retrysql.Txn) error { return nil })
		require.EqualError(t, err, "retrysql: Options.Probe needs a *sql.DB, not a *sql.Conn")
	})
}

func TestDeadlines(t *testing.T) {
	work := func(context.Context, *retrysql.Txn) error { return nil }
	inBubble(t, "a pool without a free connection: the caller's deadline", func(t *testing.T) {
		db, _ := openDB(t, &base{}, nil)
		db.SetMaxOpenConns(1)
		held, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer held.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = retrysql.Tx(ctx, db, atOnce, nil, work)
		var failed *retrysql.AttemptError
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, failed, context.DeadlineExceeded)
		require.ErrorIs(t, err, retry.DeadlinePassed)
		require.NotErrorIs(t, err, context.Canceled)
	})
	inBubble(t, "a pool without a free connection: the attempt's", func(t *testing.T) {
		db, _ := openDB(t, &base{}, nil)
		db.SetMaxOpenConns(1)
		held, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer held.Close()
		p := atOnce
		p.AttemptTimeout = time.Minute
		start := time.Now()
		err = retrysql.Tx(t.Context(), db, p, nil, work)
		require.Equal(t, 3*time.Minute, time.Since(start).Truncate(time.Second))
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.ErrorIs(t, err, retry.ErrAttemptTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
	})
	for _, deadline := range []bool{false, true} {
		inBubble(t, fmt.Sprintf("a commit that stalls is not waited for after the caller has gone, deadline %v", deadline), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if deadline {
				ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
			}
			time.AfterFunc(time.Second, cancel)
			release := make(chan struct{})
			d := db{commit: func() { <-release }}
			start := time.Now()
			err := retrysql.Run(ctx, atOnce, nil, d.begin, statements())
			require.Equal(t, 6*time.Second, time.Since(start))
			require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
			require.ErrorIs(t, err, retry.CallerCanceled)
			close(release)
		})
	}
	for name, d := range map[string]driver.Driver{"of another driver": nil, "of SQLite": &sqliteDriver{}} {
		inBubble(t, "a commit that stalls, "+name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			db := sql.OpenDB(&base{driver: d, commit: func() { time.Sleep(time.Minute) }})
			start := time.Now()
			err := retrysql.Tx(ctx, db, atOnce, nil, work)
			if d != nil {
				require.NoError(t, err)
				require.Equal(t, time.Minute, time.Since(start))
			} else {
				require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
				require.Equal(t, 6*time.Second, time.Since(start))
				time.Sleep(time.Minute)
			}
			require.NoError(t, db.Close())
		})
	}
}

type sqliteDriver struct{ driver.Driver }
