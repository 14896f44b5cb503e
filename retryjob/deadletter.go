package retryjob

import (
	"context"
	"errors"
	"time"

	"github.com/retrygo/retry"
)

// handOver is how long DeadLetterTo's Enqueue may take: more than a database needs, less than a process is given to end.
const handOver = 10 * time.Second

// DeadLetterTo returns an Observe for a retry.Policy that is used inline, with retry.Do: when a run gives up, its work goes
// on in q. On the final event of a run that did not succeed it asks job for the work and enqueues it, once; other events it
// passes over. job reports false where nothing is to be done, as for what the caller has canceled: e.Outcome says how the
// run ended, and ctx is the run's, with the values that tell which work it was.
//
// Both job and Enqueue get a context that does not end with the caller's, since a caller who has lost patience is the
// common reason to give up; it ends after 10 s. Do returns after that, so that what it returns is known to be kept.
//
// Where Enqueue refuses, failed gets the job and the error, with the caller's context as it is; the job is then nowhere
// else, and failed is the last who can keep it. An ID that comes from the caller's own key makes a second hand-over of the same
// work an ErrDuplicate.
//
// All three must be set; the error names what is not.
func DeadLetterTo(q Enqueuer, job func(ctx context.Context, e retry.Event) (Job, bool), failed func(ctx context.Context, j Job, err error)) (observe func(context.Context, retry.Event), err error) {
	switch {
	case q == nil:
		return nil, errors.New("retryjob: DeadLetterTo: q nil must be set")
	case job == nil:
		return nil, errors.New("retryjob: DeadLetterTo: job nil must be set")
	case failed == nil:
		return nil, errors.New("retryjob: DeadLetterTo: failed nil must be set: it is where a job goes that is not taken")
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
