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
		l := e.listing(&f, statuses)
		for done := 0; f.Limit <= 0 || done < f.Limit; {
			at := newest(l.spots)
			if at.job == nil {
				return
			}
			result, selected, err := visit(ctx, l, at, do)
			if !selected && err == nil {
				continue
			}
			done++
			if !yield(result, err) || err != nil {
				return
			}
		}
	}
}

// visit calls do for the job of a spot while the engine is locked. It reports false if the list does not select the job.
func visit[T any](ctx context.Context, l *listing, at spot, do func(*job) (T, error)) (result T, selected bool, err error) {
	if err := ctx.Err(); err != nil {
		return result, false, err
	}
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if !l.selects(at) {
		return result, false, nil
	}
	l.seen[at.job] = true
	result, err = do(at.job)
	return result, true, err
}

// listing is a list that is being read.
type listing struct {
	engine   *Engine
	filter   *Filter
	statuses []Status
	spots    [][]spot // of the jobs that the filter may select, each list with the newest spot last
	begun    uint64   // the number of changes until the list began
	before   uint64   // the number of changes until Filter.After
	seen     map[*job]bool
}

// listing returns the list of the jobs with one of the statuses that f selects.
func (e *Engine) listing(f *Filter, statuses []Status) *listing {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &listing{engine: e, filter: f, statuses: statuses, begun: e.changes, before: math.MaxUint64, seen: map[*job]bool{}}
	if len(f.IDs) > 0 {
		l.spots = [][]spot{e.named(f.IDs)}
	} else {
		for _, status := range statuses {
			if oneOf(f.Statuses, status) {
				l.spots = append(l.spots, e.logs[status].spots)
			}
		}
	}
	if j := e.jobs[f.After.ID]; j != nil && j.status != 0 {
		if e.clock.time(j.changedAt()).UnixMicro() == f.After.Changed.UnixMicro() {
			l.before = j.changed
		}
	}
	return l
}

// named returns the spots of the jobs with these IDs, the newest one last.
func (e *Engine) named(ids []string) (spots []spot) {
	for _, id := range ids {
		if j := e.jobs[id]; j != nil {
			spots = append(spots, spot{j.changed, j})
		}
	}
	slices.SortFunc(spots, func(a, b spot) int { return cmp.Compare(a.changed, b.changed) })
	return spots
}

// selects reports whether the list has the job of a spot. The engine is locked.
func (l *listing) selects(at spot) bool {
	j := at.job
	e := l.engine
	f := l.filter
	if l.seen[j] || at.stale() && j.changed <= l.begun { // a spot that was stale when the list began
		return false
	}
	if !slices.Contains(l.statuses, j.status) || e.aged(j, e.clock.now()) || j.changed >= l.before {
		return false
	}
	if len(f.Causes) > 0 && !slices.Contains(f.Causes, j.cause(e.clock)) {
		return false
	}
	if !f.InDoubt.Selects(j.status.Replayable() && j.last.code&inDoubt != 0) {
		return false
	}
	r := j.route.Value()
	return f.selectsRoute(r.policy, r.kind.name, r.tagList()) && f.selectsState(j.status, j.reason) && f.selectsTime(e.clock.time(j.changedAt()))
}

// cause is Record.Cause.
func (j *job) cause(c clock) string {
	var rec Record
	j.snapshot(&rec, c)
	return rec.Cause()
}

// newest removes and returns the spot with the last change. It returns no job if the list is empty.
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

// Count returns the number of jobs that f selects, by Status, and the time of the oldest of each.
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
	for done, err := range each(ctx, e, f.ForReplay(), []Status{DeadLettered, Expired, FailedNoRetries}, e.replayIfFree) {
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
