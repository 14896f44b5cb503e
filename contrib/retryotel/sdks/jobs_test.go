package sdks_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryjob"
)

func TestJobsAreCountedUntilUnregistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSDK(t)
		release := make(chan struct{})
		engine, err := retryjob.New(retryjob.Options{
			Policies: retryjob.FromMap(map[string]retry.Policy{"": {MaxAttempts: 1}}), Concurrency: 1,
			Handlers: map[string]retryjob.Handler{"mail": func(context.Context, retryjob.Job) error {
				<-release
				return errDown
			}},
		})
		require.NoError(t, err)
		registration, err := retryotel.ObserveJobs(s.Options, "mails", engine.Count)
		require.NoError(t, err)
		require.Equal(t, map[string]float64{"retry.engine=mails": 0}, s.values("retry.job.lag"))
		_, err = engine.EnqueueMany(t.Context(), []retryjob.Job{{Kind: "mail"}, {Kind: "mail"}, {Kind: "mail"}}) // one is leased, and two wait for it
		require.NoError(t, err)
		later := time.Now().Add(time.Hour)
		_, err = engine.EnqueueMany(t.Context(), []retryjob.Job{{Kind: "mail", Due: later}, {Kind: "mail", Due: later, Tags: []string{retryjob.RecurringTag}}})
		require.NoError(t, err)
		synctest.Wait()
		<-time.After(time.Minute)
		require.Equal(t, map[string]float64{"retry.engine=mails": 60}, s.values("retry.job.lag"))
		jobs := s.values("retry.job.count")
		require.Len(t, jobs, 8)
		require.EqualValues(t, 4, jobs["retry.engine=mails,retry.status=pending"], jobs)
		recurring := s.values("retry.job.recurring")
		require.EqualValues(t, 1, recurring["retry.engine=mails,retry.status=pending"])
		require.EqualValues(t, 0, recurring["retry.engine=mails,retry.status=leased"])
		require.EqualValues(t, 1, jobs["retry.engine=mails,retry.status=leased"])
		close(release)
		synctest.Wait()
		require.EqualValues(t, 3, s.values("retry.job.count")["retry.engine=mails,retry.status=dead_letter"])
		require.Equal(t, map[string]float64{"retry.engine=mails": 0}, s.values("retry.job.lag"))
		require.NoError(t, registration.Unregister())
		require.Empty(t, s.values("retry.job.count"))
		_, err = engine.Shutdown(t.Context())
		require.NoError(t, err)
	})
}

// TestAScheduleThatDoesNotGoOnIsOverdue: its policy is away, so that no attempt can fail.
func TestAScheduleThatDoesNotGoOnIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSDK(t)
		var away atomic.Bool
		engine, err := retryjob.New(retryjob.Options{
			Policies: func(*retryjob.Job) (retry.Policy, error) {
				if away.Load() {
					return retry.Policy{}, errDown
				}
				return retry.Policy{}, nil
			},
			Handlers:  map[string]retryjob.Handler{"report": func(context.Context, retryjob.Job) error { return nil }},
			Recurring: []retryjob.Recurring{{Name: "hourly", Job: retryjob.Job{Kind: "report"}, Next: retryjob.AtRate(time.Hour)}},
			Logger:    slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		registration, err := retryotel.ObserveSchedules(s.Options, "reports", engine)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, map[string]float64{"retry.engine=reports,retry.schedule=hourly": 0}, s.values("retry.schedule.overdue"))
		away.Store(true)
		require.NoError(t, engine.Cancel(t.Context(), "recurring:hourly:report:1"))
		synctest.Wait()
		<-time.After(10 * time.Minute)
		require.Equal(t, map[string]float64{"retry.engine=reports,retry.schedule=hourly": 600}, s.values("retry.schedule.overdue"))
		require.NoError(t, registration.Unregister())
		_, err = engine.Shutdown(t.Context())
		require.NoError(t, err)
	})
}
