package contest

import (
	"sync"
	"sync/atomic"
	"time"
)

// sample returns what samples c once. For a contender that has New it makes the work and finds n, both once.
func (r *runner) sample(c Contender, cores int) func() float64 {
	if c.Sample != nil {
		return c.Sample
	}
	op := c.New()
	n := r.calibrate(op, cores)
	return func() float64 {
		return float64(r.elapsed(op, n, cores)) / (float64(n) * float64(cores)) // a Duration counts ns
	}
}

// calibrate returns the n, from 1 to a billion, with which op takes about SampleTime, with n for each core.
func (r *runner) calibrate(op func(n int), cores int) int {
	const maxN = 1_000_000_000 // testing.B's
	op(1)                      // warm up: what only the first call costs says nothing about n
	for n := 1; ; {
		elapsed := r.elapsed(op, n, cores)
		if elapsed >= r.SampleTime/2 {
			// Once more, since a pause of the machine would pass for a slow op here, and make n too small.
			elapsed = min(elapsed, r.elapsed(op, n, cores))
		}
		fits := maxN
		if elapsed > 0 {
			fits = int(min(float64(n)*float64(r.SampleTime)/float64(elapsed), maxN))
		}
		if elapsed >= r.SampleTime/2 || n == maxN {
			return max(fits, 1)
		}
		n = min(max(fits, n+1), 100*n, maxN) // by steps, as testing.B does: a short time predicts badly
	}
}

// elapsed returns how long it takes cores goroutines to do op n times each, at once.
func (r *runner) elapsed(op func(n int), n, cores int) time.Duration {
	var begin time.Time
	Together(cores, func() { begin = r.now() }, func(int) { op(n) })
	return r.now().Sub(begin)
}

// Together calls work with each of 0 to k−1, each in a goroutine of its own, and returns when all have returned. They
// begin together: when all are running, one of them calls begin and lets the others go. For a k of 1 (and below) it calls
// begin and work(0) itself.
func Together(k int, begin func(), work func(i int)) {
	if k <= 1 {
		begin()
		work(0)
		return
	}
	var arrived atomic.Int64
	var released atomic.Bool
	var done sync.WaitGroup
	for i := range k {
		done.Go(func() {
			if arrived.Add(1) == int64(k) {
				begin()
				released.Store(true)
			}
			// Who waits holds its core. To wake it on a channel can take milliseconds on a busy machine, which would
			// pass for poor scaling.
			for !released.Load() {
			}
			work(i)
		})
	}
	done.Wait()
}
