package bench_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrygo/retry"
)

// hourly waits before its only retry. A peer waits ten minutes, since cenkalti ends a run after a quarter of an hour.
var hourly = config{
	attempts: 2, delay: 10 * time.Minute, policy: retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Hour}},
}

var bareWaiter = loop{"bare-goroutine", func(ctx context.Context, c config, fn attempt) func() error {
	return func() error {
		err := fn(ctx)
		timer := time.NewTimer(c.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}}

// handWaiter is bareWaiter with what a run has beside its wait: a policy by value, a record, and an error with a history.
var handWaiter = loop{"bare-run", func(ctx context.Context, c config, fn attempt) func() error {
	p := c.policy
	return func() error { return waitByHand(ctx, p, c.delay, fn) }
}}

//go:noinline
func waitByHand(ctx context.Context, _ retry.Policy, delay time.Duration, fn attempt) error {
	began := time.Since(epoch)
	err := fn(ctx)
	record := newHandRecordOfOne(handFailure{duration: time.Since(epoch) - began, delay: delay, err: err})
	timer := time.NewTimer(delay)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return handError(began, time.Since(epoch), record, nil)
}

//go:noinline
func newHandRecordOfOne(f handFailure) []handFailure { return []handFailure{f} }

// waiters are those that wait, in the fastest form of each library.
func waiters() []loop {
	fastest := slices.DeleteFunc(slices.Clone(peers), func(l loop) bool { return strings.HasSuffix(l.name, "-usual") })
	return append([]loop{handWaiter, bareWaiter, ours}, fastest...)
}

// waiting returns a number of goroutines, fewer with -short.
func waiting(n int) int {
	if testing.Short() {
		return n / 100
	}
	return n
}

// BenchmarkWaiterMemory is the stack and heap in use of each of 100,000 goroutines that wait in a retry. With a peer
// they are 20,000, to save time.
func BenchmarkWaiterMemory(b *testing.B) {
	measured(b, waiters(), func(l loop) []float64 {
		n := waiting(20_000)
		if l.name == ours.name || strings.HasPrefix(l.name, "bare-") {
			n = waiting(100_000)
		}
		return []float64{float64(memoryOf(l, n)) / float64(n)}
	}, "B/waiter")
}

// BenchmarkWaiterCancel is how long it takes 100,000 goroutines that wait in a retry to return, from the cancellation of
// their one context on.
func BenchmarkWaiterCancel(b *testing.B) {
	measured(b, waiters(), func(l loop) []float64 {
		n := waiting(100_000)
		return []float64{float64(timeToDismiss(l, n)) / float64(n)}
	}, "ns/waiter")
}

// BenchmarkCancelOne is how long one of 2,000 goroutines that wait in a retry takes to return, from the cancellation of
// its context on.
func BenchmarkCancelOne(b *testing.B) {
	measured(b, waiters(), func(l loop) []float64 {
		took := cancelLatencies(l, waiting(2_000))
		slices.Sort(took)
		return []float64{float64(took[len(took)/2]), float64(took[len(took)*99/100])}
	}, "p50-ns", "p99-ns")
}

// BenchmarkRetained is the heap that a run keeps after 1,000,000 attempts, each of which failed with an error of its
// own. eapache is not there: it takes a table of all delays.
func BenchmarkRetained(b *testing.B) {
	measured(b, endless(), func(l loop) []float64 {
		return []float64{max(0, float64(retainedBytes(l, waiting(1_000_000))))}
	}, "retained-B")
}

// measured runs each loop as a sub-benchmark, whose operation is measure. It reports the means of what measure returns,
// a value for each unit, instead of the time.
func measured(b *testing.B, loops []loop, measure func(l loop) []float64, units ...string) {
	for _, l := range loops {
		b.Run(l.name, func(b *testing.B) {
			sums := make([]float64, len(units))
			for range b.N {
				for i, value := range measure(l) {
					sums[i] += value
				}
			}
			for i, unit := range units {
				b.ReportMetric(sums[i]/float64(b.N), unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func endless() []loop {
	all := slices.DeleteFunc(slices.Clone(peers), func(l loop) bool { return strings.HasPrefix(l.name, "eapache") })
	return append([]loop{bareLoop, ours}, all...)
}

// memoryOf returns the bytes of stack and heap that n waiters have in use.
func memoryOf(l loop, n int) int64 {
	defer smallStacks(n)()
	before := inUse()
	dismiss := gather(l, n)
	runtime.GC()
	after := inUse()
	dismiss()
	return after - before
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse + m.HeapInuse)
}

// timeToDismiss returns how long it takes n waiters to return, without a collection.
func timeToDismiss(l loop, n int) time.Duration {
	defer smallStacks(n)()
	dismiss := gather(l, n)
	start := time.Now()
	dismiss()
	return time.Since(start)
}

// cancelLatencies returns how long each of n waiters takes to return. The next is canceled when the one before has
// returned.
func cancelLatencies(l loop, n int) []time.Duration {
	defer smallStacks(n)()
	returnedAt := make(chan time.Time)
	cancels := make([]context.CancelFunc, n)
	for i := range cancels {
		cancels[i] = start(l, 1, func() { returnedAt <- time.Now() })
	}
	latencies := make([]time.Duration, n)
	for i, cancel := range cancels {
		start := time.Now()
		cancel()
		latencies[i] = (<-returnedAt).Sub(start)
	}
	return latencies
}

// retainedBytes returns how much more heap is in use in the attempt after so many failed ones than before the run. It
// panics if the run is over before.
func retainedBytes(l loop, failures int) int64 {
	c := config{attempts: failures + 1, policy: retry.Policy{MaxAttempts: retry.Unlimited, Backoff: atOnce}}
	failed, before, after := 0, int64(0), int64(0)
	call := l.make(serving, c, func(context.Context) error {
		if failed < failures {
			failed++
			return errors.New("attempt failed")
		}
		after = heapInUse()
		return nil
	})
	before = heapInUse()
	if err := call(); err != nil || failed != failures {
		panic(l.name + ": the run ended early")
	}
	return after - before
}

// heapInUse returns the bytes of reachable objects.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// gather starts n waiters. dismiss cancels their waits and returns when the last waiter has returned.
func gather(l loop, n int) (dismiss func()) {
	var there sync.WaitGroup
	there.Add(n)
	cancel := start(l, n, there.Done)
	return func() {
		cancel()
		there.Wait()
	}
}

// start returns once n waiters have called fn and none is running or about to. Each calls returned at the end.
func start(l loop, n int, returned func()) context.CancelFunc {
	ctx, cancel := context.WithCancel(context.Background())
	var called sync.WaitGroup
	called.Add(n)
	call := l.make(ctx, hourly, func(context.Context) error {
		called.Done()
		return errFlaky
	})
	for range n {
		go func() {
			_ = call()
			returned()
		}()
	}
	called.Wait()
	park()
	return cancel
}

// park returns once no goroutine other than the caller's is running or about to. The counts are approximate while
// goroutines change places, so it wants them twice.
func park() {
	states := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}}
	for times := 0; times < 2; {
		runtime.Gosched()
		metrics.Read(states)
		if states[0].Value.Uint64() == 0 && states[1].Value.Uint64() <= 1 {
			times++
		} else {
			times = 0
		}
	}
}

// smallStacks has found mostly small stacks in a collection, and prevents others, except by call, until release. A new
// goroutine's stack is as large as the average that the last collection found (runtime, gcComputeStartingStackSize):
// without this it would be what the last contender left. Until release there is one core, so that the result does not
// depend on their number.
//
// Before, it makes n goroutines: the runtime keeps their descriptors forever, and the first waiters would pay for all.
func smallStacks(n int) (release func()) {
	gather(bareWaiter, n)()
	runtime.GC() // otherwise small stacks among those of the last contender would keep their memory in use
	cores := runtime.GOMAXPROCS(1)
	percent := debug.SetGCPercent(-1)
	end := make(chan struct{})
	for range 1000 {
		go func() { <-end }()
	}
	park()
	runtime.GC()
	return func() {
		close(end)
		park()
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(cores)
	}
}
