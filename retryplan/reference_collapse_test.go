package retryplan_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// collapse is Brooker's simple collapse simulation: a server that gets slower with each attempt that it works on, and
// clients that give an attempt up after 3 s and make three of them. The rate goes up to spike from 20 s to 25 s.
func collapse(rate, spike float64, delay func(int, time.Duration, float64) time.Duration, duration time.Duration) retryplan.Scenario {
	return retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: 3, AttemptTimeout: 3 * time.Second},
		Delay:    delay,
		Arrivals: retryplan.Arrivals{Rate: rate},
		Network:  retryplan.Exponential(100 * time.Millisecond),
		Server:   retryplan.Server{Service: retryplan.Constant(time.Second), Crowding: 10 * time.Millisecond},
		Triggers: []retryplan.Trigger{{
			Kind: retryplan.Surge, From: 20 * time.Second, For: 5 * time.Second, Factor: spike / rate,
		}},
		Duration: duration,
	}
}

// upTo40s is backoff with full jitter from 20 s on.
func upTo40s(attempt int, _ time.Duration, u float64) time.Duration {
	return time.Duration(u * float64(20*time.Second<<(attempt-1)))
}

// collapsed says for a run whether it ends without goodput, and what its last 20 s gave in successes a second.
func collapsed(r retryplan.Result) []float64 {
	rate := perSecond(r, len(r.Series)-20, len(r.Series), func(p retryplan.Point) int { return p.Goodput })
	if rate == 0 {
		return []float64{1, rate}
	}
	return []float64{0, rate}
}

// perSecond is the mean of what f counts in the seconds [from, to) of a series with steps of a second.
func perSecond(r retryplan.Result, from, to int, f func(retryplan.Point) int) float64 {
	n := 0
	for _, p := range r.Series[from:to] {
		n += f(p)
	}
	return float64(n) / float64(to-from)
}

// The law: a server with 180 attempts under way answers none in time, and three attempts a run keep 180 under way from
// 64/3 runs a second on.
func TestReferenceCollapseStep(t *testing.T) {
	c := compare(t, "Latency that rises with concurrency, 120 runs a second for 5 s: share of runs that end at goodput 0")
	for _, row := range []struct{ rate, want float64 }{{15, 0}, {20, 0}, {25, 1}, {30, 1}, {40, 1}} {
		values := sample(t, seeds(10, 100), func(uint64) retryplan.Scenario {
			return collapse(row.rate, 120, immediately, 80*time.Second)
		}, collapsed)
		c.exact(fmt.Sprintf("%v/s, no backoff", row.rate), values[0], row.want)
	}
	for _, row := range []struct{ rate, want float64 }{{20, 0}, {40, 1}, {50, 1}} {
		values := sample(t, seeds(10, 100), func(uint64) retryplan.Scenario {
			return collapse(row.rate, 120, upTo40s, 80*time.Second)
		}, collapsed)
		c.exact(fmt.Sprintf("%v/s, backoff of up to 20 s and 40 s", row.rate), values[0], row.want)
	}
	c.done()
}

// A spike to twice the rate tips the fleet in some runs only.
func TestReferenceCollapseIsBistable(t *testing.T) {
	c := compare(t, "40 runs a second, 80 for 5 s: share of runs that end at goodput 0")
	share := 29.0 / 40
	values := sample(t, seeds(20, 400), func(uint64) retryplan.Scenario {
		return collapse(40, 80, immediately, 80*time.Second)
	}, collapsed)
	c.mean("no backoff", values[0], figure{want: share, runs: 40, sd: math.Sqrt(share * (1 - share))})
	values = sample(t, seeds(10, 100), func(uint64) retryplan.Scenario {
		return collapse(40, 80, upTo40s, 80*time.Second)
	}, collapsed)
	c.exact("backoff of up to 20 s and 40 s", values[0], 0)
	c.done()
}
