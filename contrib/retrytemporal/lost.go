package retrytemporal

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// lost returns a line for each thing that a temporal.RetryPolicy with MaximumInterval top does not express: alone, or
// together with Error, which sees all failures except timeouts, panics and lost workers.
func (x *export) lost(top time.Duration, withError bool) (lines []string) {
	p, retries := &x.policy, x.attempts > 1
	both := func(lost bool, format string, args ...any) {
		if lost {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	alone := func(lost bool, format string, args ...any) { both(lost && !withError, format, args...) }
	beside := func(lost bool, format string, args ...any) { both(lost && withError, format, args...) }
	const unseen = "after a timeout, a panic or the loss of a worker "
	when := ""
	if withError {
		when = unseen
	}

	alone(p.Name != "", "Policy.Name %q: a temporal.RetryPolicy has no place for it", p.Name)
	both(x.attempts > math.MaxInt32 && !x.unlimited(), "Policy.MaxAttempts %d: MaximumAttempts is %d", x.attempts, math.MaxInt32)
	both(retries && !x.exact, "Policy.%s: %sthe waits are %s instead of %s", x.formula(), when,
		listed(x.series.wait, x.attempts-1), listed(p.Delay, x.attempts-1))
	both(retries && p.Jitter != retry.NoJitter, "Policy.Jitter %s: %sthere is none: %s", p.Jitter, when, x.windows())
	beside(p.Jitter == retry.DecorrelatedJitter && x.attempts-2 > followed,
		"Policy.Jitter decorrelated: from attempt %d on a wait follows from the last %d attempts alone", followed+2, followed)
	both(p.AttemptTimeout > 0, "Policy.AttemptTimeout %s: ActivityOptions.StartToCloseTimeout takes its place", short(p.AttemptTimeout))
	alone(p.TTL > 0 && retries, "Policy.TTL %s: ActivityOptions.ScheduleToCloseTimeout can take its place, and ends an attempt "+
		"under way, too", short(p.TTL))
	beside(p.TTL > 0 && retries, "Policy.TTL %s: it counts from the scheduling of the activity, and %sit is not looked at",
		short(p.TTL), unseen)
	alone(p.MaxHint > 0 && retries, "Policy.MaxHint %s: an error's next delay is cut to MaximumInterval, %s, and ends nothing",
		short(p.MaxHint), short(top))
	free := series{x.series.first, top, x.series.factor}
	beside(free.wait(x.attempts-1) > x.series.top, "Policy.MaxHint %s: MaximumInterval is %s so that nothing is cut, and %sa wait "+
		"grows beyond %s", short(x.inForce.MaxHint), short(top), unseen, short(x.series.top))
	both(p.ResetAfter > 0 && retries, "Policy.ResetAfter %s: a long attempt counts like any other", short(p.ResetAfter))
	both(p.Disabled, "Policy.Disabled true: MaximumAttempts is 1, and a failure ends like one whose attempts are used up")
	alone(p.Classify != nil && retries, "Policy.Classify is set: it is not asked, and only non-retryable application errors end a run")
	beside(p.Classify != nil && retries, "Policy.Classify is set: %sit is not asked", unseen)
	both(p.Wait != nil && retries, "Policy.Wait is set: %sit is not asked", when)
	alone(p.Budget != nil && retries, "Policy.Budget is set: it is not asked, and retries are free")
	beside(p.Budget != nil && retries, "Policy.Budget is set: it is that of one worker process, and is not paid back if the retry "+
		"does not come")
	alone(p.Pay != nil && retries, "Policy.Pay is set: it is not asked")
	both(p.Gate != nil, "Policy.Gate is set: it is not asked")
	both(p.Observe != nil, "Policy.Observe is set: it is not called")
	alone(p.Rand != nil && p.Jitter != retry.NoJitter && retries, "Policy.Rand is set: there is no jitter to draw")
	beside(p.Rand != nil && p.Jitter == retry.DecorrelatedJitter && x.attempts > 2, "Policy.Rand is set: the wait before, which the "+
		"next is drawn from, is drawn anew and is not the one that was waited")
	return lines
}

// formula names the field that determines the waits.
func (x *export) formula() string {
	if n := len(x.policy.Delays); n > 0 {
		return fmt.Sprintf("Delays of %d entries", n)
	}
	return fmt.Sprintf("Mode %s", x.inForce.Mode)
}

// windows returns the ranges that the jitter allows for the first wait and for the last that is compared.
func (x *export) windows() string {
	window := func(n int) string {
		lo, hi := x.policy.Bounds(n)
		return fmt.Sprintf("%s instead of %s to %s after attempt %d", short(x.series.wait(n)), short(lo), short(hi), n)
	}
	text := window(1)
	if last := min(x.attempts-1, looked); last > 1 {
		text += ", " + window(last)
	}
	return text
}

// listed returns the first waits, at most 12.
func listed(wait func(int) time.Duration, waits int) string {
	const shown = 12
	var texts []string
	for n := 1; n <= min(waits, shown); n++ {
		texts = append(texts, short(wait(n)))
	}
	if waits > shown {
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
