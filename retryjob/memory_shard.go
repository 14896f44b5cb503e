package retryjob

import (
	"sync"
	"time"
)

// shards is the number of shards of an engine: many more than cores, so that two goroutines rarely need the same shard.
const shards = 64

// shard has the jobs whose place modulo shards is its index.
type shard struct {
	mu      sync.Mutex         // guards the jobs too
	made    map[uint64]*page   // the jobs with generated IDs, by their number
	named   map[string]*job    // the other jobs, by ID
	lists   [Canceled + 1]list // the jobs by status; the list of 0 is not used
	watches map[*job]*watch    // of the jobs that callers of Wait wait for
}

// page has the jobs of a shard with consecutive numbers, so that the map needs one entry for eight jobs. It is small,
// because one of them may stay for days.
type page [8]*job

// page returns the page of a number, or nil if it has no jobs, with the key of the page and the index of the job.
func (s *shard) page(number uint64) (p *page, key, slot uint64) {
	n := number / shards
	key, slot = n/uint64(len(p)), n%uint64(len(p))
	return s.made[key], key, slot
}

// list has jobs in the order of their changes.
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

// lock locks and returns the shard of j, which is not removed.
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

// put adds a copy of a job that the shard does not have.
func (s *shard) put(made *job) *job {
	j := new(job)
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

// drop deletes a job from the maps of its shard.
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

// become changes the status of j. No other function does, except remove.
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

// store changes the status of j, whose shard is locked, at now, and does what follows from it.
func (e *Engine) store(j *job, s Status, now instant) {
	e.become(j, s)
	switch {
	case s.Final():
		e.release(j, nil)
		if e.sweepAt.Load() == 0 {
			e.sweepBy(now.after(e.shortest()))
		}
	case e.stopping.Load(): // it will not run again
		e.release(j, ErrShutdown)
		fallthrough
	default:
		e.wait(j, now)
	}
}

// remove removes j, which is final. Its ID can be used again once a canceled attempt that still runs has ended.
func (e *Engine) remove(j *job) {
	s := e.shard(j.place)
	s.lists[j.status].cut(j)
	j.status, j.changed = 0, 0
	if j.attempt != nil {
		return
	}
	e.drop(j)
	j.payload, j.earlier = "", nil // the lane of a canceled job may still have it
}

// aged reports whether j has been kept long enough. No method returns an aged job, even if sweep has not removed it.
func (e *Engine) aged(j *job, now instant) bool {
	return j.status.Final() && j.at.after(e.kept(j.status)) <= now
}

// shortest returns the shortest time for which a final job is kept.
func (e *Engine) shortest() time.Duration { return min(e.kept(Succeeded), e.kept(DeadLettered)) }

// sweepBy sets the timer so that sweep is called at the given time or earlier.
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

// sweep removes aged jobs, and sets the timer for the next job that ages, at least 1/64 of shortest and at most
// shortest from now.
func (e *Engine) sweep() {
	e.sweepAt.Store(0) // jobs that end from now on set the timer themselves
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
