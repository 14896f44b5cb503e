package event

import "math/bits"

const (
	digitBits = 6 // of a time, written with 64 digits
	digits    = 1 << digitBits
	levels    = (64 + digitBits - 1) / digitBits
	few       = 64 // events that a heap keeps in order better than another level does
)

// laterEvents holds the events that are not next, roughly in order, so that the heap stays small enough for the
// processor's cache: a hierarchical timing wheel (Varghese, Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987,
// scheme 7).
//
// An event is in the slot of the highest digit in which its time differs from ref, and of its own digit there. So all
// of a level come before all of the next higher one, and an event changes its slot once for each level at most.
type laterEvents struct {
	ref    int64 // not after any of the events
	n      int
	filled [levels]uint64 // a bit for each slot that has events
	slots  [levels][digits]eventSlot
	unused *eventChunk
}

type eventSlot struct {
	n     int
	first *eventChunk
}

// eventChunk is some events of a slot. It is a kilobyte long.
type eventChunk struct {
	next   *eventChunk
	n      int
	events [42]Event
}

// add adds an event after ref.
func (l *laterEvents) add(e Event) {
	level := (bits.Len64(uint64(e.At^l.ref)|1) - 1) / digitBits
	digit := e.At >> (digitBits * level) & (digits - 1)
	slot := &l.slots[level][digit]
	c := slot.first
	if c == nil || c.n == len(c.events) {
		c = l.chunk()
		c.next = slot.first
		slot.first = c
		l.filled[level] |= 1 << digit
	}
	c.events[c.n] = e
	c.n++
	slot.n++
	l.n++
}

// chunk returns an empty chunk.
func (l *laterEvents) chunk() *eventChunk {
	c := l.unused
	if c == nil {
		return new(eventChunk)
	}
	l.unused = c.next
	c.n = 0
	return c
}

// moveFirst moves the first events, of which there must be some, to a queue's heap: all those before the time that it
// returns.
func (l *laterEvents) moveFirst(q *Queue) (until int64) {
	for {
		level := 0
		for l.filled[level] == 0 {
			level++
		}
		shift := digitBits * level
		digit := bits.TrailingZeros64(l.filled[level])
		slot := l.slots[level][digit]
		l.slots[level][digit] = eventSlot{}
		l.filled[level] &^= 1 << digit
		l.n -= slot.n
		l.ref = l.ref>>(shift+digitBits)<<(shift+digitBits) | int64(digit)<<shift
		if level == 0 || slot.n <= few {
			for c := slot.first; c != nil; c = c.next {
				for i := range c.n {
					q.soon(&c.events[i])
				}
			}
			l.each(slot, q.up)
			return Later(l.ref, 1<<shift)
		}
		l.each(slot, l.add)
	}
}

// each gives the events of a slot that was taken out to f.
func (l *laterEvents) each(slot eventSlot, f func(Event)) {
	for c := slot.first; c != nil; {
		for i := range c.n {
			f(c.events[i])
		}
		next := c.next
		c.next, l.unused = l.unused, c
		c = next
	}
}
