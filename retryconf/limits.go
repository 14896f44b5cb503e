package retryconf

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/internal/show"
)

// Limits bound policies that other people supply. They apply to the effect of a policy, whether a value was given or is
// a default. A field of zero or below means no limit, except MaxName. So the zero Limits accept unlimited attempts one
// nanosecond apart. ServiceLimits are a start.
type Limits struct {
	MaxName           int           // of a name, in bytes, with 128 for zero and no limit if negative
	MaxAttempts       int           // total number of attempts, which unlimited and any reset_after exceed
	MinFactor         float64       // of exponential and linear
	MaxFactor         float64       // of exponential and linear
	MaxDelay          time.Duration // the longest wait of a run, including jitter but not hints
	MaxTotalWait      time.Duration // the sum of waits of a run that never succeeds, likewise, which any reset_after exceeds
	MaxHint           time.Duration // the longest hint that is honored, which is 1h for a policy without one
	MaxTTL            time.Duration // a policy without a TTL exceeds any limit
	MaxAttemptTimeout time.Duration // a policy without one exceeds any limit
	MaxHedgeCalls     int           // of a hedged call, the first included, so that 1 allows no hedges
	MinHedgeDelay     time.Duration // the delay of a hedge, or the least that a share can choose
}

// defaultMaxName is enough for two Kubernetes labels of 63 bytes, a tenant and a task. Every log record of a run has
// the name.
const defaultMaxName = 128

// ServiceLimits returns the limits of a delivery service. They are 1 to 50 attempts, a factor of 1 to 100, a name of
// 128 bytes, and no hedges, since a delivery is a write. They do not limit times, so set MaxDelay, MaxTotalWait,
// MaxHint and MaxAttemptTimeout as well. MaxHint, MaxTTL and MaxAttemptTimeout also apply to a policy that omits the
// field.
func ServiceLimits() Limits {
	return Limits{MaxAttempts: 50, MinFactor: 1, MaxFactor: 100, MaxHedgeCalls: 1}
}

// Check returns nil or retry.FieldErrors with each limit that p exceeds, the key, the value and the allowed range.
// It does not call p.Validate. A retry.Policy has no hedge. Parse limits the hedge of a Spec.
func (l Limits) Check(p retry.Policy) error { return l.check(p).Err() }

func (l Limits) check(p retry.Policy) (bad retry.FieldErrors) {
	e := p.Effective()
	waits, attempts := e.MaxAttempts-1, fmt.Sprint(e.MaxAttempts)
	switch {
	case e.Disabled:
		waits, attempts = 0, "1"
	case e.MaxAttempts == retry.Unlimited:
		waits, attempts = math.MaxInt, unlimited
	}
	if most := cmp.Or(l.MaxName, defaultMaxName); most > 0 && len(p.Name) > most {
		add(&bad, "name", quoted(p.Name), fmt.Sprintf("has %d bytes, above the %d allowed", len(p.Name), most))
	}
	var rules []string // that the attempts break
	if l.MaxAttempts > 0 && waits >= l.MaxAttempts {
		rules = append(rules, fmt.Sprintf("is outside 1 to %d", l.MaxAttempts))
	}
	if _, total := p.TotalWait(); l.MaxTotalWait > 0 && total > l.MaxTotalWait {
		made := "makes waits of up to " + show.Duration(total) + " in all"
		if total == math.MaxInt64 {
			made = "makes endless waits"
		}
		rules = append(rules, made+", above the "+show.Duration(l.MaxTotalWait)+" allowed")
	}
	if rules != nil {
		add(&bad, "max_attempts", attempts, byDefault(strings.Join(rules, " and "), p.MaxAttempts != 0))
	}
	if e.Mode == retry.Exponential || e.Mode == retry.Linear {
		most := l.MaxFactor
		if most == 0 {
			most = math.Inf(1)
		}
		if e.Factor < l.MinFactor || e.Factor > most {
			add(&bad, "factor", fmt.Sprint(e.Factor), byDefault(fmt.Sprintf("is outside %v to %v", l.MinFactor, most), p.Factor != 0))
		}
	}
	if longest := longestWait(p, waits); l.MaxDelay > 0 && longest > l.MaxDelay {
		add(&bad, longestKey(p, e), show.Duration(longest), "is the longest wait, above the "+show.Duration(l.MaxDelay)+" allowed")
	}
	isLimited := l.MaxAttempts > 0 || l.MaxTotalWait > 0
	if p.ResetAfter > 0 && waits > 0 && isLimited {
		add(&bad, "reset_after", show.Duration(p.ResetAfter), "allows any number of attempts, and attempts are limited")
	}
	if l.MaxHint > 0 && e.MaxHint > l.MaxHint {
		add(&bad, "max_hint", show.Duration(e.MaxHint), byDefault("is above "+show.Duration(l.MaxHint), p.MaxHint != 0))
	}
	bounded(&bad, "ttl", p.TTL, l.MaxTTL)
	bounded(&bad, "attempt_timeout", p.AttemptTimeout, l.MaxAttemptTimeout)
	return bad
}

// bounded adds an error if there is a limit and d, whose zero means unlimited, is above it.
func bounded(bad *retry.FieldErrors, key string, d, most time.Duration) {
	text := show.Duration(d)
	if d == 0 {
		text = unlimited
	}
	if most > 0 && (d == 0 || d > most) {
		add(bad, key, text, byDefault("is above "+show.Duration(most), d != 0))
	}
}

// longestWait returns the longest wait of a run that makes the given number of them.
func longestWait(p retry.Policy, waits int) time.Duration {
	if waits < 1 {
		return 0
	}
	_, longest := p.Bounds(waits) // for a formula the last wait is the longest
	for attempt := range min(waits, len(p.Delays)) {
		_, hi := p.Bounds(attempt + 1)
		longest = max(longest, hi)
	}
	return longest
}

// longestKey returns the key to change for a shorter wait. e is p.Effective().
func longestKey(p, e retry.Policy) string {
	switch {
	case e.Mode == retry.List:
		return "delays"
	case p.Cap == 0 && p.Base == e.Cap: // which has raised the default cap
		return "base"
	default:
		return "cap"
	}
}

// byDefault returns the rule that a value breaks, which is said to be the default if it was not set.
func byDefault(rule string, set bool) string {
	if set {
		return rule
	}
	return "(the default) " + rule
}
