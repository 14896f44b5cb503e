package retrysql_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

// TestADoubtStaysAlthoughItWasDenied is about Confirm that answered no, after which the transaction ran again.
func TestADoubtStaysAlthoughItWasDenied(t *testing.T) {
	for name, failure := range map[string]error{"a key that exists": duplicate, "no connection": state("57P03"), "an error of fn": errBusiness} {
		t.Run("the next attempt ends with "+name, func(t *testing.T) {
			d := db{commits: []error{driver.ErrBadConn}}
			opts := &retrysql.Options{Confirm: func(context.Context) (bool, error) { return false, nil }}
			n := 0
			err := retry.Do(t.Context(), atOnce, func(ctx context.Context) error {
				return retrysql.Run(ctx, atOnce, opts, d.begin, func(_ context.Context, work *tx) error {
					if n++; n == 1 {
						return nil
					}
					return work.exec(failure)
				})
			})
			require.ErrorIs(t, err, failure)
			require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
			require.ErrorIs(t, err, driver.ErrBadConn)
			require.LessOrEqual(t, n, 3, "the run around it ends")
		})
	}
}

func TestACommitThatTheAttemptsTimeoutCutIsInDoubt(t *testing.T) {
	inBubble(t, "no run around it repeats it, and the reason is the commit's", func(t *testing.T) {
		db, log := openDB(t, &base{}, faults{{On: retrytest.Commit, Takes: 2 * time.Second, Err: context.DeadlineExceeded}})
		p := retry.Policy{MaxAttempts: 1, AttemptTimeout: time.Second}
		err := retry.Do(t.Context(), atOnce, func(ctx context.Context) error { return retrysql.Tx(ctx, db, p, nil, exec) })
		require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.ErrorIs(t, err, retry.ErrAttemptTimeout)
		require.Equal(t, retrysql.CommitAmbiguous, retrysql.ReasonOf(err))
		var failed *retrysql.AttemptError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, retrysql.AttemptTimeout, failed.Reason)
		require.Equal(t, "begin UPDATE commit!", log())
	})
}

// TestADoubtThatWasRepeatedLeavesNoMark: an error that fn returned under Transient in one attempt does not affect the
// next.
func TestADoubtThatWasRepeatedLeavesNoMark(t *testing.T) {
	var inner, outer db
	inner.commits = []error{driver.ErrBadConn}
	err := retrysql.Run(idempotent(t, true), atOnce, nil, outer.begin, func(ctx context.Context, tx *tx) error {
		if err := retrysql.Run(ctx, atOnce, nil, inner.begin, statements()); err != nil {
			return retry.Transient(err)
		}
		return tx.exec(duplicate)
	})
	require.Equal(t, duplicate, err)
	require.Equal(t, []string{"begin", "rollback", "begin", "rollback"}, outer.log)
}

