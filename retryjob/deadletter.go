package retryjob

import (
	"context"
	"time"

	"github.com/retrygo/retry"
)

// handOver is how long DeadLetterTo's Enqueue may take: more than a database needs, less than a process is given to
// end.
const handOver = 10 * time.Second

// DeadLetterTo returns an Observe for a retry.Policy that is used inline, with retry.Do: when a run fails, its work
// goes on in q. On the final event of a run that did not succeed, it calls job for the work and enqueues it, once. It
// ignores all other events. job reports false if there is nothing to do, as for a run that the caller has canceled:
// e.Outcome says how the run ended, and ctx is the run's, with its values.
//
// The context of job and Enqueue does not end with the caller's, because a caller that gave up is a common reason for a
// run to fail; it ends after 10 s. Do returns after Enqueue does.
//
// If Enqueue fails, failed is called with the job, the error and the caller's context; no engine has the job then. With
// an ID from the caller's own key, a second hand-over of the same work is an ErrDuplicate.
//
// None of the three may be nil; the error is a retry.FieldErrors that names each one that is.
func DeadLetterTo(q Enqueuer, job func(ctx context.Context, e retry.Event) (Job, bool), failed func(ctx context.Context, j Job, err error)) (observe func(context.Context, retry.Event), err error) {
	var bad retry.FieldErrors
	if q == nil {
		bad.Add("retryjob", "DeadLetterTo.q", "<nil>", "must be set")
	}
	if job == nil {
		bad.Add("retryjob", "DeadLetterTo.job", "<nil>", "must be set")
	}
	if failed == nil {
		bad.Add("retryjob", "DeadLetterTo.failed", "<nil>", "must be set: it gets the jobs that q refuses")
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, e retry.Event) {
		if e.Outcome == nil || e.Outcome.Status == retry.Succeeded {
			return
		}
		lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOver)
		defer cancel()
		j, ok := job(lasting, e)
		if !ok {
			return
		}
		if _, err := q.Enqueue(lasting, j); err != nil {
			failed(ctx, j, err)
		}
	}, nil
}
