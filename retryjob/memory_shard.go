package retryjob

import (
	"iter"
	"sync"
	"time"
)

// shards is how many parts the jobs of an engine are kept in: many more than cores, so that two goroutines seldom want
// the same.
const shards = 64

// shard has the jobs of which the hash of the ID falls to it, in a hash table of chains: unlike a map it has no place
// to clean up where a job was, and most jobs come and go.
type shard struct {
	mu     sync.Mutex // guards the jobs too
	jobs   int
	chains []*job             // linked by job.link; a power of two of them, as many as jobs or more
	lists  [Canceled + 1]list // of the jobs with a status; none has that of 0
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

// lock locks the shard of j, and returns it.
func (e *Engine) lock(j *job) *shard {
	s := &e.shards[j.hash%shards]
	s.mu.Lock()
	return s
}

// find returns the job with the given ID and its hash, or nil.
func (s *shard) find(id string, hash uint64) *job {
	if s.chains == nil {
		return nil
	}
	j := *s.chain(hash)
	for j != nil && (j.hash != hash || j.id != id) {
		j = j.link
	}
	return j
}

func (s *shard) chain(hash uint64) **job { return &s.chains[hash/shards&uint64(len(s.chains)-1)] }

// put adds a job that is not there.
func (s *shard) put(j *job) {
	if s.jobs++; s.jobs > len(s.chains) {
		old := s.chains
		s.chains = make([]*job, max(2*len(old), 8))
		for _, j := range old {
			for j != nil {
				next := j.link
				s.link(j)
				j = next
			}
		}
	}
	s.link(j)
}

func (s *shard) link(j *job) {
	c := s.chain(j.hash)
	j.link, *c = *c, j
}

// drop removes a job that is there.
func (s *shard) drop(j *job) {
	s.jobs--
	c := s.chain(j.hash)
	for *c != j {
		c = &(*c).link
	}
	*c, j.link = j.link, nil
}

// become gives j a status. It is the one place that does.
func (e *Engine) become(j *job, status Status) {
	s := &e.shards[j.hash%shards]
	if j.status != 0 {
		s.lists[j.status].cut(j)
	}
	j.status, j.changed = status, e.changes.Add(1)
	l := &s.lists[status]
	l.push(j)
	if l.jobs > keptDone && (status == Succeeded || status == Canceled) {
		s.remove(l.oldest)
	}
}

// store gives j, which is locked, the status that was decided about it, and returns its turn if it is to wait for one.
func (e *Engine) store(j *job, s Status) turn {
	e.become(j, s)
	switch {
	case s.Final():
		j.tell(e.clock, nil)
		e.ended()
	case e.stopping.Load(): // it will not run here any more
		j.tell(e.clock, ErrShutdown)
	default:
		return turn{j.at, j.changed, j}
	}
	return turn{}
}

// remove forgets j, which is final. Its ID is free again when a canceled attempt that still runs has ended.
func (s *shard) remove(j *job) {
	s.lists[j.status].cut(j)
	if !j.underWay() {
		s.drop(j)
		if j.status == Canceled { // its turn may still point to it
			j.payload, j.history = "", nil
		}
	}
	j.status, j.changed = 0, 0
}

// aged reports whether j is to be removed. What is aged is not found any more, though sweep may come later.
func (e *Engine) aged(j *job, now instant) bool {
	return j.status.Final() && j.at.after(e.kept(j.status)) <= now
}

func (e *Engine) sweepAfter(d time.Duration) {
	l := e.lanes[""]
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopping {
		e.sweeper = time.AfterFunc(d, e.sweep)
	}
}

// ended sees to it that what has ended is removed in time.
func (e *Engine) ended() {
	if !e.sweeping.Load() && e.sweeping.CompareAndSwap(false, true) {
		e.sweepAfter(e.shortest())
	}
}

// shortest returns the shortest time for which a job is kept.
func (e *Engine) shortest() time.Duration { return min(e.kept(Succeeded), e.kept(DeadLettered)) }

// sweep removes the final jobs whose time is over, and comes again when that of the next one is, within 1/64 of the
// shortest time for which jobs are kept and that time.
func (e *Engine) sweep() {
	next := e.removeAged()
	if next == 0 {
		e.sweeping.Store(false)
		if next = e.removeAged(); next == 0 || !e.sweeping.CompareAndSwap(false, true) {
			return // what ends from now on calls for a sweep itself
		}
	}
	e.sweepAfter(min(max(time.Duration(next-e.clock.now()), e.shortest()/64), e.shortest()))
}

// removeAged removes the final jobs whose time is over, and returns when that of the next one is, 0 for never.
func (e *Engine) removeAged() (next instant) {
	now := e.clock.now()
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		for status := Succeeded; status <= Canceled; status++ {
			for s.lists[status].oldest != nil && e.aged(s.lists[status].oldest, now) {
				s.remove(s.lists[status].oldest)
			}
			if j := s.lists[status].oldest; j != nil {
				if at := j.at.after(e.kept(status)); next == 0 || at < next {
					next = at
				}
			}
		}
		s.mu.Unlock()
	}
	return next
}

// all yields the jobs with one of the statuses while their shards are locked.
func (e *Engine) all(statuses ...Status) iter.Seq[*job] {
	return func(yield func(*job) bool) {
		for i := range e.shards {
			for _, status := range statuses {
				if !e.each(&e.shards[i], status, yield) {
					return
				}
			}
		}
	}
}

// each calls f for each job of s with the given status while s is locked, the newest change first, until f returns
// false. It reports whether none did.
func (e *Engine) each(s *shard, status Status, f func(*job) bool) bool {
	now := e.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := s.lists[status].newest; j != nil; j = j.older {
		if !e.aged(j, now) && !f(j) {
			return false
		}
	}
	return true
}
