package retryplan

import (
	"fmt"
	"math"
	"time"

	"github.com/retrygo/retry"
)

// The rules about the load on the backend.

// perRequest is how many attempts a request may cost: three, says Google's "Site Reliability Engineering", chapter 21,
// "Deciding to Retry".
const perRequest = 3

func (l *linter) noBudget() Finding {
	if !l.retries() || l.p.Budget != nil {
		return Finding{}
	}
	f := Finding{Level: Note, Change: "Set Budget to retry.NewBudget(retry.BudgetConfig{}), shared by all calls to one backend"}
	if l.quick() && (l.attempts == retry.Unlimited || l.attempts > retry.Inline().MaxAttempts) {
		f.Level = Warning
		f.Change += fmt.Sprintf(", or MaxAttempts to %d, the usual limit without one", perRequest)
	}
	f.Change += "."
	more := "lets each run go on for as long as it lasts"
	if l.attempts != retry.Unlimited {
		more = fmt.Sprintf("multiplies the load by %d, and attempts that fail half of the time by %s",
			l.attempts, figure(amplification(0.5, l.attempts, 1)))
	}
	f.Text = "No budget bounds the retries: an outage " + more + "; a budget that successes fund adds next to nothing."
	return f
}

func (l *linter) hedgeWithoutBudget() Finding {
	if l.s.Hedge == (Hedge{}) || l.p.Budget != nil {
		return Finding{}
	}
	return Finding{
		Level:  Warning,
		Text:   "No budget bounds the hedges: when everything is slow, every attempt is made twice, and the load doubles when it is least affordable.",
		Change: "Set Budget to retry.NewBudget(retry.BudgetConfig{}), and that of the hedges to the same one.",
	}
}

func (l *linter) hedgeBelowMedian() Finding {
	delay := l.s.Hedge.Delay
	if delay == 0 || l.s.Duration == (Dist{}) || delay >= l.s.Duration.At(0.5) {
		return Finding{}
	}
	return Finding{
		Level: Warning,
		Text: fmt.Sprintf("A hedge after %s doubles %s %% of the attempts of a healthy backend, whose duration is %v.",
			plainly(delay), figure(100*(1-l.s.Duration.CDF(delay))), l.s.Duration),
		Change: "Set retryhedge.Policy.Delay to " + plainly(raised(l.s.Duration.At(0.95)+1)) + ", or a Tracker with a share.",
	}
}

// quick reports whether the policy hurries: slower schedules leave an outage of a minute alone.
func (l *linter) quick() bool { return l.s.Inline || l.waiting <= time.Minute }

func (l *linter) nestedAmplification() Finding {
	if !l.retries() || l.s.Layers < 2 {
		return Finding{}
	}
	outage, worst := math.Inf(1), "without limit"
	if l.attempts != retry.Unlimited {
		outage = amplification(1, l.attempts, l.s.Layers)
		worst = "by " + figure(outage)
	}
	f := Finding{
		Level: oneMore(Warning, outage >= 10), // an order of magnitude
		Text: fmt.Sprintf("%d layers that retry multiply the load by %s if attempts at the bottom fail half the time, by %s at 90 %%, and %s in an outage",
			l.s.Layers, figure(amplification(0.5, l.attempts, l.s.Layers)), figure(amplification(0.9, l.attempts, l.s.Layers)), worst),
		Change: "Set MaxAttempts to 1 in every layer but one.",
	}
	if l.p.Budget != nil {
		f.Level = Note
		f.Text += " unless their budgets prevent it"
	}
	f.Text += "."
	return f
}

// amplification returns how many attempts reach the bottom for one call at the top, if each of so many layers makes up
// to attempts and one at the bottom fails with probability p: for each layer A* = (1−p^a)/(1−p), after which its own
// calls fail with p^a. It saturates at the largest float64. Powers are taken by multiplication, so that every platform
// agrees.
func amplification(p float64, attempts, layers int) float64 {
	load := 1.0
	for range layers {
		switch {
		case p >= 1:
			load = min(load*float64(attempts), math.MaxFloat64)
		case attempts == retry.Unlimited:
			return load / (1 - p) // the layers above never see a failure
		default:
			failed := power(p, attempts)
			load = min(load*((1-failed)/(1-p)), math.MaxFloat64)
			p = failed
		}
	}
	return load
}

// power returns p^n for n ≥ 1 by squaring.
func power(p float64, n int) float64 {
	result := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result *= p
		}
		p *= p
	}
	return result
}
