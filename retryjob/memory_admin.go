package retryjob

import (
	"context"
	"errors"
	"iter"
)

// List returns the jobs that f selects, the one that changed last first. The engine is locked for a page at a time, and a
// page is so many jobs that are looked at, selected or not. What comes to a status after the sequence has begun is not in
// it. Break off a sequence that is pulled (iter.Pull) with its stop function: the engine keeps its place until then.
func (e *Engine) List(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	return e.walk(ctx, f, func(Status) bool { return true })
}

// DeadLetters is List of those that are DeadLettered, whatever f.Statuses says. Others are not even looked at.
func (e *Engine) DeadLetters(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	f.Statuses = nil
	return e.walk(ctx, f, func(s Status) bool { return s == DeadLettered })
}

// Replay makes a job that is DeadLettered, Expired or Failed Pending again, due at once, with the same ID, a fresh first
// fire time and no attempts. It returns ErrNotReplayable for another, also to the later of two calls at once, and
// ErrShutdown.
func (e *Engine) Replay(ctx context.Context, id string) error {
	return e.change(ctx, id, func(j *job, now instant) error {
		if e.stopping {
			return ErrShutdown
		}
		rec := j.snapshot(e.clock)
		if err := rec.Replay(e.clock.time(now)); err != nil {
			return err
		}
		e.store(j, &rec)
		e.drive(now)
		return nil
	})
}

// Cancel makes a job that is not final Canceled. The context of an attempt under way ends with ErrCanceled as its cause;
// what the attempt comes to is recorded as the last Attempt, and the job stays Canceled. Observe is called with the end: by
// that attempt, or by Cancel if none is under way. Cancel returns an error for a final job.
func (e *Engine) Cancel(ctx context.Context, id string) error {
	var rec Record
	var cancel context.CancelCauseFunc
	err := e.change(ctx, id, func(j *job, now instant) error {
		rec = j.record(e.clock, nil)
		rec.Status = j.status
		if err := rec.Cancel(e.clock.time(now)); err != nil {
			return err
		}
		waited := j.waits()
		if j.underWay() {
			cancel = j.live.cancel
		}
		j.reason, j.at = rec.Reason, e.clock.instant(rec.Ended) // not what an attempt under way reads
		e.move(j, Canceled, waited)
		if !e.stopping {
			e.arm(now)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case cancel != nil:
		cancel(ErrCanceled)
	default:
		e.stepper.Canceled(ctx, &rec)
	}
	return nil
}

// change calls f for the job with the given ID.
func (e *Engine) change(ctx context.Context, id string, f func(j *job, now instant) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	j, err := e.find(id)
	if err != nil {
		return err
	}
	return f(j, e.clock.now())
}

// ReplayAll replays what f selects of the jobs that are DeadLettered, Expired or Failed, and returns how many. f.Limit
// counts those that are replayed. An error comes with the number done until then.
func (e *Engine) ReplayAll(ctx context.Context, f Filter) (int, error) {
	return e.each(ctx, f, Status.Replayable, func(id string) error { return e.Replay(ctx, id) })
}

// Purge removes what f selects of the final jobs, and returns how many. f.Limit counts those that are removed. An error
// comes with the number done until then.
func (e *Engine) Purge(ctx context.Context, f Filter) (int, error) {
	return e.each(ctx, f, Status.Final, func(id string) error {
		return e.change(ctx, id, func(j *job, _ instant) error {
			if i := e.info(j); !j.status.Final() || !f.Selects(&i) {
				return ErrUnknownJob // not the one that was selected: it was replayed meanwhile
			}
			e.remove(j)
			return nil
		})
	})
}

// each does something with the jobs that f selects among those with an allowed status, and counts. A job that
// another call has changed meanwhile is skipped.
func (e *Engine) each(ctx context.Context, f Filter, allowed func(Status) bool, do func(id string) error) (int, error) {
	done, limit := 0, f.Limit
	f.Limit = 0
	for i, err := range e.walk(ctx, f, allowed) {
		if err == nil {
			err = do(i.JobID)
		}
		switch {
		case err == nil:
			done++
		case !errors.Is(err, ErrUnknownJob) && !errors.Is(err, ErrNotReplayable):
			return done, err
		}
		if done == limit && limit > 0 {
			break
		}
	}
	return done, nil
}

// walk is List of the jobs with an allowed status.
func (e *Engine) walk(ctx context.Context, f Filter, allowed func(Status) bool) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		cursors := e.open(&f, allowed)
		defer e.close(cursors)
		for told, more := 0, true; more; {
			if err := ctx.Err(); err != nil {
				yield(Info{}, err)
				return
			}
			var page []Info
			page, more = e.page(cursors, &f)
			for _, i := range page {
				if !yield(i, nil) {
					return
				}
				if told++; told == f.Limit {
					return
				}
			}
		}
	}
}

// Count returns how many jobs f selects, by their Status, and since when.
func (e *Engine) Count(ctx context.Context, f Filter) (map[Status]Tally, error) {
	f.Limit, f.After = 0, Cursor{}
	counts := map[Status]Tally{}
	for i, err := range e.List(ctx, f) {
		if err != nil {
			return nil, err
		}
		t := counts[i.Status]
		t.Add(&i)
		counts[i.Status] = t
	}
	return counts, nil
}

// cursors has a cursor for each status that is read, nil for the others.
type cursors struct {
	on     [Canceled + 1]*cursor
	before uint64 // the place among all changes of the job after which they begin; 0 if there is none
}

func (e *Engine) open(f *Filter, allowed func(Status) bool) *cursors {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sweep(e.clock.now())
	var all cursors
	for _, s := range Statuses() {
		if allowed(s) && oneOf(f.Statuses, s) {
			all.on[s] = &cursor{e.shelves[s].newest}
			e.shelves[s].cursors = append(e.shelves[s].cursors, all.on[s])
		}
	}
	if j := e.jobs[f.After.ID]; j != nil {
		if rec := j.snapshot(e.clock); rec.Changed().UnixMicro() == f.After.Changed.UnixMicro() {
			all.before = j.changed
		}
	}
	return &all
}

func (e *Engine) close(all *cursors) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s, c := range all.on {
		shelf := &e.shelves[s]
		for i, known := range shelf.cursors {
			if known == c {
				last := len(shelf.cursors) - 1
				shelf.cursors[i], shelf.cursors[last] = shelf.cursors[last], nil
				shelf.cursors = shelf.cursors[:last]
				break
			}
		}
	}
}

// page reads on, and returns what f selects and whether there is more to read.
func (e *Engine) page(all *cursors, f *Filter) ([]Info, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var page []Info
	for range f.Page() {
		c := all.newest()
		if c == nil {
			return page, false
		}
		if i := e.info(c.next); (all.before == 0 || c.next.changed < all.before) && f.Selects(&i) {
			page = append(page, i)
		}
		c.next = c.next.older
	}
	return page, true
}

// newest returns the cursor before the job that changed last, or nil if all is read.
func (all *cursors) newest() *cursor {
	var newest *cursor
	for _, c := range all.on {
		if c != nil && c.next != nil && (newest == nil || c.next.changed > newest.next.changed) {
			newest = c
		}
	}
	return newest
}
