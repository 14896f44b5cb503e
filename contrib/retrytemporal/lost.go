package retrytemporal

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/internal/inforce"
	"github.com/retrygo/retry/internal/show"
)

// lost returns a line for each thing that a temporal.RetryPolicy alone does not express.
func (x *export) lost() (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	p := &x.policy
	if p.Name != "" {
		line("Policy.Name %q: a temporal.RetryPolicy has no place for it", p.Name)
	}
	x.lostAttempts(line)
	x.lostWaits("", line)
	x.lostTimeout(line)
	if x.attempts > 1 {
		if p.TTL > 0 {
			line("Policy.TTL %s: ActivityOptions.ScheduleToCloseTimeout can take its place, and ends an attempt under way, too", show.Short(p.TTL))
		}
		if p.MaxHint > 0 {
			line("Policy.MaxHint %s: an error's next delay is cut to MaximumInterval, %s, and ends nothing", show.Short(p.MaxHint), show.Short(x.series.top))
		}
	}
	x.lostDisabled(line)
	if x.attempts > 1 {
		if p.Classify != nil {
			line("Policy.Classify is set: it is not asked, and only non-retryable application errors end a run")
		}
		if p.Budget != nil {
			line("Policy.Budget is set: it is not asked, and retries are free")
		}
	}
	x.lostHooks(line)
	if p.Rand != nil && p.Jitter != retry.NoJitter && x.attempts > 1 {
		line("Policy.Rand is set: there is no jitter to draw")
	}
	return lines
}

// unseen is where no error goes through Error.
const unseen = "after a timeout, a panic or the loss of a worker "

// lostBesideErrors returns a line for each thing that a temporal.RetryPolicy and Error together do not express.
func (x *export) lostBesideErrors(top time.Duration) (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	p := &x.policy
	x.lostAttempts(line)
	x.lostWaits(unseen, line)
	if p.Jitter == retry.DecorrelatedJitter && x.attempts-2 > followed {
		line("Policy.Jitter decorrelated: from attempt %d on a wait follows from the last %d attempts alone", followed+2, followed)
	}
	x.lostTimeout(line)
	if p.TTL > 0 && x.attempts > 1 {
		line("Policy.TTL %s: it counts from the scheduling of the activity, and %sit is not looked at", show.Short(p.TTL), unseen)
	}
	if free := (series{x.series.first, top, x.series.factor}); free.wait(x.attempts-1) > x.series.top {
		line("Policy.MaxHint %s: MaximumInterval is %s so that nothing is cut, and %sa wait grows beyond %s",
			show.Short(inforce.MaxHint(p)), show.Short(top), unseen, show.Short(x.series.top))
	}
	x.lostDisabled(line)
	if x.attempts > 1 {
		if p.Classify != nil {
			line("Policy.Classify is set: %sit is not asked", unseen)
		}
		if p.Budget != nil {
			line("Policy.Budget is set: it is that of one worker process, and is not paid back where the retry does not come")
		}
	}
	x.lostHooks(line)
	if p.Rand != nil && p.Jitter == retry.DecorrelatedJitter && x.attempts > 2 {
		line("Policy.Rand is set: the wait before, which the next is drawn from, is drawn anew and is not the one that was waited")
	}
	return lines
}

func (x *export) lostAttempts(line func(string, ...any)) {
	if x.attempts > math.MaxInt32 && !x.unlimited() {
		line("Policy.MaxAttempts %d: MaximumAttempts is %d", x.attempts, math.MaxInt32)
	}
}

// lostWaits tells of the formula and the jitter; when says when, as a phrase.
func (x *export) lostWaits(when string, line func(string, ...any)) {
	p, waits := &x.policy, x.attempts-1
	if waits == 0 {
		return
	}
	if !x.exact {
		what := fmt.Sprintf("Mode %s", inforce.Mode(&p.Backoff))
		if len(p.Delays) > 0 {
			what = fmt.Sprintf("Delays of %d entries", len(p.Delays))
		}
		line("Policy.%s: %sthe waits are %s instead of %s", what, when, listed(x.series.wait, waits), listed(p.Delay, waits))
	}
	if p.Jitter == retry.NoJitter {
		return
	}
	last := min(waits, looked)
	text := x.window(1)
	if last > 1 {
		text += ", " + x.window(last)
	}
	line("Policy.Jitter %s: %sthere is none: %s", p.Jitter, when, text)
}

func (x *export) window(n int) string {
	lo, hi := x.policy.Bounds(n)
	return fmt.Sprintf("%s instead of %s to %s after attempt %d", show.Short(x.series.wait(n)), show.Short(lo), show.Short(hi), n)
}

func (x *export) lostTimeout(line func(string, ...any)) {
	if d := x.policy.AttemptTimeout; d > 0 {
		line("Policy.AttemptTimeout %s: ActivityOptions.StartToCloseTimeout takes its place", show.Short(d))
	}
}

func (x *export) lostDisabled(line func(string, ...any)) {
	if x.policy.Disabled {
		line("Policy.Disabled true: MaximumAttempts is 1, and a failure ends like one whose attempts are used up")
	}
}

func (x *export) lostHooks(line func(string, ...any)) {
	if x.policy.Gate != nil {
		line("Policy.Gate is set: it is not asked")
	}
	if x.policy.Observe != nil {
		line("Policy.Observe is set: it is not told")
	}
}

// listed tells the first waits, 12 at most.
func listed(wait func(int) time.Duration, waits int) string {
	const shown = 12
	var texts []string
	for n := 1; n <= min(waits, shown); n++ {
		texts = append(texts, show.Short(wait(n)))
	}
	if waits > shown {
		texts = append(texts, "...")
	}
	return strings.Join(texts, " ")
}
