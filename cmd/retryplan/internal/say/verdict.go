package say

import (
	"fmt"
	"math"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// Verdict returns the count of v, and beside it the figures that a reader needs to judge the count.
func Verdict(v *retryplan.Verdict) (f Facts) {
	f.Add("verdict", v.String(), "")
	if v.Seeds == 0 {
		return f
	}
	f.Add("calm", Percent(v.CalmFailed), " of the runs before the trigger failed")
	if v.Back > 0 {
		f.Add("watched", Span(v.Watch), " after it was well")
		f.Distribution("a run takes", v.Takes)
	}
	return f
}

// Storm returns what arithmetic says about every trigger.
func Storm(p retry.Policy, fleet retryplan.Fleet) string {
	attempts, fits := fleet.Storm(p)
	become := Number(attempts) + " attempts/s"
	if math.IsInf(attempts, 1) {
		become = "attempts without end"
	}
	after := ""
	if fleet.Budget != nil {
		after = ", once its tokens are spent"
	}
	text := fmt.Sprintf("if every attempt fails, %s runs/s become %s%s, and the backend does %s", Number(fleet.Rate), become, after, Number(fleet.Capacity))
	if fits {
		text += ": whatever the trigger was, its queue then shrinks"
	}
	return text
}

// Count returns "14 of 20".
func Count(v *retryplan.Verdict) string { return fmt.Sprintf("%d of %d", v.Back, v.Seeds) }

// Drawn says which seed of v is drawn: "seed 4, one of the 15 that come back".
func Drawn(v *retryplan.Verdict) string {
	lost := v.Seeds - v.Back
	switch {
	case v.Seeds == 0:
		return ""
	case 2*v.Back < v.Seeds:
		return fmt.Sprintf("seed %d, one of the %d that do not come back", v.Drawn, lost)
	case v.Trigger.Kind == 0:
		return fmt.Sprintf("seed %d, one of the %d that stay well", v.Drawn, v.Back)
	default:
		return fmt.Sprintf("seed %d, one of the %d that come back", v.Drawn, v.Back)
	}
}

// Median returns the median time in which the seeds of v came back, or nothing if none did.
func Median(v *retryplan.Verdict) string {
	if n := len(v.Recoveries); n > 0 {
		return Span(v.Recoveries[(n-1)/2])
	}
	return ""
}

// Worst returns the longest time.
func Worst(v *retryplan.Verdict) string {
	if n := len(v.Recoveries); n > 0 {
		return Span(v.Recoveries[n-1])
	}
	return ""
}

// Gravity returns the level of a verdict as a finding, or 0 for none.
func Gravity(v *retryplan.Verdict) retryplan.Level {
	switch {
	case v.Seeds == v.Back:
		return 0
	case 2*v.Back > v.Seeds:
		return retryplan.Warning
	default:
		return retryplan.Severe
	}
}
