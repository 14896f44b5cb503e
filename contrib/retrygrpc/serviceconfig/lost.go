package serviceconfig

import (
	"cmp"
	"fmt"
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
	own := x.inForce.MaxAttempts
	switch {
	case p.Disabled: // its own line says it
	case own == 1:
		says["MaxAttempts"] = "there is no retryPolicy, as it needs 2, but a call that the server has not processed is still sent again"
	case len(x.codes) == 0:
		says["MaxAttempts"] = "there is no retryPolicy, as no code is retried"
	case own == retry.Unlimited || own > x.attempts:
		says["MaxAttempts"] = fmt.Sprintf("the client makes %d, which is its limit", x.attempts)
	}
	if !p.Disabled && own != 1 {
		says["Classify"] = "gRPC judges by the code alone, and retries " + cmp.Or(strings.Join(namesOf(x.codes), " "), "no code")
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
	if x.options.Budget != nil {
		says["Budget"] = "gRPC keeps a bucket of its own for each client, which nothing else shares"
	}
	return append(retryexport.Lost(*p, says), lostBudget(x.options.Budget)...)
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
	longest := float64(max(x.series.Wait(1), x.series.Wait(waits))) * (1 + jitterRatio)
	if p.Cap > 0 && longest > float64(p.Cap) {
		says["Cap"] = "it bounds a wait before its jitter, and so a wait is up to " + retryexport.Short(time.Duration(longest))
	}
	switch {
	case p.Jitter != retry.RatioJitter:
		says["Jitter"] = "each wait is spread evenly by ±20 %"
	case p.JitterRatio != jitterRatio:
		says["JitterRatio"] = "each wait is spread evenly by ±20 %"
	}
}

// lostBudget returns a line for the differences of gRPC's bucket, if there is one.
func lostBudget(given *retry.BudgetConfig) []string {
	if given == nil {
		return nil
	}
	c := given.Effective()
	tokens, held := thousandths(c), throttledBurst(c)
	// A call that finally fails also pays for its last attempt. From 0, the retry after one more failure needs more
	// than half of maxTokens = 2·(held+1) left.
	needed := (held+2)*1000/tokens + 1
	return []string{fmt.Sprintf("BudgetConfig: the bucket is full at first (retries in a row: %d), and every failed attempt takes a token, "+
		"not every retry; only successes fund it (for a retry from an empty bucket: %d)", held, needed)}
}
