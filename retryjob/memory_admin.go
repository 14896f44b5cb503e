package retryjob

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
)

// List returns the jobs that f selects, most recently changed first. It has each job that f selects during all of the
// list exactly once, even if the job changes meanwhile: as it is, at the place that it had when the list began.
func (e *Engine) List(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	return each(ctx, e, f, Statuses(), func(j *job) (i Info, err error) {
		j.info(&i, e.clock)
		return i, nil
	})
}

// each returns the results of do for the jobs with one of the statuses that f selects, in the order of List. The engine
// is locked while do is called, and only then. An error ends the sequence.
func each[T any](ctx context.Context, e *Engine, f Filter, statuses []Status, do func(*job) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := contextErr(ctx); err != nil {
			yield(*new(T), err)
			return
		}
		spots, begun, selects := e.spots(&f, statuses)
		done, seen := 0, map[*job]bool{}
		for at := newest(spots); at.job != nil && (f.Limit <= 0 || done < f.Limit); at = newest(spots) {
			var result T
			err := ctx.Err()
			e.mu.Lock()
			j := at.job // a spot was stale when the list began, unless the job has changed since
			wanted := !seen[j] && (!at.stale() || j.changed > begun) && selects(j)
			if wanted && err == nil {
				seen[j] = true
				result, err = do(j)
			}
			e.mu.Unlock()
			if !wanted && err == nil {
				continue
			}
			if done++; !yield(result, err) || err != nil {
				return
			}
		}
	}
}

// spots returns the spots of the jobs that f may select, in lists with the newest spot last, the number of changes until
// now, and a function that reports whether f selects a job with one of the statuses.
func (e *Engine) spots(f *Filter, statuses []Status) (spots [][]spot, begun uint64, selects func(*job) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var named []spot
	for _, id := range f.IDs {
		if j := e.jobs[id]; j != nil {
			named = append(named, spot{j.changed, j})
		}
	}
	slices.SortFunc(named, func(a, b spot) int { return cmp.Compare(a.changed, b.changed) })
	spots = [][]spot{named}
	for _, status := range statuses {
		if len(f.IDs) == 0 && oneOf(f.Statuses, status) {
			spots = append(spots, e.logs[status].spots)
		}
	}
	before := uint64(math.MaxUint64)
	if j := e.jobs[f.After.ID]; j != nil && j.status != 0 && e.clock.time(j.changedAt()).UnixMicro() == f.After.Changed.UnixMicro() {
		before = j.changed
	}
	return spots, e.changes, func(j *job) bool {
		if !slices.Contains(statuses, j.status) || e.aged(j, e.clock.now()) {
			return false
		}
		if j.changed >= before || len(f.Causes) > 0 && !slices.Contains(f.Causes, j.cause(e.clock)) {
			return false
		}
		r := j.route.Value()
		return f.selectsRoute(r.policy, r.kind.name, r.tagList()) && f.selectsState(j.status, j.reason) && f.selectsTime(e.clock.time(j.changedAt()))
	}
}

// cause is Record.Cause.
func (j *job) cause(c clock) string {
	var rec Record
	j.snapshot(&rec, c)
	return rec.Cause()
}

// newest removes and returns the spot with the last change, or returns no job if there is none.
func newest(spots [][]spot) (last spot) {
	from := 0
	for i, s := range spots {
		if n := len(s); n > 0 && s[n-1].changed > last.changed {
			from, last = i, s[n-1]
		}
	}
	if last.job != nil {
		spots[from] = spots[from][:len(spots[from])-1]
	}
	return last
}

// Count returns how many jobs f selects, by Status, and the time of the oldest of each.
func (e *Engine) Count(ctx context.Context, f Filter) (map[Status]Tally, error) {
	f.Limit, f.After = 0, Cursor{}
	counts := map[Status]Tally{}
	_, err := e.changeAll(ctx, f, Statuses(), func(j *job) error {
		at := j.changedAt()
		if j.waits() {
			at = j.at
		}
		t := counts[j.status]
		t.add(e.clock.time(at))
		counts[j.status] = t
		return nil
	})
	return counts, err
}

// Queues implements Admin.
func (e *Engine) Queues(ctx context.Context) ([]QueueDepth, error) {
	depths := map[string]*QueueDepth{}
	now := e.clock.now()
	_, err := e.changeAll(ctx, Filter{}, []Status{Pending, Leased, WaitingRetry}, func(j *job) error {
		name := cmp.Or(j.route.Value().queue, "default")
		if depths[name] == nil {
			depths[name] = &QueueDepth{Queue: name}
		}
		depths[name].add(j.status, e.clock.time(j.at), j.at <= now)
		return nil
	})
	all := make([]QueueDepth, 0, len(depths))
	for _, d := range depths {
		all = append(all, *d)
	}
	return all, err
}

// Groups returns the jobs that f selects in groups.
func (e *Engine) Groups(ctx context.Context, f Filter) ([]Group, error) {
	f.Limit, f.After = 0, Cursor{}
	return GroupsOf(e.List(ctx, f))
}

// Replay implements Admin. After Shutdown it returns ErrShutdown.
func (e *Engine) Replay(ctx context.Context, id string) error { return e.with(ctx, id, e.replay) }

func (e *Engine) replay(j *job) error {
	if e.stopping {
		return ErrShutdown
	}
	now := e.clock.now()
	var rec Record
	j.snapshot(&rec, e.clock)
	if err := rec.Replay(e.clock.time(now)); err != nil {
		return err
	}
	if err := e.claim(j.id); err != nil {
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
		under = j.attempt
		j.reason, j.at = rec.Reason, now // an attempt under way does not read these
		e.store(j, Canceled, now)
		if under == nil {
			j.route.Value().lane.forget()
		}
		return nil
	})
	switch {
	case err != nil:
	case under != nil:
		under.cancel(ErrCanceled)
	default:
		e.stepper.Canceled(ctx, &rec)
	}
	return err
}

// ReplayAll implements Admin. f.Limit limits the number of replayed jobs. After Shutdown it returns ErrShutdown.
func (e *Engine) ReplayAll(ctx context.Context, f Filter) (replayed int, err error) {
	for done, err := range each(ctx, e, f, []Status{DeadLettered, Expired, FailedNoRetries}, e.replayIfFree) {
		if err != nil {
			return replayed, err
		}
		if done {
			replayed++
		}
	}
	return replayed, nil
}

// replayIfFree replays j, or reports false if it is an occurrence that must not be replayed now.
func (e *Engine) replayIfFree(j *job) (bool, error) {
	err := e.replay(j)
	if errors.Is(err, ErrNotReplayable) {
		return false, nil
	}
	return err == nil, err
}

// Purge implements Admin. f.Limit limits the number of removed jobs.
func (e *Engine) Purge(ctx context.Context, f Filter) (int, error) {
	return e.changeAll(ctx, f, []Status{Succeeded, DeadLettered, Expired, FailedNoRetries, Canceled}, func(j *job) error {
		e.remove(j)
		return nil
	})
}

// changeAll calls do while the engine is locked for the jobs with one of the statuses that f selects, and counts them.
func (e *Engine) changeAll(ctx context.Context, f Filter, statuses []Status, do func(*job) error) (done int, err error) {
	for _, err := range each(ctx, e, f, statuses, func(j *job) (none struct{}, err error) { return none, do(j) }) {
		if err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}
