package retryjob

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// List returns the jobs that f selects, the one that changed last first. It leaves out a job that comes to another status meanwhile.
func (e *Engine) List(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	return e.list(ctx, f, allStatuses)
}

func allStatuses(Status) bool { return true }

// DeadLetters is List of those that are DeadLettered, whatever f.Statuses says.
func (e *Engine) DeadLetters(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	f.Statuses = nil
	return e.list(ctx, f, func(s Status) bool { return s == DeadLettered })
}

func (e *Engine) list(ctx context.Context, f Filter, allowed func(Status) bool) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Info{}, err)
			return
		}
		listed, read := 0, 0
		for p := range e.newestFirst(&f, allowed, true) {
			if listed == f.Limit && f.Limit > 0 {
				return
			}
			if read%f.Page() == 0 && ctx.Err() != nil {
				yield(Info{}, ctx.Err())
				return
			}
			if read++; e.changedSince(turn{0, p.changed, p.job}) {
				continue
			}
			if listed++; !yield(p.info, nil) {
				return
			}
		}
	}
}

// place is a job as it was when it was read for a list.
type place struct {
	changed uint64
	job     *job
	info    Info
}

// reader reads the jobs of a shard that have a status, the newest change first.
type reader struct {
	shard  *shard
	status Status
	read   []place // from next on not yielded
	next   int
	before uint64 // all that changed since has been read
	last   *job   // that was read
	done   bool
}

// newestFirst yields the jobs with an allowed status that f selects, in the order of List, with their Info if it is wanted. It reads
// as it goes, each time more than before, on all cores.
func (e *Engine) newestFirst(f *Filter, allowed func(Status) bool, infos bool) iter.Seq[*place] {
	before := e.changes.Load() + 1
	if (f.After != Cursor{}) {
		_ = e.with(f.After.ID, func(j *job) error {
			if e.clock.time(j.changedAt()).UnixMicro() == f.After.Changed.UnixMicro() {
				before = j.changed
			}
			return nil
		})
	}
	statuses, selects := statusesOf(f, allowed), e.selector(f)
	return func(yield func(*place) bool) {
		var readers []reader
		for i := range e.shards {
			for _, status := range statuses {
				readers = append(readers, reader{shard: &e.shards[i], status: status, before: before})
			}
		}
		type head struct {
			changed uint64
			reader  *reader
		}
		var heads []head
		for most, least := 8, uint64(1); least > 0; most = min(2*most, 512) {
			parallel(len(readers), func(i int) { e.fill(&readers[i], most, selects, infos) })
			heads, least = heads[:0], 0 // no job that has changed since least is missing in heads
			for i := range readers {
				r := &readers[i]
				for p := r.next; p < len(r.read); p++ {
					heads = append(heads, head{r.read[p].changed, r})
				}
				if !r.done {
					least = max(least, r.before)
				}
			}
			slices.SortFunc(heads, func(a, b head) int { return cmp.Compare(b.changed, a.changed) })
			for _, h := range heads {
				if h.changed < least {
					break
				}
				h.reader.next++
				if !yield(&h.reader.read[h.reader.next-1]) {
					return
				}
			}
		}
	}
}

// fill reads on until r has most jobs that were not yielded.
func (e *Engine) fill(r *reader, most int, selects func(*job) bool, infos bool) {
	if r.done {
		return
	}
	r.read, r.next = r.read[:copy(r.read, r.read[r.next:])], 0
	now := e.clock.now()
	r.shard.mu.Lock()
	defer r.shard.mu.Unlock()
	j := r.shard.lists[r.status].newest
	if r.last != nil && r.last.changed == r.before { // it is still there
		j = r.last
	}
	for ; j != nil && len(r.read) < most; j = j.older {
		if j.changed >= r.before {
			continue
		}
		if r.last, r.before = j, j.changed; e.aged(j, now) || !selects(j) {
			continue
		}
		r.read = append(r.read, place{changed: j.changed, job: j})
		if infos {
			r.read[len(r.read)-1].info = j.info(e.clock)
		}
	}
	r.done = j == nil
}

// parallel calls f with 0 to n-1, on as many goroutines as there are cores.
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

// statusesOf returns the allowed statuses that f selects.
func statusesOf(f *Filter, allowed func(Status) bool) []Status {
	return slices.DeleteFunc(Statuses(), func(s Status) bool { return !allowed(s) || !oneOf(f.Statuses, s) })
}

// selector returns Filter.Selects, but for the status, of a job whose shard is locked.
func (e *Engine) selector(f *Filter) func(*job) bool {
	since, until := e.clock.instant(f.Since), e.clock.instant(f.Until)
	return func(j *job) bool {
		r, changed := j.route.Value(), j.changedAt()
		return oneOf(f.IDs, j.id) && oneOf(f.Reasons, j.reason) && oneOf(f.Policies, r.policy) && oneOf(f.Kinds, r.kind.name) &&
			(f.Since.IsZero() || changed >= since) && (f.Until.IsZero() || changed < until) &&
			(f.After == Cursor{} || e.clock.time(changed).UnixMicro() <= f.After.Changed.UnixMicro())
	}
}

