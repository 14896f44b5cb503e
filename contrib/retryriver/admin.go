package retryriver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry/retryjob"
)

// Admin reads, changes and enqueues the jobs of a River database, as retryjob.Admin documents, plain River jobs
// included. It is safe for concurrent use, also by several processes.
//
// For an unknown job it returns retryjob.ErrUnknownJob, even if the job existed earlier, since rows are removed from
// the database.
//
// Lists are read from the table that OpenSQLite and MigratePostgres create; without it the errors are ErrNotMigrated.
// If PageSize is not set, pages get longer as the list goes on. Pages of large payloads are shorter.
type Admin[TTx any] struct {
	adapter *Adapter
	client  *river.Client[TTx]
	sql     *dialect
}

var _ retryjob.Admin = (*Admin[any])(nil)

// NewAdmin returns the Admin of the database of a's client, which NewClient has returned. The client need not be
// started or have workers.
func NewAdmin[TTx any](a *Adapter, c *river.Client[TTx]) *Admin[TTx] {
	return &Admin[TTx]{adapter: a, client: c, sql: dialectOf(c.Driver().DatabaseName())}
}

// Get returns the job with the given ID, or retryjob.ErrUnknownJob.
func (m *Admin[TTx]) Get(ctx context.Context, id string) (retryjob.Info, error) {
	_, i, err := m.find(ctx, m.client.Driver().GetExecutor(), id)
	return i, err
}

// Wait returns the job once its Status is final, or its current state with the error of ctx. It polls the database,
// first every 10 ms, later every half second.
func (m *Admin[TTx]) Wait(ctx context.Context, id string) (retryjob.Info, error) {
	if ctx == nil {
		return retryjob.Info{}, errNoContext
	}
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
func (m *Admin[TTx]) find(ctx context.Context, exec riverdriver.Executor, id string) (found *row, i retryjob.Info, err error) {
	q := m.query()
	rows, err := q.read(ctx, exec, q.job(id))
	if err != nil {
		return nil, i, err
	}
	for n := range rows {
		// The row with the ID's unique key is the job, even if other rows claim the same ID.
		job := rows[n].job()
		if own := m.adapter.info(job); own.JobID == id && (found == nil || bytes.Equal(job.UniqueKey, keyOf(id))) {
			found, i = &rows[n], own
		}
	}
	if found == nil {
		return nil, i, fmt.Errorf("retryriver: job %q: %w", id, retryjob.ErrUnknownJob)
	}
	return found, i, nil
}

func (m *Admin[TTx]) query() *query { return &query{sql: m.sql, schema: prefix(m.client.Schema())} }

// list returns a page of the jobs that f selects, the most recently changed first, and may include some that f does not
// select.
func (m *Admin[TTx]) list(ctx context.Context, exec riverdriver.Executor, f *retryjob.Filter, after *position, limit int) ([]row, error) {
	q := m.query()
	rows, err := q.read(ctx, exec, q.page(m.adapter, f, after, limit))
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(b.Changed, a.Changed), cmp.Compare(b.ID, a.ID)) })
	return rows, err
}

// pages is the page length of a list: the number of jobs in the filter, less if they are large.
type pages struct {
	size, most int
	grow       bool // not set in the filter
}

const (
	longestPage = 10_000
	firstPage   = 2
	heaviest    = 16 << 20 // bytes of payloads in a page, as far as can be estimated; the database returns them as one text
)

func pagesOf(f *retryjob.Filter) pages {
	most := min(f.Page(), longestPage)
	return pages{size: min(most, firstPage), most: most, grow: f.PageSize <= 0}
}

// next sets the size of the next page from the last one, and reports whether there is one.
func (p *pages) next(rows []row) bool {
	if len(rows) < p.size {
		return false
	}
	size := 1
	for i := range rows {
		size += len(rows[i].Args)
	}
	fit := max(heaviest/(size/len(rows)+1), 1)
	if p.size == p.most && p.grow {
		p.most = min(2*p.most, longestPage)
	}
	p.size = min(fit, p.most, max(p.size*16, p.most/16))
	return true
}

