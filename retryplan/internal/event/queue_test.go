package event

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// sortedEvents is an Queue that anyone can follow.
type sortedEvents struct{ list []Event }

func (s *sortedEvents) plan(e Event) { s.list = append(s.list, e) }

func (s *sortedEvents) next() (e Event) {
	first := 0
	for i := range s.list {
		if s.list[i].before(&s.list[first]) {
			first = i
		}
	}
	e = s.list[first]
	s.list = slices.Delete(s.list, first, first+1)
	return e
}

func FuzzEventQueue(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint16(2000), uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16, shift uint8) {
		const limit = Never
		rng := rand.New(rand.NewPCG(seed, 1))
		q, slow := New(limit, func(*Event) {}), sortedEvents{}
		planned := uint64(0)
		for range steps {
			if rng.IntN(5) < 2 && len(slow.list) > 0 {
				want := slow.next()
				var got Event
				require.True(t, q.Next(&got))
				require.Equal(t, want, got)
				require.Equal(t, want.At, q.Now)
				continue
			}
			kind := Kind(rng.IntN(12))
			delay := int64(rng.Uint64()>>1) >> (rng.IntN(64) | int(shift%64))
			if kind < 3 { // as most kinds are
				delay = int64(kind) * 1000
			}
			if rng.IntN(10) == 0 {
				delay = 0
			}
			at := Later(q.Now, delay)
			ref, gen := rng.Uint32(), rng.Uint32()
			q.Plan(at, kind, ref, gen)
			if at < limit {
				planned++
				slow.plan(Event{at, planned<<kindBits | uint64(kind), ref, gen})
			}
			if rng.IntN(200) == 0 {
				keep := func(e *Event) bool { return e.Ref%3 > 0 }
				lane := q.lane[kind%Lanes]
				slow.list = slices.DeleteFunc(slow.list, func(e Event) bool {
					return !keep(&e) && lane.n > 0 && slices.Contains(lane.buf, e) && e.Kind() == kind%Lanes
				})
				q.Sweep(kind%Lanes, keep)
			}
		}
		for len(slow.list) > 0 {
			want := slow.next()
			var got Event
			require.True(t, q.Next(&got))
			require.Equal(t, want, got)
		}
		var none Event
		require.False(t, q.Next(&none))
	})
}

func TestSoonIsCalledBeforeWhatWasPlannedAheadHappens(t *testing.T) {
	for _, kind := range []Kind{0, Lanes} { // in a lane, and in the wheel
		soon := map[uint32]int{}
		q := New(Never, func(e *Event) { soon[e.Ref]++ })
		for i := range uint32(1000) {
			q.Plan(int64(i+1)*1e6, kind, i, 0)
		}
		var e Event
		for q.Next(&e) {
			if e.Ref > 0 { // the first of a lane is too late
				require.Equal(t, 1, soon[e.Ref], "kind %d, event %d", kind, e.Ref)
			}
		}
		require.Equal(t, uint32(999), e.Ref)
	}
}
