package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
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
	t.Run("no answer of a caller who has gone", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := retrysql.Run(ctx, atOnce, nil, new(db).begin, func(context.Context, *tx) error { cancel(); return errBusiness })
		require.ErrorIs(t, err, retry.CallerCanceled)
	})
}

// TestProbeOfTheServer is about a commit whose reply is lost, and the record that PostgreSQL has of the transaction. In the
// logs "track" asks for its id, and "record" for its status.
func TestProbeOfTheServer(t *testing.T) {
	type status = []driver.Value // whether the server is the same, and the text
	committed, aborted, underWay, forgotten := status{true, "committed"}, status{true, "aborted"}, status{true, "in progress"}, status{true, nil}
	lost := retrytest.SQLFault{On: retrytest.Commit, Lost: true}
	asked := func(err error) faults { return faults{lost, {Query: "pg_xact_status", Err: err}} }
	unknown := my(1305, "42000")
	for _, row := range []struct {
		name     string
		statuses []status
		faults   faults // nil means that of the commit
		opts     retrysql.Options
		fn       func(context.Context, *retrysql.Txn) error
		log      string
		is       []error
		text     string // of the error
	}{
		{name: "committed is a success", statuses: []status{committed}, log: "begin track commit! record"},
		{name: "aborted repeats it", statuses: []status{aborted}, log: "begin track commit! record begin track commit"},
		{name: "aborted is certain, so no doubt remains", statuses: []status{aborted}, fn: func(ctx context.Context, tx *retrysql.Txn) error {
			if retry.AttemptNumber(ctx) > 1 {
				return duplicate
			}
			return nil
		}, log: "begin track commit! record begin rollback", is: []error{duplicate}},
		{name: "in progress is asked again", statuses: []status{underWay, underWay, committed}, log: "begin track commit! record record record"},
		{name: "no answer leaves it unknown", statuses: []status{forgotten}, log: "begin track commit! record",
			is: []error{retrysql.ErrCommitAmbiguous}, text: "the server no longer knows transaction 742"},
		{name: "no answer leaves it to Confirm", statuses: []status{forgotten}, log: "begin track commit! record",
			opts: retrysql.Options{Confirm: func(context.Context) (bool, error) { return true, nil }}},
		{name: "another server has no answer", statuses: []status{{false, nil}}, log: "begin track commit! record",
			is: []error{retrysql.ErrCommitAmbiguous}, text: "restarted or replaced"},
		{name: "no row is no answer", statuses: []status{nil}, log: "begin track commit! record",
			is: []error{retrysql.ErrCommitAmbiguous}, text: "sql: no rows in result set"},
		{name: "asked again after a driver's own time limit", statuses: []status{committed}, faults: asked(context.DeadlineExceeded), log: "begin track commit! record! record"},
		{name: "asked again after an error of a dialer", statuses: []status{committed}, faults: asked(errors.New("503")), log: "begin track commit! record! record"},
		{name: "asked again after a server that is not yet up", statuses: []status{committed}, faults: asked(state("57P03")), log: "begin track commit! record! record"},
		{name: "asked again after a connection that died there", statuses: []status{committed}, faults: asked(driver.ErrBadConn), log: "begin track commit! record! record"},
		{name: "a connection that is lost before the commit is no doubt", faults: faults{{Query: "pg_current_xact_id", Err: driver.ErrBadConn, Times: retrytest.Forever}},
			log: "begin track! rollback begin track! rollback begin track! rollback", is: []error{retry.AttemptsExhausted}},
		{name: "it is not asked before an fn that failed, ignoring a conflict", statuses: []status{committed}, faults: faults{{Query: "UPDATE", Err: conflict}, lost},
			fn: func(ctx context.Context, tx *retrysql.Txn) error {
				_ = exec(ctx, tx)
				return nil
			}, log: "begin UPDATE! rollback begin UPDATE track commit! record"},
		{name: "it is not asked of a read-only transaction, which is repeated", opts: retrysql.Options{ReadOnly: true}, log: "begin read only commit! begin read only commit"},
		{name: "another database fails before the commit", faults: faults{{Query: "pg_current_xact_id", Err: unknown}}, log: "begin track! rollback",
			is: []error{unknown}, text: "retrysql: Options.Probe, which needs PostgreSQL 13 or later: "},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			if row.faults == nil {
				row.faults = faults{lost}
			}
			db, log := openDB(t, &base{statuses: row.statuses}, row.faults)
			fn := row.fn
			if fn == nil {
				fn = nothing
			}
			row.opts.Probe = true
			err := retrysql.Tx(t.Context(), db, atOnce, &row.opts, fn)
			require.Equal(t, row.log, log())
			if row.is == nil {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.text)
			}
			for _, is := range row.is {
				require.ErrorIs(t, err, is)
			}
			require.Equal(t, slices.Contains(row.is, retrysql.ErrCommitAmbiguous), errors.Is(err, retrysql.ErrCommitAmbiguous))
		})
	}
	inBubble(t, "in progress until the time is over leaves it unknown", func(t *testing.T) {
		db, _ := openDB(t, &base{statuses: []status{underWay}}, faults{lost})
		start := time.Now()
		err := retrysql.Tx(t.Context(), db, atOnce, &retrysql.Options{Probe: true}, nothing)
		require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.ErrorContains(t, err, "transaction 742 is in progress")
		require.LessOrEqual(t, time.Since(start), 5*time.Second)
	})
	t.Run("it needs a pool", func(t *testing.T) {
		db, _ := openDB(t, &base{}, nil)
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		err = retrysql.Tx(t.Context(), conn, atOnce, &retrysql.Options{Probe: true}, nothing)
		require.EqualError(t, err, "retrysql: Options.Probe needs a *sql.DB, not a *sql.Conn")
	})
}