// List returns the jobs that f selects, the most recently changed first.
func (m *Admin[TTx]) List(ctx context.Context, f retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		at, err := m.place(ctx, f.After)
		if err != nil {
			yield(retryjob.Info{}, err)
			return
		}
		left, more := f.Limit, true
		for p := pagesOf(&f); more; {
			rows, err := m.list(ctx, m.client.Driver().GetExecutor(), &f, at, p.size)
			if err != nil {
				yield(retryjob.Info{}, err)
				return
			}
			at, more = after(rows), p.next(rows)
			for n := range rows {
				i := m.adapter.info(rows[n].job())
				rows[n] = row{} // its payload may be large
				if !f.Selects(&i) {
					continue
				}
				if !yield(i, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
		}
	}
}

// place returns the position of a cursor, or nil for the zero cursor.
func (m *Admin[TTx]) place(ctx context.Context, c retryjob.Cursor) (*position, error) {
	if c == (retryjob.Cursor{}) {
		return nil, nil
	}
	found, i, err := m.find(ctx, m.client.Driver().GetExecutor(), c.ID)
	switch {
	case err == nil && i.Changed().UnixMicro() == c.Changed.UnixMicro():
		return &position{found.Changed, found.ID}, nil
	case err != nil && !errors.Is(err, retryjob.ErrUnknownJob):
		return nil, err
	}
	return &position{c.Changed.UnixMicro(), math.MaxInt64}, nil
}

// Count returns the number of jobs that f selects, by Status, and the oldest time of each. Without
// f.IDs it reads no jobs: a row whose record cannot be read counts by its columns, and times have microsecond precision.
func (m *Admin[TTx]) Count(ctx context.Context, f retryjob.Filter) (map[retryjob.Status]retryjob.Tally, error) {
	if len(f.IDs) > 0 {
		return m.countListed(ctx, f)
	}
	q := m.query()
	var rows []struct {
		Status retryjob.Status
		Jobs   int
		Oldest int64
	}
	if err := q.into(ctx, m.client.Driver().GetExecutor(), &rows, q.counts(m.adapter, &f)); err != nil {
		return nil, err
	}
	counts := map[retryjob.Status]retryjob.Tally{}
	for _, r := range rows {
		counts[r.Status] = retryjob.Tally{Jobs: r.Jobs, Oldest: time.UnixMicro(r.Oldest).UTC()}
	}
	return counts, nil
}

// countListed counts the jobs with f.IDs. Their rows cannot be identified by columns: the ID of a plain job has a number that
// SQLite may have given to another row since.
func (m *Admin[TTx]) countListed(ctx context.Context, f retryjob.Filter) (map[retryjob.Status]retryjob.Tally, error) {
	f.Limit, f.After = 0, retryjob.Cursor{}
	counts := map[retryjob.Status]retryjob.Tally{}
	for i, err := range m.List(ctx, f) {
		if err != nil {
			return nil, err
		}
		t := counts[i.Status]
		t.Add(&i)
		counts[i.Status] = t
	}
	return counts, nil
}

// Policies returns the names of the policies of all jobs, sorted, except those that plain River jobs have by
// Options.PolicyOf.
func (m *Admin[TTx]) Policies(ctx context.Context) (names []string, err error) {
	q := m.query()
	err = q.into(ctx, m.client.Driver().GetExecutor(), &names, q.policies())
	slices.Sort(names)
	return names, err
}

// after returns the position of the last of the rows.
func after(rows []row) *position {
	if len(rows) == 0 {
		return nil // no next page
	}
	last := &rows[len(rows)-1]
	return &position{last.Changed, last.ID}
}

// Cancel makes a job that is not final Canceled. If an attempt is running, its context ends within about 50 ms, and the
// job is Canceled when the attempt has ended, unless it succeeds. If no attempt is running, Cancel calls the policy's
// Observe with the end.
func (m *Admin[TTx]) Cancel(ctx context.Context, id string) error {
	var i retryjob.Info
	running := false
	err := m.within(ctx, func(exec riverdriver.Executor, tx TTx) (err error) {
		found := (*row)(nil)
		if found, i, err = m.find(ctx, exec, id); err != nil {
			return err
		}
		if err := i.Cancel(time.Now().UTC()); err != nil {
			return err // already final
		}
		row, err := m.client.JobCancelTx(ctx, tx, found.ID)
		if err != nil {
			return err
		}
		if running = row.State == rivertype.JobStateRunning; !running || !m.sql.mute {
			return nil
		}
		return exec.NotifyMany(ctx, &riverdriver.NotifyManyParams{
			Topic: "river_control", Schema: m.client.Schema(),
			Payload: []string{fmt.Sprintf(`{"action":"cancel","job_id":%d,"queue":%q}`, row.ID, row.Queue)},
		})
	})
	if err == nil && !running {
		m.adapter.stepper.Canceled(ctx, &i.Record)
	}
	return err
}

// Purge removes the final jobs that f selects, a few hundred in each transaction.
func (m *Admin[TTx]) Purge(ctx context.Context, f retryjob.Filter) (int, error) {
	return m.batches(ctx, f, retryjob.Status.Final, func(_ riverdriver.Executor, tx TTx, chosen []int64) (int, error) {
		gone, err := m.remove(ctx, tx, chosen)
		return len(gone), err
	})
}

// batch is how many jobs a transaction changes. On SQLite other writers wait for it.
const batch = 500

// batches calls change with the jobs that f selects and whose status is in able, in a transaction for each page. change
// returns the number of jobs that it changed.
func (m *Admin[TTx]) batches(
	ctx context.Context, f retryjob.Filter, able func(retryjob.Status) bool, change func(exec riverdriver.Executor, tx TTx, chosen []int64) (int, error),
) (done int, err error) {
	f.Statuses = only(f.Statuses, able)
	f.PageSize = min(f.Page(), batch)
	at, err := m.place(ctx, f.After)
	if err != nil {
		return 0, err
	}
	for p, more := pagesOf(&f), len(f.Statuses) > 0; more; {
		changed := 0
		err := m.within(ctx, func(exec riverdriver.Executor, tx TTx) error {
			rows, err := m.list(ctx, exec, &f, at, p.size)
			if err != nil {
				return err
			}
			var chosen []int64
			for n := range rows {
				if i := m.adapter.info(rows[n].job()); f.Selects(&i) && (f.Limit <= 0 || done+len(chosen) < f.Limit) {
					chosen = append(chosen, rows[n].ID)
				}
			}
			at, more = after(rows), p.next(rows)
			if len(chosen) > 0 {
				changed, err = change(exec, tx, chosen)
			}
			return err
		})
		if err != nil {
			return done, err
		}
		done += changed
		more = more && (f.Limit <= 0 || done < f.Limit)
	}
	return done, nil
}

// remove deletes the rows with these numbers, except those that are no longer final, and returns the deleted rows.
// JobDelete cannot be used on PostgreSQL: it returns a row even if another client has just deleted it.
func (m *Admin[TTx]) remove(ctx context.Context, tx TTx, numbers []int64) ([]*rivertype.JobRow, error) {
	result, err := m.client.JobDeleteManyTx(ctx, tx, river.NewJobDeleteManyParams().IDs(numbers...).States(endStates...).First(len(numbers)))
	if err != nil {
		return nil, err
	}
	return result.Jobs, nil
}

var endStates = []rivertype.JobState{rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded}

// only returns those of statuses, or of all if statuses is empty, that ok accepts.
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
	return within(ctx, m.client.Driver().GetExecutor(), func(exec riverdriver.ExecutorTx) error {
		return f(exec, m.client.Driver().UnwrapTx(exec))
	})
}
