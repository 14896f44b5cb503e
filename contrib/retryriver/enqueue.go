package retryriver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry/retryjob"
)

var (
	// errNotInstalled: the client does not call the Adapter.
	errNotInstalled = errors.New("the client is not from NewClient")

	// errNoContext comes before any use of the context: database/sql panics over a nil one while it holds the lock of
	// the pool, which would block every later call.
	errNoContext = errors.New("retryriver: ctx is nil")
)

// Enqueue inserts the job in a separate transaction. Besides the jobs that retryjob.Enqueuer refuses, it refuses a kind
// of more than 127 bytes and, with retryjob.ErrUnknownKind, a kind without a worker if the client has workers.
func (m *Admin[TTx]) Enqueue(ctx context.Context, job retryjob.Job) (retryjob.Handle, error) {
	args, opts, err := m.prepare(ctx, &job)
	if err != nil {
		return retryjob.Handle{}, err
	}
	inserted, err := m.client.Insert(ctx, args, opts)
	if err != nil {
		return retryjob.Handle{}, insertError(err)
	}
	return retryjob.NewHandle(args.id(inserted), m), nil
}

// InsertTx enqueues a job in the caller's own transaction, for the outbox pattern: the job exists once tx commits, and
// never if it does not. c must be the client that NewClient returned for a. The errors are those of Admin.Enqueue;
// after an error that is not one of retryjob's, PostgreSQL refuses further statements in this transaction. The handle
// finds the job once tx has committed; before that, its ID must not be chosen for another job.
func InsertTx[TTx any](ctx context.Context, a *Adapter, c *river.Client[TTx], tx TTx, job retryjob.Job) (retryjob.Handle, error) {
	var none TTx
	if a == nil || c == nil || any(tx) == any(none) {
		return retryjob.Handle{}, errors.New("retryriver: InsertTx: the adapter, the client or the transaction is nil")
	}
	m := NewAdmin(a, c)
	args, opts, err := m.prepare(ctx, &job)
	if err != nil {
		return retryjob.Handle{}, err
	}
	inserted, err := c.InsertTx(ctx, tx, args, opts)
	if err != nil {
		return retryjob.Handle{}, insertError(err)
	}
	return retryjob.NewHandle(args.id(inserted), m), nil
}

// EnqueueMany inserts all jobs or, with an error, none, in one transaction, with river.Client.InsertManyTx.
func (m *Admin[TTx]) EnqueueMany(ctx context.Context, jobs []retryjob.Job) ([]retryjob.Handle, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if len(jobs) == 0 {
		return nil, ctx.Err()
	}
	args, params := make([]*jobArgs, len(jobs)), make([]river.InsertManyParams, len(jobs))
	ids := make(map[string]bool, len(jobs)) // those that the caller has chosen
	which := func(i int, err error) error { return fmt.Errorf("retryriver: job %d of %d: %w", i+1, len(jobs), err) }
	for i := range jobs {
		job, opts, err := m.prepare(ctx, &jobs[i])
		id := jobs[i].ID
		switch {
		case err != nil:
			return nil, which(i, err)
		case ids[id]: // PostgreSQL would refuse the statement
			return nil, which(i, fmt.Errorf("retryriver: job %s: %w", id, retryjob.ErrDuplicate))
		case id != "":
			ids[id] = true
		}
		args[i] = job
		params[i] = river.InsertManyParams{Args: job, InsertOpts: opts}
	}
	var inserted []*rivertype.JobInsertResult
	err := m.within(ctx, func(_ riverdriver.Executor, tx TTx) (err error) {
		inserted, err = m.client.InsertManyTx(ctx, tx, params)
		return err
	})
	if err != nil {
		return nil, insertError(err)
	}
	handles := make([]retryjob.Handle, len(jobs))
	for i := range jobs {
		handles[i] = retryjob.NewHandle(args[i].id(inserted[i]), m)
	}
	return handles, nil
}

