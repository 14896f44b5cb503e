package retryjob

import (
	"sync"
	"time"
)

// shards is how many parts the jobs of an engine are kept in: many more than cores, so that two goroutines seldom want
// the same.
const shards = 64

// shard has the jobs whose place falls to it.
type shard struct {
	mu      sync.Mutex         // guards the jobs too
	made    map[uint64]*page   // of the jobs with IDs that were made up here, by number
	named   map[string]*job    // the other jobs, by ID
	lists   [Canceled + 1]list // of the jobs with a status; none has that of 0
	watches map[*job]*watch    // of the jobs that Wait is called for

	// Jobs that were removed, for jobs that come: under load one goes for each that comes. What points to a job that
	// may be removed meanwhile compares job.changed under mu before it reads more.
	free *job // linked by next
	kept int
}

// page is the jobs of a shard whose numbers follow one another, so that the map has one entry for all of them. It is
// small, because one of them may stay for days.
type page [8]*job

// page returns the page of a number, nil if all jobs there are removed, and which of them has the number.
func (s *shard) page(number uint64) (p *page, key, slot uint64) {
	n := number / shards
	key, slot = n/uint64(len(p)), n%uint64(len(p))
	return s.made[key], key, slot
}

// list is jobs in the order of their changes.
type list struct {
	jobs           int
	newest, oldest *job
}

func (l *list) push(j *job) {
	l.jobs++
	if j.older = l.newest; j.older != nil {
		j.older.newer = j
	} else {
		l.oldest = j
	}
	l.newest = j
}

func (l *list) cut(j *job) {
	l.jobs--
	if j.newer != nil {
		j.newer.older = j.older
	} else {
		l.newest = j.older
	}
	if j.older != nil {
		j.older.newer = j.newer
	} else {
		l.oldest = j.newer
	}
	j.newer, j.older = nil, nil
}

func (e *Engine) shard(place uint64) *shard { return &e.shards[place%shards] }

// lock locks the shard of j, which is not removed, and returns it.
func (e *Engine) lock(j *job) *shard {
	s := e.shard(j.place)
	s.mu.Lock()
	return s
}

func (s *shard) find(id string, place uint64) *job {
	if place >= named {
		return s.named[id]
	}
	if p, _, slot := s.page(place); p != nil {
		return p[slot]
	}
	return nil
}

// put takes in a copy of a job that is not there.
func (s *shard) put(made *job) *job {
	j := s.free
	if j != nil {
		s.free, s.kept = j.next, s.kept-1
	} else {
		j = new(job)
	}
	*j = *made
	if j.place >= named {
		s.named[j.id] = j
		return j
	}
	p, key, slot := s.page(j.place)
	if p == nil {
		p = new(page)
		s.made[key] = p
	}
	p[slot] = j
	return j
}

// drop forgets a job that is there.
func (e *Engine) drop(j *job) {
	s := e.shard(j.place)
	if j.place >= named {
		delete(s.named, j.id)
		return
	}
	p, key, slot := s.page(j.place)
	if p[slot] = nil; *p == (page{}) {
		delete(s.made, key)
	}
}

// become gives j a status. It is the one place that does.
func (e *Engine) become(j *job, status Status) {
	s := e.shard(j.place)
	if j.status != 0 {
		s.lists[j.status].cut(j)
	}
	j.status, j.changed = status, e.changes.Add(1)
	l := &s.lists[status]
	l.push(j)
	if l.jobs > keptDone && (status == Succeeded || status == Canceled) {
		e.remove(l.oldest)
	}
}

// store gives j, which is locked, the status that was decided about it at now, and sees to what follows.
func (e *Engine) store(j *job, s Status, now instant) {
	e.become(j, s)
	switch {
	case s.Final():
		e.release(j, nil)
		if e.sweepAt.Load() == 0 {
			e.sweepBy(now.after(e.shortest()))
		}
	case e.stopping.Load(): // it will not run here any more
		e.release(j, ErrShutdown)
		fallthrough
	default:
		e.wait(j, now)
	}
}

// remove forgets j, which is final. Its ID is free again when a canceled attempt that still runs has ended.
func (e *Engine) remove(j *job) {
	s := e.shard(j.place)
	s.lists[j.status].cut(j)
	status := j.status
	j.status, j.changed = 0, 0
	if j.attempt != nil {
		return
	}
	e.drop(j)
	if status == Canceled { // its lane may still have it
		j.payload, j.earlier = "", nil
	} else if s.kept < keptDone {
		*j = job{next: s.free}
		s.free, s.kept = j, s.kept+1
	}
}

// aged reports whether j is to be removed. What is aged is not found any more, though sweep may come later.
func (e *Engine) aged(j *job, now instant) bool {
	return j.status.Final() && j.at.after(e.kept(j.status)) <= now
}

// shortest returns the shortest time for which a job is kept.
func (e *Engine) shortest() time.Duration { return min(e.kept(Succeeded), e.kept(DeadLettered)) }

// sweepBy sees to it that sweep is called at the given time or earlier.
func (e *Engine) sweepBy(at instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if set := instant(e.sweepAt.Load()); e.stopping.Load() || set != 0 && set <= at {
		return
	}
	e.sweepAt.Store(int64(at))
	if d := time.Duration(at - e.clock.now()); e.sweeper == nil {
		e.sweeper = time.AfterFunc(d, e.sweep)
	} else {
		e.sweeper.Reset(d)
	}
}

// sweep removes the final jobs whose time is over, and comes again when that of the next one is, within 1/64 of the
// shortest time for which jobs are kept and that time.
func (e *Engine) sweep() {
	e.sweepAt.Store(0) // what ends from now on calls for a sweep itself
	now := e.clock.now()
	next := now.after(e.shortest())
	left := false
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		for status := Succeeded; status <= Canceled; status++ {
			l := &s.lists[status]
			for l.oldest != nil && e.aged(l.oldest, now) {
				e.remove(l.oldest)
			}
			if l.oldest != nil {
				left, next = true, min(next, l.oldest.at.after(e.kept(status)))
			}
		}
		s.mu.Unlock()
	}
	if left {
		e.sweepBy(max(next, now.after(e.shortest()/64)))
	}
}

// each calls f for the jobs with one of the statuses while their shards are locked.
func (e *Engine) each(f func(*job), statuses ...Status) {
	now := e.clock.now()
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		for _, status := range statuses {
			for j := s.lists[status].newest; j != nil; j = j.older {
				if !e.aged(j, now) {
					f(j)
				}
			}
		}
		s.mu.Unlock()
	}
}
