package retryriver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// TestRowsOfEarlierVersionsAreRead: the keys of FirstDue, History, BudgetKey and Attempt.Number were others before
// version 3 of retryjob.Record.
func TestRowsOfEarlierVersionsAreRead(t *testing.T) {
	crowds(t, t.Run, func(t *testing.T, c *crowd) {
		record := `[{"v": 2, "job": "waits", "policy": "slow", "budget": "tenant-7", "first": "2026-11-02T09:00:00Z", "status": "waiting_retry",
			"due": "2026-11-02T11:00:00Z", "attempts": 2, "seen": 2, "changed": 1793610000000000, "runs": [
			{"id": "waits.0.1.x", "attempt": 1, "start": "2026-11-02T09:00:00Z", "status": "waiting_retry", "err": "lost"},
			{"id": "waits.0.2.x", "attempt": 2, "start": "2026-11-02T10:00:00Z", "end": "2026-11-02T10:00:01Z", "status": "waiting_retry", "err": "503"}]}]`
		late := `[{"id": "waits.0.1.x", "attempt": 1, "start": "2026-11-02T09:00:00Z", "end": "2026-11-02T09:30:00Z", "status": "succeeded"}]`
		set := "jsonb_build_object('retryjob', '" + record + "'::jsonb, 'retryjob_late', '" + late + "'::jsonb)"
		if c.onSQLite() {
			set = "jsonb_object('retryjob', jsonb('" + record + "'), 'retryjob_late', jsonb('" + late + "'))"
		}
		c.exec("UPDATE river_job SET attempt = 2, scheduled_at = '2026-11-02 11:00:00', metadata = " + set + " WHERE state = 'retryable'")
		s, err := retryriver.OpenStore(t.Context(), c.database)
		require.NoError(t, err)
		defer s.Close()
		i, err := s.Get(t.Context(), "waits")
		require.NoError(t, err)
		require.NoError(t, i.Validate())
		day := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
		require.Equal(t, "tenant-7", i.BudgetKey)
		require.Equal(t, day.Add(9*time.Hour), i.FirstDue)
		require.Equal(t, []retryjob.Attempt{
			{ID: "waits.0.1.x", Number: 1, Start: day.Add(9 * time.Hour), End: day.Add(9*time.Hour + 30*time.Minute), Status: retryjob.WaitingRetry, Late: true},
			{ID: "waits.0.2.x", Number: 2, Start: day.Add(10 * time.Hour), End: day.Add(10*time.Hour + time.Second), Status: retryjob.WaitingRetry, Err: "503"},
		}, i.History)
	})
}