// prepare checks a job and returns the River job to insert.
func (m *Admin[TTx]) prepare(ctx context.Context, j *retryjob.Job) (*jobArgs, *river.InsertOpts, error) {
	if ctx == nil {
		return nil, nil, errNoContext
	}
	if err := errors.Join(m.installed(), j.Validate(m.adapter.options.Policies)); err != nil {
		return nil, nil, err
	}
	if len(j.Kind) > longestKind {
		return nil, nil, fmt.Errorf("retryriver: Job.Kind %.40q... is longer than %d bytes", j.Kind, longestKind)
	}
	args, opts := newArgs(j), &river.InsertOpts{Queue: j.Queue, Priority: j.Priority, Tags: j.Tags}
	if first := args.record.FirstDue; first.After(time.Now()) {
		opts.ScheduledAt = ceil(first)
	}
	return args, opts, nil
}

// installed returns nil if the client calls the Adapter; another one would insert jobs without a policy.
func (m *Admin[TTx]) installed() error {
	if d, ok := m.client.Driver().(fencedDriver[TTx]); !ok || d.fence.adapter != m.adapter {
		return errNotInstalled
	}
	return nil
}

// insertError returns the error of an insert of jobs as retryjob documents it.
func insertError(err error) error {
	var unknown *river.UnknownJobKindError
	if errors.As(err, &unknown) {
		return fmt.Errorf("retryriver: Job.Kind %q: %w", unknown.Kind, retryjob.ErrUnknownKind)
	}
	return fmt.Errorf("retryriver: %w", err)
}

// Replay makes a job Pending again, in one transaction: it deletes the job's row and inserts a new one with the same
// ID, queue, priority, tags and metadata. The new row is unique by its ID, no longer by river.UniqueOpts.
func (m *Admin[TTx]) Replay(ctx context.Context, id string) error {
	return m.within(ctx, func(exec riverdriver.Executor, tx TTx) error {
		found, i, err := m.find(ctx, exec, id)
		if err != nil {
			return err
		}
		if err := i.Replay(time.Now()); err != nil {
			return err
		}
		if err := m.claim(ctx, exec, id); err != nil {
			return err
		}
		n, err := m.replay(ctx, tx, []int64{found.Row})
		if err == nil && n == 0 {
			return fmt.Errorf("%w: job %s has changed just now, or is not final", retryjob.ErrNotReplayable, id)
		}
		return err
	})
}

// replay makes the jobs in the rows with these numbers Pending again: it deletes the rows and inserts new ones. It
// returns their number, without jobs that are no longer in their rows.
func (m *Admin[TTx]) replay(ctx context.Context, tx TTx, numbers []int64) (int, error) {
	if err := m.installed(); err != nil {
		return 0, err
	}
	rows, err := m.remove(ctx, tx, numbers, rivertype.JobStateCancelled, rivertype.JobStateDiscarded)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	// The deleted rows count: they may have changed since they were found.
	fresh, now := make([]river.InsertManyParams, len(rows)), time.Now().UTC()
	for n, gone := range rows {
		i, ok := m.adapter.info(gone)
		if !ok {
			return 0, fmt.Errorf("%w: River's job %d", retryjob.ErrUnknownJob, gone.ID)
		}
		if err := i.Replay(now); err != nil {
			return 0, err
		}
		fresh[n].InsertOpts = &river.InsertOpts{Queue: gone.Queue, Priority: gone.Priority, Tags: gone.Tags}
		fresh[n].Args = &jobArgs{kind: gone.Kind, payload: i.Payload, record: stored{Record: i.Record}, uniqueKey: keyOf(i.JobID)}
	}
	if _, err := m.client.InsertManyTx(ctx, tx, fresh); err != nil {
		return 0, fmt.Errorf("retryriver: %w", err)
	}
	return len(rows), nil
}

// ReplayAll replays the jobs that f selects and that can be replayed, a few hundred in each transaction. A job that
// another client has replayed in the meantime does not count.
func (m *Admin[TTx]) ReplayAll(ctx context.Context, f retryjob.Filter) (int, error) {
	return m.batches(ctx, f.ForReplay(), retryjob.Status.Replayable, func(exec riverdriver.Executor, tx TTx, jobs []chosen) (int, error) {
		free, err := m.claimAll(ctx, exec, jobs)
		if err != nil || len(free) == 0 {
			return 0, err
		}
		return m.replay(ctx, tx, free)
	})
}
