package retryjob

import "time"

// shelf holds the jobs of one status, the one that changed last first.
type shelf struct {
	newest, oldest *job
	jobs           int
	cursors        []*cursor
}

// cursor is a place on a shelf from which a list is read, towards older jobs. It stays right while jobs come and go.
type cursor struct{ next *job }

// put adds j as the newest.
func (s *shelf) put(j *job) {
	j.newer, j.older = nil, s.newest
	if s.newest != nil {
		s.newest.newer = j
	} else {
		s.oldest = j
	}
	s.newest = j
	s.jobs++
}

// take removes j. A cursor before it moves on to the next.
func (s *shelf) take(j *job) {
	for _, c := range s.cursors {
		if c.next == j {
			c.next = j.older
		}
	}
	if j.newer != nil {
		j.newer.older = j.older
	} else {
		s.newest = j.older
	}
	if j.older != nil {
		j.older.newer = j.newer
	} else {
		s.oldest = j.newer
	}
	j.newer, j.older = nil, nil
	s.jobs--
}

// become gives j a status. It is the one place that does, and is called for a job that begins an attempt (lease), for what a
// Stepper or a method of Record has decided (store), and for a new job.
func (e *Engine) become(j *job, s Status) {
	if j.status != 0 {
		e.shelves[j.status].take(j)
	}
	j.status = s
	e.changes++
	j.changed = e.changes
	e.shelves[s].put(j)
}

// store makes j what rec says, which Stepper or a method of Record has changed.
func (e *Engine) store(j *job, rec *Record) {
	waited := j.waits()
	j.keep(rec, e.clock)
	e.move(j, rec.Status, waited)
}

// move gives j the status that was decided about it. waited says whether it stood in the agenda.
func (e *Engine) move(j *job, s Status, waited bool) {
	e.become(j, s)
	switch {
	case s.Final():
		if waited {
			e.agenda.forget()
		}
		j.tell(e.info, nil)
		e.limit()
	default:
		e.agenda.wait(j)
		if e.stopping { // it will not run here any more
			j.tell(e.info, ErrShutdown)
		}
	}
}

// info returns j as it is.
func (e *Engine) info(j *job) Info {
	n := j.route.Value().get()
	return Info{Record: j.snapshot(e.clock), Queue: n.queue, Priority: n.priority, Tags: n.list(), Payload: j.payloadCopy()}
}

// remove forgets j, which is final. Its ID is free again when a canceled attempt that still runs has ended.
func (e *Engine) remove(j *job) {
	e.shelves[j.status].take(j)
	if j.underWay() {
		j.live.removed = true
		return
	}
	delete(e.jobs, j.id)
}

// limit removes what has succeeded or was canceled beyond keptDone, the oldest first.
func (e *Engine) limit() {
	a, b := &e.shelves[Succeeded], &e.shelves[Canceled]
	for a.jobs+b.jobs > keptDone {
		oldest := a.oldest
		if oldest == nil || b.oldest != nil && b.oldest.changed < oldest.changed {
			oldest = b.oldest
		}
		e.remove(oldest)
	}
}

// sweep removes the final jobs whose time is over. It does so many at once only that callers do not wait long for the lock.
func (e *Engine) sweep(now instant) {
	left := 1000
	for s := Succeeded; s <= Canceled; s++ {
		for j := e.shelves[s].oldest; j != nil && j.at.after(e.kept(s)) <= now && left > 0; j = e.shelves[s].oldest {
			e.remove(j)
			left--
		}
	}
}

// outlived returns when sweep has to remove a job next, 0 for never.
func (e *Engine) outlived() instant {
	var first instant
	for s := Succeeded; s <= Canceled; s++ {
		if j := e.shelves[s].oldest; j != nil {
			if at := j.at.after(e.kept(s)); first == 0 || at < first {
				first = at
			}
		}
	}
	return first
}

// arm sets the timer for what is next to be done when no call and no worker comes before.
func (e *Engine) arm(now instant) {
	at := e.outlived()
	// What is due already is not for the timer: the next worker to be free takes it.
	if j := e.agenda.next(); j != nil && j.at > now && (at == 0 || j.at < at) {
		at = j.at
	}
	if at == 0 || e.armed != 0 && e.armed <= at {
		return
	}
	e.armed = at
	if d := time.Duration(max(at-now, 0)); e.timer == nil {
		e.timer = time.AfterFunc(d, e.fire)
	} else {
		e.timer.Reset(d)
	}
}

// fire does what the timer was set for.
func (e *Engine) fire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return
	}
	e.armed = 0
	now := e.clock.now()
	e.sweep(now)
	e.drive(now)
}
