package say

import (
	"cmp"

	"github.com/retrygo/retry/retryplan"
)

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
