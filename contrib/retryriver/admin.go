package retryriver

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry/retryjob"
)

// Admin looks at the jobs of a River database and changes them, as retryjob.Admin says, and enqueues them. It shows plain
// River jobs too. It is safe for concurrent use, also by several processes.
//
// For a job that is not there it returns retryjob.ErrUnknownJob: a database that removes rows does not know which ones it had.
//
// A page of List reads every job in the states that the filter needs; if PageSize is not set, pages get longer as the
// list goes on.
type Admin[TTx any] struct {
	adapter *Adapter
	client  *river.Client[TTx]
	sql     dialect
}

var _ retryjob.Admin = (*Admin[any])(nil)

// NewAdmin returns the Admin of the database of a client, whose river.Config a was installed on. The client need not be
// started, nor have workers.
func NewAdmin[TTx any](a *Adapter, c *river.Client[TTx]) *Admin[TTx] {
	return &Admin[TTx]{adapter: a, client: c, sql: dialectOf(c.Driver().DatabaseName())}
}

// Get returns the job with the given ID, or retryjob.ErrUnknownJob.
func (m *Admin[TTx]) Get(ctx context.Context, id string) (retryjob.Info, error) {
	_, i, err := m.find(ctx, m.client.Driver().GetExecutor(), id)
	return i, err
}

// Wait returns the job once its Status is final, or with the error of ctx as it then is. It asks the database again and again,
// every 10 ms first and every half second at last.
func (m *Admin[TTx]) Wait(ctx context.Context, id string) (retryjob.Info, error) {
	pause := 10 * time.Millisecond
	timer := time.NewTimer(pause)
	defer timer.Stop()
	var last retryjob.Info
	for {
		i, err := m.Get(ctx, id)
		switch {
		case ctx.Err() != nil && err != nil:
			return last, ctx.Err()
		case err != nil || i.Status.Final():
			return i, err
		}
		last = i
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-timer.C:
		}
		pause = min(pause*5/4, 500*time.Millisecond)
		timer.Reset(pause)
	}
}

// find returns the job with the given ID and its row.
func (m *Admin[TTx]) find(ctx context.Context, exec riverdriver.Executor, id string) (*rivertype.JobRow, retryjob.Info, error) {
	for _, where := range m.sql.byID(id) {
		rows, err := m.list(ctx, exec, where, 1)
		if err != nil {
			return nil, retryjob.Info{}, err
		}
		for _, row := range rows {
			if i, err := m.adapter.info(row); err != nil || i.JobID == id {
				return row, i, err
			}
		}
	}
	return nil, retryjob.Info{}, fmt.Errorf("retryriver: job %q: %w", id, retryjob.ErrUnknownJob)
}

// list returns the rows that a condition selects, the one that changed last first.
func (m *Admin[TTx]) list(ctx context.Context, exec riverdriver.Executor, where condition, limit int) ([]*rivertype.JobRow, error) {
	return exec.JobList(ctx, &riverdriver.JobListParams{
		WhereClause: where.sql, NamedArgs: where.args, OrderByClause: m.sql.changed + " DESC, id DESC",
		Max: int32(min(limit, longestPage)), Schema: m.client.Schema(),
	})
}

// longestPage bounds what is held at once.
const longestPage = 10_000

