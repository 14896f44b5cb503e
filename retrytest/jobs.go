package retrytest

import (
	"context"
	"testing"

	"github.com/retrygo/retry/retryjob"
)

// Jobs is an engine of package retryjob in memory. Inside a synctest bubble hours pass at once: when no goroutine has
// work to do, the clock advances to the time at which the next job is due. JobTimeline shows the attempts of a job.
type Jobs struct {
	*retryjob.Engine
	tb testing.TB
}

// NewJobs returns an engine that is shut down at the test's end, which also ends attempts in progress. Options that do
// not validate end the test.
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

// Run enqueues jobs, waits until every job of the engine is final, including those that handlers have enqueued, and
// returns the given ones in their final state. A refused job ends the test. Run does not return while a job repeats
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
