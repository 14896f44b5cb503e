package retryriver_test

import (
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// otherArgs is the args of a plain River job of a kind that PolicyOf does not name.
type otherArgs struct{}

func (otherArgs) Kind() string { return "other" }

// TestAListSelectsWhatItsFilterSelects: Filter.Selects, asked about each job, is the model of what SQL makes of a
// filter, for plain jobs and those with a record, and for the policies that PolicyOf gives to plain jobs.
func TestAListSelectsWhatItsFilterSelects(t *testing.T) {
	db, err := retryriver.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	require.NoError(t, err)
	defer db.Close()
	admin := func(policyOf map[string]string) (*retryriver.Admin[*sql.Tx], *river.Client[*sql.Tx]) {
		a, err := retryriver.New(retryriver.Options{Policies: catalog, PolicyOf: policyOf})
		require.NoError(t, err)
		client, err := retryriver.NewClient(a, riversqlite.New(db), &river.Config{})
		require.NoError(t, err)
		return retryriver.NewAdmin(a, client), client
	}
	m, client := admin(map[string]string{"mail": "quick", "": "slow"})
	ends := []string{
		"state = state", "state = 'running', attempt = 1, attempted_at = CURRENT_TIMESTAMP",
		"state = 'completed', attempt = 1, attempted_at = CURRENT_TIMESTAMP, finalized_at = CURRENT_TIMESTAMP",
		"state = 'cancelled', finalized_at = CURRENT_TIMESTAMP", "state = 'discarded', attempt = 1, finalized_at = CURRENT_TIMESTAMP",
	}
	for _, end := range ends {
		for _, args := range []rivertype.JobArgs{mail{}, plainArgs{}, otherArgs{}} {
			result, err := client.Insert(t.Context(), args, nil)
			require.NoError(t, err)
			_, err = db.ExecContext(t.Context(), "UPDATE river_job SET "+end+" WHERE id = ?", result.Job.ID)
			require.NoError(t, err)
		}
		for _, job := range []retryjob.Job{{Kind: "mail", Policy: "once"}, {Kind: "plain", Policy: "quick"}, {Kind: "other", Policy: "slow"}} {
			_, err := m.Enqueue(t.Context(), job)
			require.NoError(t, err)
			_, err = db.ExecContext(t.Context(), "UPDATE river_job SET "+end+" WHERE id = (SELECT max(id) FROM river_job)")
			require.NoError(t, err)
		}
	}
	filters := 60
	if raceDetector {
		filters = 5
	}
	for _, policyOf := range []map[string]string{
		nil, {"": "once"}, {"": "endless"}, {"mail": "quick"}, {"mail": "quick", "plain": "quick"}, {"mail": "quick", "": "once"},
		{"mail": "once", "": "once"}, {"mail": "once", "plain": "quick", "": "slow"},
	} {
		m, _ := admin(policyOf)
		var all []retryjob.Info
		for i, err := range m.List(t.Context(), retryjob.Filter{}) {
			require.NoError(t, err)
			all = append(all, i)
		}
		require.Len(t, all, 6*len(ends))
		r := rand.New(rand.NewPCG(1, 2))
		for range filters {
			f := retryjob.Filter{
				Statuses: some(r, retryjob.Statuses()...), Reasons: some(r, retry.AttemptsExhausted, retry.CallerCanceled, retry.TTLElapsed),
				Policies: some(r, "once", "quick", "slow", "endless"), Kinds: some(r, "mail", "plain", "other"),
				IDs: some(r, all[3].JobID, all[8].JobID, all[9].JobID, all[20].JobID, "none", "river-7-x"), PageSize: r.IntN(4),
			}
			if r.IntN(4) == 0 {
				f.Since = all[r.IntN(len(all))].Changed()
			}
			if r.IntN(4) == 0 {
				f.Until = all[r.IntN(len(all))].Changed()
			}
			want, have := []string{}, []string{}
			tallies := map[retryjob.Status]int{}
			for _, i := range all {
				if f.Selects(&i) {
					want = append(want, i.JobID)
					tallies[i.Status]++
				}
			}
			for i, err := range m.List(t.Context(), f) {
				require.NoError(t, err)
				have = append(have, i.JobID)
			}
			require.Equal(t, want, have, "%+v", f)
			counts, err := m.Count(t.Context(), f)
			require.NoError(t, err)
			jobs := map[retryjob.Status]int{}
			for status, tally := range counts {
				jobs[status] = tally.Jobs
			}
			require.Equal(t, tallies, jobs, "%+v", f)
		}
	}
}

// some returns none of the values in half of all cases, and otherwise up to three, perhaps one twice.
func some[T any](r *rand.Rand, values ...T) (chosen []T) {
	for range r.IntN(2) * (1 + r.IntN(3)) {
		chosen = append(chosen, values[r.IntN(len(values))])
	}
	return chosen
}
