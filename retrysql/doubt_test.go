package retrysql_test

import (
	"context"
	"database/sql/driver"
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
