// Package event has what an event simulation is made of: a queue of events in the order of their time, and numbered
// places for what they are about.
package event

import "math/bits"

// Kind says what happens in an event.
type Kind uint8

// Event is something that happens at a time, in nanoseconds.
type Event struct {
	At   int64
	Ref  uint32
	Kind Kind
}

const (
	digitBits = 6 // of a time, written with 64 digits
	digits    = 1 << digitBits
	levels    = (64 + digitBits - 1) / digitBits
)

// Queue returns events in the order of their time, and those of one time in the order in which they were planned.
//
// It is a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem", Journal of the
// ACM 37, 1990): an event is in the slot of the highest digit in which its time differs from Now, and of its own digit
// there. All events of a level are before all of the next higher one, and an event changes its slot at most once for
// each level, always together with those that were planned before it for the same time.
type Queue struct {
	Now    int64 // the time of the last event that was returned
	limit  int64
	n      int
	filled [levels]uint64 // a bit for each slot that has events
	slots  [levels][digits]slot
	unused *chunk
}

// slot is a list of events, first in, first out.
type slot struct{ first, last *chunk }

// chunk is some events of a slot. It is a kilobyte long.
type chunk struct {
	next    *chunk
	head, n uint32 // events[head:n] are there
	events  [63]Event
}

// New returns a queue in which events at or after limit never happen.
func New(limit int64) *Queue { return &Queue{limit: limit} }

// Plan plans an event at the given time, or now if that is past.
func (q *Queue) Plan(at int64, kind Kind, ref uint32) {
	if at < q.limit {
		q.n++
		q.add(Event{max(at, q.Now), ref, kind})
	}
}

// Pending returns how many events are planned and have not happened.
func (q *Queue) Pending() int { return q.n }

// Next removes and returns the next event. It returns false if there is none.
func (q *Queue) Next(e *Event) bool {
	if q.n == 0 {
		return false
	}
	for {
		level := 0
		for q.filled[level] == 0 {
			level++
		}
		digit := bits.TrailingZeros64(q.filled[level])
		s := &q.slots[level][digit]
		c := s.first
		alone := c.next == nil && c.head+1 == c.n
		if level > 0 && !alone {
			q.spread(level, digit)
			continue
		}
		*e = c.events[c.head]
		c.head++
		if c.head == c.n {
			s.first = c.next
			c.next, q.unused = q.unused, c
		}
		if alone {
			q.filled[level] &^= 1 << digit
		}
		q.n--
		q.Now = e.At
		return true
	}
}

// spread moves the events of a slot, which are the next ones, to lower levels.
func (q *Queue) spread(level, digit int) {
	shift := digitBits * level
	q.Now = q.Now>>(shift+digitBits)<<(shift+digitBits) | int64(digit)<<shift
	q.filled[level] &^= 1 << digit
	for c := q.slots[level][digit].first; c != nil; {
		for _, e := range c.events[c.head:c.n] {
			q.add(e)
		}
		next := c.next
		c.next, q.unused = q.unused, c
		c = next
	}
}

// add puts an event into its slot.
func (q *Queue) add(e Event) {
	level := (bits.Len64(uint64(e.At^q.Now)|1) - 1) / digitBits
	digit := e.At >> (digitBits * level) & (digits - 1)
	s := &q.slots[level][digit]
	switch {
	case q.filled[level]>>digit&1 == 0:
		s.first = q.chunk()
		s.last = s.first
		q.filled[level] |= 1 << digit
	case s.last.n == uint32(len(s.last.events)):
		s.last.next = q.chunk()
		s.last = s.last.next
	}
	c := s.last
	c.events[c.n] = e
	c.n++
}

// chunk returns an empty chunk.
func (q *Queue) chunk() *chunk {
	c := q.unused
	if c == nil {
		return new(chunk)
	}
	q.unused = c.next
	c.next, c.head, c.n = nil, 0, 0
	return c
}
