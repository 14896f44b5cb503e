package retryriver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
)

// A leader suspended between finding stuck jobs and rescuing them resumes after they have ended.
func TestARescuerThatIsTooLateRescuesNothing(t *testing.T) {
	o := newOffice(t, "quick", func(context.Context, *river.Job[mail]) error { return nil })
	o.open()
	ended, id := o.send(nil)
	before := o.ended(id)
	horizon := time.Now().Add(-time.Minute)
	later, _ := o.send(&river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)})
	stuck, stuckID := o.send(&river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)})
	fresh, _ := o.send(&river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)})
	o.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = datetime('now', '-1 hour') WHERE id = ?`, stuck)
	o.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = datetime('now') WHERE id = ?`, fresh)
	rows := []int64{ended, later, stuck, fresh}
	p := &riverdriver.JobRescueManyParams{StuckHorizon: horizon}
	for _, row := range rows {
		p.ID = append(p.ID, row)
		p.Error = append(p.Error, []byte(`{"error":"stuck"}`))
		p.FinalizedAt = append(p.FinalizedAt, nil)
		p.ScheduledAt = append(p.ScheduledAt, time.Now().Add(time.Hour))
		p.State = append(p.State, string(rivertype.JobStateRetryable))
	}
	_, err := o.client.Driver().GetExecutor().JobRescueMany(t.Context(), p)
	require.NoError(t, err)
	var states []rivertype.JobState
	for _, row := range rows {
		job, err := o.client.JobGet(t.Context(), row)
		require.NoError(t, err)
		states = append(states, job.State)
	}
	require.Equal(t, []rivertype.JobState{
		rivertype.JobStateCompleted, rivertype.JobStateScheduled, rivertype.JobStateRetryable, rivertype.JobStateRunning,
	}, states)
	require.Equal(t, before, o.ended(id))
	i, err := o.Get(t.Context(), stuckID)
	require.NoError(t, err)
	require.Equal(t, retryjob.WaitingRetry, i.Status)
}

func TestAWorkerCanCompleteItsJobInItsOwnTransaction(t *testing.T) {
	var o *office
	o = newOffice(t, "quick", func(ctx context.Context, job *river.Job[mail]) error {
		tx, err := o.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := river.JobCompleteTx[*riversqlite.Driver](ctx, tx, job); err != nil {
			return err
		}
		return tx.Commit()
	})
	o.open()
	row, id := o.send(nil)
	i := o.ended(id)
	require.Equal(t, retryjob.Succeeded, i.Status)
	require.Equal(t, []retryjob.Status{retryjob.Succeeded}, statuses(i))
	job, err := o.client.JobGet(t.Context(), row)
	require.NoError(t, err)
	require.NotContains(t, string(job.Metadata), "retryjob_attempt")
}

// A worker in this process that ignored its context completes its job in a transaction after another one has taken the
// job.
func TestALateWorkerDoesNotCompleteTheAttemptOfAnother(t *testing.T) {
	var o *office
	taken := make(chan error, 1)
	o = newOffice(t, "quick", func(ctx context.Context, job *river.Job[mail]) error {
		if job.Attempt > 1 {
			return nil
		}
		o.exec(`UPDATE river_job SET attempt = 2, state = 'running' WHERE id = ?`, job.ID) // as another process would take it
		tx, err := o.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = river.JobCompleteTx[*riversqlite.Driver](ctx, tx, job)
		taken <- err
		return tx.Rollback()
	})
	o.open()
	row, _ := o.send(nil)
	require.ErrorIs(t, <-taken, rivertype.ErrNotFound)
	metadata := func() string {
		job, err := o.client.JobGet(t.Context(), row)
		require.NoError(t, err)
		require.Equal(t, rivertype.JobStateRunning, job.State)
		return string(job.Metadata)
	}
	require.Eventually(t, func() bool { return strings.Contains(metadata(), `"retryjob_late"`) }, 10*time.Second, 10*time.Millisecond)
}
