package retryjob

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lane has the workers and the waiting jobs of a queue. The mutex guards all fields but coming. A goroutine that holds
// a shard may lock it, but not the other way around.
//
// A canceled job stays until its turn comes or until most jobs of the lane are canceled.
type lane struct {
	concurrency int

	mu      sync.Mutex
	due     [4]line // by priority
	later   agenda
	jobs    int          // in due and later
	gone    int          // the canceled ones among jobs
	workers int          // goroutines that make attempts, at most concurrency
	coming  atomic.Int32 // the workers that are about to ask for a job
	timer   *time.Timer
	armed   instant // when the timer fires; 0 means that it is not set
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
	l.jobs++
	j.queued = true
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

// next removes and returns the next job, or returns nil if none is due.
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

// forget prevents the start of j, which is canceled.
func (l *lane) forget(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !j.queued {
		return // a worker has taken it
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

// turn says when a job is to start. Among jobs that are due at the same time, the first to wait starts first.
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

// Pop removes the last turn and returns nil: advance reads the first turn before it calls heap.Pop.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	(*a)[last] = turn{}
	*a = (*a)[:last]
	return nil
}
