package retryjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

// Options configure an engine. Only Policies is required.
type Options struct {
	// Policies returns the policies of jobs, for example FromCatalog or FromMap. Use Policies.Within if the Specs of
	// jobs come from outside. It must be set.
	Policies Policies
	// Handlers has the handlers by Job.Kind. Jobs of any other kind are refused. Nil refuses all jobs.
	Handlers map[string]Handler
	// Concurrency is the maximum number of attempts that run at the same time. Waiting jobs do not count. Zero means 16
	// times GOMAXPROCS. Negative is refused.
	Concurrency int
	// Queues is the maximum number of attempts that run at the same time, by Job.Queue, 1 or more for each. If it does
	// not contain "default", that queue has Concurrency. In an engine in memory, jobs of any other queue share the
	// workers of "default". In a durable engine they wait for a process that has workers for their queue.
	Queues map[string]int
	// Retention is how long DeadLettered, Expired, FailedNoRetries and Canceled jobs are kept after they ended. Zero means 14
	// days. Negative is refused.
	Retention time.Duration
	// KeepSucceeded is how long Succeeded jobs are kept after they ended. Zero means 24 hours, or Retention if that is
	// shorter. Negative is refused.
	KeepSucceeded time.Duration
	// Recurring has the jobs that come back. Nil means no recurring jobs.
	Recurring []Recurring
	// Code returns a short code for an error, for Attempt.Code. Nil means the same as in Stepper.Code.
	Code func(error) string
	// Logger gets warnings about schedules that do not go on. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) logger() *slog.Logger {
	if o.Logger != nil {
		return o.Logger
	}
	return slog.Default()
}

// Validate returns nil or retry.FieldErrors: every bad field with its value and the rule it breaks. It refuses nil
// Policies, a kind in Handlers or a queue in Queues that no job can have, a nil Handler, a queue with fewer than one
// worker, a Recurring that is not complete or whose job is refused, and a negative Concurrency, Retention or KeepSucceeded. Every engine validates its Options.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	if o.Policies == nil {
		bad.Refuse("retryjob.Options.Policies", "<nil>", "must be set")
	}
	for _, kind := range slices.Sorted(maps.Keys(o.Handlers)) {
		j := Job{Kind: kind, Policy: "any"}
		var field *retry.FieldError
		if errors.As(j.Validate(func(*Job) (retry.Policy, error) { return retry.Policy{}, nil }), &field) {
			bad.Refuse("retryjob.Options.Handlers", fmt.Sprintf("kind %.40q", kind), field.Rule)
		}
		if o.Handlers[kind] == nil {
			bad.Refuse(fmt.Sprintf("retryjob.Options.Handlers[%.40q]", kind), "<nil>", "must be set")
		}
	}
	if o.Concurrency < 0 {
		bad.Refuse("retryjob.Options.Concurrency", o.Concurrency, "is negative")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Queues)) {
		if !isQueue(name) {
			bad.Refuse("retryjob.Options.Queues", shown(name), queueRule)
		} else if o.Queues[name] < 1 {
			bad.Refuse(fmt.Sprintf("retryjob.Options.Queues[%q]", name), o.Queues[name], "is below 1")
		}
	}
	if o.Retention < 0 {
		bad.Refuse("retryjob.Options.Retention", o.Retention, "is negative")
	}
	if o.KeepSucceeded < 0 {
		bad.Refuse("retryjob.Options.KeepSucceeded", o.KeepSucceeded, "is negative")
	}
	o.refuseRecurring(&bad)
	return bad.Err()
}

// Kept returns the time for which a final job with the given status is kept, which is Retention or KeepSucceeded or the
// default of one of them. It is for engines.
func (o *Options) Kept(s Status) time.Duration {
	long := cmp.Or(o.Retention, 14*24*time.Hour)
	if s == Succeeded {
		return cmp.Or(o.KeepSucceeded, min(long, 24*time.Hour))
	}
	return long
}

// Queue is an engine as its users see it. A program that moves from one engine to another changes only the line that
// makes the engine.
type Queue interface {
	Enqueuer
	Admin
	// Shutdown takes no more jobs, starts no more attempts and waits for those under way. When ctx ends, the contexts
	// of these attempts end with ErrShutdown as the cause. Shutdown still waits for them, and they count as not made
	// unless they succeed or end in doubt. It returns the jobs that are lost when the process ends: all jobs of an engine
	// in memory that are not final, and none of a durable engine. The error is that of ctx if it ended attempts.
	// A second call returns the same as the first one.
	//
	// Enqueue and EnqueueMany return ErrShutdown from then on. The other methods still work, but an engine in memory
	// does not replay jobs, which would not run there, so Replay and ReplayAll return ErrShutdown.
	Shutdown(ctx context.Context) (left []Info, err error)
}

// Enqueuer takes jobs.
type Enqueuer interface {
	// Enqueue validates and keeps the job, and returns its handle. ctx bounds the call, not the job.
	Enqueue(ctx context.Context, job Job) (Handle, error)
	// EnqueueMany enqueues all of the jobs in their order or, with an error, none.
	EnqueueMany(ctx context.Context, jobs []Job) ([]Handle, error)
}

// Handle is a handle of a job that was enqueued. It can be copied and dropped. For the zero Handle, which Enqueue
// returns with an error, Inspect and Wait return ErrUnknownJob.
type Handle struct {
	id    string
	queue waiter
}

// waiter is the part of an engine that a Handle needs.
type waiter interface {
	Get(ctx context.Context, id string) (Info, error)
	// Wait returns the job once its Status is final. If ctx ends first, it returns the current job and ctx's error. If
	// the engine is shut down and will not run the job, ErrShutdown.
	Wait(ctx context.Context, id string) (Info, error)
}

// NewHandle returns the handle of a job of an engine. It is for engines.
func NewHandle(id string, engine waiter) Handle { return Handle{id, engine} }

// ID returns the job's ID.
func (h Handle) ID() string { return h.id }

// Inspect returns the job as it is now. The Due of a waiting job is that of its next attempt. The error is that of
// Admin.Get.
func (h Handle) Inspect(ctx context.Context) (Info, error) {
	if h.queue == nil {
		return Info{}, ErrUnknownJob
	}
	return h.queue.Get(ctx, h.id)
}

// Wait returns the job once its Status is final. If ctx ends first, it returns ctx's error. If an engine in memory is
// shut down before that, ErrShutdown. If there is no such job, it returns the error of Admin.Get.
func (h Handle) Wait(ctx context.Context) (Info, error) {
	if h.queue == nil {
		return Info{}, ErrUnknownJob
	}
	return h.queue.Wait(ctx, h.id)
}
