package retryplan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// contention is the model of the AWS article on jitter: n clients each write one row once, a read and a write per
// attempt, over a network of |N(10 ms, 2 ms)| per hop.
func contention(n int, b retry.Backoff, delay func(int, time.Duration, float64) time.Duration) retryplan.Scenario {
	return retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: retry.Unlimited, Backoff: b},
		Delay:    delay,
		Clients:  n,
		Arrivals: retryplan.Arrivals{AtOnce: true},
		Network:  retryplan.Normal(10*time.Millisecond, 2*time.Millisecond),
		Server:   retryplan.Server{Conflict: true},
		Duration: time.Second,
		Drain:    true,
	}
}

// contentionVariants are the article's backoffs. Its base is 5 ms and its first ceiling twice that.
var contentionVariants = map[string]struct {
	backoff retry.Backoff
	delay   func(int, time.Duration, float64) time.Duration
}{
	"none":  {delay: immediately},
	"exp":   {backoff: retry.Backoff{Base: 10 * time.Millisecond, Cap: 2 * time.Second}},
	"equal": {backoff: retry.Backoff{Base: 10 * time.Millisecond, Cap: 2 * time.Second, Jitter: retry.EqualJitter}},
	"full":  {backoff: retry.Backoff{Base: 10 * time.Millisecond, Cap: 2 * time.Second, Jitter: retry.FullJitter}},
	"decorrelated": {
		backoff: retry.Backoff{Base: 5 * time.Millisecond, Cap: 2 * time.Second, Jitter: retry.DecorrelatedJitter},
	},
	// The article clips the sample, min(cap, U(base, 3·prev)); DecorrelatedJitter clips the window.
	"decorrelated, sample clipped": {delay: sampleClipped(5*time.Millisecond, 2*time.Second)},
}

// sampleClipped is decorrelated jitter that piles up at its limit: min(limit, U(base, 3·prev)).
func sampleClipped(base, limit time.Duration) func(int, time.Duration, float64) time.Duration {
	return func(attempt int, prev time.Duration, u float64) time.Duration {
		if attempt == 1 {
			prev = base
		}
		return min(limit, base+time.Duration(u*float64(3*prev-base)))
	}
}

// The table holds 1,000 runs of a port of the article's simulator per cell. Calls are writes, time is that of the last
// event.
func TestReferenceContention(t *testing.T) {
	const reference = 1000
	c := compare(t, "Contention: calls, and time of the last event in ms")
	for _, cell := range []struct {
		n           int
		variant     string
		calls, sd   float64
		time, sdOfT float64
	}{
		{1, "none", 1, 0, 40.1, 4.1},
		{1, "exp", 1, 0, 40.1, 4.1},
		{1, "equal", 1, 0, 40.1, 4.1},
		{1, "full", 1, 0, 40.1, 4.1},
		{1, "decorrelated", 1, 0, 40.1, 4.1},
		{2, "none", 3, 0, 82.0, 5.5},
		{2, "exp", 3, 0, 92.0, 5.5},
		{2, "equal", 3, 0, 89.6, 5.5},
		{2, "full", 3, 0, 87.2, 5.5},
		{2, "decorrelated", 3, 0, 92.2, 5.5},
		{10, "none", 50.7, 4.2, 379, 35},
		{10, "exp", 50.9, 4.2, 3537, 1334},
		{10, "equal", 42.4, 2.6, 734, 191},
		{10, "full", 39.0, 2.3, 468, 105},
		{10, "decorrelated", 37.7, 2.3, 440, 87},
		{10, "decorrelated, sample clipped", 37.7, 2.3, 440, 87},
		{50, "none", 689.2, 17.4, 1138, 44},
		{50, "exp", 625.2, 29.5, 36559, 3309},
		{50, "equal", 347.2, 6.0, 4252, 547},
		{50, "full", 332.6, 5.0, 2912, 566},
		{50, "decorrelated", 375.3, 12.8, 2205, 492},
		{50, "decorrelated, sample clipped", 375.3, 12.8, 2205, 492},
		{100, "none", 2423, 32, 2028, 43},
		{100, "exp", 1855, 59, 63528, 3833},
		{100, "equal", 812.2, 7.6, 6604, 655},
		{100, "full", 795.8, 6.9, 4888, 500},
		{100, "decorrelated", 1001, 28, 4613, 670},
		{100, "decorrelated, sample clipped", 1001, 28, 4613, 670},
	} {
		v := contentionVariants[cell.variant]
		values := sample(t, seeds(20, reference), func(uint64) retryplan.Scenario {
			return contention(cell.n, v.backoff, v.delay)
		}, func(r retryplan.Result) []float64 {
			return []float64{float64(r.Attempts), r.Finished.Quantile(1).Seconds() * 1e3}
		})
		name := fmt.Sprintf("N=%d %s", cell.n, cell.variant)
		if cell.sd == 0 {
			c.exact(name+", calls", values[0], cell.calls)
		} else {
			c.mean(name+", calls", values[0], figure{want: cell.calls, runs: reference, sd: cell.sd})
		}
		ms := figure{want: cell.time, runs: reference, sd: cell.sdOfT}
		if cell.n == 100 && cell.variant == "decorrelated" {
			// Only here do delays reach the cap often enough to show it: a clipped window has fewer of the longest.
			c.atMost(name+", ms", values[1], ms)
		} else {
			c.mean(name+", ms", values[1], ms)
		}
	}
	c.done()
}
