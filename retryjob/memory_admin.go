package retryjob

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
)

// List returns the jobs that f selects, most recently changed first. It has each job that f selects during all of the
// list exactly once, even if the job changes meanwhile: as it is, at the place that it had when the list began.
func (e *Engine) List(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		places, selects, err := e.places(ctx, f, Statuses(), f.Limit)
		for n := 0; n < len(places) && err == nil; n++ {
			var i Info
			gone := e.with(ctx, places[n].id, func(j *job) error {
				if j.changed != places[n].changed && !selects(j) {
					return ErrUnknownJob
				}
				j.info(&i, e.clock)
				return nil
			})
			if err = ctx.Err(); err == nil && gone == nil && !yield(i, nil) {
				return
			}
		}
		if err != nil {
			yield(Info{}, err)
		}
	}
}

// place is a job at its place in a list.
type place struct {
	changed uint64 // job.changed
	id      string
}

// places returns the jobs with one of the statuses that f selects, in the order of List: all of them or, if most is
// not 0, up to most. selects is that of each.
func (e *Engine) places(ctx context.Context, f Filter, statuses []Status, most int) (found []place, selects func(*job) bool, err error) {
	if err := contextErr(ctx); err != nil {
		return nil, nil, err
	}
	selects = e.each(&f, statuses, most, func(j *job) { found = append(found, place{j.changed, j.id}) })
	slices.SortFunc(found, func(a, b place) int { return cmp.Compare(b.changed, a.changed) })
	if most > 0 {
		found = found[:min(len(found), most)]
	}
	return found, selects, nil
}

// each calls do for the jobs with one of the statuses that f selects while their shards are locked: in each list of a
// shard for all of them or, if most is positive, for the newest most. It returns a function that reports whether f
// selects a job.
func (e *Engine) each(f *Filter, statuses []Status, most int, do func(*job)) (selects func(*job) bool) {
	before := uint64(math.MaxUint64)
	if (f.After != Cursor{}) {
		_ = e.with(context.Background(), f.After.ID, func(j *job) error {
			if e.clock.time(j.changedAt()).UnixMicro() == f.After.Changed.UnixMicro() {
				before = j.changed
			}
			return nil
		})
	}
	since, until := e.clock.instant(f.Since), e.clock.instant(f.Until)
	selects = func(j *job) bool {
		r, changed := j.route.Value(), j.changedAt()
		return j.changed < before && oneOf(f.Statuses, j.status) && oneOf(f.Reasons, j.reason) && oneOf(f.Policies, r.policy) && oneOf(f.Kinds, r.kind.name) &&
			(len(f.Tags) == 0 || slices.ContainsFunc(r.tagList(), func(tag string) bool { return slices.Contains(f.Tags, tag) })) &&
			(f.Since.IsZero() || changed >= since) && (f.Until.IsZero() || changed < until) &&
			(f.After == Cursor{} || e.clock.time(changed).UnixMicro() <= f.After.Changed.UnixMicro())
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(f.IDs))) {
		_ = e.with(context.Background(), id, func(j *job) error {
			if slices.Contains(statuses, j.status) && selects(j) {
				do(j)
			}
			return nil
		})
	}
	if len(f.IDs) > 0 {
		return selects
	}
	now := e.clock.now()
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		for _, status := range statuses {
			n := 0
			for j := s.lists[status].newest; j != nil && oneOf(f.Statuses, status) && (n < most || most <= 0); j = j.older {
				if !e.aged(j, now) && selects(j) {
					n++
					do(j)
				}
			}
		}
		s.mu.Unlock()
	}
	return selects
}

// Count returns how many jobs f selects, by Status, and the time of the oldest of each.
func (e *Engine) Count(ctx context.Context, f Filter) (map[Status]Tally, error) {
	if err := contextErr(ctx); err != nil {
		return nil, err
	}
	f.After = Cursor{}
	var jobs [Canceled + 1]int
	var oldest [Canceled + 1]instant
	e.each(&f, Statuses(), 0, func(j *job) {
		at := j.changedAt()
		if j.waits() {
			at = j.at
		}
		if jobs[j.status]++; jobs[j.status] == 1 || at < oldest[j.status] {
			oldest[j.status] = at
		}
	})
	counts := map[Status]Tally{}
	for _, status := range Statuses() {
		if jobs[status] > 0 {
			counts[status] = Tally{jobs[status], e.clock.time(oldest[status])}
		}
	}
	return counts, ctx.Err()
}

// Groups returns the jobs that f selects in groups.
func (e *Engine) Groups(ctx context.Context, f Filter) ([]Group, error) {
	f.Limit, f.After = 0, Cursor{}
	return GroupsOf(e.List(ctx, f))
}

// Replay implements Admin. After Shutdown it returns ErrShutdown.
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

// Cancel implements Admin. The job is Canceled at once. The result of an attempt under way is recorded as the last
// Attempt. That attempt, or Cancel if none is under way, calls Observe with the end of the job.
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
		under.cancel(ErrCanceled)
		return nil
	}
	e.stepper.Canceled(ctx, &rec)
	return nil
}

// ReplayAll implements Admin. f.Limit limits the number of replayed jobs. After Shutdown it returns ErrShutdown.
func (e *Engine) ReplayAll(ctx context.Context, f Filter) (int, error) {
	return e.changeAll(ctx, f, []Status{DeadLettered, Expired, Failed}, e.replay)
}

// Purge implements Admin. f.Limit limits the number of removed jobs.
func (e *Engine) Purge(ctx context.Context, f Filter) (int, error) {
	return e.changeAll(ctx, f, []Status{Succeeded, DeadLettered, Expired, Failed, Canceled}, func(j *job) error {
		e.remove(j)
		return nil
	})
}

// changeAll calls do for the jobs with one of the statuses that f selects, and counts them. It skips jobs that have
// changed meanwhile.
func (e *Engine) changeAll(ctx context.Context, f Filter, statuses []Status, do func(*job) error) (done int, err error) {
	places, _, err := e.places(ctx, f, statuses, 0)
	for n := 0; n < len(places) && err == nil && (f.Limit <= 0 || done < f.Limit); n++ {
		var failed error
		_ = e.with(ctx, places[n].id, func(j *job) error {
			if j.changed == places[n].changed {
				if failed = do(j); failed == nil {
					done++
				}
			}
			return nil
		})
		err = cmp.Or(failed, ctx.Err())
	}
	return done, err
}
