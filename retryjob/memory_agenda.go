package retryjob

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lane has the workers of a queue and the turns of its jobs that wait. Counting the workers under the same mutex makes
// taking a turn and seeing to the next one a short section.
//
// The turn of a job that is canceled stays until it comes or such turns are the most. The mutex guards all but the
// atomic fields; a shard may be locked while it is held, not the other way around.
type lane struct {
	concurrency int

	mu       sync.Mutex
	turns    [4]agenda    // by priority
	workers  int          // goroutines that make attempts, at most concurrency
	coming   atomic.Int32 // those that are about to ask for a turn
	stale    atomic.Int32 // turns whose job does not wait for them any more
	timer    *time.Timer
	armed    instant // when the timer fires; 0 means that it is not set
	stopping bool
}

// next returns the agenda of which the first turn comes next, and that turn: of those that are due the first by
// priority, otherwise the earliest.
func (l *lane) next(now instant) (next *agenda, first *turn) {
	for i := range l.turns {
		if t := l.turns[i].first(); t != nil && (first == nil || t.due < first.due) {
			next, first = &l.turns[i], t
			if t.due <= now {
				break
			}
		}
	}
	return next, first
}

// agenda has turns in the order in which they are to start: by due time, and by the order in which they came to wait if
// that is the same. Turns that come in this order stand in a line, which costs nothing to keep sorted; the others in a
// heap.
type agenda struct {
	line []turn // from head on; zero before
	head int
	heap []turn
}

// turn says when a job is to start. It is out of date once the job has changed.
type turn struct {
	due     instant
	changed uint64 // job.changed when it began to wait
	job     *job
}

func (t *turn) before(o *turn) bool { return t.due < o.due || t.due == o.due && t.changed < o.changed }

// add takes in a turn.
func (a *agenda) add(t turn, now instant) {
	if n := len(a.line); t.due > now || n > 0 && t.before(&a.line[n-1]) {
		a.heap = append(a.heap, t)
		a.up(len(a.heap) - 1)
		return
	}
	if a.head > 64 && a.head > len(a.line)/2 { // copied fewer times than taken
		a.line = slices.Delete(a.line, 0, a.head)
		a.head = 0
	}
	a.line = append(a.line, t)
}

// first returns the first turn, or nil if there is none.
func (a *agenda) first() *turn {
	switch {
	case a.head == len(a.line) && len(a.heap) == 0:
		return nil
	case a.head == len(a.line) || len(a.heap) > 0 && a.heap[0].before(&a.line[a.head]):
		return &a.heap[0]
	default:
		return &a.line[a.head]
	}
}

// pop removes the first turn.
func (a *agenda) pop() (t turn) {
	f := a.first()
	t = *f
	if a.head < len(a.line) && f == &a.line[a.head] {
		*f = turn{}
		if a.head++; a.head == len(a.line) {
			if a.line, a.head = a.line[:0], 0; cap(a.line) > 4096 {
				a.line = nil // a burst is over
			}
		}
		return t
	}
	last := len(a.heap) - 1
	a.heap[0], a.heap[last] = a.heap[last], turn{}
	a.heap = a.heap[:last]
	a.down(0)
	return t
}

// forget removes the turns of jobs that do not wait for them, if these are the most.
func (e *Engine) forget(l *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := 0
	for i := range l.turns {
		all += len(l.turns[i].line) - l.turns[i].head + len(l.turns[i].heap)
	}
	if n := int(l.stale.Add(1)); n < 1024 || n < all/2 {
		return
	}
	l.stale.Store(0)
	for p := range l.turns {
		a := &l.turns[p]
		a.line, a.head = slices.DeleteFunc(slices.Delete(a.line, 0, a.head), e.changedSince), 0
		a.heap = slices.DeleteFunc(a.heap, e.changedSince)
		for i := len(a.heap)/fan + 1; i >= 0; i-- {
			a.down(i)
		}
	}
}

// changedSince reports whether the job has changed since t was made.
func (e *Engine) changedSince(t turn) bool {
	defer e.lock(t.job).mu.Unlock()
	return t.job.changed != t.changed
}

// fan is how many children a node of the heap has. Four turns are 96 bytes, two cache lines at most: a wider, lower heap
// waits for memory less often.
const fan = 4

func (a *agenda) up(i int) {
	t := a.heap[i]
	for i > 0 {
		parent := (i - 1) / fan
		if !t.before(&a.heap[parent]) {
			break
		}
		a.heap[i] = a.heap[parent]
		i = parent
	}
	a.heap[i] = t
}

func (a *agenda) down(i int) {
	if i >= len(a.heap) {
		return
	}
	t := a.heap[i]
	for {
		first, least := fan*i+1, -1
		for child := first; child < min(first+fan, len(a.heap)); child++ {
			if least < 0 || a.heap[child].before(&a.heap[least]) {
				least = child
			}
		}
		if least < 0 || !a.heap[least].before(&t) {
			break
		}
		a.heap[i] = a.heap[least]
		i = least
	}
	a.heap[i] = t
}
