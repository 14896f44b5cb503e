package retryriver

import (
	"bytes"
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
	rows, err := q.read(ctx, exec, q.ids([]string{id}), true)
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

// reader reads the rows that a filter selects page by page, the most recently changed first.
type reader[TTx any] struct {
	*Admin[TTx]
	filter   retryjob.Filter // without IDs
	payloads bool
	at       *position // the last row that was read
	pages    pages
	more     bool
	ids      map[string]bool // of the filter; nil means any
	places   []position      // of the rows that may have them
}

// idsAtOnce is how many IDs a query looks up.
const idsAtOnce = 1000

func (m *Admin[TTx]) reader(ctx context.Context, f retryjob.Filter, payloads bool) (*reader[TTx], error) {
	at, err := m.place(ctx, f.After)
	if err != nil {
		return nil, err
	}
	r := &reader[TTx]{Admin: m, filter: f, payloads: payloads, at: at, pages: pagesOf(&f), more: true}
	if len(f.IDs) == 0 {
		return r, nil
	}
	r.filter.IDs, r.ids = nil, map[string]bool{}
	for ids := range slices.Chunk(distinct(f.IDs), idsAtOnce) {
		for _, id := range ids {
			r.ids[id] = true
		}
		q := m.query()
		var places []position
		if err := q.into(ctx, m.client.Driver().GetExecutor(), &places, "SELECT "+fmt.Sprintf(m.sql.array, m.sql.fields("row_id", "changed")+")")+" FROM ("+q.ids(ids)+") AS places"); err != nil {
			return nil, err
		}
		r.places = append(r.places, places...)
	}
	slices.SortFunc(r.places, position.compare)
	r.places = slices.Compact(r.places)
	if at != nil {
		r.places = slices.DeleteFunc(r.places, func(p position) bool { return p.compare(*at) <= 0 })
	}
	return r, nil
}

// next returns the jobs of the next page, with their rows.
func (r *reader[TTx]) next(ctx context.Context, exec riverdriver.Executor) (numbers []int64, infos []retryjob.Info, err error) {
	q := r.query()
	text, left := "", 0
	if r.ids == nil {
		text = q.page(r.adapter, &r.filter, r.at, r.pages.size)
	} else {
		page := r.places[:min(r.pages.size, len(r.places))]
		numbers := make([]int64, len(page))
		for i := range page {
			numbers[i] = page[i].Row
		}
		text, left, r.places = q.numbered(numbers), len(r.places)-len(page), r.places[len(page):]
	}
	rows, err := q.read(ctx, exec, text, r.payloads)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(rows, func(a, b row) int { return a.position().compare(b.position()) })
	if r.more = r.pages.next(rows) || left > 0; len(rows) > 0 {
		at := rows[len(rows)-1].position()
		r.at = &at
	}
	for n := range rows {
		i := r.adapter.info(rows[n].job())
		if rows[n].Args = nil; (r.ids == nil || r.ids[i.JobID]) && r.filter.Selects(&i) { // its payload may be large
			numbers, infos = append(numbers, rows[n].ID), append(infos, i)
		}
	}
	return numbers, infos, nil
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

// next sets the size of the next page from the last one, and reports whether that was full.
func (p *pages) next(rows []row) (full bool) {
	full = len(rows) >= p.size
	size := 1
	for i := range rows {
		size += len(rows[i].Args)
	}
	fit := max(heaviest/(size/max(len(rows), 1)+1), 1)
	if p.size == p.most && p.grow {
		p.most = min(2*p.most, longestPage)
	}
	p.size = min(fit, p.most, max(p.size*16, p.most/16))
	return full
}

// List returns the jobs that f selects, the most recently changed first.
func (m *Admin[TTx]) List(ctx context.Context, f retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return m.list(ctx, f, true)
}

func (m *Admin[TTx]) list(ctx context.Context, f retryjob.Filter, payloads bool) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		r, err := m.reader(ctx, f, payloads)
		if err != nil {
			yield(retryjob.Info{}, err)
			return
		}
		for left := f.Limit; r.more; {
			_, infos, err := r.next(ctx, m.client.Driver().GetExecutor())
			if err != nil {
				yield(retryjob.Info{}, err)
				return
			}
			for n := range infos {
				if !yield(infos[n], nil) {
					return
				}
				if left--; left == 0 {
					return
				}
				infos[n] = retryjob.Info{} // its payload may be large
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
	counts := map[retryjob.Status]retryjob.Tally{}
	add := func(status retryjob.Status, t retryjob.Tally) {
		if own := counts[status]; own.Jobs > 0 {
			if t.Jobs += own.Jobs; own.Oldest.Before(t.Oldest) {
				t.Oldest = own.Oldest
			}
		}
		counts[status] = t
	}
	if len(f.IDs) > 0 {
		groups, err := m.Groups(ctx, f)
		for _, g := range groups {
			add(g.Status, g.Tally)
		}
		return counts, err
	}
	q := m.query()
	var rows []counted
	if err := q.into(ctx, m.client.Driver().GetExecutor(), &rows, q.counts(m.adapter, f)); err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Tally.Jobs > 0 {
			add(r.Status, r.tally())
		}
	}
	return counts, nil
}

// Groups returns the jobs that f selects in groups, like Count.
func (m *Admin[TTx]) Groups(ctx context.Context, f retryjob.Filter) ([]retryjob.Group, error) {
	if f.Limit, f.After = 0, (retryjob.Cursor{}); len(f.IDs) > 0 {
		return retryjob.GroupsOf(m.list(ctx, f, false))
	}
	q := m.query()
	exec := m.client.Driver().GetExecutor()
	var rows []counted
	if err := q.into(ctx, exec, &rows, q.groups(m.adapter, f)); err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r counted) bool { return r.Newest == nil })
	numbers := make([]int64, len(rows))
	for n := range rows {
		numbers[n] = *rows[n].Newest
	}
	q = m.query()
	examples, err := q.read(ctx, exec, q.numbered(numbers), false)
	if err != nil {
		return nil, err
	}
	newest := map[int64]retryjob.Info{}
	for n := range examples {
		i := m.adapter.info(examples[n].job())
		i.Payload = nil
		newest[examples[n].ID] = i
	}
	groups := make([]retryjob.Group, len(rows))
	for n, r := range rows {
		g := &groups[n]
		*g = retryjob.Group{Status: r.Status, Kind: r.Kind, Policy: r.Policy, Code: r.Code, Tally: r.tally(), Newest: newest[*r.Newest]}
		for _, reason := range retryjob.Reasons() {
			if reason.Error() == r.Reason {
				g.Reason = reason
			}
		}
		if g.Policy == "" {
			g.Policy, _ = m.adapter.policyOf(g.Kind)
		}
	}
	return groups, nil
}

