package retryriver_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// beat is the options of an engine with a job of the kind that comes back.
func beat(kind string, next func(due, ended time.Time) time.Time) retryjob.Options {
	return retryjob.Options{
		Policies: catalog, Handlers: map[string]retryjob.Handler{kind: fine.Handlers["kind"]},
		Recurring: []retryjob.Recurring{{Name: "beat", Job: retryjob.Job{Kind: kind, Policy: "quick"}, Next: next}},
	}
}

// TestAProcessWithAnotherScheduleReplacesTheOccurrenceThatWaits: one that starts with the same schedule leaves it as it
// is.
func TestAProcessWithAnotherScheduleReplacesTheOccurrenceThatWaits(t *testing.T) {
	for name, starts := range map[string][]struct {
		options retryjob.Options
		want    []string // kind, status and delay of the occurrences
	}{
		"another time": {
			{beat("work", retryjob.AtRate(time.Hour)), []string{"work pending 1h0m0s"}},
			{beat("work", retryjob.AtRate(time.Hour)), []string{"work pending 1h0m0s"}},
			{beat("work", retryjob.AtRate(2*time.Hour)), []string{"work canceled 1h0m0s", "work pending 2h0m0s"}},
			{beat("work", retryjob.AtRate(2*time.Hour)), []string{"work canceled 1h0m0s", "work pending 2h0m0s"}},
		},
		"another kind": {
			{beat("work", retryjob.AfterEnd(time.Hour)), []string{"work pending 1h0m0s"}},
			{beat("task", retryjob.AfterEnd(time.Hour)), []string{"task pending 1h0m0s", "work canceled 1h0m0s"}},
			{beat("task", retryjob.AfterEnd(time.Hour)), []string{"task pending 1h0m0s", "work canceled 1h0m0s"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "jobs.db")
			for _, start := range starts {
				q := queue(t, file, start.options)
				require.Eventually(t, func() bool {
					var got []string
					for i, err := range q.List(t.Context(), retryjob.Filter{Tags: []string{"recurring_beat"}}) {
						require.NoError(t, err)
						got = append(got, fmt.Sprint(i.Kind, " ", i.Status, " ", i.FirstDue.Sub(i.Enqueued).Round(time.Minute)))
					}
					slices.Sort(got)
					return slices.Equal(start.want, got)
				}, patience, 10*time.Millisecond, "%v", start.want)
				require.NoError(t, q.Close())
			}
		})
	}
}

// TestAScheduleGoesOnWhateverTheClocksSay: the clock of the process that made the newest occurrence was a day ahead, or
// behind, of the one that starts now.
func TestAScheduleGoesOnWhateverTheClocksSay(t *testing.T) {
	for _, off := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "jobs.db")
			number := func(q *retryriver.Queue) int {
				all, err := q.Schedules(t.Context())
				require.NoError(t, err)
				if len(all) == 0 {
					return 0
				}
				return all[0].Number
			}
			q := queue(t, file, beat("work", retryjob.AfterEnd(300*time.Millisecond)))
			require.Eventually(t, func() bool { return number(q) >= 3 }, patience, 10*time.Millisecond)
			require.NoError(t, q.Close())
			db := openSQLite(t, file)
			for _, column := range []string{"created_at", "attempted_at", "finalized_at"} {
				_, err := db.ExecContext(t.Context(), fmt.Sprintf("UPDATE river_job SET %[1]s = strftime('%%Y-%%m-%%d %%H:%%M:%%f', %[1]s, '%[2]d seconds') WHERE %[1]s IS NOT NULL", column, int(off.Seconds())))
				require.NoError(t, err)
			}
			q = queue(t, file, beat("work", retryjob.AfterEnd(300*time.Millisecond)))
			before := number(q)
			require.Eventually(t, func() bool { return number(q) >= before+2 }, patience, 10*time.Millisecond)
		})
	}
}
