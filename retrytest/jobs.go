package retrytest

import (
	"context"
	"testing"

	"github.com/retrygo/retry/retryjob"
)

// Jobs is an engine of package retryjob in memory. Inside a synctest bubble hours pass at once: whenever nothing is
// under way, it is the time at which the next job is due. JobTimeline shows what came of a job.
type Jobs struct {
	*retryjob.Engine
	tb testing.TB
}

// NewJobs returns an engine that is shut down at the test's end; attempts that are under way then are ended. Options
// that do not validate end the test.
func NewJobs(tb testing.TB, o retryjob.Options) *Jobs {
	tb.Helper()
	e, err := retryjob.New(o)
	if err != nil {
		tb.Fatalf("retrytest: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, _ = e.Shutdown(ctx)
	})
	return &Jobs{e, tb}
}

// Run enqueues jobs, waits until every job of the engine is final, those that handlers have enqueued included, and
// returns the given ones as they ended. A job that is refused ends the test. Run does not return while a job repeats
// forever.
func (j *Jobs) Run(jobs ...retryjob.Job) []retryjob.Info {
	j.tb.Helper()
	ctx := context.Background()
	var handles []retryjob.Handle
	for _, job := range jobs {
		h, err := j.Enqueue(ctx, job)
		if err != nil {
			j.tb.Fatalf("retrytest: %v", err)
		}
		handles = append(handles, h)
	}
	var ended []retryjob.Info
	for _, h := range handles {
		info, err := h.Wait(ctx)
		if err != nil {
			j.tb.Fatalf("retrytest: %v", err)
		}
		ended = append(ended, info)
	}
	open := retryjob.Filter{Statuses: []retryjob.Status{retryjob.Pending, retryjob.Leased, retryjob.WaitingRetry}}
	for waited := true; waited; {
		waited = false
		for info, err := range j.List(ctx, open) {
			if err == nil {
				_, _ = j.Wait(ctx, info.JobID)
				waited = true
			}
		}
	}
	return ended
}
