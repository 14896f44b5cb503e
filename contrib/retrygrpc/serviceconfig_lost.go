package retrygrpc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// lost returns a line for each thing that the config does not express.
func (x *export) lost() (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	p := &x.policy
	if p.Name != "" {
		line("Policy.Name %q: a service config has no place for it", p.Name)
	}
	x.lostAttempts(line)
	if x.attempts > 1 {
		x.lostWaits(line)
	}
	if p.AttemptTimeout > 0 {
		line("Policy.AttemptTimeout %s: an attempt has no timeout of its own, it lasts until the deadline of the call", short(p.AttemptTimeout))
	}
	if x.attempts > 1 {
		if p.TTL > 0 {
			line("Policy.TTL %s: an attempt starts at any time before the deadline of the call", short(p.TTL))
		}
		if p.MaxHint > 0 {
			line("Policy.MaxHint %s: a server's pushback is obeyed, however long", short(p.MaxHint))
		}
		if p.ResetAfter > 0 {
			line("Policy.ResetAfter %s: a long attempt counts like any other", short(p.ResetAfter))
		}
	}
	if p.Disabled {
		line("Policy.Disabled true: there is no retryPolicy, but a call that the server has not processed is still sent again")
	}
	if p.Classify != nil && !p.Disabled && p.MaxAttempts != 1 {
		x.lostClassify(line)
	}
	if p.Wait != nil && x.attempts > 1 {
		line("Policy.Wait is set: it is not asked")
	}
	if p.Budget != nil && x.options.Budget == nil && x.attempts > 1 {
		line("Policy.Budget is set: its figures cannot be read, and so retries are free without ServiceConfigOptions.Budget")
	}
	if p.Budget != nil && x.options.Budget != nil {
		line("Policy.Budget is set: gRPC keeps a bucket of its own for each client, which nothing else shares")
	}
	if p.Pay != nil && x.attempts > 1 {
		line("Policy.Pay is set: it is not asked")
	}
	if p.Gate != nil {
		line("Policy.Gate is set: it is not asked")
	}
	if p.Observe != nil {
		line("Policy.Observe is set: it is not called")
	}
	if p.Rand != nil && x.attempts > 1 {
		line("Policy.Rand is set: gRPC draws its own numbers")
	}
	if x.options.Budget != nil {
		lostBudget(x.options.Budget, line)
	}
	return lines
}

// lostAttempts adds a line if gRPC makes a different number of attempts.
func (x *export) lostAttempts(line func(string, ...any)) {
	p := &x.policy
	switch own := x.own(); {
	case p.Disabled:
		// lost reports that under the field's name
	case own == 1:
		line("Policy.MaxAttempts 1: there is no retryPolicy, as it needs 2, but a call that the server has not processed is still sent again")
	case len(x.codes) == 0:
		line("Policy.MaxAttempts %s: there is no retryPolicy, as no code is retried", number(own))
	case own > x.attempts:
		line("Policy.MaxAttempts %s: the client makes %d, which is its limit (grpc.WithMaxCallAttempts)", number(own), x.attempts)
	}
}

func number(attempts int) string {
	if attempts == math.MaxInt {
		return "Unlimited"
	}
	return strconv.Itoa(attempts)
}

// lostWaits adds lines for the formula, the cap and the jitter.
func (x *export) lostWaits(line func(string, ...any)) {
	p, waits := &x.inForce, x.attempts-1
	var own, theirs []string
	over := 0 // the first attempt after which gRPC may wait longer than Cap
	for n := 1; n <= waits; n++ {
		if n <= shown {
			own, theirs = append(own, short(p.Delay(n))), append(theirs, short(x.series.wait(n)))
		}
		if _, hi := x.series.window(n); p.Cap > 0 && hi > p.Cap && over == 0 {
			over = n
		}
	}
	if !x.exact {
		what := fmt.Sprintf("Mode %s", p.Mode)
		if len(p.Delays) > 0 {
			what = fmt.Sprintf("Delays of %d entries", len(p.Delays))
		}
		line("Policy.%s: the waits before jitter are %s instead of %s", what, listed(theirs, waits), listed(own, waits))
	}
	if over > 0 {
		_, hi := x.series.window(over)
		line("Policy.Cap %s: it bounds a wait before its jitter, and so the wait after attempt %d is up to %s", short(p.Cap), over, short(hi))
	}
	name := fmt.Sprintf("Jitter %s", p.Jitter)
	if p.Jitter == retry.RatioJitter {
		if p.JitterRatio == jitterRatio {
			return
		}
		name = fmt.Sprintf("JitterRatio %v", p.JitterRatio)
	}
	text := x.windows(1)
	if waits > 1 {
		text += ", " + x.windows(waits)
	}
	line("Policy.%s: each wait is spread evenly by ±20 %%: %s", name, text)
}

// windows returns the text of the two windows after attempt n.
func (x *export) windows(n int) string {
	lo, hi := x.series.window(n)
	least, most := x.policy.Bounds(n)
	own := short(least) + " to " + short(most)
	if least == most {
		own = short(least)
	}
	return fmt.Sprintf("%s to %s instead of %s after attempt %d", short(lo), short(hi), own, n)
}

func (x *export) lostClassify(line func(string, ...any)) {
	names := "no code"
	if len(x.codes) > 0 {
		names = strings.Join(namesOf(x.codes), " ")
	}
	line("Policy.Classify is set: gRPC judges by the code alone, and retries %s", names)
}

// lostBudget adds lines for the differences of gRPC's bucket.
func lostBudget(given *retry.BudgetConfig, line func(string, ...any)) {
	c := given.Effective()
	tokens, held := thousandths(c), throttledBurst(c)
	if math.Abs(max(c.Ratio, 0)*1000-float64(tokens)) > 1e-6 {
		line("BudgetConfig.Ratio %v: tokenRatio is %v, as it is above 0 and counts in thousandths", given.Ratio, float64(tokens)/1000)
	}
	if c.Burst > held {
		line("BudgetConfig.Burst %d: maxTokens is at most %d, which is retries in a row: %d", c.Burst, mostTokens, held)
	}
	if c.Initial < held {
		line("BudgetConfig.Initial %d: the bucket is full at first, which is retries in a row: %d", c.Initial, held)
	}
	if c.Trickle > 0 {
		line("BudgetConfig.Trickle %s: only successes fund the bucket", short(c.Trickle))
	}
	// A call that finally fails also pays for its last attempt. From 0, the retry after one more failure needs more
	// than half of maxTokens = 2·(held+1) left.
	needed := (held+2)*1000/tokens + 1
	line("BudgetConfig: every failed attempt takes a token, not every retry, and so an empty bucket allows the next retry after %d successes", needed)
}

// shown is how many waits a line shows.
const shown = 12

func listed(texts []string, waits int) string {
	if waits > len(texts) {
		texts = append(texts, "...")
	}
	return strings.Join(texts, " ")
}

// short formats a d of 0 or more with four digits, or to the second if that is more: "1m20s", "1.587s", "2h".
func short(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 10_000 && unit < time.Second {
		unit *= 10
	}
	s := d.Round(unit).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
