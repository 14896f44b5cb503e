package retryriver

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry/retryjob"
)

// Admin reads, changes and enqueues the jobs of a River database, as retryjob.Admin documents; other jobs of River are
// not among them. It is safe for concurrent use, also by several processes.
//
// For an unknown job it returns retryjob.ErrUnknownJob, even if the job existed earlier, since rows are removed from
// the database.
//
// Lists are read by the indexes that OpenSQLite and MigratePostgres create. Without them they are slow on PostgreSQL, and
// the errors are ErrNotMigrated on SQLite.
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

// find returns the job with the given ID and its place. A replay that is faster gives the job another row. Then it asks
// for that one.
func (m *Admin[TTx]) find(ctx context.Context, exec riverdriver.Executor, id string) (position, retryjob.Info, error) {
	for {
		q := m.query()
		places, err := q.places(ctx, exec, q.ids([]string{id}))
		if err != nil {
			return position{}, retryjob.Info{}, err
		}
		numbers := make([]int64, len(places))
		for n, place := range places {
			numbers[n] = place.Row
		}
		rows, err := q.read(ctx, exec, numbers)
		if err != nil {
			return position{}, retryjob.Info{}, err
		}
		for _, row := range rows {
			if i, ok := m.adapter.info(row); ok && i.JobID == id {
				return position{i.Changed().UnixMicro(), row.ID}, i, nil
			}
		}
		if len(rows) == len(places) {
			return position{}, retryjob.Info{}, fmt.Errorf("retryriver: job %q: %w", id, retryjob.ErrUnknownJob)
		}
	}
}

func (m *Admin[TTx]) query() *query {
	return &query{sql: m.sql, client: m.client.Schema(), schema: prefix(m.client.Schema())}
}

// reader reads the rows that a filter selects page by page, the most recently changed first.
type reader[TTx any] struct {
	*Admin[TTx]
	filter retryjob.Filter // without IDs
	at     *position       // the last row that was read
	pages  pages
	more   bool
	ids    map[string]bool // of the filter; nil means any
	places []position      // of the rows that may have them
}

// idsAtOnce is how many IDs a query looks up.
const idsAtOnce = 1000

