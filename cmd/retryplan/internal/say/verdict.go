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

// Storm returns the arithmetic about every trigger.
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
	n, does, do := v.Back, "comes back", "come back"
	switch {
	case v.Seeds == 0:
		return ""
	case 2*v.Back < v.Seeds:
		n, does, do = v.Seeds-v.Back, "does not come back", "do not come back"
	case v.Trigger.Kind == 0:
		does, do = "stays well", "stay well"
	}
	if n == 1 {
		return fmt.Sprintf("seed %d, the only one that %s", v.Drawn, does)
	}
	return fmt.Sprintf("seed %d, one of the %d that %s", v.Drawn, n, do)
}

// Times returns the median and the longest time in which the seeds of v came back, or nothing if none did.
func Times(v *retryplan.Verdict) (median, worst string) {
	if n := len(v.Recoveries); n > 0 {
		median, worst = Span(v.Recoveries[(n-1)/2]), Span(v.Recoveries[n-1])
	}
	return median, worst
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
