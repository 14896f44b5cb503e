package retryjob

import (
	"context"
	"errors"
	"time"

	"github.com/retrygo/retry"
)

// handOver is how long the Enqueue of DeadLetterTo may take: longer than a database needs, and shorter than the time
// that a process is given to end.
const handOver = 10 * time.Second

// DeadLetterTo returns an Observe for a retry.Policy that is used inline, with retry.Do. If a run fails, its work
// continues in q: on the final event of the run, the Observe calls job and enqueues the job that it returns, once. It
// ignores all other events. job reports false if no job is to be enqueued, for example if the caller canceled the
// run, and e.Outcome is the end of the run. ctx has the values of the run's context.
//
// The context of job and Enqueue ends after 10 s. It does not end with the caller's context, because a run often fails
// because the caller gave up. Do returns after Enqueue does.
//
// If the run ended in doubt, because its last error is marked with retry.Ambiguous, the work may have been done: the job
// is not enqueued, and failed is called with it and ErrInDoubt. failed may enqueue the job if repeating the work does no
// harm, or once it has found out that the work was not done.
//
// If Enqueue returns an error, failed is called with the job, the error and the caller's context. ErrDuplicate means
// that q has a job with that ID, perhaps a final one, as it does if job makes the ID from a key of work that was
// enqueued before. After any other error q does not have the job, unless only the answer of its database was lost.
//
// None of the arguments may be nil. The error is a retry.FieldErrors that names each nil one.
func DeadLetterTo(q Enqueuer, job func(ctx context.Context, e retry.Event) (Job, bool), failed func(ctx context.Context, j Job, err error)) (observe func(context.Context, retry.Event), err error) {
	var bad retry.FieldErrors
	if q == nil {
		bad.Refuse("retryjob.DeadLetterTo.q", "<nil>", "must be set")
	}
	if job == nil {
		bad.Refuse("retryjob.DeadLetterTo.job", "<nil>", "must be set")
	}
	if failed == nil {
		bad.Refuse("retryjob.DeadLetterTo.failed", "<nil>", "must be set: it gets the jobs that q refuses")
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, e retry.Event) {
		var err error
		if e.Outcome == nil || e.Outcome.Status == retry.Succeeded {
			return
		}
		lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOver)
		defer cancel()
		j, ok := job(lasting, e)
		if !ok {
			return
		}
		if retry.IsAmbiguous(e.Err) {
			err = ErrInDoubt
		} else {
			_, err = q.Enqueue(lasting, j)
		}
		if err != nil {
			failed(ctx, j, err)
		}
	}, nil
}

// ErrInDoubt means that a job was not enqueued or replayed, since its work may have been done: by DeadLetterTo, or by a
// page or a command that asks Record.InDoubt before it replays a job.
var ErrInDoubt = errors.New("retryjob: in doubt: the work may have been done")
