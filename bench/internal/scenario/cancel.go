package scenario

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/retrygo/retry/bench/internal/contest"
)

// cancels is how many waiters are cancelled, one after the other, for a percentile.
const cancels = 2000

// cancelling returns the scenarios of cancelling what waits.
func cancelling() []contest.Scenario {
	one := "The context of a goroutine that waits in a retry is cancelled: the time until the retry has returned there. "
	return []contest.Scenario{
		overWaiters(contest.Scenario{
			Name:  "Cancelling 100,000 waiters",
			About: "The one context of 100,000 goroutines that wait in a retry is cancelled: the time until the last has returned.",
			Unit:  "ns",
			Targets: []contest.Target{
				{Rule: "little slower than bare goroutines with a timer", Kind: contest.Ratio, Against: bareWaiter, Most: 1.3, Why: "each waiter asks context.Cause, " +
					"whose lock all of them want, and makes its record"},
			},
		}, func(w waiter) float64 { return float64(timeToDismiss(w, waiting)) }),
		overWaiters(contest.Scenario{
			Name:  "Cancelling one waiter, median",
			About: one + "The median of 2,000.",
			Unit:  "ns",
		}, func(w waiter) float64 { return float64(percentile(cancelLatencies(w, cancels), 50)) }),
		overWaiters(contest.Scenario{
			Name:  "Cancelling one waiter, 99th percentile",
			About: one + "The 99th percentile of 2,000.",
			Unit:  "ns",
		}, func(w waiter) float64 { return float64(percentile(cancelLatencies(w, cancels), 99)) }),
	}
}

// timeToDismiss returns how long it takes n waiters to return, from the cancelling of their context on, without a
// collection.
func timeToDismiss(w waiter, n int) time.Duration {
	grown(n)
	defer smallStacks()()
	p := gather(w, n)
	start := time.Now()
	p.dismiss()
	return time.Since(start)
}

// cancelLatencies returns how long each of n waiters takes to return, from the cancelling of its own context on. The
// next is cancelled when the one before has returned.
func cancelLatencies(w waiter, n int) []time.Duration {
	defer smallStacks()()
	var called sync.WaitGroup
	called.Add(n)
	fail := func(context.Context) error {
		called.Done()
		return errFlaky
	}
	returnedAt := make(chan time.Time)
	returned := func(error) { returnedAt <- time.Now() }
	contexts := make([]context.CancelFunc, n)
	for i := range contexts {
		ctx, cancel := context.WithCancel(context.Background())
		contexts[i] = cancel
		w.start(ctx, 1, fail, returned)
	}
	called.Wait()
	parked()
	latencies := make([]time.Duration, n)
	for i, cancel := range contexts {
		start := time.Now()
		cancel()
		latencies[i] = (<-returnedAt).Sub(start)
	}
	return latencies
}

// percentile returns the smallest of the values that at least p percent of them do not exceed: the nearest rank, for p
// in (0,100].
func percentile(values []time.Duration, p int) time.Duration {
	values = slices.Sorted(slices.Values(values))
	return values[(len(values)*p+99)/100-1]
}
