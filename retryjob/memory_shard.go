package retryjob

import (
	"iter"
	"slices"
	"sync"
	"time"
)

// shards is how many parts the jobs of an engine are kept in: many more than cores, so that two goroutines seldom want the same.
const shards = 64

// shard has the jobs of which the hash of the ID falls to it, in a hash table of chains: unlike a map it has no place to clean up
// where a job was, and most jobs come and go.
type shard struct {
	mu     sync.Mutex // guards the jobs too
	jobs   int
	chains []*job              // linked by job.link; a power of two of them, as many as jobs or more
	counts [Canceled + 1]int32 // of the jobs with a status; that of 0 means nothing
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

// each calls f for each job of s while it is locked, if it has any with one of the statuses, and reports whether all calls
// returned true. f may remove the job.
func (s *shard) each(statuses []Status, f func(*job) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(statuses, func(status Status) bool { return s.counts[status] > 0 }) {
		return true
	}
	for _, j := range s.chains {
		for j != nil {
			next := j.link
			if !f(j) {
				return false
			}
			j = next
		}
	}
	return true
}

// become gives j a status. It is the one place that does.
func (e *Engine) become(j *job, s Status) {
	counts := &e.shards[j.hash%shards].counts
	counts[j.status]--
	counts[s]++
	j.status, j.changed = s, e.changes.Add(1)
}

// store gives j, which is locked, the status that was decided about it, and returns its turn if it is to wait for one.
func (e *Engine) store(j *job, s Status) turn {
	e.become(j, s)
	switch {
	case s.Final():
		j.tell(e.clock, nil)
	case e.stopping.Load(): // it will not run here any more
		j.tell(e.clock, ErrShutdown)
	default:
		return turn{j.at, j.changed, j}
	}
	return turn{}
}

// done removes what has succeeded or was canceled keptDone jobs before j, and sees to it that what has ended is removed in time.
func (e *Engine) done(j *job, s Status) {
	if s == Succeeded || s == Canceled {
		if old := e.newest[e.ended.Add(1)%keptDone].Swap(j); old != nil {
			shard := e.lock(old)
			if old.status.Final() && !old.status.Replayable() {
				shard.remove(old)
			}
			shard.mu.Unlock()
		}
	}
	if !e.sweeping.Load() && e.sweeping.CompareAndSwap(false, true) {
		e.sweepAfter(e.shortest())
	}
}

// remove forgets j, which is final. Its ID is free again when a canceled attempt that still runs has ended.
func (s *shard) remove(j *job) {
	if j.underWay() {
		j.live.removed = true
		return
	}
	s.drop(j)
	s.counts[j.status]--
	j.status, j.changed, j.payload, j.history = 0, 0, "", nil // some may still point to it
}

// aged reports whether j is to be removed. What is aged is not found any more, though sweep may come later.
func (e *Engine) aged(j *job, now instant) bool {
	return j.status.Final() && j.at.after(e.kept(j.status)) <= now
}

func (e *Engine) sweepAfter(d time.Duration) {
	e.agenda.mu.Lock()
	defer e.agenda.mu.Unlock()
	if !e.agenda.stopping {
		e.sweeper = time.AfterFunc(d, e.sweep)
	}
}

// shortest returns the shortest time for which a job is kept.
func (e *Engine) shortest() time.Duration { return min(e.kept(Succeeded), e.kept(DeadLettered)) }

// sweep removes the final jobs whose time is over, and comes again when that of the next one is, within 1/64 of the shortest time for
// which jobs are kept and that time.
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

var finals = []Status{Succeeded, DeadLettered, Expired, Failed, Canceled}

// removeAged removes the final jobs whose time is over, and returns when that of the next one is, 0 for never.
func (e *Engine) removeAged() (next instant) {
	now := e.clock.now()
	for i := range e.shards {
		s := &e.shards[i]
		s.each(finals, func(j *job) bool {
			switch at := j.at.after(e.kept(j.status)); {
			case !j.status.Final():
			case at <= now:
				s.remove(j)
			case next == 0 || at < next:
				next = at
			}
			return true
		})
	}
	return next
}

// all yields the jobs with one of the statuses while their shards are locked.
func (e *Engine) all(statuses ...Status) iter.Seq[*job] {
	var wanted [Canceled + 1]bool
	for _, s := range statuses {
		wanted[s] = true
	}
	return func(yield func(*job) bool) {
		now := e.clock.now()
		for i := range e.shards {
			s := &e.shards[i]
			if !s.each(statuses, func(j *job) bool {
				return !wanted[j.status] || j.removed() || e.aged(j, now) || yield(j)
			}) {
				return
			}
		}
	}
}
