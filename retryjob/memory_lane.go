package retryjob

import (
	"cmp"
	"container/heap"
	"slices"
	"sync/atomic"
)

// lane has the workers and the waiting jobs of a queue. A canceled job stays until its turn comes or until half as many
// jobs as wait for later are canceled.
type lane struct {
	concurrency int
	due         [4]line // by priority
	later       agenda
	gone        int          // the jobs that were canceled since later was cleared of such
	workers     int          // goroutines that make attempts, at most concurrency
	coming      atomic.Int32 // the workers that are about to ask for a job
}

// line has due jobs in the order in which they became due, linked by next.
type line struct{ first, last *job }

func (l *line) push(j *job) {
	if l.first == nil {
		l.first = j
	} else {
		l.last.next = j
	}
	l.last = j
}

func (l *line) pop() *job {
	j := l.first
	l.first, j.next = j.next, nil
	return j
}

// add puts j into the lane.
func (l *lane) add(j *job, now instant) {
	l.advance(now)
	if j.at <= now {
		l.due[j.priority].push(j)
	} else {
		heap.Push(&l.later, turn{j.at, j.changed, j})
	}
}

// advance moves the jobs that have become due into their lines.
func (l *lane) advance(now instant) {
	for len(l.later) > 0 && l.later[0].due <= now {
		j := l.later[0].job
		heap.Pop(&l.later)
		l.due[j.priority].push(j)
	}
}

// next removes and returns the next job that is due, or returns nil.
func (l *lane) next(now instant) *job {
	l.advance(now)
	for i := range l.due {
		for l.due[i].first != nil {
			if j := l.due[i].pop(); j.waits() {
				return j
			}
		}
	}
	return nil
}

// drive starts a worker for due jobs if one is needed, and otherwise sets the timer for later jobs.
//
// It starts no worker while another one is about to ask for its next job: that worker takes the due job and calls drive
// again. So a burst of short jobs has as many goroutines as it keeps busy. More of them would only wait for the lock.
func (e *Engine) drive(l *lane, now instant) {
	l.advance(now)
	switch {
	case e.stopping:
	case slices.ContainsFunc(l.due[:], func(own line) bool { return own.first != nil }):
		if l.workers < l.concurrency && l.coming.Load() == 0 {
			l.workers++
			l.coming.Add(1)
			go e.work(l, new(attempt))
		}
	case len(l.later) > 0:
		e.arm(l.later[0].due)
	}
}

// forget notes that a job of the lane is canceled.
func (l *lane) forget() {
	if l.gone++; l.gone >= 1024 && l.gone >= len(l.later)/2 {
		l.gone = 0
		l.later = slices.DeleteFunc(l.later, func(t turn) bool { return !t.job.waits() })
		heap.Init(&l.later)
	}
}

// agenda has turns as a heap, the earliest first.
type agenda []turn

// turn says when a job is to start. Among jobs that are due at the same time, the first to wait starts first.
type turn struct {
	due     instant
	changed uint64
	job     *job
}

// The methods of heap.Interface, for package container/heap only.
func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(a[i].due, a[j].due), cmp.Compare(a[i].changed, a[j].changed)) < 0
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(t any)   { *a = append(*a, t.(turn)) }

// Pop removes the last turn and returns nil: advance reads the first turn before it calls heap.Pop.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	(*a)[last] = turn{}
	*a = (*a)[:last]
	return nil
}
