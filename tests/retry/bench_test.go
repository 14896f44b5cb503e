package retry_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/retrygo/retry"
)

var (
	benchEpoch = time.Now()
	sinkTime   time.Duration
)

// handLoop is what a careful engineer writes by hand: it looks at its context, notes when it started, and tries again.
//
//go:noinline
func handLoop(ctx context.Context, attempts int, fn func(context.Context) error) error {
	start := time.Since(benchEpoch)
	var err error
	for n := 1; n <= attempts; n++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err = fn(ctx); err == nil {
			return nil
		}
	}
	sinkTime = time.Since(benchEpoch) - start
	return err
}

func BenchmarkFirstTry(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	full := retry.NewBudget(retry.BudgetConfig{Initial: 10})
	b.Run("bare call", func(b *testing.B) {
		for b.Loop() {
			_ = succeed(ctx)
		}
	})
	b.Run("hand-written loop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = handLoop(ctx, 8, succeed)
		}
	})
	b.Run("Do", func(b *testing.B) { benchDo(b, ctx, retry.Policy{}, succeed) })
	b.Run("Do with a full budget", func(b *testing.B) { benchDo(b, ctx, retry.Policy{Budget: full}, succeed) })
	b.Run("DoValue", func(b *testing.B) {
		b.ReportAllocs()
		var p retry.Policy
		for b.Loop() {
			_, _ = retry.DoValue(ctx, p, func(context.Context) (int, error) { return 1, nil })
		}
	})
	b.Run("Attempts", func(b *testing.B) {
		b.ReportAllocs()
		var p retry.Policy
		for b.Loop() {
			var err error
			for ctx := range retry.Attempts(ctx, p, &err) {
				err = succeed(ctx)
			}
		}
	})
	b.Run("Do in parallel", func(b *testing.B) {
		p := retry.Policy{Budget: full}
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_ = retry.Do(ctx, p, succeed)
			}
		})
	})
}

func BenchmarkAttemptTimeout(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.Run("bare context.WithDeadline", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithDeadline(ctx, time.Now().Add(time.Second))
			_ = succeed(ctx)
			cancel()
		}
	})
	b.Run("Do", func(b *testing.B) { benchDo(b, ctx, retry.Policy{AttemptTimeout: time.Second}, succeed) })
}

func BenchmarkRetries(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	failThree := func(context.Context) error {
		if n++; n%4 == 0 {
			return nil
		}
		return errFlaky
	}
	for _, row := range []struct {
		name   string
		policy retry.Policy
		fn     func(context.Context) error
	}{
		{"three failures then success, no wait", retry.Policy{MaxAttempts: 8, Backoff: noWait}, failThree},
		{"three failures then success, 1ns waits", retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}, failThree},
		{"ten failures, no wait", retry.Policy{MaxAttempts: 10, Backoff: noWait}, failing},
	} {
		b.Run(row.name, func(b *testing.B) { benchDo(b, ctx, row.policy, row.fn) })
	}
}

func benchDo(b *testing.B, ctx context.Context, p retry.Policy, fn func(context.Context) error) {
	b.ReportAllocs()
	for b.Loop() {
		_ = retry.Do(ctx, p, fn)
	}
}

func BenchmarkDelay(b *testing.B) {
	for _, row := range []struct {
		name    string
		backoff retry.Backoff
	}{
		{"exponential 2", retry.Backoff{}},
		{"exponential 3", retry.Backoff{Factor: 3}},
		{"exponential 1.5", retry.Backoff{Factor: 1.5}},
		{"linear", retry.Backoff{Mode: retry.Linear}},
		{"fixed", retry.Backoff{Mode: retry.Fixed}},
		{"list", retry.Cautious().Backoff},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				sinkTime = row.backoff.Delay(n&63 + 1)
				n++
			}
		})
	}
}

func BenchmarkJittered(b *testing.B) {
	for _, j := range []retry.JitterMode{retry.NoJitter, retry.FullJitter, retry.EqualJitter, retry.RatioJitter, retry.DecorrelatedJitter} {
		backoff := retry.Backoff{Jitter: j}
		b.Run(j.String(), func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				sinkTime = backoff.Jittered(n&63+1, sinkTime, 0.3)
				n++
			}
		})
	}
}

func BenchmarkBudget(b *testing.B) {
	full := retry.NewBudget(retry.BudgetConfig{Initial: 10})
	empty := retry.NewBudget(retry.BudgetConfig{Initial: -1})
	at := time.Now()
	b.Run("deposit into a full one", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				fund(full)
			}
		})
	})
	b.Run("refusal", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				take(empty, at)
			}
		})
	})
	b.Run("withdraw and refund", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			take(full, at)
			full.Refund()
		}
	})
	b.Run("a known key", func(b *testing.B) {
		b.ReportAllocs()
		budgets := retry.NewBudgets(retry.BudgetConfig{}, 100)
		for b.Loop() {
			fund(budgets.For("tenant 1 /orders"))
		}
	})
}

// BenchmarkWaiters measures what 100,000 goroutines cost that wait: in Do, and on a bare timer and ctx.Done.
func BenchmarkWaiters(b *testing.B) {
	const waiters = 100_000
	bare := func(ctx context.Context, ready *sync.WaitGroup) {
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		ready.Done()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	inDo := func(ctx context.Context, ready *sync.WaitGroup) {
		_ = retry.Do(ctx, retry.Policy{Backoff: retry.Backoff{Base: time.Hour}}, func(context.Context) error {
			ready.Done()
			return errFlaky
		})
	}
	b.Run("bare", func(b *testing.B) { benchWaiters(b, waiters, bare) })
	b.Run("Do", func(b *testing.B) { benchWaiters(b, waiters, inDo) })
}

func benchWaiters(b *testing.B, n int, wait func(context.Context, *sync.WaitGroup)) {
	var used uint64
	for b.Loop() {
		ctx, cancel := context.WithCancel(context.Background())
		before := inUse()
		var ready, done sync.WaitGroup
		ready.Add(n)
		done.Add(n)
		for range n {
			go func() {
				wait(ctx, &ready)
				done.Done()
			}()
		}
		ready.Wait()
		used += inUse() - before
		cancel()
		done.Wait()
	}
	b.ReportMetric(float64(used)/float64(b.N)/float64(n), "B/waiter")
}

// inUse returns the bytes of heap and stacks in use after a collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
