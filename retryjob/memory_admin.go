package retryjob

import (
	"cmp"
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry"
)

// List returns the jobs that f selects, most recently changed first. It leaves out jobs that change while it reads.
func (e *Engine) List(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := contextErr(ctx); err != nil {
			yield(Info{}, err)
			return
		}
		listed, read := 0, 0
		for p := range e.newestFirst(&f, Statuses(), true) {
			if listed == f.Limit && f.Limit > 0 {
				return
			}
			if read%f.Page() == 0 && ctx.Err() != nil {
				yield(Info{}, ctx.Err())
				return
			}
			read++
			unchanged := p.lock()
			p.shard.mu.Unlock()
			if !unchanged {
				continue
			}
			if listed++; !yield(p.info, nil) {
				return
			}
		}
	}
}

// found is a job as it was when it was read for a list.
type found struct {
	shard   *shard
	changed uint64
	job     *job
	info    Info
}

// lock locks the shard, and reports whether the job has not changed since it was read.
func (p *found) lock() (unchanged bool) {
	p.shard.mu.Lock()
	return p.job.changed == p.changed
}

// reader reads the jobs of a shard with one status, most recently changed first.
type reader struct {
	shard  *shard
	status Status
	read   []found // from next on not yet yielded
	next   int
	before uint64 // all later changes have been read
	last   *job   // that was read
	done   bool
}

// newestFirst yields the jobs with one of the statuses that f selects, in the order of List, with their Info if infos
// is true. It reads page by page, each page longer than the one before, on all cores.
func (e *Engine) newestFirst(f *Filter, statuses []Status, infos bool) iter.Seq[*found] {
	before := e.changes.Load() + 1
	if (f.After != Cursor{}) {
		_ = e.with(context.Background(), f.After.ID, func(j *job) error {
			if e.clock.time(j.changedAt()).UnixMicro() == f.After.Changed.UnixMicro() {
				before = j.changed
			}
			return nil
		})
	}
	selects := e.selector(f)
	if len(f.IDs) > 0 {
		return slices.Values(e.found(f, statuses, before, selects, infos))
	}
	return func(yield func(*found) bool) {
		var readers []reader
		for i := range e.shards {
			for _, status := range statuses {
				if oneOf(f.Statuses, status) {
					readers = append(readers, reader{shard: &e.shards[i], status: status, before: before})
				}
			}
		}
		var page []*found
		for most, least := 8, uint64(1); least > 0; most = min(2*most, 512) {
			parallel(len(readers), func(i int) { e.fill(&readers[i], most, selects, infos) })
			least = 0 // all later changes have been read
			for i := range readers {
				if r := &readers[i]; !r.done {
					least = max(least, r.before)
				}
			}
			page = page[:0]
			for i := range readers {
				for r := &readers[i]; r.next < len(r.read) && r.read[r.next].changed >= least; r.next++ {
					page = append(page, &r.read[r.next])
				}
			}
			slices.SortFunc(page, func(a, b *found) int { return cmp.Compare(b.changed, a.changed) })
			for _, p := range page {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// found returns the jobs with f.IDs and one of the statuses that changed before the given change.
func (e *Engine) found(f *Filter, statuses []Status, before uint64, selects func(*job) bool, infos bool) (all []*found) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(f.IDs))) {
		_ = e.with(context.Background(), id, func(j *job) error {
			if j.changed < before && slices.Contains(statuses, j.status) && oneOf(f.Statuses, j.status) && selects(j) {
				p := &found{shard: e.shard(j.place), changed: j.changed, job: j}
				if infos {
					j.info(&p.info, e.clock)
				}
				all = append(all, p)
			}
			return nil
		})
	}
	slices.SortFunc(all, func(a, b *found) int { return cmp.Compare(b.changed, a.changed) })
	return all
}

// fill reads until r has most jobs that were not yielded.
func (e *Engine) fill(r *reader, most int, selects func(*job) bool, infos bool) {
	if r.done {
		return
	}
	r.read, r.next = r.read[:copy(r.read, r.read[r.next:])], 0
	now := e.clock.now()
	var histories room
	r.shard.mu.Lock()
	defer r.shard.mu.Unlock()
	j := r.shard.lists[r.status].newest
	if r.last != nil && r.last.changed == r.before { // it is still in the list
		j = r.last
	}
	for ; j != nil && len(r.read) < most; j = j.older {
		if j.changed >= r.before {
			continue
		}
		if r.last, r.before = j, j.changed; e.aged(j, now) || !selects(j) {
			continue
		}
		r.read = append(r.read, found{shard: r.shard, changed: j.changed, job: j})
		if infos {
			i := &r.read[len(r.read)-1].info
			i.History = histories.take(j)
			j.info(i, e.clock)
		}
	}
	r.done = j == nil
}

// parallel calls f with 0 to n-1, on GOMAXPROCS goroutines.
func parallel(n int, f func(int)) {
	var taken atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(taken.Add(1)); i <= n; i = int(taken.Add(1)) {
				f(i - 1)
			}
		})
	}
	all.Wait()
}

