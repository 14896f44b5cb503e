package retryplan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// sortedEvents is an eventQueue that anyone can follow.
type sortedEvents struct{ list []simEvent }

func (s *sortedEvents) plan(e simEvent) { s.list = append(s.list, e) }

func (s *sortedEvents) next() (e simEvent) {
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
		const limit = never
		rng := rand.New(rand.NewPCG(seed, 1))
		q, slow := newEventQueue(limit), sortedEvents{}
		planned := uint64(0)
		for range steps {
			if rng.IntN(5) < 2 && len(slow.list) > 0 {
				want := slow.next()
				var got simEvent
				require.True(t, q.next(&got))
				require.Equal(t, want, got)
				require.Equal(t, want.at, q.now)
				continue
			}
			kind := eventKind(rng.IntN(int(conditionsChange) + 1))
			delay := int64(rng.Uint64()>>1) >> (rng.IntN(64) | int(shift%64))
			if kind < 3 { // as most kinds are
				delay = int64(kind) * 1000
			}
			if rng.IntN(10) == 0 {
				delay = 0
			}
			at := later(q.now, delay)
			ref, gen := rng.Uint32(), rng.Uint32()
			q.plan(at, kind, ref, gen)
			if at < limit {
				planned++
				slow.plan(simEvent{at, planned<<kindBits | uint64(kind), ref, gen})
			}
			if rng.IntN(200) == 0 {
				keep := func(ref, _ uint32) bool { return ref%3 > 0 }
				lane := q.lane[kind%lanes]
				slow.list = slices.DeleteFunc(slow.list, func(e simEvent) bool {
					return !keep(e.ref, e.gen) && lane.n > 0 && slices.Contains(lane.buf, e) && e.kind() == kind%lanes
				})
				q.sweep(kind%lanes, keep)
			}
		}
		for len(slow.list) > 0 {
			want := slow.next()
			var got simEvent
			require.True(t, q.next(&got))
			require.Equal(t, want, got)
		}
		var none simEvent
		require.False(t, q.next(&none))
	})
}
