package drivers_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// lostCommit is a way in which a commit is lost.
type lostCommit struct {
	name    string
	fault   fault
	applied int // 1 if the server got it
}

// withLostCommits runs a test with each driver that talks to a server and each fault. The test gets a bank, and a pool
// whose second and third commit meet the fault.
func withLostCommits(t *testing.T, test func(t *testing.T, c lostCommit, b *bank, db *sql.DB)) {
	t.Helper()
	t.Parallel()
	for _, d := range serverDrivers {
		for _, c := range []lostCommit{
			{name: "that is lost", fault: loseRequest},
			{name: "whose reply is lost", fault: loseReply, applied: 1},
			{name: "whose reply is torn", fault: tearReply, applied: 1},
		} {
			t.Run(d.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, d)
				b := newBank(t, d, s.db, 5)
				db, p := s.behind(t, at(d.commit, pass, c.fault, c.fault))

				test(t, c, b, db)

				require.EqualValues(t, 2, p.cuts.Load())
				b.requireConserved(t)
			})
		}
	}
}

// transferEach makes four transfers, one after the other, and returns their results and all failed attempts. Each is
// inside another run, which repeats whatever it may.
func transferEach(ctx context.Context, b *bank, db *sql.DB, options func(id int) retrysql.Options) ([]error, []failure) {
	outcomes := make([]error, 4)
	var failures []failure
	for id := range outcomes {
		p, last := observed(4, nil)
		eager := retry.Policy{MaxAttempts: 4, Backoff: p.Backoff, Classify: retry.Otherwise(retry.Retryable)}
		opts := options(id)
		outcomes[id] = retry.Do(ctx, eager, func(ctx context.Context) error {
			return retrysql.Tx(ctx, db, p, &opts, func(ctx context.Context, tx *retrysql.Txn) error {
				return b.apply(ctx, tx, transfer{id, id, id + 1, 10})
			})
		})
		failures = append(failures, last.Failures...)
	}
	return outcomes, failures
}

func TestACommitThatIsLostIsAmbiguousAndNotRepeated(t *testing.T) {
	withLostCommits(t, func(t *testing.T, c lostCommit, b *bank, db *sql.DB) {
		outcomes, failures := transferEach(t.Context(), b, db, func(int) retrysql.Options { return retrysql.Options{} })

		for id, failed := range []bool{false, true, true, false} {
			require.Equal(t, failed, errors.Is(outcomes[id], retrysql.ErrCommitAmbiguous))
			require.Equal(t, failed, errors.Is(outcomes[id], retry.TerminalError))
		}
		_, applied := requireExactlyOnce(t, b.direct, "ledger", outcomes)
		require.Equal(t, 2*c.applied, applied)
		lost := failure{Phase: retrysql.Commit, Reason: retrysql.ConnectionLost}
		require.Equal(t, []failure{lost, lost}, failures)
	})
}

func TestACommitThatIsLostIsSettledByAProbe(t *testing.T) {
	withLostCommits(t, func(t *testing.T, c lostCommit, b *bank, db *sql.DB) {
		outcomes, failures := transferEach(t.Context(), b, db, func(id int) retrysql.Options {
			return retrysql.Options{Probe: b.postgres, Confirm: b.applied(id)}
		})

		require.Equal(t, make([]error, len(outcomes)), outcomes)
		requireExactlyOnce(t, b.direct, "ledger", outcomes)
		require.Len(t, failures, 2*(1-c.applied)) // if it was applied the attempt has not failed
	})
}

// TestACommitThatIsLostIsSettledByARow: on PostgreSQL a row that is missing proves nothing.
func TestACommitThatIsLostIsSettledByARow(t *testing.T) {
	withLostCommits(t, func(t *testing.T, c lostCommit, b *bank, db *sql.DB) {
		outcomes, _ := transferEach(t.Context(), b, db, func(id int) retrysql.Options { return retrysql.Options{Confirm: b.applied(id)} })

		ambiguous, applied := requireExactlyOnce(t, b.direct, "ledger", outcomes)
		if !b.postgres || c.applied == 1 {
			require.Zero(t, ambiguous)
			return
		}
		require.Equal(t, 2, ambiguous)
		require.Zero(t, applied)
		require.ErrorContains(t, outcomes[1], "set Options.Probe")
	})
}

// TestACommitThatIsLostIsRepeatedIfTheCallerAllowsIt declares transfers idempotent although they are not, so that a
// repetition shows.
func TestACommitThatIsLostIsRepeatedIfTheCallerAllowsIt(t *testing.T) {
	withLostCommits(t, func(t *testing.T, c lostCommit, b *bank, db *sql.DB) {
		ctx := retrysql.WithIdempotent(t.Context())
		outcomes, failures := transferEach(ctx, b, db, func(int) retrysql.Options { return retrysql.Options{} })

		require.Equal(t, make([]error, len(outcomes)), outcomes)
		require.Len(t, failures, 2)
		// The third commit is that of the repetition.
		require.Equal(t, 4+2*c.applied, number(t, b.direct, "select count(*) from ledger"))
	})
}

// TestWhatDriversSayOfALostCommitDoesNotTellThatItWasApplied is why no driver's error is believed at that phase.
func TestWhatDriversSayOfALostCommitDoesNotTellThatItWasApplied(t *testing.T) {
	onEach(t, serverDrivers, counter, func(t *testing.T, s site) {
		db, _ := s.behind(t, at(s.commit, loseReply))
		tx, err := db.Begin()
		require.NoError(t, err)
		_, err = tx.Exec("update counter set n = n + 1")
		require.NoError(t, err)

		err = tx.Commit()

		require.Error(t, err)
		require.Equal(t, 1, number(t, s.db, "select n from counter"))
		safe, ok := asType[interface {
			error
			SafeToRetry() bool
		}](err)
		t.Logf("%v; driver.ErrBadConn: %v; SafeToRetry: %v", err, errors.Is(err, sqldriver.ErrBadConn), ok && safe.SafeToRetry())
		require.Equal(t, retrysql.Verdict{
			Class: retry.Terminal, Reason: retrysql.ConnectionLost, Ambiguous: true,
		}, retrysql.Judge(retrysql.Commit, err))
	})
}