func TestDeadlines(t *testing.T) {
	for name, row := range map[string]struct {
		cancel, deadline, limit time.Duration // the caller's, the caller's, and an attempt's; 0 means none
		lasts                   time.Duration
		is                      []error
		isNot                   error
	}{
		"the caller's cancellation": {cancel: time.Minute, lasts: time.Minute, is: []error{retry.CallerCanceled, context.Canceled}, isNot: context.DeadlineExceeded},
		"the caller's deadline":     {deadline: time.Minute, lasts: time.Minute, is: []error{retry.DeadlinePassed, context.DeadlineExceeded}, isNot: context.Canceled},
		"the attempt's timeout": {limit: time.Minute, lasts: 3 * time.Minute,
			is: []error{retry.AttemptsExhausted, retry.ErrAttemptTimeout, context.DeadlineExceeded}, isNot: context.Canceled},
	} {
		inBubble(t, "a wait for a connection of the pool ends with "+name, func(t *testing.T) {
			db, _ := openDB(t, &base{}, nil)
			db.SetMaxOpenConns(1)
			held, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer held.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if row.deadline > 0 {
				ctx, cancel = context.WithTimeout(ctx, row.deadline)
				defer cancel()
			}
			if row.cancel > 0 {
				time.AfterFunc(row.cancel, cancel)
			}
			p := atOnce
			p.AttemptTimeout = row.limit
			start := time.Now()
			err = retrysql.Tx(ctx, db, p, nil, nothing)
			require.Equal(t, row.lasts, time.Since(start).Truncate(time.Second))
			for _, is := range row.is {
				require.ErrorIs(t, err, is)
			}
			require.NotErrorIs(t, err, row.isNot)
		})
	}
	for name, d := range map[string]driver.Driver{"of another driver": nil, "of SQLite": &sqliteDriver{}} {
		inBubble(t, "a commit that stalls, "+name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			db := sql.OpenDB(&base{driver: d, commit: func() { time.Sleep(time.Minute) }})
			start := time.Now()
			err := retrysql.Tx(ctx, db, atOnce, nil, nothing)
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
