package retryconf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

// Limits bound what an outsider may ask for. They hold for what a policy does, whether a value was given or is a
// default. A field of zero or below means no limit.
type Limits struct {
	MaxAttempts       int           // attempts in all; unlimited is above any
	MinFactor         float64       // of exponential and linear
	MaxFactor         float64       // of exponential and linear
	MaxDelay          time.Duration // the longest wait of a run, jitter included, but for hints
	MaxTotalWait      time.Duration // all waits of a run that never succeeds, jitter included, but for hints
	MaxHint           time.Duration // the longest hint that is obeyed; a policy that does not say obeys 1h
	MaxTTL            time.Duration // a policy without a TTL is above any
	MaxAttemptTimeout time.Duration // a policy without one is above any
}

// ServiceLimits are the limits of a delivery service: 1 to 50 attempts, a factor of 1 to 100.
var ServiceLimits = Limits{MaxAttempts: 50, MinFactor: 1, MaxFactor: 100}

// Check returns nil or an error that names each limit that p exceeds, with its key, its value and what is allowed;
// FieldErrors lists them. It does not validate p.
func (l Limits) Check(p retry.Policy) error { return l.check(p).err() }

func (l Limits) check(p retry.Policy) (bad fieldErrors) {
	waits := waitsOf(p)
	attempts := given(attemptsText(waits), p.MaxAttempts != 0)
	if l.MaxAttempts > 0 && waits >= int64(l.MaxAttempts) {
		bad.add("max_attempts", attempts, fmt.Sprintf("is outside 1 to %d", l.MaxAttempts))
	}
	if factor, grows := effectiveFactor(p); grows {
		most := l.MaxFactor
		if most == 0 {
			most = math.Inf(1)
		}
		if factor < l.MinFactor || factor > most {
			bad.add("factor", given(fmt.Sprint(factor), p.Factor != 0), fmt.Sprintf("is outside %v to %v", l.MinFactor, most))
		}
	}
	if longest := longestWait(p, waits); l.MaxDelay > 0 && longest > l.MaxDelay {
		bad.add(longestKey(p), longest.String(), fmt.Sprintf("is the longest wait, above the %v allowed", l.MaxDelay))
	}
	if _, total := p.TotalWait(); l.MaxTotalWait > 0 && total > l.MaxTotalWait {
		bad.add("max_attempts", attempts, fmt.Sprintf("makes waits of up to %v in all, above the %v allowed", total, l.MaxTotalWait))
	}
	if hint := cmp.Or(p.MaxHint, time.Hour); l.MaxHint > 0 && hint > l.MaxHint {
		bad.add("max_hint", given(hint.String(), p.MaxHint != 0), fmt.Sprintf("is outside 0s to %v", l.MaxHint))
	}
	if l.MaxTTL > 0 && (p.TTL == 0 || p.TTL > l.MaxTTL) {
		bad.add("ttl", orNone(p.TTL), fmt.Sprintf("is outside 0s to %v", l.MaxTTL))
	}
	if l.MaxAttemptTimeout > 0 && (p.AttemptTimeout == 0 || p.AttemptTimeout > l.MaxAttemptTimeout) {
		bad.add("attempt_timeout", orNone(p.AttemptTimeout), fmt.Sprintf("is outside 0s to %v", l.MaxAttemptTimeout))
	}
	return bad
}

// waitsOf returns the number of waits of a run of p that never succeeds, math.MaxInt64 where there is no limit. It asks
// the policy itself, whose defaults it need not know, for the sum of as many waits of 1ns.
func waitsOf(p retry.Policy) int64 {
	counted := retry.Policy{MaxAttempts: p.MaxAttempts, Disabled: p.Disabled, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}
	if len(p.Delays) > 0 {
		counted.Backoff = retry.Backoff{Delays: slices.Repeat([]time.Duration{1}, len(p.Delays))}
	}
	total, _ := counted.TotalWait()
	return int64(total)
}

func attemptsText(waits int64) string {
	if waits == math.MaxInt64 {
		return unlimited
	}
	return fmt.Sprint(waits + 1)
}

// effectiveFactor returns the factor of p, with the defaults that retry.Backoff documents, and whether its mode has one.
func effectiveFactor(p retry.Policy) (factor float64, grows bool) {
	switch {
	case p.Mode == retry.Fixed || len(p.Delays) > 0:
		return 0, false
	case p.Factor != 0:
		return p.Factor, true
	case p.Mode == retry.Linear:
		return 1, true
	default:
		return 2, true
	}
}

// longestWait returns the longest wait of a run that makes the given number of them.
func longestWait(p retry.Policy, waits int64) time.Duration {
	if waits < 1 {
		return 0
	}
	last := int(min(waits, math.MaxInt))
	_, longest := p.Bounds(last) // of a formula the last is the longest
	for attempt := range min(last, len(p.Delays)) {
		_, hi := p.Bounds(attempt + 1)
		longest = max(longest, hi)
	}
	return longest
}

// longestKey returns the key that is to be changed for a shorter wait.
func longestKey(p retry.Policy) string {
	switch {
	case len(p.Delays) > 0:
		return "delays"
	case p.Cap == 0 && p.Base > time.Hour: // which has raised the default cap
		return "base"
	default:
		return "cap"
	}
}

// given returns a value with the remark that it is a default, where it was not set.
func given(value string, set bool) string {
	if set {
		return value
	}
	return value + " (the default)"
}

func orNone(d time.Duration) string {
	if d == 0 {
		return "(none)"
	}
	return d.String()
}
