package retryriver_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// The rescuer calls NextRetry for attempts that have no record.
func TestNextRetryOfALostAttemptIsWhatTheStepperDecides(t *testing.T) {
	policies := retryjob.FromMap(map[string]retry.Policy{
		"spread": {Backoff: retry.Backoff{Base: time.Hour, Jitter: retry.FullJitter},
			Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})},
		"once":  {MaxAttempts: 1},
		"brief": {TTL: time.Minute},
	})
	a, err := retryriver.New(retryriver.Options{Policies: policies})
	require.NoError(t, err)
	cfg, err := retryriver.Configure(a, river.Config{})
	require.NoError(t, err)
	first := time.Now().Add(-time.Second).UTC()
	job := func(policy string) (retryjob.Record, *rivertype.JobRow) {
		record := retryjob.NewRecord(&retryjob.Job{ID: "lost", Policy: policy}, first)
		metadata, err := json.Marshal(map[string]any{"retryjob": []retryjob.Record{record}})
		require.NoError(t, err)
		return record, &rivertype.JobRow{ID: 7, Attempt: 1, UniqueKey: retryriver.KeyOf("lost"), Metadata: metadata, CreatedAt: first, ScheduledAt: first}
	}
	t.Run("jitter is the same each time, and no budget pays", func(t *testing.T) {
		record, row := job("spread")
		stepper := retryjob.Stepper{Now: func() time.Time { return first }, Policies: func(j *retryjob.Job) (retry.Policy, error) {
			p, err := policies(j)
			p.Budget = nil
			return p, err
		}}
		verdict, err := stepper.Lost(t.Context(), &record, 1)
		require.NoError(t, err)
		delay := verdict.Due.Sub(first)
		for range 3 {
			before := time.Now()
			due := cfg.RetryPolicy.NextRetry(row)
			require.False(t, due.Before(before.Add(delay)), "%v is early", due)
			require.False(t, due.After(time.Now().Add(delay+time.Millisecond)), "%v is late", due)
		}
	})
	for _, policy := range []string{"once", "brief"} {
		t.Run("what is to end is due at once and never in the past: "+policy, func(t *testing.T) {
			_, row := job(policy)
			row.CreatedAt = first.Add(-time.Hour)
			before := time.Now()
			due := cfg.RetryPolicy.NextRetry(row)
			require.False(t, due.Before(before))
			if policy == "once" {
				require.False(t, due.After(time.Now()))
			}
		})
	}
	t.Run("an unknown policy puts the job off for a minute", func(t *testing.T) {
		_, row := job("gone")
		before := time.Now()
		due := cfg.RetryPolicy.NextRetry(row)
		require.False(t, due.Before(before.Add(time.Minute)))
	})
}
