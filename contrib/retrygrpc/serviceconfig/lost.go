package serviceconfig

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryexport"
)

func (x *export) lost() []string {
	p := &x.policy
	says := map[string]string{
		"Name":           "a service config has no place for it",
		"AttemptTimeout": "an attempt has no timeout of its own, it lasts until the deadline of the call",
		"Disabled":       "there is no retryPolicy, but a call that the server has not processed is still sent again",
		"Gate":           "it is not asked",
		"Observe":        "it is not called",
	}
	x.lostAttempts(says)
	if !p.Disabled && p.MaxAttempts != 1 {
		names := "no code"
		if len(x.codes) > 0 {
			names = strings.Join(namesOf(x.codes), " ")
		}
		says["Classify"] = "gRPC judges by the code alone, and retries " + names
	}
	if x.attempts > 1 {
		x.lostWaits(says)
		says["TTL"] = "an attempt starts at any time before the deadline of the call"
		says["MaxHint"] = "a server's pushback is obeyed, however long"
		says["ResetAfter"] = "a long attempt counts like any other"
		says["Wait"], says["Pay"] = "it is not asked", "it is not asked"
		says["Rand"] = "gRPC draws its own numbers"
		says["Budget"] = "its figures cannot be read, and so retries are free without Options.Budget"
	}
	if x.options.Budget == nil {
		return retryexport.Lost(*p, says)
	}
	says["Budget"] = "gRPC keeps a bucket of its own for each client, which nothing else shares"
	return append(retryexport.Lost(*p, says), lostBudget(x.options.Budget)...)
}

// lostAttempts adds a line if gRPC makes a different number of attempts. The one of Disabled says it for that.
func (x *export) lostAttempts(says map[string]string) {
	switch own := x.own(); {
	case x.policy.Disabled:
	case own == 1:
		says["MaxAttempts"] = "there is no retryPolicy, as it needs 2, but a call that the server has not processed is still sent again"
	case len(x.codes) == 0:
		says["MaxAttempts"] = "there is no retryPolicy, as no code is retried"
	case own > x.attempts:
		says["MaxAttempts"] = fmt.Sprintf("the client makes %d, which is its limit (grpc.WithMaxCallAttempts)", x.attempts)
	}
}

func (x *export) lostWaits(says map[string]string) {
	p, waits := &x.inForce, x.attempts-1
	if !x.exact {
		field := "Mode"
		if len(p.Delays) > 0 {
			field = "Delays"
		}
		says[field] = fmt.Sprintf("the waits before jitter are %s instead of %s",
			retryexport.Waits(x.series.Wait, waits), retryexport.Waits(p.Delay, waits))
	}
	for n := 1; n <= waits && p.Cap > 0; n++ {
		if _, hi := x.window(n); hi > p.Cap {
			says["Cap"] = fmt.Sprintf("it bounds a wait before its jitter, and so the wait after attempt %d is up to %s",
				n, retryexport.Short(hi))
			break
		}
	}
	field := "Jitter"
	if p.Jitter == retry.RatioJitter {
		if p.JitterRatio == jitterRatio {
			return
		}
		field = "JitterRatio"
	}
	says[field] = "each wait is spread evenly by ±20 %: " + x.windows(1)
	if waits > 1 {
		says[field] += ", " + x.windows(waits)
	}
}

// window returns the range of the wait after attempt n with gRPC's jitter.
func (x *export) window(n int) (lo, hi time.Duration) {
	d := float64(x.series.Wait(n))
	return time.Duration(d * (1 - jitterRatio)), time.Duration(d * (1 + jitterRatio))
}

func (x *export) windows(n int) string {
	short := retryexport.Short
	lo, hi := x.window(n)
	least, most := x.policy.Bounds(n)
	own := short(least) + " to " + short(most)
	if least == most {
		own = short(least)
	}
	return fmt.Sprintf("%s to %s instead of %s after attempt %d", short(lo), short(hi), own, n)
}

// lostBudget returns lines for the differences of gRPC's bucket.
func lostBudget(given *retry.BudgetConfig) (lines []string) {
	line := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf("BudgetConfig"+format, args...))
	}
	c := given.Effective()
	tokens, held := thousandths(c), throttledBurst(c)
	if math.Abs(max(c.Ratio, 0)*1000-float64(tokens)) > 1e-6 {
		line(".Ratio %v: tokenRatio is %v, as it is above 0 and counts in thousandths", given.Ratio, float64(tokens)/1000)
	}
	if c.Burst > held {
		line(".Burst %d: maxTokens is at most %d, which is retries in a row: %d", c.Burst, mostTokens, held)
	}
	if c.Initial < held {
		line(".Initial %d: the bucket is full at first, which is retries in a row: %d", c.Initial, held)
	}
	if c.Trickle > 0 {
		line(".Trickle %s: only successes fund the bucket", retryexport.Short(c.Trickle))
	}
	// A call that finally fails also pays for its last attempt. From 0, the retry after one more failure needs more
	// than half of maxTokens = 2·(held+1) left.
	needed := (held+2)*1000/tokens + 1
	line(": every failed attempt takes a token, not every retry, and so an empty bucket allows the next retry after %d successes", needed)
	return lines
}
