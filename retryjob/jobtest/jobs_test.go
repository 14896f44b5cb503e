package jobtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobtest"
	"github.com/retrygo/retry/retrytest"
)

var errDown = errors.New("down")

// lines returns its arguments as lines.
func lines(text ...string) string { return strings.Join(text, "\n") + "\n" }

func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// recorder is a test that records why it ends.
type recorder struct {
	testing.TB
	messages []string
}

func (r *recorder) Helper()        {}
func (r *recorder) Cleanup(func()) {}
func (r *recorder) Fatalf(f string, a ...any) {
	r.messages = append(r.messages, "fatal: "+fmt.Sprintf(f, a...))
	runtime.Goexit()
}

func TestJobs(t *testing.T) {
	options := func(handle retryjob.Handler, p retry.Policy) retryjob.Options {
		return retryjob.Options{
			Policies: retryjob.FromMap(map[string]retry.Policy{"p": p}),
			Handlers: map[string]retryjob.Handler{"work": handle},
		}
	}
	job := retryjob.Job{ID: "order-7", Kind: "work", Policy: "p"}
	for _, row := range []struct {
		name   string
		policy retry.Policy
		steps  []retrytest.Step
		want   string
	}{
		{"a success", retry.Policy{}, []retrytest.Step{{}}, lines(
			"0s   attempt 1  ok",
			"0s   succeeded after 1 attempt",
		)},
		{"a dead letter", retry.Patient(), []retrytest.Step{{Err: errDown}, {Err: errDown, Takes: time.Minute}, {Err: errDown, Times: 2}}, lines(
			"0s     attempt 1  down   wait 5m",
			"6m     attempt 2  down   took 1m, wait 1h",
			"1h6m   attempt 3  down   wait 6h",
			"7h6m   attempt 4  down",
			"7h6m   dead_letter (attempts_exhausted) after 4 attempts",
		)},
		{"a worker that is lost", retry.Policy{}, []retrytest.Step{{Takes: time.Minute, Err: retryjob.ErrLost}, {}}, lines(
			"1m     attempt 1  the worker was lost   took 1m, wait 5s",
			"1m5s   attempt 2  ok",
			"1m5s   succeeded after 2 attempts",
		)},
	} {
		bubble(t, row.name, func(t *testing.T) {
			fn := retrytest.Script(t, row.steps)
			jobs := jobtest.NewJobs(t, options(func(ctx context.Context, _ retryjob.Job) error { return fn(ctx) }, row.policy))
			time.Sleep(time.Hour)
			require.Equal(t, row.want, jobtest.Timeline(jobs.Run(job)[0].Record))
		})
	}
	bubble(t, "Run waits for the jobs that handlers enqueue", func(t *testing.T) {
		var jobs *jobtest.Jobs
		began := time.Now()
		jobs = jobtest.NewJobs(t, options(func(ctx context.Context, j retryjob.Job) error {
			if j.ID == "order-7" {
				_, err := jobs.Enqueue(ctx, retryjob.Job{ID: "next", Kind: "work", Policy: "p", Due: time.Now().Add(time.Hour)})
				return err
			}
			return nil
		}, retry.Policy{}))
		ended := jobs.Run(job, retryjob.Job{ID: "later", Kind: "work", Policy: "p", Due: began.Add(time.Minute)})
		require.Equal(t, []string{"order-7", "later"}, []string{ended[0].JobID, ended[1].JobID})
		require.Equal(t, time.Hour, time.Since(began))
		next, err := jobs.Get(t.Context(), "next")
		require.NoError(t, err)
		require.Equal(t, retryjob.Succeeded, next.Status)
	})
	bubble(t, "the test's end ends attempts and leaves no goroutine", func(t *testing.T) {
		jobs := jobtest.NewJobs(t, options(func(ctx context.Context, _ retryjob.Job) error { <-ctx.Done(); return ctx.Err() }, retry.Policy{}))
		_, err := jobs.Enqueue(t.Context(), job)
		require.NoError(t, err)
		synctest.Wait()
	})
	t.Run("Timeline shows an attempt that was lost with its worker", func(t *testing.T) {
		first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		r := retryjob.Record{FirstDue: first, Status: retryjob.Succeeded, Attempts: 2, Ended: first.Add(time.Hour), History: []retryjob.Attempt{
			{Number: 1, Start: first, Due: first.Add(time.Hour), Err: "retryjob: the worker was lost"},
			{Number: 2, Start: first.Add(time.Hour), End: first.Add(time.Hour)},
		}}
		require.Equal(t, lines(
			"0s   attempt 1  the worker was lost   wait 1h",
			"1h   attempt 2  ok",
			"1h   succeeded after 2 attempts",
		), jobtest.Timeline(r))
	})
	t.Run("a job that cannot run ends the test", func(t *testing.T) {
		for _, row := range []struct {
			want string
			run  func(*recorder)
		}{
			{"fatal: jobtest: retryjob: Options.Policies", func(r *recorder) { jobtest.NewJobs(r, retryjob.Options{}) }},
			{"fatal: jobtest: retryjob: Job.Kind", func(r *recorder) {
				jobtest.NewJobs(r, options(func(context.Context, retryjob.Job) error { return nil }, retry.Policy{})).Run(retryjob.Job{})
			}},
			{"fatal: jobtest: retryjob: the engine is shut down", func(r *recorder) {
				j := jobtest.NewJobs(r, options(func(ctx context.Context, _ retryjob.Job) error { <-ctx.Done(); return ctx.Err() }, retry.Policy{}))
				go func() {
					ctx, cancel := context.WithCancel(context.Background())
					cancel()
					_, _ = j.Shutdown(ctx)
				}()
				j.Run(job)
			}},
		} {
			var r recorder
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				row.run(&r)
			}()
			<-ended
			require.Len(t, r.messages, 1)
			require.Contains(t, r.messages[0], row.want)
		}
	})
}
