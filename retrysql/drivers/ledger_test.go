package drivers_test

import (
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrysql"
)

// inParallel calls work for each number below n in the given number of goroutines, and returns the result of each call.
func inParallel(workers, n int, work func(id int) error) []error {
	outcomes := make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for id := int(next.Add(1)) - 1; id < n; id = int(next.Add(1)) - 1 {
				outcomes[id] = work(id)
			}
		})
	}
	all.Wait()
	return outcomes
}

// requireExactlyOnce requires that each acknowledged id has one row, that each ambiguous id has at most one, that there
// are no other rows, that a full disk leaves none, and that no other error was reported. It returns the number of ambiguous ids, and how many of
// these have a row.
func requireExactlyOnce(t *testing.T, db *sql.DB, table string, outcomes []error) (ambiguous, applied int) {
	t.Helper()
	times := make([]int, len(outcomes))
	rows, err := db.Query("select id, count(*) from " + table + " group by id")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, n int
		require.NoError(t, rows.Scan(&id, &n))
		times[id] = n
	}
	require.NoError(t, rows.Err())
	for id, err := range outcomes {
		switch {
		case err == nil:
			require.Equal(t, 1, times[id], "acknowledged: %d", id)
		case errors.Is(err, retrysql.ErrCommitAmbiguous):
			require.LessOrEqual(t, times[id], 1, "ambiguous: %d", id)
			ambiguous++
			applied += times[id]
		case retrysql.ReasonOf(err) == retrysql.DiskFull:
			require.Zero(t, times[id], "on a full disk: %d", id)
		default:
			require.NoError(t, err, "neither acknowledged nor ambiguous: %d", id)
		}
	}
	return ambiguous, applied
}
