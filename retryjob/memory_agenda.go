package retryjob

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lane has the workers of a queue and its jobs that wait. The mutex guards all but coming; it is locked while a shard
// is, not the other way around.
//
// A job that is canceled stays until its turn comes or such jobs are the most.
type lane struct {
	concurrency int

	mu      sync.Mutex
	due     [4]line // by priority
	later   agenda
	jobs    int          // in due and later
	gone    int          // of these are canceled
	workers int          // goroutines that make attempts, at most concurrency
	coming  atomic.Int32 // those that are about to ask for a job
	timer   *time.Timer
	armed   instant // when the timer fires; 0 means that it is not set
}

// line has jobs that are due in the order in which they became so, linked by next.
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

// add makes j wait in the lane.
func (l *lane) add(j *job, now instant) {
	l.jobs++
	j.queued = true
	l.advance(now)
	if j.at <= now {
		l.due[j.priority].push(j)
	} else {
		heap.Push(&l.later, turn{j.at, j.changed, j})
	}
}

// advance takes over what has become due.
func (l *lane) advance(now instant) {
	for len(l.later) > 0 && l.later[0].due <= now {
		j := l.later[0].job
		heap.Pop(&l.later)
		l.due[j.priority].push(j)
	}
}

// next removes the job that comes next and returns it, or nil if none is due.
func (l *lane) next() *job {
	for i := range l.due {
		for l.due[i].first != nil {
			j := l.due[i].pop()
			if l.jobs--; j.queued {
				j.queued = false
				return j
			}
			l.gone--
		}
	}
	return nil
}

func (l *lane) isDue() bool {
	return slices.ContainsFunc(l.due[:], func(own line) bool { return own.first != nil })
}

// forget sees to it that j, which is canceled, does not start.
func (l *lane) forget(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !j.queued {
		return // a worker has it already
	}
	j.queued = false
	if l.gone++; l.gone < 1024 || l.gone < l.jobs/2 {
		return
	}
	l.jobs, l.gone = l.jobs-l.gone, 0
	for i := range l.due {
		all := l.due[i]
		l.due[i] = line{}
		for all.first != nil {
			if j := all.pop(); j.queued {
				l.due[i].push(j)
			}
		}
	}
	l.later = slices.DeleteFunc(l.later, func(t turn) bool { return !t.job.queued })
	heap.Init(&l.later)
}

// agenda has turns as a heap, the earliest first.
type agenda []turn

// turn says when a job is to start. Of those that are due together the one that came to wait first goes first.
type turn struct {
	due     instant
	changed uint64
	job     *job
}

func (t turn) compare(o turn) int {
	return cmp.Or(cmp.Compare(t.due, o.due), cmp.Compare(t.changed, o.changed))
}

// The methods of heap.Interface, for package container/heap only.
func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].compare(a[j]) < 0 }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(t any)        { *a = append(*a, t.(turn)) }

// Pop removes the last turn. The first one is read before.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	(*a)[last] = turn{}
	*a = (*a)[:last]
	return nil
}
