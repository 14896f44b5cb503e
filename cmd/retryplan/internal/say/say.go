// Package say has the words and figures that the terminal and the page have in common.
package say

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// Span returns a duration for a reader: exact if that is short, otherwise to about three digits.
func Span(d time.Duration) string {
	if d == math.MaxInt64 {
		return "unbounded"
	}
	if exact := wire.Duration(d).String(); len(exact) <= len("1m23.5s") {
		return exact
	}
	unit := time.Nanosecond
	for _, step := range []struct{ from, to time.Duration }{
		{time.Hour, time.Second}, {10 * time.Minute, time.Second}, {time.Minute, 100 * time.Millisecond}, {10 * time.Second, 10 * time.Millisecond},
		{time.Second, time.Millisecond}, {10 * time.Millisecond, 10 * time.Microsecond}, {time.Millisecond, time.Microsecond},
		{time.Microsecond, 10 * time.Nanosecond},
	} {
		if d.Abs() >= step.from {
			unit = step.to
			break
		}
	}
	return wire.Duration(d.Round(unit)).String()
}

// Between returns "1s" or "1s..2s".
func Between(lo, hi time.Duration) string {
	if lo == hi {
		return Span(lo)
	}
	return Span(lo) + ".." + Span(hi)
}

// Noise is what the computation of a distribution leaves of a probability that is 0 or 1.
const Noise = 1e-12

// Percent returns a probability. What is not certain is never shown as 0 or 100 %.
func Percent(p float64) string {
	switch {
	case math.Abs(p) < Noise:
		return "0%"
	case math.Abs(1-p) < Noise:
		return "100%"
	case p > 0 && p < 0.5e-6:
		return "<0.0001%"
	case p < 1 && p > 1-0.5e-6:
		return ">99.9999%"
	}
	return Number(math.Round(p*1e6)/1e4) + "%"
}

// Number returns a number with up to four digits that matter, and whole ones in full.
func Number(x float64) string {
	if x == math.Trunc(x) || math.Abs(x) >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	digits := 4
	if x > 99 && x < 100 {
		digits = 6 // nines count
	}
	s := strconv.FormatFloat(x, 'g', digits, 64)
	if strings.ContainsRune(s, '.') && !strings.ContainsRune(s, 'e') {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Stability says what the stability in c means for a fleet, first in one clause and then why.
func Stability(c *retryplan.Certificate, f retryplan.Fleet) (what, why string) {
	rate, capacity := Number(f.Rate), Number(f.Capacity)
	storm := rate + " runs/s become " + Number(f.Rate*c.Attempts) + " attempts/s, and the backend"
	switch {
	case c.Stability == retryplan.Safe && c.Margin == 0 && c.Recovery > 0:
		return "The fleet comes back from any storm, but random arrivals can start one", "at any time: even if every attempt fails, the backend has capacity to spare."
	case c.Stability == retryplan.Safe && c.Law == "success-funded-budget":
		return "The fleet comes back from any trigger once the stored tokens are spent:", "even if every attempt then fails, the backend has capacity to spare."
	case c.Stability == retryplan.Safe:
		return "The fleet comes back from any trigger:", "even if every attempt fails, the backend has capacity to spare."
	case c.Stability == retryplan.Vulnerable && c.Margin == 0:
		return "The fleet comes back from this trigger if chance does not tip it:",
			"it is so near the boundary that random arrivals decide. In a storm " + storm + " does " + capacity + "."
	case c.Stability == retryplan.Vulnerable && c.Tipping < 0 && f.Trigger.Kind != 0:
		return "The fleet comes back from this trigger, however long it lasts.",
			"Another one can tip it into a storm that feeds itself: if all attempts time out, " + storm + " does " + capacity + "."
	case c.Stability == retryplan.Vulnerable:
		return "The fleet comes back from this trigger.",
			"A larger one tips it into a storm that feeds itself: if all attempts fail, " + storm + " does " + capacity + "."
	case c.Stability == retryplan.Metastable:
		return "The fleet does not come back from this trigger:",
			storm + ", which does " + capacity + ", is busy with work that no client waits for. Only less load or fewer retries end it."
	case c.Law == "slow-service":
		return "No attempt succeeds:", "one takes the backend as long as its client waits or longer, with or without retries. A longer attempt timeout, or a deadline that leaves time for it, mends that."
	case c.Law == "random-arrivals":
		return "Too many attempts are late:", "at this load, random arrivals alone make more than a tenth of them wait for as long as their client does. A longer attempt timeout or less load mends that."
	case f.Rate < f.Capacity:
		return "The fleet is more than the backend can do:",
			"with the retries of what fails in the calm, " + rate + " runs/s are more than " + capacity + " attempts/s. Fewer attempts or a budget mend that."
	}
	return "The fleet is more than the backend can do, with or without retries:", "no policy mends that."
}

// Contradiction says that a simulation ended otherwise than a certificate expects.
func Contradiction(s retryplan.Stability) string {
	law, seen := "comes back", "does not"
	if !s.Survives() {
		law, seen = "does not come back", "does"
	}
	return "Certificate and simulation disagree: by law the fleet " + law + ", and in this simulation it " + seen + ". Near a boundary chance decides: try other seeds and rates."
}

// Law says what a law is in a few words.
func Law(l string) string { return cmp.Or(laws[l], "see the documentation of retryplan") }

var laws = map[string]string{
	"overload":              "runs/s, with the retries of what fails in the calm, at or above capacity",
	"slow-service":          "one attempt takes the backend as long as its client waits or longer",
	"no-timeout":            "no client gives up, so nothing is retried in vain",
	"hidden-capacity":       "a storm feeds itself if runs/s are above capacity / attempts per run",
	"success-funded-budget": "a budget that successes fund pays for no more retries in a storm than it has stored",
	"trigger-below-timeout": "no attempt waits longer than its client does",
	"fluid":                 "a model in which runs flow says how many retries the trigger leaves",
	"random-arrivals":       "random arrivals alone make attempts wait that long often enough",
}
