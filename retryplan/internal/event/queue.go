// Package event has what an event simulation goes by: events in the order of their time, and queues and numbered places
// that make no garbage.
package event

import "math"

// Kind says what happens in an event. Most delays of a simulation are the same for all: a timeout, a deadline, a
// constant hop. Events of such a kind are planned in the order in which they happen, so each Kind below Lanes has a
// lane that is first in, first out and costs no comparisons. Only what would go before the last of its lane is put in
// order.
type Kind uint8

// Lanes is how many kinds have a lane. No kind is above 15.
const Lanes = 7

// Never is a time at which nothing happens.
const Never = math.MaxInt64

const (
	kindBits = 4
	kindMask = 1<<kindBits - 1
)

// Event is something that happens at a time, in nanoseconds.
type Event struct {
	At  int64
	key uint64 // the order in which events were planned, and the kind in the lowest bits
	Ref uint32
	Gen uint32
}

// Kind returns the kind.
func (e *Event) Kind() Kind { return Kind(e.key & kindMask) }

func (e *Event) before(f *Event) bool {
	return e.At < f.At || e.At == f.At && e.key < f.key
}

// Queue gives events in the order of their time, and those of one time in the order in which they were planned.
type Queue struct {
	Now     int64 // the time of the last event that was taken out
	limit   int64 // events at or after it never happen
	planned uint64
	instant Ring[Event] // of now
	lane    [Lanes]Ring[Event]
	heap    []Event // before near. 4-ary: half as deep as a binary heap, and the children of a node are neighbors in memory
	near    int64
	later   laterEvents // from near on
	heads   [Lanes + 1]int64
	soon    func(e *Event)
	told    [Lanes]int // events at the head of a lane that soon was called with
}

// soonest is how many events of a lane soon is called with at a time: more than the reads that a processor has under way.
const soonest = 32

// New returns a queue in which events at or after limit never happen. It calls soon with many events that are about to
// happen, several at a time, so that what they need of a memory that is far larger than the processor's cache can be
// read together.
func New(limit int64, soon func(e *Event)) *Queue {
	q := &Queue{limit: limit, soon: soon}
	for i := range q.heads {
		q.heads[i] = Never
	}
	return q
}

// Plan plans an event at the given time, or now if that is past.
func (q *Queue) Plan(at int64, kind Kind, ref, gen uint32) {
	if at >= q.limit {
		return
	}
	q.planned++
	e := Event{max(at, q.Now), q.planned<<kindBits | uint64(kind), ref, gen}
	if at <= q.Now {
		q.instant.Push(e)
		return
	}
	if kind < Lanes {
		if r := &q.lane[kind]; r.n == 0 {
			r.Push(e)
			q.heads[kind] = at
			return
		} else if at >= r.Last().At {
			r.Push(e)
			return
		}
	}
	if at >= q.near {
		q.later.add(e)
		return
	}
	q.up(e)
	q.heads[Lanes] = q.heap[0].At
}

// Next removes and returns the next event. It returns false if there is none.
func (q *Queue) Next(e *Event) bool {
	if len(q.heap) == 0 && q.later.n > 0 {
		q.near = q.later.moveFirst(q)
		q.heads[Lanes] = q.heap[0].At
	}
	first, at := 0, q.heads[0]
	for i := 1; i < len(q.heads); i++ {
		if q.heads[i] < at || q.heads[i] == at && at != Never && q.head(i).key < q.head(first).key {
			first, at = i, q.heads[i]
		}
	}
	switch {
	case q.instant.n > 0 && at > q.Now: // what was planned for now before now goes first
		*e = q.instant.Pop()
		return true
	case at == Never:
		return false
	case first == Lanes:
		*e = q.heap[0]
		q.down()
	default:
		r := &q.lane[first]
		*e = r.Pop()
		if q.told[first]--; q.told[first] <= 0 {
			q.told[first] = min(soonest, r.n)
			for i := range q.told[first] {
				q.soon(r.At(i))
			}
		}
		q.heads[first] = Never
		if r.n > 0 {
			q.heads[first] = r.First().At
		}
	}
	q.Now = at
	return true
}

// Pending returns how many events are planned and have not happened.
func (q *Queue) Pending() int {
	n := q.instant.n + len(q.heap) + q.later.n
	for i := range q.lane {
		n += q.lane[i].n
	}
	return n
}

// Len returns how many events of a kind with a lane are planned there.
func (q *Queue) Len(kind Kind) int { return q.lane[kind].n }

func (q *Queue) head(i int) *Event {
	if i == Lanes {
		return &q.heap[0]
	}
	return q.lane[i].First()
}

// Sweep takes those events out of a lane that keep does not keep.
func (q *Queue) Sweep(kind Kind, keep func(e *Event) bool) {
	r := &q.lane[kind]
	for range r.n {
		kept := keep(r.First())
		if e := r.Pop(); kept {
			r.Push(e)
		}
	}
	q.heads[kind] = Never
	if r.n > 0 {
		q.heads[kind] = r.First().At
	}
}

func (q *Queue) up(e Event) {
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = e
}

// down takes the first event of the heap out.
func (q *Queue) down() {
	n := len(q.heap) - 1
	e := q.heap[n]
	q.heap = q.heap[:n]
	if n == 0 {
		q.heads[Lanes] = Never
		return
	}
	h, i := q.heap, 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if e.before(&h[least]) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
	q.heads[Lanes] = h[0].At
}

// Later returns at+d, saturated. Neither is negative.
func Later(at, d int64) int64 {
	if at > math.MaxInt64-d {
		return math.MaxInt64
	}
	return at + d
}