// counted is a number of jobs, and what a query counts them by.
type counted struct {
	Status             retryjob.Status
	Kind, Policy, Code string
	Reason             string
	Tally              struct{ Jobs, Oldest int64 }
	Newest             *int64 // nil for no job
}

func (c *counted) tally() retryjob.Tally {
	return retryjob.Tally{Jobs: int(c.Tally.Jobs), Oldest: time.UnixMicro(c.Tally.Oldest).UTC()}
}

// Cancel makes a job that is not final Canceled. If an attempt is running, its context ends within about 50 ms, and the
// job is Canceled when the attempt has ended, even if it succeeds. If no attempt is running, Cancel calls the policy's
// Observe with the end. On SQLite, Cancel waits for transactions, and returns an error if the job ends in one of them.
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
	if f.Statuses = only(f.Statuses, able); len(f.Statuses) == 0 {
		return 0, nil
	}
	f.PageSize = min(f.Page(), batch)
	r, err := m.reader(ctx, f, false)
	if err != nil {
		return 0, err
	}
	for r.more && (f.Limit <= 0 || done < f.Limit) {
		changed := 0
		err := m.within(ctx, func(exec riverdriver.Executor, tx TTx) error {
			chosen, _, err := r.next(ctx, exec)
			if f.Limit > 0 {
				chosen = chosen[:min(len(chosen), f.Limit-done)]
			}
			if len(chosen) > 0 && err == nil {
				changed, err = change(exec, tx, chosen)
			}
			return err
		})
		if err != nil {
			return done, err
		}
		done += changed
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
