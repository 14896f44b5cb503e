package retryriver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// mail is the args of a plain job.
type mail struct {
	To string `json:"to"`
}

func (mail) Kind() string { return "mail" }

// office is a program with plain workers on SQLite, which works jobs once it is opened.
type office struct {
	*retryriver.Admin[*sql.Tx]
	t       *testing.T
	adapter *retryriver.Adapter
	db      *sql.DB
	client  *river.Client[*sql.Tx]
	policy  string
}

// newOffice returns an office whose mail has the policy. Its worker is River's own.
func newOffice(t *testing.T, policy string, send func(ctx context.Context, job *river.Job[mail]) error) *office {
	db, a := newSQLite(t), newAdapter(t)
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(send))
	cfg := &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 5}},
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 10 * time.Millisecond, TestOnly: true,
	}
	client, err := retryriver.NewClient(a, riversqlite.New(db), cfg)
	require.NoError(t, err)
	return &office{retryriver.NewAdmin(a, client), t, a, db, client, policy}
}

// open starts it.
func (o *office) open() {
	require.NoError(o.t, o.client.Start(o.t.Context()))
	o.t.Cleanup(func() { require.NoError(o.t, o.client.StopAndCancel(context.Background())) })
}

// send enqueues a job and returns the number of its row and its ID.
func (o *office) send(j retryjob.Job) (row int64, id string) {
	j.Kind, j.Policy, j.Payload = "mail", o.policy, []byte(`{"to":"you"}`)
	h, err := o.Enqueue(o.t.Context(), j)
	require.NoError(o.t, err)
	require.NoError(o.t, o.db.QueryRowContext(o.t.Context(), "SELECT max(id) FROM river_job").Scan(&row))
	return row, h.ID()
}

// exec changes the database without the client.
func (o *office) exec(query string, args ...any) {
	_, err := o.db.ExecContext(o.t.Context(), query, args...)
	require.NoError(o.t, err)
}

// ended waits until a job has ended.
func (o *office) ended(id string) retryjob.Info {
	i, err := o.Wait(o.t.Context(), id)
	require.NoError(o.t, err)
	return i
}

var errFull = errors.New("the mailbox is full")

func TestPlainWorkersAreRetriedByPolicy(t *testing.T) {
	var attempts []int
	o := newOffice(t, "quick", func(ctx context.Context, job *river.Job[mail]) error {
		info, ok := retryjob.AttemptFrom(ctx)
		require.True(t, ok)
		if attempts = append(attempts, info.Number); len(attempts) < 3 {
			return errFull
		}
		return nil
	})
	o.open()
	_, id := o.send(retryjob.Job{Tags: []string{"urgent"}})
	i := o.ended(id)
	require.Equal(t, []int{1, 2, 3}, attempts)
	require.Equal(t, retryjob.Succeeded, i.Status)
	require.Equal(t, []retryjob.Status{retryjob.WaitingRetry, retryjob.WaitingRetry, retryjob.Succeeded}, statuses(i))
	require.Equal(t, "mail", i.Kind)
	require.JSONEq(t, `{"to":"you"}`, string(i.Payload))
}

func statuses(i retryjob.Info) (list []retryjob.Status) {
	for _, a := range i.History {
		list = append(list, a.Status)
	}
	return list
}

// TestRiversOwnErrorsAreFailures: a handler's river.JobSnooze or river.JobCancel would contradict the record.
func TestRiversOwnErrorsAreFailures(t *testing.T) {
	o := newOffice(t, "quick", func(_ context.Context, job *river.Job[mail]) error {
		switch job.Attempt {
		case 1:
			return river.JobSnooze(time.Millisecond)
		case 2:
			return river.JobCancel(errFull)
		}
		return nil
	})
	o.open()
	_, id := o.send(retryjob.Job{})
	i := o.ended(id)
	require.Equal(t, retryjob.Succeeded, i.Status)
	require.Equal(t, []retryjob.Status{retryjob.WaitingRetry, retryjob.WaitingRetry, retryjob.Succeeded}, statuses(i))
	require.Equal(t, "JobCancelError: the mailbox is full", i.History[1].Err)
}

func TestAJobOfAnUnknownPolicyIsPutOffAndNotCounted(t *testing.T) {
	o := newOffice(t, "quick", func(context.Context, *river.Job[mail]) error { return nil })
	at := time.Now().Add(time.Minute)
	row, id := o.send(retryjob.Job{Due: at})
	o.exec(`UPDATE river_job SET state = 'available', scheduled_at = datetime('now', 'subsec'),
		metadata = jsonb_set(metadata, '$.retryjob[0].policy', 'gone') WHERE id = ?`, row)
	events, cancel := o.client.Subscribe(river.EventKindJobSnoozed)
	defer cancel()
	o.open()
	<-events
	i, err := o.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, retryjob.Pending, i.Status)
	require.Equal(t, 0, i.Attempts)
	require.Greater(t, time.Until(i.Due), 50*time.Second)
	require.True(t, i.FirstDue.Equal(at), "%v is not %v", i.FirstDue, at)
}

