package retryriver_test

import (
	"math/rand/v2"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// TestAListSelectsWhatItsFilterSelects: Filter.Selects, asked about each job, is the model of what SQL makes of a
// filter.
func TestAListSelectsWhatItsFilterSelects(t *testing.T) {
	db, a := newSQLite(t), newAdapter(t)
	client, err := retryriver.NewClient(a, riversqlite.New(db), &river.Config{}) // it knows every kind
	require.NoError(t, err)
	m := retryriver.NewAdmin(a, client)
	ends := []string{
		"state = state", "state = 'running', attempt = 1, attempted_at = CURRENT_TIMESTAMP",
		"state = 'completed', attempt = 1, attempted_at = CURRENT_TIMESTAMP, finalized_at = CURRENT_TIMESTAMP",
		"state = 'cancelled', finalized_at = CURRENT_TIMESTAMP", "state = 'discarded', attempt = 1, finalized_at = CURRENT_TIMESTAMP",
	}
	for _, end := range ends {
		for _, job := range []retryjob.Job{
			{Kind: "mail", Policy: "once"}, {Kind: "plain", Policy: "quick"}, {Kind: "other", Policy: "slow"},
			{Kind: "mail", Policy: "quick", Tags: []string{"one-tag"}}, {Kind: "plain", Policy: "slow", Tags: []string{"two-tags"}}, {Kind: "other", Policy: "slow"},
		} {
			_, err := m.Enqueue(t.Context(), job)
			require.NoError(t, err)
			_, err = db.ExecContext(t.Context(), "UPDATE river_job SET "+end+" WHERE id = (SELECT max(id) FROM river_job)")
			require.NoError(t, err)
		}
	}
	filters := 480
	if raceDetector {
		filters = 40
	}
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
			IDs: some(r, all[r.IntN(len(all))].JobID, all[r.IntN(len(all))].JobID, all[r.IntN(len(all))].JobID, all[r.IntN(len(all))].JobID, "none"), Tags: some(r, "one-tag", "two-tags", "no-tag"), PageSize: r.IntN(4),
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

// some returns none of the values in half of all cases, and otherwise up to three, perhaps one twice.
func some[T any](r *rand.Rand, values ...T) (chosen []T) {
	for range r.IntN(2) * (1 + r.IntN(3)) {
		chosen = append(chosen, values[r.IntN(len(values))])
	}
	return chosen
}
