package retryjob

import (
	"time"
)

// log has the jobs that got a status, in the order in which they got it. A spot is stale once its job has changed again.
// No spot is written twice, so a goroutine may read the spots that it found while the engine was locked.
type log struct {
	spots []spot
	jobs  int // the spots that are not stale
	cut   int // the stale spots that were cut off the front of the array
}

// spot is the place of a job in the order of all changes.
type spot struct {
	changed uint64 // job.changed
	job     *job
}

func (s spot) stale() bool { return s.job.changed != s.changed }

func (l *log) push(j *job) {
	l.jobs++
	l.spots = append(l.spots, spot{j.changed, j})
}

// leave notes that a spot has become stale. The log makes a new array once most of the old one is of no use.
func (l *log) leave() {
	l.jobs--
	l.oldest()
	if l.cut+len(l.spots) < 2*l.jobs+1024 {
		return
	}
	fresh := make([]spot, 0, 2*l.jobs+1024)
	for _, s := range l.spots {
		if !s.stale() {
			fresh = append(fresh, s)
		}
	}
	l.spots, l.cut = fresh, 0
}

// oldest returns the job that has had the status for the longest time, or nil.
func (l *log) oldest() *job {
	for len(l.spots) > 0 && l.spots[0].stale() {
		l.spots = l.spots[1:]
		l.cut++
	}
	if len(l.spots) == 0 {
		return nil
	}
	return l.spots[0].job
}

// keptDone is the number of Succeeded jobs, and of Canceled jobs, that an engine keeps: enough for a Wait that comes a
// moment late, and few beside the jobs that wait.
const keptDone = 10_240

// store changes the status of j at now, and updates the counts, lists and timers that depend on it. No other function does, except lease and remove.
func (e *Engine) store(j *job, s Status, now instant) {
	e.become(j, s)
	if s.Final() {
		e.release(j, nil)
		e.arm(j.at.after(e.kept(s)))
		return
	}
	if e.stopping { // it will not run again
		e.release(j, ErrShutdown)
	}
	l := j.route.Value().lane
	l.add(j, now)
	e.drive(l, now)
}

// become changes the status of j.
func (e *Engine) become(j *job, status Status) {
	old := j.status
	e.changes++
	j.status = status
	j.changed = e.changes
	if old != 0 {
		e.logs[old].leave()
	}
	l := &e.logs[status]
	l.push(j)
	bounded := status == Succeeded || status == Canceled
	if bounded && l.jobs > keptDone {
		e.remove(l.oldest())
	}
}

// remove removes j, which is final. Its ID can be used again once a canceled attempt that still runs has ended.
func (e *Engine) remove(j *job) {
	old := j.status
	j.status = 0
	j.changed = 0
	e.logs[old].leave()
	if j.attempt == nil {
		delete(e.jobs, j.id)
		j.payload = "" // a log, or the lane of a canceled job, may still have the job
		j.earlier = nil
	}
}

// aged reports whether j has been kept long enough. No method returns an aged job, even if sweep has not removed it.
func (e *Engine) aged(j *job, now instant) bool {
	return j.status.Final() && j.at.after(e.kept(j.status)) <= now
}

// sweep removes aged jobs, and sets the timer for the next job that ages, at least 1/64 of its time from now.
func (e *Engine) sweep(now instant) {
	for status := Succeeded; status <= Canceled; status++ {
		j := e.logs[status].oldest()
		for ; j != nil && e.aged(j, now); j = e.logs[status].oldest() {
			e.remove(j)
		}
		if j != nil {
			kept := e.kept(status)
			e.arm(max(j.at.after(kept), now.after(kept/64)))
		}
	}
}

// arm sets the timer so that fire is called at the given time or earlier.
func (e *Engine) arm(at instant) {
	if e.stopping || e.armed != 0 && e.armed <= at {
		return
	}
	e.armed = at
	d := time.Duration(at - e.clock.now())
	if e.timer == nil {
		e.timer = time.AfterFunc(d, e.fire)
	} else {
		e.timer.Reset(d)
	}
}

// fire starts the jobs that are due, and removes those that are aged.
func (e *Engine) fire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.armed = 0
	now := e.clock.now()
	for _, l := range e.lanes {
		e.drive(l, now)
	}
	e.sweep(now)
}