// TestDoubtOutlivesItsRun: a transaction may be committed if the answer to its COMMIT is lost, so no run around it
// repeats it.
func TestDoubtOutlivesItsRun(t *testing.T) {
	type (
		call  func(context.Context) error
		layer func(*testing.T, call) call // what is around a call
	)
	once := retry.Policy{MaxAttempts: 1}
	// tx returns a run of Tx that repeats nothing itself and whose first commit gets no answer, and its log.
	tx := func(t *testing.T, opts *retrysql.Options) (call, func() string) {
		db, log := openDB(t, &base{}, faults{{On: retrytest.Commit, Err: driver.ErrBadConn}})
		return func(ctx context.Context) error { return retrysql.Tx(ctx, db, once, opts, exec) }, log
	}
	do := func(_ *testing.T, inner call) call {
		return func(ctx context.Context) error { return retry.Do(ctx, atOnce, inner) }
	}
	doEagerly := func(t *testing.T, inner call) call {
		p := atOnce
		p.Classify = func(error) retry.Class { t.Error("Classify was called"); return retry.Retryable }
		return func(ctx context.Context) error { return retry.Do(ctx, p, inner) }
	}
	under := func(wrap func(error) error) layer {
		return func(_ *testing.T, inner call) call {
			return func(ctx context.Context) error {
				if err := inner(ctx); err != nil {
					return wrap(err)
				}
				return nil
			}
		}
	}
	wrapped := under(func(err error) error { return fmt.Errorf("pay: %w", err) })
	transient, permanent := under(retry.Transient), under(retry.Permanent)
	// inTx is a run of Tx on another database.
	inTx := func(opts *retrysql.Options) layer {
		return func(t *testing.T, inner call) call {
			db, _ := openDB(t, &base{}, nil)
			p := atOnce
			p.Classify = retry.Otherwise(retry.Retryable)
			return func(ctx context.Context) error {
				return retrysql.Tx(ctx, db, p, opts, func(ctx context.Context, _ *retrysql.Txn) error { return inner(ctx) })
			}
		}
	}

	for _, row := range []struct {
		name     string
		opts     *retrysql.Options
		mark     bool    // WithIdempotent
		outer    []layer // from the inside out
		repeated bool
	}{
		{name: "Do", outer: []layer{do}},
		{name: "Do whose Classify says Retryable, which is not called", outer: []layer{doEagerly}},
		{name: "Do, through fmt.Errorf", outer: []layer{wrapped, do}},
		{name: "Do, through a nested Do", outer: []layer{do, do}},
		{name: "Do, through a nested Do and fmt.Errorf twice", outer: []layer{wrapped, do, wrapped, doEagerly}},
		{name: "Do, through Permanent, which is of its own run only", outer: []layer{permanent, do, do}},
		{name: "Do whose fn returns it under Transient", outer: []layer{transient, do}, repeated: true},
		{name: "Do whose fn returns it under Transient and fmt.Errorf", outer: []layer{wrapped, transient, wrapped, do}, repeated: true},
		{name: "Do whose fn returns it under Transient, through a nested Do", outer: []layer{do, transient, do}, repeated: true},
		{name: "Tx", outer: []layer{inTx(nil)}},
		{name: "Tx and Do", outer: []layer{inTx(nil), do}},
		{name: "Tx whose own transaction is read-only", outer: []layer{inTx(&retrysql.Options{ReadOnly: true})}},
		{name: "Tx whose fn returns it under Transient", outer: []layer{transient, inTx(nil)}, repeated: true},
		{name: "Do, of a read-only transaction", opts: &retrysql.Options{ReadOnly: true}, outer: []layer{do}, repeated: true},
		{name: "Do, under WithIdempotent", mark: true, outer: []layer{do}, repeated: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := idempotent(t, row.mark)
			run, log := tx(t, row.opts)
			for _, outer := range row.outer {
				run = outer(t, run)
			}
			err := run(ctx)
			commits := strings.Count(log(), "commit")
			if row.repeated {
				require.NoError(t, err)
				require.Equal(t, 2, commits)
				return
			}
			require.ErrorIs(t, err, retry.TerminalError)
			require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
			require.ErrorIs(t, err, driver.ErrBadConn)
			require.Equal(t, 1, commits)
		})
	}
	for _, row := range []struct {
		name   string
		faults faults
		run    func(context.Context, *sql.DB) error
		is     []error
		text   string // of the error
		log    string
	}{
		{"of a write of Do", faults{{Query: "UPDATE", Err: driver.ErrBadConn}}, func(ctx context.Context, db *sql.DB) error {
			return retrysql.Do(ctx, db, once, update)
		}, []error{retrysql.ErrStatementAmbiguous}, "may or may not have taken effect", "UPDATE!"},
		{"of a write of Do that has taken effect, after which something failed", nil, func(ctx context.Context, db *sql.DB) error {
			return retrysql.Do(ctx, db, once, func(ctx context.Context, c *retrysql.Single) error {
				return cmp.Or(update(ctx, c), error(conflict))
			})
		}, []error{retrysql.ErrStatementAmbiguous, conflict}, "partly_done: ERROR 40001", "UPDATE"},
		{"of a transaction that fn committed itself", nil, func(ctx context.Context, db *sql.DB) error {
			return retrysql.Tx(ctx, db, once, nil, func(_ context.Context, tx *retrysql.Txn) error { return tx.Unwrap().Commit() })
		}, []error{retrysql.ErrTransactionEnded}, "must not begin or end", "begin commit"},
	} {
		t.Run(row.name, func(t *testing.T) {
			db, log := openDB(t, &base{}, row.faults)
			err := retry.Do(t.Context(), atOnce, func(ctx context.Context) error { return row.run(ctx, db) })
			for _, is := range row.is {
				require.ErrorIs(t, err, is)
			}
			require.ErrorContains(t, err, row.text)
			require.Equal(t, strings.Contains(row.text, "may or may not"), strings.Contains(err.Error(), "may or may not"))
			require.Equal(t, row.log, log())
		})
	}
	t.Run("whatever mark the probe's error has", func(t *testing.T) {
		opts := &retrysql.Options{Confirm: func(context.Context) (bool, error) { return false, retry.Transient(errors.New("no answer")) }}
		run, log := tx(t, opts)
		require.ErrorIs(t, do(t, run)(t.Context()), retrysql.ErrCommitAmbiguous)
		require.Equal(t, "begin UPDATE commit!", log())
	})
}
