package cli_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/retryjob"
)

// acted is a fake whose jobs change before each list except the first.
type acted struct {
	*fake
	acts []func()
	end  func()
}

func (a *acted) List(ctx context.Context, f retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		for i, err := range a.fake.List(ctx, f) {
			if !yield(i, err) {
				break
			}
		}
		if len(a.acts) == 0 {
			a.end()
			return
		}
		a.acts[0]()
		a.acts = a.acts[1:]
	}
}

func watch(t *testing.T, f *fake, acts []func(), args ...string) (got ran) {
	ctx, cancel := context.WithCancel(t.Context())
	return runIn(ctx, cli.Options{
		Open: func(context.Context, string) (cli.Store, error) { return &acted{f, acts, cancel}, nil },
		Now:  time.Now, Getenv: func(string) string { return "jobs.db" },
	}, append([]string{"watch"}, args...)...)
}

func ended(id string, status retryjob.Status) retryjob.Info {
	return retryjob.Info{Record: retryjob.Record{Kind: "mail",
		Version: 1, JobID: id, Policy: "standard", FirstDue: time.Now(), Status: status, Ended: time.Now(), Attempts: 1,
	}}
}

func TestWatchPrintsEachChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ended("old", retryjob.Succeeded))
		time.Sleep(time.Hour)
		put := func(id string, status retryjob.Status) func() {
			return func() {
				job := ended(id, status)
				f.jobs[id] = &job
			}
		}
		put("recent", retryjob.Expired)()
		put("shown", retryjob.Succeeded)()
		start := time.Now()
		got := watch(t, f, []func(){
			put("a", retryjob.DeadLettered), func() {}, func() { require.NoError(t, f.jobs["a"].Replay(time.Now())) }, func() {},
			func() { put("late", retryjob.Canceled)(); f.jobs["late"].Ended = time.Now().Add(-9 * time.Second) },
			func() {},
		}, "--limit", "1")
		require.Equal(t, ran{Out: got.Out}, got, "an interrupt is how it ends")
		require.Equal(t, []string{
			"2000-01-01T01:00:00.000Z  recent  mail  standard  expired  -  1 attempt  -",
			"2000-01-01T01:00:00.000Z  a  mail  standard  dead_letter  -  1 attempt  -",
			"2000-01-01T01:00:04.000Z  a  mail  standard  pending  -  0 attempts  -",
			"2000-01-01T00:59:59.000Z  late  mail  standard  canceled  -  1 attempt  -",
		}, strings.Split(strings.TrimSpace(got.Out), "\n"))
		require.Equal(t, 12*time.Second, time.Since(start), "every two seconds")
	})
}

func TestWatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		got := watch(t, f, []func(){func() {
			for i := range 1500 {
				job := ended(fmt.Sprint("job-", i), retryjob.Expired)
				f.jobs[job.JobID] = &job
			}
		}}, "--json")
		require.Equal(t, 1000, strings.Count(got.Out, "\n"))
		require.Equal(t, "retryjobs: more than 1000 jobs have changed\n", got.Err)
	})
}

func TestAWatchThatBreaksSaysSo(t *testing.T) {
	f := newFake(jobs()...)
	f.broken = errBroken
	got := run(t, f, "watch")
	require.Equal(t, cli.Failed, got.Exit)
	require.Equal(t, "retryjobs: the connection broke\n", got.Err)
}
