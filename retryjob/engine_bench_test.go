package retryjob_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// BenchmarkEngineThroughput measures no-op jobs from Enqueue to Succeeded, with as many producers as cores.
func BenchmarkEngineThroughput(b *testing.B) {
	var done atomic.Int64
	all := make(chan struct{})
	e := benchEngine(b, retry.Policy{}, func(context.Context, retryjob.Job) error {
		if done.Add(1) == int64(b.N) {
			close(all)
		}
		return nil
	})
	job := retryjob.Job{Kind: "no-op", Policy: "p"}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := e.Enqueue(b.Context(), job); err != nil {
				b.Error(err)
			}
		}
	})
	<-all
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	_, err := e.Shutdown(b.Context())
	require.NoError(b, err)
}

// BenchmarkEngineStart measures the time from the call of Enqueue to the first line of the handler in an idle engine.
func BenchmarkEngineStart(b *testing.B) {
	started := make(chan time.Time, 1)
	e := benchEngine(b, retry.Policy{}, func(context.Context, retryjob.Job) error {
		started <- time.Now()
		return nil
	})
	job := retryjob.Job{Kind: "no-op", Policy: "p"}
	took := make([]time.Duration, 0, b.N)
	for b.Loop() {
		start := time.Now()
		h, err := e.Enqueue(b.Context(), job)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-started).Sub(start))
		if _, err := h.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "ns-median")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "ns-p99")
}

// BenchmarkEngineMillion measures a million jobs that fail once and then wait: their memory, and the time until all
// have succeeded. One worker makes the attempts, so that all attempts have been made when the last job runs.
func BenchmarkEngineMillion(b *testing.B) {
	const jobs = 1_000_000
	for b.Loop() {
		e, err := retryjob.New(retryjob.Options{
			Policies: retryjob.FromMap(map[string]retry.Policy{
				"p": {MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 20 * time.Second}},
			}),
			Handlers: map[string]retryjob.Handler{"fail-once": func(ctx context.Context, _ retryjob.Job) error {
				if a, _ := retryjob.AttemptFrom(ctx); a.Number == 1 {
					return errBench
				}
				return nil
			}, "last": func(context.Context, retryjob.Job) error { return nil }},
			Concurrency: 1,
		})
		require.NoError(b, err)
		before := liveHeap()
		start := time.Now()
		for range jobs {
			if _, err := e.Enqueue(b.Context(), retryjob.Job{Kind: "fail-once", Policy: "p"}); err != nil {
				b.Fatal(err)
			}
		}
		last, err := e.Enqueue(b.Context(), retryjob.Job{Kind: "last", Policy: "p"})
		require.NoError(b, err)
		_, err = last.Wait(b.Context())
		require.NoError(b, err)
		b.ReportMetric(jobs/time.Since(start).Seconds(), "first-attempts/s")
		b.ReportMetric(float64(liveHeap()-before)/jobs, "B/job")
		last, err = e.Enqueue(b.Context(), retryjob.Job{Kind: "last", Policy: "p", Due: time.Now().Add(20 * time.Second)})
		require.NoError(b, err)
		_, err = last.Wait(b.Context()) // it is due after all others
		require.NoError(b, err)
		b.ReportMetric(time.Since(start).Seconds(), "s-in-all")
		left, err := e.Shutdown(b.Context())
		require.NoError(b, err)
		require.Empty(b, left)
	}
}

// BenchmarkEngineListMillion measures List of a million jobs that have failed once and wait: all of them, then a first
// page.
func BenchmarkEngineListMillion(b *testing.B) {
	e := millionWaiting(b)
	for b.Loop() {
		start := time.Now()
		listed := 0
		for i := range e.List(b.Context(), retryjob.Filter{}) {
			if len(i.History) == 1 {
				listed++
			}
		}
		b.ReportMetric(time.Since(start).Seconds(), "s-all")
		require.Equal(b, 1_000_000, listed)
		start = time.Now()
		for range e.List(b.Context(), retryjob.Filter{Limit: 100}) {
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-first-100")
		start = time.Now()
		for range e.List(b.Context(), retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}}) {
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-no-dead-letters")
	}
	_, err := e.Shutdown(b.Context())
	require.NoError(b, err)
}

// BenchmarkEngineShutdownMillion measures Shutdown of an engine with a million jobs that have failed once and wait.
func BenchmarkEngineShutdownMillion(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		e := millionWaiting(b)
		b.StartTimer()
		start := time.Now()
		left, err := e.Shutdown(b.Context())
		b.ReportMetric(time.Since(start).Seconds(), "s")
		require.NoError(b, err)
		require.Len(b, left, 1_000_000)
	}
}

// BenchmarkEngineCountMillion measures what jobsui asks a million jobs for one page, which it gives a second.
func BenchmarkEngineCountMillion(b *testing.B) {
	e := millionWaiting(b)
	for b.Loop() {
		counts, err := e.Count(b.Context(), retryjob.Filter{})
		require.NoError(b, err)
		require.Equal(b, 1_000_000, counts[retryjob.WaitingRetry].Jobs)
		_, err = e.Groups(b.Context(), retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}})
		require.NoError(b, err)
	}
	_, err := e.Shutdown(b.Context())
	require.NoError(b, err)
}

// millionWaiting returns an engine with a million jobs that have failed once.
func millionWaiting(b *testing.B) *retryjob.Engine {
	const jobs = 1_000_000
	var done atomic.Int64
	all := make(chan struct{})
	p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 24 * time.Hour}}
	e := benchEngine(b, p, func(context.Context, retryjob.Job) error {
		if done.Add(1) == jobs {
			close(all)
		}
		return errBench
	})
	for range jobs {
		_, err := e.Enqueue(b.Context(), retryjob.Job{Kind: "no-op", Policy: "p", Payload: []byte(`{"order": 4711}`)})
		require.NoError(b, err)
	}
	<-all
	for under := true; under; { // until the last ones are stored
		under = false
		for range e.List(b.Context(), retryjob.Filter{Statuses: []retryjob.Status{retryjob.Leased}}) {
			under = true
		}
	}
	return e
}

var errBench = errors.New("dial tcp: connection refused")

func benchEngine(b *testing.B, p retry.Policy, h retryjob.Handler) *retryjob.Engine {
	e, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"p": p}),
		Handlers: map[string]retryjob.Handler{"no-op": h},
	})
	require.NoError(b, err)
	return e
}

// liveHeap returns the bytes of the heap that are reachable.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
