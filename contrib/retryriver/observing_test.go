package retryriver_test

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// notes is a log.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

func TestAPanicOfObserveAtTheEndIsLoggedWhereTheClientLogs(t *testing.T) {
	a, err := retryriver.New(retryriver.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{
			"quiet": {}, "panics": {Observe: func(_ context.Context, e retry.Event) { panic("boom") }},
		}),
	})
	require.NoError(t, err)
	workers := river.NewWorkers()
	require.NoError(t, a.AddHandler(workers, "mail", fine.Handlers["kind"]))
	var log notes
	client, err := retryriver.NewClient(a, riversqlite.New(newSQLite(t)), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}, TestOnly: true,
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	require.NoError(t, client.Start(t.Context()))
	m := retryriver.NewAdmin(a, client)
	for _, policy := range []string{"panics", "quiet"} {
		h, err := m.Enqueue(t.Context(), retryjob.Job{Kind: "mail", Policy: policy})
		require.NoError(t, err)
		require.Equal(t, retryjob.Succeeded, ended(t, h).Status)
	}
	require.NoError(t, client.Stop(context.Background()))
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("value=boom")) }, patience, time.Millisecond)
	require.Equal(t, 1, bytes.Count([]byte(log.String()), []byte("retryriver: Observe panicked")), log.String())
}

func TestShutdownWaitsForObserve(t *testing.T) {
	var q *retryriver.Queue
	opened := make(chan struct{})
	told := false
	p := retry.Policy{MaxAttempts: 1, Observe: func(ctx context.Context, e retry.Event) {
		if e.Outcome == nil {
			return
		}
		<-opened
		<-retryriver.ClientOf[*sql.Tx](q).Stopped()
		for range 100 {
			_, err := q.Get(context.Background(), "a")
			require.NoError(t, err)
		}
		told = true
	}}
	q = queue(t, filepath.Join(t.TempDir(), "jobs.db"), retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"once": p}), Handlers: fine.Handlers,
	})
	close(opened)
	h, err := q.Enqueue(t.Context(), retryjob.Job{ID: "a", Kind: "kind", Policy: "once"})
	require.NoError(t, err)
	ended(t, h)
	_, err = q.Shutdown(t.Context())
	require.NoError(t, err)
	require.True(t, told)
}

// River looks for scheduled jobs every five seconds. What is due earlier does not wait for that.
func TestAJobThatIsDueSoonIsAvailableAtOnce(t *testing.T) {
	o := newOffice(t, "quick", nil)
	for in, want := range map[time.Duration]rivertype.JobState{
		time.Second: rivertype.JobStateAvailable, 4900 * time.Millisecond: rivertype.JobStateAvailable, time.Minute: rivertype.JobStateScheduled,
	} {
		at := time.Now().Add(in)
		row, id := o.send(retryjob.Job{Due: at})
		job, err := o.client.JobGet(t.Context(), row)
		require.NoError(t, err)
		require.Equal(t, want, job.State, in)
		i, err := o.Get(t.Context(), id)
		require.NoError(t, err)
		require.WithinDuration(t, at, i.Due, time.Millisecond)
	}
}

func TestASuccessThatAnotherProgramWroteIsNoAttempt(t *testing.T) {
	o := newOffice(t, "slow", func(context.Context, *river.Job[mail]) error { return errFull })
	o.open()
	row, id := o.send(retryjob.Job{})
	require.Eventually(t, func() bool {
		i, err := o.Get(t.Context(), id)
		return err == nil && i.Status == retryjob.WaitingRetry
	}, patience, time.Millisecond)
	o.exec("UPDATE river_job SET state = 'completed', finalized_at = CURRENT_TIMESTAMP WHERE id = ?", row)
	i, err := o.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, retryjob.Succeeded, i.Status)
	require.Equal(t, 1, i.Attempts)
	require.Equal(t, []retryjob.Status{retryjob.WaitingRetry}, statuses(i))
}
