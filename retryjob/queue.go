package retryjob

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

// Options are what every engine needs to run jobs.
type Options struct {
	// Policies finds the policies of jobs: FromCatalog or FromMap, Within limits if jobs bring a Spec of an outsider's.
	// It must be set.
	Policies Policies
	// Handlers do the work, by Job.Kind. A job of another kind is refused. Nil means none, so that every job is.
	Handlers map[string]Handler
	// Concurrency is how many attempts run at once. A job that waits takes none of it. Zero means 16 for each core that
	// Go may use.
	Concurrency int
	// Queues is how many attempts of the jobs of a Job.Queue run at once, apart from the others. "default", if it is
	// not here, has Concurrency. Jobs of a queue that is not here share the workers of "default" in an engine in
	// memory; in a durable engine they wait for a process that has workers for their queue.
	Queues map[string]int
	// Retention is how long DeadLettered, Expired, Failed and Canceled jobs are kept for Admin. Zero means 14 days.
	Retention time.Duration
	// KeepSucceeded is how long Succeeded jobs are kept, for Admin and Wait. Zero means 24 hours, or Retention if that
	// is shorter.
	KeepSucceeded time.Duration
	// Code returns a short code for an error, for Attempt.Code. Nil means that of Stepper.Code.
	Code func(error) string
}

// Validate returns nil or retry.FieldErrors: every bad field with its value and the rule it breaks. Refused are nil
// Policies, a kind in Handlers or a queue in Queues that no job can have, a nil Handler, a queue without workers, and a
// negative Concurrency, Retention or KeepSucceeded. Every engine validates the Options that it is given.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	if o.Policies == nil {
		bad.Add("retryjob", "Options.Policies", "<nil>", "must be set")
	}
	for _, kind := range slices.Sorted(maps.Keys(o.Handlers)) {
		j := Job{Kind: kind, Policy: "any"}
		if j.Validate(func(*Job) (retry.Policy, error) { return retry.Policy{}, nil }) != nil {
			bad.Add("retryjob", "Options.Handlers", fmt.Sprintf("kind %.40q", kind), "is not a Job.Kind")
		}
		if o.Handlers[kind] == nil {
			bad.Add("retryjob", fmt.Sprintf("Options.Handlers[%.40q]", kind), "<nil>", "must be set")
		}
	}
	if o.Concurrency < 0 {
		bad.Add("retryjob", "Options.Concurrency", o.Concurrency, "is negative")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Queues)) {
		if !isQueue(name) {
			bad.Add("retryjob", "Options.Queues", shown(name), "is not a Job.Queue")
		} else if o.Queues[name] < 1 {
			bad.Add("retryjob", fmt.Sprintf("Options.Queues[%q]", name), o.Queues[name], "is below 1")
		}
	}
	if o.Retention < 0 {
		bad.Add("retryjob", "Options.Retention", o.Retention, "is negative")
	}
	if o.KeepSucceeded < 0 {
		bad.Add("retryjob", "Options.KeepSucceeded", o.KeepSucceeded, "is negative")
	}
	return bad.Err()
}

// Kept returns how long a final job with the given status is kept: Retention or KeepSucceeded, or what their zero
// means. It is for engines.
func (o *Options) Kept(s Status) time.Duration {
	long := cmp.Or(o.Retention, 14*24*time.Hour)
	if s == Succeeded {
		return cmp.Or(o.KeepSucceeded, min(long, 24*time.Hour))
	}
	return long
}

// Queue is an engine, as its users see it: what changes when a program moves from one to another is the line that makes
// it.
type Queue interface {
	Enqueuer
	Admin
	// Shutdown takes no more jobs, starts no more attempts and waits for those under way. When ctx ends, their contexts
	// end with ErrShutdown as the cause, they are waited for still, and they count as not made unless they succeed. It
	// returns what this process alone has known of and is gone with it: all jobs that are not final of an engine in
	// memory, none of a durable one; and ctx's error if that ended attempts.
	Shutdown(ctx context.Context) (left []Info, err error)
}

// Enqueuer takes jobs.
type Enqueuer interface {
	// Enqueue keeps the job, after Job.Validate, and returns its handle. ctx bounds the enqueuing, not the job.
	Enqueue(ctx context.Context, job Job) (Handle, error)
	// EnqueueMany is Enqueue for many jobs, in their order: all of them or, with an error, none.
	EnqueueMany(ctx context.Context, jobs []Job) ([]Handle, error)
}

// Handle is a job that was enqueued. It can be copied, and dropped. Inspect and Wait of the zero Handle, which Enqueue
// returns with an error, return ErrUnknownJob.
type Handle struct {
	id    string
	queue waiter
}

// waiter is what a Handle needs of its engine.
type waiter interface {
	Get(ctx context.Context, id string) (Info, error)
	// Wait returns the job once its Status is final, or with the error of ctx as it then is; with ErrShutdown if the
	// engine was shut down and will not run it.
	Wait(ctx context.Context, id string) (Info, error)
}

// NewHandle returns the handle of a job of an engine. It is for engines.
func NewHandle(id string, engine interface {
	Get(ctx context.Context, id string) (Info, error)
	Wait(ctx context.Context, id string) (Info, error)
}) Handle {
	return Handle{id, engine}
}

// ID returns the job's ID.
func (h Handle) ID() string { return h.id }

// Inspect returns the job as it is now: if it waits, with its next due time.
func (h Handle) Inspect(ctx context.Context) (Info, error) {
	if h.queue == nil {
		return Info{}, ErrUnknownJob
	}
	return h.queue.Get(ctx, h.id)
}

// Wait returns the job once its Status is final. If ctx ends first, it returns ctx's error.
func (h Handle) Wait(ctx context.Context) (Info, error) {
	if h.queue == nil {
		return Info{}, ErrUnknownJob
	}
	return h.queue.Wait(ctx, h.id)
}
