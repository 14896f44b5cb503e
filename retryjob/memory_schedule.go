package retryjob

import (
	"context"
	"maps"
	"slices"
)

// Schedules implements Admin.
func (e *Engine) Schedules(ctx context.Context) ([]Schedule, error) {
	if err := contextErr(ctx); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.schedules)), nil
}

// ChangeSchedule implements Admin. After Shutdown it returns ErrShutdown if change returns a job.
func (e *Engine) ChangeSchedule(ctx context.Context, name string, change func(s *Schedule) (*Job, error)) error {
	if err := contextErr(ctx); err != nil {
		return err
	}
	for {
		before := e.schedule(name)
		after := before
		next, err := change(&after)
		if err != nil {
			return err
		}
		var j *job
		if next != nil {
			if j, err = e.prepare(ctx, next); err != nil {
				return err
			}
		}
		if kept, err := e.keepSchedule(before, after, j); kept || err != nil {
			return err
		}
	}
}

// schedule returns the schedule of a name, or a new one.
func (e *Engine) schedule(name string) Schedule {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s, ok := e.schedules[name]; ok {
		return s
	}
	return Schedule{Name: name}
}

// keepSchedule replaces a schedule and stores the job of its newest occurrence, if that is not nil. It reports false if
// the schedule has changed meanwhile.
func (e *Engine) keepSchedule(before, after Schedule, j *job) (kept bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now, ok := e.schedules[before.Name]; ok && now != before {
		return false, nil
	}
	if j != nil {
		if err := e.add(j, true); err != nil {
			return false, err
		}
		e.store(j, Pending, j.enqueued)
	}
	if e.schedules == nil {
		e.schedules = map[string]Schedule{}
	}
	e.schedules[before.Name] = after
	return true, nil
}

// claim makes an occurrence that is replayed the one that its schedule waits for. It ignores other jobs. The
// engine is locked.
func (e *Engine) claim(id string) error {
	name, ok := ScheduleOf(id)
	if !ok {
		return nil
	}
	s := e.schedules[name]
	var open Info
	if j := e.jobs[s.Job]; j != nil && j.status != 0 {
		j.info(&open, e.clock)
	}
	if err := s.Claim(id, &open); err != nil {
		return err
	}
	e.schedules[name] = s
	return nil
}