// selector returns Filter.Selects without the IDs and statuses, for jobs whose shard is locked.
func (e *Engine) selector(f *Filter) func(*job) bool {
	since, until := e.clock.instant(f.Since), e.clock.instant(f.Until)
	return func(j *job) bool {
		r, changed := j.route.Value(), j.changedAt()
		return oneOf(f.Reasons, j.reason) && oneOf(f.Policies, r.policy) && oneOf(f.Kinds, r.kind.name) &&
			(len(f.Tags) == 0 || slices.ContainsFunc(r.tagList(), func(tag string) bool { return slices.Contains(f.Tags, tag) })) &&
			(f.Since.IsZero() || changed >= since) && (f.Until.IsZero() || changed < until) &&
			(f.After == Cursor{} || e.clock.time(changed).UnixMicro() <= f.After.Changed.UnixMicro())
	}
}

// counted is jobs that have something in common.
type counted struct {
	jobs   int
	oldest instant
	last   uint64 // the last change
	newest string // the ID of the job with that change
}

func (c *counted) add(o counted) {
	if c.jobs += o.jobs; c.jobs == o.jobs || o.oldest < c.oldest {
		c.oldest = o.oldest
	}
	if o.last > c.last {
		c.last, c.newest = o.last, o.newest
	}
}

func (c *counted) tally(e *Engine) Tally { return Tally{c.jobs, e.clock.time(c.oldest)} }

// count returns the jobs that f selects, counted by what by returns, on all cores.
func count[K comparable](ctx context.Context, e *Engine, f Filter, by func(*job) K) (map[K]*counted, error) {
	if err := contextErr(ctx); err != nil {
		return nil, err
	}
	f.After = Cursor{}
	selects := e.selector(&f)
	counter := func(into map[K]*counted) func(*job) {
		var key K
		var own *counted // of key: consecutive jobs are often alike
		return func(j *job) {
			at := j.changedAt()
			if j.waits() {
				at = j.at
			}
			if k := by(j); own == nil || k != key {
				if key, own = k, into[k]; own == nil {
					own = new(counted)
					into[k] = own
				}
			}
			own.add(counted{1, at, j.changed, j.id})
		}
	}
	all := map[K]*counted{}
	if len(f.IDs) > 0 {
		add := counter(all)
		_ = e.found(&f, Statuses(), e.changes.Load()+1, func(j *job) bool {
			if selects(j) {
				add(j)
			}
			return false
		}, false)
		return all, nil
	}
	var mu sync.Mutex
	now := e.clock.now()
	parallel(len(e.shards), func(i int) {
		own, s := map[K]*counted{}, &e.shards[i]
		add := counter(own)
		s.mu.Lock()
		for _, status := range Statuses() {
			if !oneOf(f.Statuses, status) {
				continue
			}
			for j := s.lists[status].newest; j != nil; j = j.older {
				if !e.aged(j, now) && selects(j) {
					add(j)
				}
			}
		}
		s.mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		for key, c := range own {
			if all[key] == nil {
				all[key] = new(counted)
			}
			all[key].add(*c)
		}
	})
	return all, ctx.Err()
}

// Count returns how many jobs f selects, by Status, and the time of the oldest of each.
func (e *Engine) Count(ctx context.Context, f Filter) (map[Status]Tally, error) {
	all, err := count(ctx, e, f, func(j *job) Status { return j.status })
	if err != nil {
		return nil, err
	}
	counts := map[Status]Tally{}
	for status, c := range all {
		counts[status] = c.tally(e)
	}
	return counts, nil
}

