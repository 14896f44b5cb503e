package retryplan_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
	"github.com/stretchr/testify/require"
)

// hugeHerd is n clients that all begin at once while the server is down, and then come back to a server that takes up
// to n/50 of them a second. Each makes about ten attempts. Nothing in it is constant but the timeout, so that events
// come in no order that would be cheap to keep.
func hugeHerd(n int) retryplan.Scenario {
	return retryplan.Scenario{
		Policy: retry.Policy{MaxAttempts: retry.Unlimited, AttemptTimeout: time.Second, Backoff: retry.Backoff{
			Base: 100 * time.Millisecond, Cap: 10 * time.Second, Jitter: retry.FullJitter,
		}},
		Clients:  n,
		Server:   retryplan.Server{Workers: max(n/2500, 1), Service: retryplan.Exponential(20 * time.Millisecond)},
		Trigger:  retryplan.Trigger{Kind: retryplan.Outage, For: 10 * time.Second},
		Duration: 5 * time.Minute,
		Seed:     1,
	}
}

// hugeStorm is a fleet of n clients in an open loop that a stall tips into a storm: 70 runs a second for each 100
// attempts that the server can do. Attempts that clients have abandoned stay in the queue.
func hugeStorm(n int) retryplan.Scenario {
	return retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: 4, AttemptTimeout: time.Second, Backoff: retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.FullJitter}},
		Clients:  n,
		Rate:     0.7 * float64(n),
		Server:   retryplan.Server{Workers: max(n/100, 1), Service: retryplan.Constant(10 * time.Millisecond)},
		Trigger:  retryplan.Trigger{Kind: retryplan.Stall, From: time.Second, For: 2 * time.Second},
		Budget:   &retry.BudgetConfig{Burst: 100, Initial: 100},
		Duration: 10 * time.Second,
		Seed:     1,
	}
}

func BenchmarkSimulate(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("herd/clients=%d", n), func(b *testing.B) { benchmarkSimulate(b, hugeHerd(n)) })
	}
	for _, n := range []int{1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("storm/clients=%d", n), func(b *testing.B) { benchmarkSimulate(b, hugeStorm(n)) })
	}
}

func benchmarkSimulate(b *testing.B, s retryplan.Scenario) {
	if testing.Short() && s.Clients > 1e5 {
		b.Skip("takes seconds")
	}
	b.ReportAllocs()
	var events uint64
	var attempts int
	for b.Loop() {
		r, err := retryplan.Run(b.Context(), s)
		require.NoError(b, err)
		events += r.Events
		attempts += r.Attempts
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
	b.ReportMetric(float64(attempts)/float64(b.N), "attempts/op")
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}

// BenchmarkMillionClients is the size that the simulation is built for: a million clients and ten million attempts.
func BenchmarkMillionClients(b *testing.B) {
	if testing.Short() {
		b.Skip("takes seconds")
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	var peak uint64
	s := hugeHerd(1e6)
	s.Progress = func(int) {
		metrics.Read(sample)
		peak = max(peak, sample[0].Value.Uint64()-sample[1].Value.Uint64())
	}
	s.Budget = &retry.BudgetConfig{Burst: 1e6, Initial: 1e6}
	runtime.GC()
	for b.Loop() {
		r, err := retryplan.Run(b.Context(), s)
		require.NoError(b, err)
		require.Equal(b, s.Clients, r.Endings[0])
		b.ReportMetric(float64(r.Attempts), "attempts")
		b.ReportMetric(float64(r.Events), "events")
	}
	b.ReportMetric(float64(peak)/(1<<20), "peak-MB")
}
