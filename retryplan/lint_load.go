package retryplan

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// The rules about the load on the backend.

// perRequest is the number of attempts that a request may cost, three in Google's "Site Reliability Engineering", chapter 21,
// "Deciding to Retry".
const perRequest = 3

func (l *linter) noBudget() Finding {
	if !l.retries() || l.p.Budget != nil {
		return Finding{}
	}
	f := Finding{Level: Note, Change: strings.TrimSuffix(budgetChange, "."), changed: &l.given, funded: true}
	if l.quick() && (l.attempts == retry.Unlimited || l.attempts > retry.Inline().MaxAttempts) {
		f.Level = Warning
		f.Change += fmt.Sprintf(", or MaxAttempts to %d, the usual limit without one", perRequest)
	}
	f.Change += "."
	more := "lets each run go on for as long as it lasts"
	if l.attempts != retry.Unlimited {
		more = fmt.Sprintf("multiplies the load by %d, and attempts that fail half of the time by %s",
			l.attempts, figure(amplification(0.5, l.attempts)))
	}
	f.Text = "No budget bounds the retries: an outage " + more + "; a budget that successes fund adds next to nothing."
	return f
}

// quick reports whether the policy hurries. Slower schedules leave an outage of a minute alone.
func (l *linter) quick() bool { return l.s.Inline || l.waiting <= time.Minute }

// amplification returns the number of attempts of a run of which each fails with probability p: A* = (1−p^a)/(1−p). Powers
// are taken by multiplication, so that every platform agrees.
func amplification(p float64, attempts int) float64 {
	if p >= 1 {
		return float64(attempts)
	}
	return (1 - power(p, attempts)) / (1 - p)
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
