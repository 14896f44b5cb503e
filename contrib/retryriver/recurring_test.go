package retryriver_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// TestAChangedScheduleTakesEffectWithoutASecondCopy: a process that starts with the same schedule leaves the occurrence
// as it is, and one with another schedule replaces it.
func TestAChangedScheduleTakesEffectWithoutASecondCopy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.db")
	run := func(every time.Duration, want ...string) {
		t.Helper()
		q, err := retryriver.NewSQLite(t.Context(), file, retryjob.Options{
			Policies: catalog, Handlers: map[string]retryjob.Handler{"work": func(context.Context, retryjob.Job) error { return nil }},
			Recurring: []retryjob.Recurring{{Name: "beat", Job: retryjob.Job{Kind: "work", Policy: "quick"}, Next: retryjob.AtRate(every)}},
		})
		require.NoError(t, err)
		var got []string
		require.Eventually(t, func() bool {
			got = nil
			for i, err := range q.List(t.Context(), retryjob.Filter{Tags: []string{"recurring_beat"}, Statuses: []retryjob.Status{retryjob.Pending, retryjob.Canceled}}) {
				require.NoError(t, err)
				got = append(got, fmt.Sprint(i.Status, " ", i.FirstDue.Sub(i.Enqueued).Round(time.Minute)))
			}
			return len(got) == len(want)
		}, patience, 10*time.Millisecond)
		require.ElementsMatch(t, want, got)
		require.NoError(t, q.Close())
	}
	run(time.Hour, "pending 1h0m0s")
	run(time.Hour, "pending 1h0m0s")
	run(2*time.Hour, "canceled 1h0m0s", "pending 2h0m0s")
	run(2*time.Hour, "canceled 1h0m0s", "pending 2h0m0s")
}

// TestAScheduleGoesOnWhateverTheClocksSay: the clock of the process that made the newest occurrence was a day ahead, or
// behind, of the one that starts now.
func TestAScheduleGoesOnWhateverTheClocksSay(t *testing.T) {
	for _, off := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "jobs.db")
			open := func() *retryriver.Queue {
				q, err := retryriver.NewSQLite(t.Context(), file, retryjob.Options{
					Policies: catalog, Handlers: map[string]retryjob.Handler{"work": func(context.Context, retryjob.Job) error { return nil }},
					Recurring: []retryjob.Recurring{{Name: "beat", Job: retryjob.Job{Kind: "work", Policy: "quick"}, Next: retryjob.AfterEnd(300 * time.Millisecond)}},
				})
				require.NoError(t, err)
				return q
			}
			number := func(q *retryriver.Queue) int {
				all, err := q.Schedules(t.Context())
				require.NoError(t, err)
				if len(all) == 0 {
					return 0
				}
				return all[0].Number
			}
			q := open()
			require.Eventually(t, func() bool { return number(q) >= 3 }, patience, 10*time.Millisecond)
			require.NoError(t, q.Close())
			db, err := retryriver.OpenSQLite(t.Context(), file)
			require.NoError(t, err)
			for _, column := range []string{"created_at", "attempted_at", "finalized_at"} {
				_, err = db.ExecContext(t.Context(), fmt.Sprintf("UPDATE river_job SET %[1]s = strftime('%%Y-%%m-%%d %%H:%%M:%%f', %[1]s, '%[2]d seconds') WHERE %[1]s IS NOT NULL", column, int(off.Seconds())))
				require.NoError(t, err)
			}
			require.NoError(t, db.Close())
			q = open()
			defer q.Close()
			before := number(q)
			require.Eventually(t, func() bool { return number(q) >= before+2 }, patience, 10*time.Millisecond)
		})
	}
}

// TestARenamedKindChangesNoEarlierOccurrence: the schedule goes on with jobs of the new kind.
func TestARenamedKindChangesNoEarlierOccurrence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.db")
	kinds := func(kind string, want map[string]int) {
		t.Helper()
		q, err := retryriver.NewSQLite(t.Context(), file, retryjob.Options{
			Policies: catalog, Handlers: map[string]retryjob.Handler{kind: func(context.Context, retryjob.Job) error { return nil }},
			Recurring: []retryjob.Recurring{{Name: "beat", Job: retryjob.Job{Kind: kind, Policy: "quick"}, Next: retryjob.AfterEnd(time.Hour)}},
		})
		require.NoError(t, err)
		defer q.Close()
		require.Eventually(t, func() bool {
			got := map[string]int{}
			for i, err := range q.List(t.Context(), retryjob.Filter{Tags: []string{"recurring_beat"}}) {
				require.NoError(t, err)
				got[i.Kind+" "+i.Status.String()]++
			}
			return maps.Equal(want, got)
		}, patience, 10*time.Millisecond)
	}
	kinds("work", map[string]int{"work pending": 1})
	kinds("task", map[string]int{"work canceled": 1, "task pending": 1})
	kinds("task", map[string]int{"work canceled": 1, "task pending": 1})
}
