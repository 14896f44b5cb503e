package retryplan

import "math"

// eventKind says what happens in an event, and which lane it takes.
type eventKind uint8

const (
	runBegins       eventKind = iota // ref is the client of a closed loop
	attemptArrives                   // ref is an attempt, as in the next two
	workEnds                         //
	answerArrives                    //
	attemptTimesOut                  // ref is a run, gen that of its attempt
	deadlinePasses                   // ref is a run, gen its serial
	waitEnds                         // ref is a run
	lanes                            // the kinds from here on have no lane
	rowIsRead                        // ref is an attempt, as in the next two
	readReturns                      //
	rowIsWritten                     //
	conditionsChange
)

const (
	kindBits = 4
	kindMask = 1<<kindBits - 1
	never    = math.MaxInt64
)

// simEvent is something that happens at a time, in nanoseconds.
type simEvent struct {
	at  int64
	key uint64 // the order in which events were planned, and the kind in the lowest bits
	ref uint32
	gen uint32
}

func (e *simEvent) kind() eventKind { return eventKind(e.key & kindMask) }

func (e *simEvent) before(f *simEvent) bool {
	return e.at < f.at || e.at == f.at && e.key < f.key
}

// eventQueue gives events in the order of their time, and those of one time in the order in which they were planned.
//
// Most delays of a simulation are the same for all: a timeout, a deadline, a constant hop. Events of such a kind are planned
// in the order in which they happen, so each kind has a lane that is first in, first out and costs no comparisons. Only what
// would go before the last of its lane is put in order.
type eventQueue struct {
	now     int64
	limit   int64 // events at or after it never happen
	planned uint64
	instant ring[simEvent] // of now
	lane    [lanes]ring[simEvent]
	heap    []simEvent // before near. 4-ary: half as deep as a binary heap, and the children of a node are neighbours in memory
	near    int64
	later   laterEvents // from near on
	heads   [lanes + 1]int64
}

func newEventQueue(limit int64) *eventQueue {
	q := &eventQueue{limit: limit}
	for i := range q.heads {
		q.heads[i] = never
	}
	return q
}

// plan plans an event at the given time, or now where that is past.
func (q *eventQueue) plan(at int64, kind eventKind, ref, gen uint32) {
	if at >= q.limit {
		return
	}
	q.planned++
	e := simEvent{max(at, q.now), q.planned<<kindBits | uint64(kind), ref, gen}
	if at <= q.now {
		q.instant.push(e)
		return
	}
	if kind < lanes {
		if r := &q.lane[kind]; r.n == 0 {
			r.push(e)
			q.heads[kind] = at
			return
		} else if at >= r.last().at {
			r.push(e)
			return
		}
	}
	if at >= q.near {
		q.later.add(e)
		return
	}
	q.up(e)
	q.heads[lanes] = q.heap[0].at
}

// next takes the next event out. It returns false where there is none.
func (q *eventQueue) next(e *simEvent) bool {
	if len(q.heap) == 0 && q.later.n > 0 {
		q.near = q.later.moveFirst(q)
		q.heads[lanes] = q.heap[0].at
	}
	first, at := 0, q.heads[0]
	for i := 1; i < len(q.heads); i++ {
		if q.heads[i] < at || q.heads[i] == at && at != never && q.head(i).key < q.head(first).key {
			first, at = i, q.heads[i]
		}
	}
	switch {
	case q.instant.n > 0 && at > q.now: // what was planned for now before now goes first
		*e = q.instant.pop()
		return true
	case at == never:
		return false
	case first == int(lanes):
		*e = q.heap[0]
		q.down()
	default:
		r := &q.lane[first]
		*e = r.pop()
		q.heads[first] = never
		if r.n > 0 {
			q.heads[first] = r.first().at
		}
	}
	q.now = at
	return true
}

// pending returns how many events are planned and have not happened.
func (q *eventQueue) pending() int {
	n := q.instant.n + len(q.heap) + q.later.n
	for i := range q.lane {
		n += q.lane[i].n
	}
	return n
}

func (q *eventQueue) head(i int) *simEvent {
	if i == int(lanes) {
		return &q.heap[0]
	}
	return q.lane[i].first()
}

// sweep takes those events out of a lane that keep does not keep.
func (q *eventQueue) sweep(kind eventKind, keep func(ref, gen uint32) bool) {
	r := &q.lane[kind]
	for range r.n {
		if e := r.pop(); keep(e.ref, e.gen) {
			r.push(e)
		}
	}
	q.heads[kind] = never
	if r.n > 0 {
		q.heads[kind] = r.first().at
	}
}

func (q *eventQueue) up(e simEvent) {
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
func (q *eventQueue) down() {
	n := len(q.heap) - 1
	e := q.heap[n]
	q.heap = q.heap[:n]
	if n == 0 {
		q.heads[lanes] = never
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
	q.heads[lanes] = h[0].at
}

// later returns at+d, saturated. Neither is negative.
func later(at, d int64) int64 {
	if at > math.MaxInt64-d {
		return math.MaxInt64
	}
	return at + d
}
