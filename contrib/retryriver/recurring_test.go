package retryriver_test

import (
	"context"
	"fmt"
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
		}, 10*time.Second, 10*time.Millisecond)
		require.ElementsMatch(t, want, got)
		require.NoError(t, q.Close())
	}
	run(time.Hour, "pending 1h0m0s")
	run(time.Hour, "pending 1h0m0s")
	run(2*time.Hour, "canceled 1h0m0s", "pending 2h0m0s")
	run(2*time.Hour, "canceled 1h0m0s", "pending 2h0m0s")
}