// Histogram returns how many of the jobs that f selects changed in each width of time from f.Since to f.Until.
func (e *Engine) Histogram(ctx context.Context, f Filter, width time.Duration) ([]map[Status]int, error) {
	n, err := f.Buckets(width)
	if err != nil {
		return nil, err
	}
	type bucket struct {
		number instant
		status Status
	}
	since := e.clock.instant(f.Since)
	all, err := count(ctx, e, f, func(j *job) bucket { return bucket{(j.changedAt() - since) / instant(width), j.status} })
	buckets := make([]map[Status]int, n)
	for b, c := range all {
		if buckets[b.number] == nil {
			buckets[b.number] = map[Status]int{}
		}
		buckets[b.number][b.status] = c.jobs
	}
	return buckets, err
}

// Groups returns the jobs that f selects in groups.
func (e *Engine) Groups(ctx context.Context, f Filter) ([]Group, error) {
	type key struct {
		status             Status
		kind, policy, code string
		reason             retry.Reason
	}
	all, err := count(ctx, e, f, func(j *job) key {
		k := key{status: j.status, kind: j.route.Value().kind.name, policy: j.route.Value().policy, reason: j.reason}
		if j.status.Final() && j.status != Succeeded {
			k.code = j.last.text[:j.last.code]
		}
		return k
	})
	groups := make([]Group, 0, len(all))
	for k, c := range all {
		g := Group{Status: k.status, Kind: k.kind, Policy: k.policy, Reason: k.reason, Code: k.code, Tally: c.tally(e)}
		g.Newest, _ = e.Get(ctx, c.newest)
		g.Newest.Payload = nil
		groups = append(groups, g)
	}
	return groups, err
}

// Replay makes a job that is DeadLettered, Expired or Failed Pending again, due at once, with the same ID, a new
// FirstDue and no attempts. For any other job it returns ErrNotReplayable, so that only one of two simultaneous calls succeeds.
// After Shutdown it returns ErrShutdown.
func (e *Engine) Replay(ctx context.Context, id string) error { return e.with(ctx, id, e.replay) }

func (e *Engine) replay(j *job) error {
	if e.stopping.Load() {
		return ErrShutdown
	}
	now := e.clock.now()
	var rec Record
	j.snapshot(&rec, e.clock)
	if err := rec.Replay(e.clock.time(now)); err != nil {
		return err
	}
	j.keep(&rec, e.clock)
	e.store(j, Pending, now)
	return nil
}

// Cancel makes a job that is not final Canceled. The context of an attempt under way ends with ErrCanceled as its
// cause. The result of that attempt is recorded as the last Attempt, and the job stays Canceled. That attempt, or
// Cancel if none is under way, calls Observe with the end of the job. Cancel returns an error for a final job.
func (e *Engine) Cancel(ctx context.Context, id string) error {
	var rec Record
	var under *live
	err := e.with(ctx, id, func(j *job) error {
		now := e.clock.now()
		j.snapshot(&rec, e.clock)
		if err := rec.Cancel(e.clock.time(now)); err != nil {
			return err
		}
		if under = j.attempt; under == nil {
			j.route.Value().lane.forget(j)
		}
		j.reason, j.at = rec.Reason, now // an attempt under way does not read these
		e.store(j, Canceled, now)
		return nil
	})
	if err != nil {
		return err
	}
	if under != nil {
		under.context().cancel(ErrCanceled)
		return nil
	}
	e.stepper.Canceled(ctx, &rec)
	return nil
}

// ReplayAll replays the DeadLettered, Expired and Failed jobs that f selects, and returns how many. f.Limit limits the
// number of replayed jobs. With an error it returns the number replayed until then.
func (e *Engine) ReplayAll(ctx context.Context, f Filter) (int, error) {
	return e.changeAll(ctx, f, []Status{DeadLettered, Expired, Failed}, e.replay)
}

// Purge removes the final jobs that f selects, and returns how many. f.Limit limits the number of removed jobs. With an
// error it returns the number removed until then.
func (e *Engine) Purge(ctx context.Context, f Filter) (int, error) {
	return e.changeAll(ctx, f, []Status{Succeeded, DeadLettered, Expired, Failed, Canceled}, func(j *job) error {
		e.remove(j)
		return nil
	})
}

// changeAll calls do for the jobs with one of the statuses that f selects, and counts them. It skips jobs that have
// changed meanwhile.
func (e *Engine) changeAll(ctx context.Context, f Filter, statuses []Status, do func(*job) error) (int, error) {
	if err := contextErr(ctx); err != nil {
		return 0, err
	}
	done := 0
	for p := range e.newestFirst(&f, statuses, false) {
		if done == f.Limit && f.Limit > 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return done, err
		}
		var err error
		if p.lock() {
			if err = do(p.job); err == nil {
				done++
			}
		}
		p.shard.mu.Unlock()
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
