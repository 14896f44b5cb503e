package jobtest

import (
	"context"
	"errors"
	"testing"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retrytest"
)

// Jobs is an engine of package retryjob in memory. Inside a synctest bubble hours pass at once: when no goroutine has
// work to do, the clock advances to the time at which the next job is due. Timeline shows the attempts of a job.
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
		tb.Fatalf("jobtest: %v", err)
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
			j.tb.Fatalf("jobtest: %v", err)
		}
		handles = append(handles, h)
	}
	var ended []retryjob.Info
	for _, h := range handles {
		info, err := h.Wait(ctx)
		if err != nil {
			j.tb.Fatalf("jobtest: %v", err)
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

// Timeline returns the attempts of a job in the form of retrytest.Timeline, with times since the job was first due. An
// attempt that is under way has no line, and a job that is not final has no last line.
func Timeline(r retryjob.Record) string {
	var runs retrytest.Timeline
	for _, a := range r.History {
		if a.Err != "" {
			runs.Observe(context.Background(), failed(r, a))
		}
	}
	outcome := retry.Outcome{Reason: r.Reason, Attempts: r.Attempts}
	if final := outcome.Status.UnmarshalText([]byte(r.Status.String())); final == nil && outcome.Status != retry.WaitingRetry {
		end := retry.Decision{Status: outcome.Status, Reason: outcome.Reason}
		runs.Observe(context.Background(), retry.Event{Elapsed: r.Changed().Sub(r.FirstDue), Decision: end, Outcome: &outcome})
	}
	return runs.String()
}

// failed returns the retry.Attempt that retry.Policy.Observe gets for a failed attempt.
func failed(r retryjob.Record, a retryjob.Attempt) retry.Event {
	if a.End.IsZero() { // its worker was lost
		a.End = a.Start
	}
	e := retry.Event{
		Elapsed: a.End.Sub(r.FirstDue),
		Attempt: retry.Attempt{Number: a.Number, Duration: a.End.Sub(a.Start), Err: errors.New(a.Err)},
	}
	if !a.Due.IsZero() {
		e.Decision = retry.Decision{Status: retry.WaitingRetry, Delay: a.Due.Sub(a.End)}
	}
	return e
}