func TestRiversOwnRetryDoesNotRunWhatHasEnded(t *testing.T) {
	attempts := 0
	o := newOffice(t, "quick", func(context.Context, *river.Job[mail]) error {
		attempts++
		return retry.Permanent(errFull)
	})
	o.open()
	row, id := o.send(retryjob.Job{})
	before := o.ended(id)
	events, cancel := o.client.Subscribe(river.EventKindJobCancelled)
	defer cancel()
	_, err := o.client.JobRetry(t.Context(), row)
	require.NoError(t, err)
	<-events
	require.Equal(t, before, o.ended(id))
	require.Equal(t, 1, attempts)
	require.NoError(t, o.Replay(t.Context(), id))
	require.Equal(t, 1, o.ended(id).Replays)
	require.Equal(t, 2, attempts)
}

func TestWhatRiverDiscardsIsADeadLetter(t *testing.T) {
	o := newOffice(t, "quick", func(context.Context, *river.Job[mail]) error { return nil })
	row, id := o.send(retryjob.Job{})
	o.exec(`UPDATE river_job SET state = 'discarded', attempt = 2, attempted_at = datetime('now', 'subsec'),
		finalized_at = datetime('now', 'subsec') WHERE id = ?`, row)
	var dead []retryjob.Info
	for i, err := range o.List(t.Context(), retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}, Reasons: []retry.Reason{retry.AttemptsExhausted}}) {
		require.NoError(t, err)
		dead = append(dead, i)
	}
	require.Len(t, dead, 1)
	require.Equal(t, id, dead[0].JobID)
	require.Equal(t, 2, dead[0].Attempts)
	require.Equal(t, retryjob.ErrLost.Error(), dead[0].Last().Err)
	require.NoError(t, o.Replay(t.Context(), id))
	i, err := o.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, retryjob.Pending, i.Status)
	require.Equal(t, id, i.JobID, "the number of its row may be another")
}

func TestALostAttemptIsRecordedBeforeTheNextOne(t *testing.T) {
	o := newOffice(t, "quick", func(context.Context, *river.Job[mail]) error { return errFull })
	row, id := o.send(retryjob.Job{})
	// The rescuer leaves it like this: two attempts are counted, and nothing is recorded.
	o.exec(`UPDATE river_job SET attempt = 2, attempted_at = datetime('now', 'subsec') WHERE id = ?`, row)
	o.open()
	i := o.ended(id)
	require.Equal(t, []any{retryjob.DeadLettered, retry.AttemptsExhausted}, []any{i.Status, i.Reason})
	require.Len(t, i.History, 3)
	require.Equal(t, retryjob.ErrLost.Error(), i.History[1].Err)
	require.Equal(t, errFull.Error(), i.History[2].Err)
}

func TestRiversCountOfAttemptsStopsAtAHundred(t *testing.T) {
	o := newOffice(t, "endless", func(ctx context.Context, job *river.Job[mail]) error {
		if info, _ := retryjob.AttemptFrom(ctx); info.Number == 105 {
			return nil
		}
		return errFull
	})
	row, id := o.send(retryjob.Job{})
	o.exec(`UPDATE river_job SET attempt = 98 WHERE id = ?`, row)
	o.open()
	i := o.ended(id)
	require.Equal(t, 105, i.Attempts)
	job, err := o.client.JobGet(t.Context(), row)
	require.NoError(t, err)
	require.Equal(t, 100, job.Attempt)
	require.Len(t, job.Errors, 1)
}

func TestAReplayKeepsWhatTheJobWasInsertedWith(t *testing.T) {
	o := newOffice(t, "quick", nil)
	row, id := o.send(retryjob.Job{Tags: []string{"urgent"}, Queue: "bulk", Priority: 3})
	o.exec(`UPDATE river_job SET state = 'discarded', attempt = 2, finalized_at = CURRENT_TIMESTAMP,
		metadata = jsonb_set(metadata, '$.output', 7, '$.snoozes', 3, '$.cancel_attempted_at', 'y') WHERE id = ?`, row)
	require.NoError(t, o.Replay(t.Context(), id))
	i, err := o.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []any{[]string{"urgent"}, "bulk", 3}, []any{i.Tags, i.Queue, i.Priority})
	var after int64
	var text string
	require.NoError(t, o.db.QueryRowContext(t.Context(), "SELECT id, json_remove(metadata, '$.retryjob', '$.river:unique_nonce') FROM river_job").Scan(&after, &text))
	job, err := o.client.JobGet(t.Context(), after)
	require.NoError(t, err)
	require.Len(t, job.UniqueStates, 8)
	require.JSONEq(t, "{}", text, "nothing of its attempts")
}

// On PostgreSQL a row can change after it was found. What is deleted counts.
func TestAReplayOfARowThatHasChangedMeanwhileIsUndone(t *testing.T) {
	o := newOffice(t, "quick", nil)
	succeeded, id := o.send(retryjob.Job{})
	o.exec("UPDATE river_job SET state = 'completed', finalized_at = CURRENT_TIMESTAMP WHERE id = ?", succeeded)
	n, err := retryriver.ReplayRow(t.Context(), o.Admin, succeeded)
	require.NoError(t, err)
	require.Zero(t, n)
	i, err := o.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, retryjob.Succeeded, i.Status)

	foreign, id := o.send(retryjob.Job{})
	o.exec("UPDATE river_job SET state = 'discarded', finalized_at = CURRENT_TIMESTAMP, metadata = jsonb('[]') WHERE id = ?", foreign)
	_, err = retryriver.ReplayRow(t.Context(), o.Admin, foreign)
	require.ErrorIs(t, err, retryjob.ErrUnknownJob)
	_, err = o.Get(t.Context(), id)
	require.ErrorIs(t, err, retryjob.ErrUnknownJob)
}
