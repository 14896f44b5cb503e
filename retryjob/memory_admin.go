package retryjob

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
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
		for p := range e.newestFirst(&f, allowed) {
			if listed == f.Limit && f.Limit > 0 {
				return
			}
			if read%f.Page() == 0 && ctx.Err() != nil {
				yield(Info{}, ctx.Err())
				return
			}
			read++
			if i, ok := e.infoAt(p); ok {
				if listed++; !yield(i, nil) {
					return
				}
			}
		}
	}
}

// infoAt returns the job at p, if it has not changed since.
func (e *Engine) infoAt(p place) (Info, bool) {
	defer e.lock(p.job).mu.Unlock()
	if p.job.changed != p.changed {
		return Info{}, false
	}
	return p.job.info(e.clock), true
}

// place is a job as it was when a list was begun.
type place struct {
	changed uint64
	job     *job
}

// newestFirst yields the jobs with an allowed status that f selects, in the order of List. It reads as it goes, each time twice as
// many as before, so that what it has read already and passes over again is never more than the rest.
func (e *Engine) newestFirst(f *Filter, allowed func(Status) bool) iter.Seq[place] {
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
	return func(yield func(place) bool) {
		for most := 8; before > 0; most *= 2 {
			var read []place
			least := uint64(0) // no job that has changed since then is missing in read
			for i := range e.shards {
				for _, status := range statuses {
					n := 0
					e.each(&e.shards[i], status, func(j *job) bool {
						if j.changed >= before || !selects(j) {
							return true
						}
						read = append(read, place{j.changed, j})
						if n++; n == most {
							least = max(least, j.changed)
						}
						return n < most
					})
				}
			}
			slices.SortFunc(read, func(a, b place) int { return cmp.Compare(b.changed, a.changed) })
			for _, p := range read {
				if p.changed < least {
					break
				}
				if !yield(p) {
					return
				}
			}
			before = least
		}
	}
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
	for p := range e.newestFirst(&f, allowed) {
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
