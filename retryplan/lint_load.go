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
	if !l.retries || l.p.Budget != nil {
		return Finding{}
	}
	f := Finding{Level: Note, Change: "Set Budget to retry.NewBudget(retry.BudgetConfig{}), shared by all calls to one backend"}
	// Slower schedules leave an outage of a minute alone.
	if quick := l.s.Inline || l.hi <= time.Minute; quick && (l.attempts == retry.Unlimited || l.attempts > perRequest) {
		f.Level = Warning
		f.Change += fmt.Sprintf(", or MaxAttempts to %d, the usual limit without one", perRequest)
	}
	f.Change += "."
	more := "lets each run go on for as long as it lasts"
	if l.attempts != retry.Unlimited {
		half := amplification(0.5, l.attempts, 1)
		f.Figures = map[string]float64{"half": half, "outage": float64(l.attempts)}
		more = fmt.Sprintf("multiplies the load by %d, and attempts that fail half of the time by %s", l.attempts, figure(half))
	}
	f.Text = "No budget bounds the retries: an outage " + more + "; a budget that successes fund adds next to nothing."
	return f
}

func (l *linter) nestedAmplification() Finding {
	if !l.retries || l.s.Layers < 2 {
		return Finding{}
	}
	half, ninety := amplification(0.5, l.attempts, l.s.Layers), amplification(0.9, l.attempts, l.s.Layers)
	f := Finding{Level: Severe, Change: "Set MaxAttempts to 1 in every layer but one."}
	f.Figures = map[string]float64{"layers": float64(l.s.Layers), "half": half, "ninety": ninety}
	worst := "without limit"
	if l.attempts != retry.Unlimited {
		outage := amplification(1, l.attempts, l.s.Layers)
		f.Figures["outage"], f.Figures["attempts"] = outage, float64(l.attempts)
		worst = "by " + figure(outage)
		if outage < 10 { // an order of magnitude
			f.Level = Warning
		}
	}
	f.Text = fmt.Sprintf("%d layers that retry multiply the load by %s if attempts at the bottom fail half the time, by %s at 90 %%, and %s in an outage.",
		l.s.Layers, figure(half), figure(ninety), worst)
	if l.p.Budget != nil {
		f.Level = Note
		f.Text = fmt.Sprintf("%d layers that retry multiply each other's attempts, %s in an outage, and only their budgets stand against that.", l.s.Layers, worst)
	}
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
		if p == 0 || load == math.MaxFloat64 {
			break
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

func (l *linter) manyAttempts() Finding {
	const most = 50 // retryconf.ServiceLimits: what delivery services allow
	if l.attempts <= most {
		return Finding{}
	}
	few := retry.Policy{MaxAttempts: most, Backoff: l.p.Backoff}
	_, then := few.TotalWait()
	return Finding{
		Level: Note,
		Text: fmt.Sprintf("%d attempts make a run wait for up to %s, %d for %s: more of them only prolong it, since even attempts that fail 9 times in 10 at random have led to success in 99.5 %% of runs by the 50th.",
			l.attempts, roughly(l.hi), most, roughly(then)),
		Change:  fmt.Sprintf("Set MaxAttempts to %d, and choose how long a run lasts by the waits.", most),
		Figures: map[string]float64{"attempts": float64(l.attempts), "wait": l.hi.Seconds(), "wait_of_50": then.Seconds()},
	}
}
