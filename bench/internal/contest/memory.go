package contest

import (
	"runtime"
	"time"
)

// AllocsPerOp returns the number of allocations of one operation of c, which must have New, on one core and after a warm-up.
// Like testing.AllocsPerRun it rounds down, so that a stray allocation does not count, and must not be called while
// other goroutines allocate, as parallel tests do.
func AllocsPerOp(c Contender) (allocs int) {
	allocs, _ = memory(c.New(), time.Now)
	return allocs
}

// memory returns the allocations and allocated bytes of one op, rounded down, over 10 to 1,000 of them: fewer where they
// would take longer than about 100 ms.
func memory(op func(n int), now func() time.Time) (allocs, bytes int) {
	const (
		minOps, maxOps = 10, 1_000
		enough         = 100 * time.Millisecond
	)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	op(1) // warm up
	begin := now()
	op(1)
	n := maxOps
	if elapsed := now().Sub(begin); elapsed > 0 {
		n = int(min(max(enough/elapsed, minOps), maxOps))
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	op(n)
	runtime.ReadMemStats(&after)
	return int(after.Mallocs-before.Mallocs) / n, int(after.TotalAlloc-before.TotalAlloc) / n
}