func (m *Admin[TTx]) reader(ctx context.Context, f retryjob.Filter) (*reader[TTx], error) {
	at, err := m.place(ctx, f.After)
	if err != nil {
		return nil, err
	}
	r := &reader[TTx]{Admin: m, filter: f, at: at, pages: pagesOf(&f), more: true}
	if len(f.IDs) == 0 {
		return r, nil
	}
	r.filter.IDs, r.ids = nil, map[string]bool{}
	for ids := range slices.Chunk(distinct(f.IDs), idsAtOnce) {
		for _, id := range ids {
			r.ids[id] = true
		}
		q := m.query()
		places, err := q.places(ctx, m.client.Driver().GetExecutor(), q.ids(ids))
		if err != nil {
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

// next returns the jobs of the next page, with the numbers of their rows.
func (r *reader[TTx]) next(ctx context.Context, exec riverdriver.Executor) (numbers []int64, infos []retryjob.Info, err error) {
	q := r.query()
	var places []position
	if r.ids != nil {
		n := min(r.pages.size, len(r.places))
		places, r.places = r.places[:n], r.places[n:]
	} else if places, err = q.places(ctx, exec, q.page(&r.filter, r.at, r.pages.size)); err != nil {
		return nil, nil, err
	}
	for _, p := range places {
		numbers = append(numbers, p.Row)
	}
	rows, err := q.read(ctx, exec, numbers)
	if err != nil {
		return nil, nil, err
	}
	r.more = r.pages.next(len(places), rows)
	if len(places) > 0 {
		r.at = &places[len(places)-1]
	}
	numbers = numbers[:0]
	for _, p := range places {
		if row := rows[p.Row]; row != nil {
			if i, ok := r.adapter.info(row); ok && r.selects(&i) {
				numbers = append(numbers, row.ID)
				infos = append(infos, i)
			}
		}
	}
	return numbers, infos, nil
}

func (r *reader[TTx]) selects(i *retryjob.Info) bool {
	asked := r.ids == nil || r.ids[i.JobID]
	return asked && r.filter.Selects(i)
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
func (p *pages) next(length int, rows map[int64]*rivertype.JobRow) (full bool) {
	full = length >= p.size
	size := 1
	for _, row := range rows {
		size += len(row.EncodedArgs)
	}
	fit := max(heaviest/(size/max(length, 1)+1), 1)
	if p.size == p.most && p.grow {
		p.most = min(2*p.most, longestPage)
	}
	p.size = min(fit, p.most, max(p.size*16, p.most/16))
	return full
}

// List returns the jobs that f selects, the most recently changed first.
func (m *Admin[TTx]) List(ctx context.Context, f retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		r, err := m.reader(ctx, f)
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
		return &found, nil
	case err != nil && !errors.Is(err, retryjob.ErrUnknownJob):
		return nil, err
	}
	return &position{c.Changed.UnixMicro(), math.MaxInt64}, nil
}

// Count returns the number of jobs that f selects, by Status, and the oldest time of each. Without
// f.IDs it reads no jobs. A row whose record cannot be read counts by its columns, and times have microsecond precision.
func (m *Admin[TTx]) Count(ctx context.Context, f retryjob.Filter) (map[retryjob.Status]retryjob.Tally, error) {
	var groups []retryjob.Group
	more := m.leased
	if len(f.IDs) > 0 {
		more = m.Groups
	} else if len(only(f.Statuses, unleased)) > 0 {
		q := m.query()
		var rows []counted
		if err := q.into(ctx, m.client.Driver().GetExecutor(), &rows, q.counts(f)); err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.Tally.Jobs > 0 {
				groups = append(groups, retryjob.Group{Status: r.Status, Tally: r.tally()})
			}
		}
	}
	others, err := more(ctx, f)
	counts := map[retryjob.Status]retryjob.Tally{}
	for _, g := range append(groups, others...) {
		if own := counts[g.Status]; own.Jobs > 0 {
			g.Tally.Jobs += own.Jobs
			if own.Oldest.Before(g.Tally.Oldest) {
				g.Tally.Oldest = own.Oldest
			}
		}
		counts[g.Status] = g.Tally
	}
	return counts, err
}

// leased returns the groups of the running jobs that f selects, which it reads.
func (m *Admin[TTx]) leased(ctx context.Context, f retryjob.Filter) ([]retryjob.Group, error) {
	f.Limit, f.After = 0, retryjob.Cursor{}
	if f.Statuses = only(f.Statuses, func(s retryjob.Status) bool { return s == retryjob.Leased }); len(f.Statuses) == 0 {
		return nil, nil
	}
	return retryjob.GroupsOf(m.List(ctx, f))
}

// Groups returns the jobs that f selects in groups, like Count.
func (m *Admin[TTx]) Groups(ctx context.Context, f retryjob.Filter) ([]retryjob.Group, error) {
	f.Limit, f.After = 0, retryjob.Cursor{}
	if len(f.IDs) > 0 {
		return retryjob.GroupsOf(m.List(ctx, f))
	}
	groups, err := m.leased(ctx, f)
	if err != nil || len(only(f.Statuses, unleased)) == 0 {
		return groups, err
	}
	q := m.query()
	exec := m.client.Driver().GetExecutor()
	var rows []counted
	if err := q.into(ctx, exec, &rows, q.groups(f)); err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r counted) bool { return r.Newest == nil })
	numbers := make([]int64, len(rows))
	for n := range rows {
		numbers[n] = *rows[n].Newest
	}
	newest, err := q.read(ctx, exec, numbers)
	if err != nil {
		return nil, err
	}
	for n, r := range rows {
		g := retryjob.Group{Status: r.Status, Kind: r.Kind, Policy: r.Policy, Tally: r.tally()}
		g.Cause, g.InDoubt = strings.CutPrefix(r.Cause, doubtMark)
		if row := newest[numbers[n]]; row != nil {
			g.Newest, _ = m.adapter.info(row)
			g.Newest.Payload = nil
		}
		for _, reason := range retryjob.Reasons() {
			if reason.Error() == r.Reason {
				g.Reason = reason
			}
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// counted is a number of jobs, and what a query counts them by.
type counted struct {
	Status              retryjob.Status
	Kind, Policy, Cause string
	Reason              string
	Tally               struct{ Jobs, Oldest int64 }
	Newest              *int64 // nil for no job
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
		var found position
		if found, i, err = m.find(ctx, exec, id); err != nil {
			return err
		}
		if err := i.Cancel(time.Now().UTC()); err != nil {
			return err // already final
		}
		row, err := m.client.JobCancelTx(ctx, tx, found.Row)
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
	return m.batches(ctx, f, retryjob.Status.Final, func(_ riverdriver.Executor, tx TTx, jobs []chosen) (int, error) {
		rows := make([]int64, len(jobs))
		for n, job := range jobs {
			rows[n] = job.row
		}
		gone, err := m.remove(ctx, tx, rows, rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded)
		return len(gone), err
	})
}

// chosen is a job that a filter selects, and its row.
type chosen struct {
	row int64
	id  string
}

// batch is how many jobs a transaction changes. On SQLite other writers wait for it.
const batch = 500

// batches calls change with the jobs that f selects and whose status is in able, in a transaction for each page. change
// returns the number of jobs that it changed.
func (m *Admin[TTx]) batches(
	ctx context.Context, f retryjob.Filter, able func(retryjob.Status) bool, change func(exec riverdriver.Executor, tx TTx, jobs []chosen) (int, error),
) (done int, err error) {
	if f.Statuses = only(f.Statuses, able); len(f.Statuses) == 0 {
		return 0, nil
	}
	f.PageSize = min(f.Page(), batch)
	r, err := m.reader(ctx, f)
	if err != nil {
		return 0, err
	}
	for r.more && (f.Limit <= 0 || done < f.Limit) {
		changed := 0
		err := m.within(ctx, func(exec riverdriver.Executor, tx TTx) error {
			rows, infos, err := r.next(ctx, exec)
			if err != nil {
				return err
			}
			jobs := make([]chosen, len(rows))
			for n, row := range rows {
				jobs[n] = chosen{row, infos[n].JobID}
			}
			if f.Limit > 0 {
				jobs = jobs[:min(len(jobs), f.Limit-done)]
			}
			if len(jobs) > 0 {
				changed, err = change(exec, tx, jobs)
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

// remove deletes the rows with these numbers that are in one of the states, and returns the deleted rows.
// JobDelete cannot be used on PostgreSQL: it returns a row even if another client has just deleted it.
func (m *Admin[TTx]) remove(ctx context.Context, tx TTx, numbers []int64, states ...rivertype.JobState) ([]*rivertype.JobRow, error) {
	result, err := m.client.JobDeleteManyTx(ctx, tx, river.NewJobDeleteManyParams().IDs(numbers...).States(states...).First(len(numbers)))
	if err != nil {
		return nil, err
	}
	return result.Jobs, nil
}

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
