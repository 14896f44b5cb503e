package retrytemporal

import (
	"fmt"
	"math"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryexport"
)

// lost returns a line for each thing that a temporal.RetryPolicy with MaximumInterval top does not express: alone, or
// together with Error, which sees all failures except timeouts, panics and lost workers.
func (x *export) lost(top time.Duration, withError bool) []string {
	p, waits, short := x.policy, x.attempts-1, retryexport.Short
	const unseen = "after a timeout, a panic or the loss of a worker "
	when := ""
	says := map[string]string{
		"AttemptTimeout": "ActivityOptions.StartToCloseTimeout takes its place",
		"Disabled":       "MaximumAttempts is 1, and a failure ends like one whose attempts are used up",
		"Gate":           "it is not asked",
		"Observe":        "it is not called",
	}
	if withError {
		when = unseen
	} else {
		says["Name"] = "a temporal.RetryPolicy has no place for it"
	}
	if x.attempts > math.MaxInt32 && !x.unlimited() {
		says["MaxAttempts"] = fmt.Sprintf("MaximumAttempts is %d", math.MaxInt32)
	}
	if waits == 0 {
		return retryexport.Lost(p, says)
	}
	if !x.exact {
		field := "Mode"
		if len(p.Delays) > 0 {
			field = "Delays"
		}
		says[field] = fmt.Sprintf("%sthe waits are %s instead of %s", when,
			retryexport.Waits(x.series.Wait, waits), retryexport.Waits(p.Delay, waits))
	}
	if p.Jitter != retry.NoJitter {
		says["Jitter"] = when + "there is none"
	}
	says["ResetAfter"] = "a long attempt counts like any other"
	says["Wait"] = when + "it is not asked"
	if !withError {
		says["TTL"] = "ActivityOptions.ScheduleToCloseTimeout can take its place, and ends an attempt under way, too"
		says["MaxHint"] = fmt.Sprintf("an error's next delay is cut to MaximumInterval, %s, and ends nothing", short(top))
		says["Classify"] = "it is not asked, and only non-retryable application errors end a run"
		says["Budget"] = "it is not asked, and retries are free"
		says["Pay"] = "it is not asked"
		if p.Jitter != retry.NoJitter {
			says["Rand"] = "there is no jitter to draw"
		}
		return retryexport.Lost(p, says)
	}
	says["TTL"] = "it counts from the scheduling of the activity, and " + unseen + "it is not looked at"
	says["Classify"] = unseen + "it is not asked"
	says["Budget"] = "it is that of one worker process, and is not paid back if the retry does not come"
	if (retryexport.Series{First: x.series.First, Top: top, Factor: x.series.Factor}).Wait(waits) > x.series.Top {
		p.MaxHint = x.inForce.MaxHint
		says["MaxHint"] = fmt.Sprintf("MaximumInterval is %s so that nothing is cut, and %sa wait grows beyond %s",
			short(top), unseen, short(x.series.Top))
	}
	if p.Jitter == retry.DecorrelatedJitter && waits > 1 {
		says["Rand"] = "the wait before, which the next is drawn from, is drawn anew and is not the one that was waited"
	}
	return retryexport.Lost(p, says)
}