// List returns the jobs that f selects, the one that changed last first.
func (m *Admin[TTx]) List(ctx context.Context, f retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		left, at := f.Limit, newest
		for size := f.Page(); ; {
			rows, err := m.list(ctx, m.client.Driver().GetExecutor(), m.sql.where(&f, at), size)
			if err != nil {
				yield(retryjob.Info{}, err)
				return
			}
			for _, row := range rows {
				i, err := m.adapter.info(row)
				if err == nil && !f.Selects(&i) {
					continue
				}
				if !yield(i, err) || err != nil {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if len(rows) < min(size, longestPage) {
				return
			}
			if at, err = m.position(rows[len(rows)-1]); err != nil {
				yield(retryjob.Info{}, err)
				return
			}
			if f.PageSize <= 0 {
				size *= 2
			}
		}
	}
}

// DeadLetters is List of those that are DeadLettered, whatever f.Statuses says.
func (m *Admin[TTx]) DeadLetters(ctx context.Context, f retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	f.Statuses = []retryjob.Status{retryjob.DeadLettered}
	return m.List(ctx, f)
}

// position returns where a list is to be taken up after row.
func (m *Admin[TTx]) position(row *rivertype.JobRow) (position, error) {
	i, err := m.adapter.info(row)
	return position{i.Changed().UnixMicro(), row.ID}, err
}

// Cancel makes a job that is not final Canceled. The attempt of one that runs learns of it within some 50 ms, and the job is
// Canceled when it has ended; unless it succeeds all the same.
func (m *Admin[TTx]) Cancel(ctx context.Context, id string) error {
	return m.within(ctx, func(exec riverdriver.Executor, tx TTx) error {
		row, i, err := m.find(ctx, exec, id)
		if err != nil {
			return err
		}
		if err := i.Cancel(time.Now()); err != nil {
			return err // final already
		}
		if row, err = m.client.JobCancelTx(ctx, tx, row.ID); err != nil || row.State != rivertype.JobStateRunning || !m.sql.mute {
			return err
		}
		return exec.NotifyMany(ctx, &riverdriver.NotifyManyParams{
			Topic: "river_control", Schema: m.client.Schema(),
			Payload: []string{fmt.Sprintf(`{"action":"cancel","job_id":%d,"queue":%q}`, row.ID, row.Queue)},
		})
	})
}

// Purge removes what f selects of the final jobs, each page in a transaction of its own.
func (m *Admin[TTx]) Purge(ctx context.Context, f retryjob.Filter) (done int, err error) {
	f.Statuses = only(f.Statuses, retryjob.Status.Final)
	for at, more := newest, len(f.Statuses) > 0; more; {
		var removed int
		err := m.within(ctx, func(exec riverdriver.Executor, tx TTx) error {
			rows, err := m.list(ctx, exec, m.sql.where(&f, at), f.Page())
			if err != nil {
				return err
			}
			var chosen []int64
			for _, row := range rows {
				if i, err := m.adapter.info(row); err != nil {
					return err
				} else if f.Selects(&i) && (f.Limit <= 0 || done+len(chosen) < f.Limit) {
					chosen = append(chosen, row.ID)
				}
			}
			if more = len(rows) == min(f.Page(), longestPage) && (f.Limit <= 0 || done+len(chosen) < f.Limit); more {
				if at, err = m.position(rows[len(rows)-1]); err != nil {
					return err
				}
			}
			if len(chosen) == 0 {
				return nil
			}
			gone, err := m.remove(ctx, tx, chosen)
			removed = len(gone)
			return err
		})
		if err != nil {
			return done, err
		}
		done += removed
	}
	return done, nil
}

// remove deletes the rows with these numbers, but for those that have left their final state, and returns what was deleted.
// JobDelete would not do on PostgreSQL: it returns a row even if another client has just deleted it.
func (m *Admin[TTx]) remove(ctx context.Context, tx TTx, numbers []int64) ([]*rivertype.JobRow, error) {
	result, err := m.client.JobDeleteManyTx(ctx, tx, river.NewJobDeleteManyParams().IDs(numbers...).States(endStates...).First(len(numbers)))
	if err != nil {
		return nil, err
	}
	return result.Jobs, nil
}

var endStates = []rivertype.JobState{rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded}

// only returns those of the statuses, or of all if there are none, that ok takes.
func only(statuses []retryjob.Status, ok func(retryjob.Status) bool) (chosen []retryjob.Status) {
	if len(statuses) == 0 {
		statuses = retryjob.Statuses()
	}
	for _, s := range statuses {
		if ok(s) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// within runs f in a transaction.
func (m *Admin[TTx]) within(ctx context.Context, f func(exec riverdriver.Executor, tx TTx) error) error {
	exec, err := m.client.Driver().GetExecutor().Begin(ctx)
	if err != nil {
		return err
	}
	if err := f(exec, m.client.Driver().UnwrapTx(exec)); err != nil {
		return errors.Join(err, exec.Rollback(context.WithoutCancel(ctx)))
	}
	return exec.Commit(ctx)
}
