package event

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzEventQueue compares a Queue with a list that is searched for its first event.
func FuzzEventQueue(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint16(2000), uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16, shift uint8) {
		const limit = math.MaxInt64
		rng := rand.New(rand.NewPCG(seed, 1))
		q := New(limit)
		var list []Event
		next := func() {
			first := 0
			for i := range list {
				if list[i].At < list[first].At {
					first = i
				}
			}
			var got Event
			require.True(t, q.Next(&got))
			require.Equal(t, list[first], got)
			require.Equal(t, got.At, q.Now)
			list = slices.Delete(list, first, first+1)
		}
		for range steps {
			require.Equal(t, len(list), q.Pending())
			if rng.IntN(5) < 2 && len(list) > 0 {
				next()
				continue
			}
			delay := int64(rng.Uint64()>>1) >> (rng.IntN(64) | int(shift%64))
			if rng.IntN(5) < 2 {
				delay = int64(rng.IntN(3)) * 1000
			}
			at := q.Now + min(delay, limit-q.Now)
			e := Event{at, rng.Uint32(), Kind(rng.IntN(12))}
			q.Plan(at, e.Kind, e.Ref)
			if at < limit {
				list = append(list, e)
			}
		}
		for len(list) > 0 {
			next()
		}
		var none Event
		require.False(t, q.Next(&none))
	})
}
