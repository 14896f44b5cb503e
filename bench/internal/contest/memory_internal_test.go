package contest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sink makes what is stored in it escape to the heap.
var sink *[64]byte

// twice allocates 2 times 64 bytes in each operation, and a lot in the first.
func twice() func(n int) {
	first := true
	return func(n int) {
		if first {
			for range 10_000 {
				sink = new([64]byte)
			}
			first = false
		}
		for range 2 * n {
			sink = new([64]byte)
		}
	}
}

func TestMemory(t *testing.T) {
	t.Run("of an op that allocates", func(t *testing.T) {
		allocs, bytes := memory(twice(), time.Now)
		require.Equal(t, 2, allocs)
		require.Equal(t, 128, bytes)
	})
	t.Run("of an op that does not", func(t *testing.T) {
		require.Zero(t, AllocsPerOp(Contender{New: func() func(int) { return func(int) {} }}))
	})
	t.Run("of a contender", func(t *testing.T) {
		require.Equal(t, 2, AllocsPerOp(Contender{New: twice}))
	})
}

func TestMemoryOfASlowOp(t *testing.T) {
	for _, row := range []struct {
		cost time.Duration
		want int
	}{
		{cost: 0, want: 1_000},
		{cost: 100 * time.Microsecond, want: 1_000},
		{cost: time.Millisecond, want: 100},
		{cost: time.Second, want: 10},
	} {
		t.Run(row.cost.String(), func(t *testing.T) {
			var c clock
			most := 0
			op := c.op("a", Ours, row.cost, -1).New()
			memory(func(n int) { most = max(most, n); op(n) }, c.Now)
			require.Equal(t, row.want, most)
		})
	}
}