// Count returns how many jobs f selects, by their Status, and since when.
func (e *Engine) Count(ctx context.Context, f Filter) (map[Status]Tally, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.After = Cursor{}
	var jobs [Canceled + 1]int
	var oldest [Canceled + 1]instant
	selects := e.selector(&f)
	for j := range e.all(statusesOf(&f, allStatuses)...) {
		if !selects(j) {
			continue
		}
		at := j.changedAt()
		if j.waits() {
			at = j.at
		}
		if jobs[j.status]++; jobs[j.status] == 1 || at < oldest[j.status] {
			oldest[j.status] = at
		}
	}
	counts := map[Status]Tally{}
	for _, s := range Statuses() {
		if jobs[s] > 0 {
			counts[s] = Tally{jobs[s], e.clock.time(oldest[s])}
		}
	}
	return counts, nil
}

// Replay makes a job that is DeadLettered, Expired or Failed Pending again, due at once, with the same ID, a fresh first
// fire time and no attempts. It returns ErrNotReplayable for another, also to the later of two calls at once, and
// ErrShutdown.
func (e *Engine) Replay(ctx context.Context, id string) error { return e.change(ctx, id, e.replay) }

func (e *Engine) replay(j *job, now instant) (turn, error) {
	if e.stopping.Load() {
		return turn{}, ErrShutdown
	}
	rec := j.snapshot(e.clock)
	if err := rec.Replay(e.clock.time(now)); err != nil {
		return turn{}, err
	}
	j.keep(&rec, e.clock)
	return e.store(j, Pending), nil
}

// Cancel makes a job that is not final Canceled. The context of an attempt under way ends with ErrCanceled as its cause;
// what the attempt comes to is recorded as the last Attempt, and the job stays Canceled. Observe is called with the end: by
// that attempt, or by Cancel if none is under way. Cancel returns an error for a final job.
func (e *Engine) Cancel(ctx context.Context, id string) error {
	var rec Record
	var under *live
	var canceled *job
	err := e.change(ctx, id, func(j *job, now instant) (turn, error) {
		j.record(&rec, e.clock, true)
		rec.Status = j.status
		if err := rec.Cancel(e.clock.time(now)); err != nil {
			return turn{}, err
		}
		if j.underWay() {
			under = j.live
		}
		canceled = j
		j.reason, j.at = rec.Reason, now // not what an attempt under way reads
		return e.store(j, Canceled), nil
	})
	if err != nil {
		return err
	}
	if under != nil {
		under.context().cancel(ErrCanceled)
		return nil
	}
	e.forget(canceled.route.Value().lane)
	e.stepper.Canceled(ctx, &rec)
	return nil
}

// change calls f for the job with the given ID, and sees to what follows.
func (e *Engine) change(ctx context.Context, id string, f func(j *job, now instant) (turn, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var t turn
	now := e.clock.now()
	err := e.with(id, func(j *job) (err error) {
		t, err = f(j, now)
		return err
	})
	if err == nil && t.job != nil {
		e.wait(t, now)
	}
	return err
}

// ReplayAll replays what f selects of the jobs that are DeadLettered, Expired or Failed, and returns how many. f.Limit
// counts those that are replayed. An error comes with the number done until then.
func (e *Engine) ReplayAll(ctx context.Context, f Filter) (int, error) {
	return e.changeAll(ctx, f, Status.Replayable, e.replay)
}

// Purge removes what f selects of the final jobs, and returns how many. f.Limit counts those that are removed. An error
// comes with the number done until then.
func (e *Engine) Purge(ctx context.Context, f Filter) (int, error) {
	return e.changeAll(ctx, f, Status.Final, func(j *job, _ instant) (turn, error) {
		e.shards[j.hash%shards].remove(j)
		return turn{}, nil
	})
}

// changeAll changes the jobs that f selects among those with an allowed status, and counts. A job that has changed
// meanwhile is skipped.
func (e *Engine) changeAll(ctx context.Context, f Filter, allowed func(Status) bool, do func(*job, instant) (turn, error)) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	done := 0
	for p := range e.newestFirst(&f, allowed, false) {
		if done == f.Limit && f.Limit > 0 {
			break
		}
		switch err := e.change(ctx, p.job.id, func(j *job, now instant) (turn, error) {
			if j.changed != p.changed {
				return turn{}, ErrUnknownJob // not the one that was selected
			}
			return do(j, now)
		}); {
		case err == nil:
			done++
		case !errors.Is(err, ErrUnknownJob):
			return done, err
		}
	}
	return done, nil
}
