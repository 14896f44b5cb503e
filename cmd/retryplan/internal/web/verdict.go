package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrygo/retry/retryplan"
)

// verdict is the certificate in words.
type verdict struct {
	Kind  string `json:"kind"`  // safe, vulnerable, metastable, overloaded
	Title string `json:"title"` // one sentence
	Text  string `json:"text"`  // why
	Facts []fact `json:"facts"`
}

// verdict certifies the fleet.
func (q question) verdict() (verdict, error) {
	trigger := q.fleet.Trigger
	c, err := retryplan.Certify(q.policy, q.fleet)
	if err != nil {
		return verdict{}, err
	}
	return verdict{Kind: c.Stability.String(), Title: title(c, trigger), Text: why(c, q), Facts: certificateFacts(c)}, nil
}

func title(c retryplan.Certificate, t retryplan.Trigger) string {
	trouble := "a calm without a trigger"
	if t.Kind != 0 {
		trouble = "this " + strings.ReplaceAll(t.Kind.String(), "_", " ") + " of " + span(t.For)
	}
	switch c.Stability {
	case retryplan.Safe:
		if c.Law == retryplan.SuccessFunded {
			return "Safe: the fleet comes back from any trigger, once the stored tokens are spent."
		}
		return "Safe: the fleet comes back from any trigger."
	case retryplan.Vulnerable:
		return "Vulnerable: the fleet comes back from " + trouble + ", but larger trouble tips it."
	case retryplan.Metastable:
		return "Metastable: the fleet does not come back from " + trouble + " by itself."
	default:
		if c.Law == retryplan.SlowService {
			return "Overloaded: no attempt is answered while its client waits."
		}
		return "Overloaded: the calm alone is more than the backend can do."
	}
}

// why gives the figures that the verdict follows from.
func why(c retryplan.Certificate, q question) string {
	storm := fmt.Sprintf("In a storm each run makes %s, so a backend of %s attempts a second can serve %s runs a second; the fleet begins %s.",
		attempts(c.Attempts), number(q.fleet.Capacity), number(c.HiddenCapacity), number(q.fleet.Rate))
	if text, ok := laws[c.Law]; ok {
		storm = text + " " + storm
	}
	switch c.Law {
	case retryplan.SlowService:
		storm = laws[c.Law]
	case retryplan.Overload:
		storm = fmt.Sprintf("The fleet begins %s runs a second and the backend does %s attempts a second; retries are not the cause.",
			number(q.fleet.Rate), number(q.fleet.Capacity))
		if q.fleet.Rate < q.fleet.Capacity {
			storm = fmt.Sprintf("The fleet begins %s runs a second and the backend does %s attempts a second: with the retries of the %s that fail in the calm that is too much.",
				number(q.fleet.Rate), number(q.fleet.Capacity), share(q.failure))
		}
	}
	return storm
}

func attempts(n float64) string {
	if number(n) == "1" {
		return "1 attempt"
	}
	return number(n) + " attempts"
}

func certificateFacts(c retryplan.Certificate) []fact {
	never := func(d time.Duration, otherwise string) string {
		if d < 0 {
			return otherwise
		}
		return span(d)
	}
	tipping := never(c.Tipping, "no length")
	if c.Tipping == 0 {
		tipping = "none needed: chance is enough"
	}
	return []fact{
		{"Attempts per run in a storm", number(c.Attempts)},
		{"Hidden capacity", number(c.HiddenCapacity) + " runs/s"},
		{"Predicted recovery", never(c.Recovery, "never")},
		{"Tips at a trigger of", tipping},
		{"Margin", share(c.Margin)},
		{"Law", c.Law.String()},
	}
}

// laws are the laws in words, but for that of hidden capacity, which the figures say.
var laws = map[retryplan.Law]string{
	retryplan.SlowService:         "One attempt takes the backend as long as its client waits or longer, so that none succeeds. A longer timeout mends that.",
	retryplan.NoTimeout:           "No client gives up an attempt, so that no work is wasted, and the queue drains.",
	retryplan.SuccessFunded:       "The budget pays for no retry in a storm but those that it has stored.",
	retryplan.TriggerBelowTimeout: "The queue that the trigger leaves makes no attempt wait as long as its timeout, so that none fails.",
	retryplan.Fluid:               "Some attempts fail, and a model of flows decides whether their retries are enough for a storm.",
	retryplan.RandomArrivals:      "The randomness of arrivals alone makes queues in which attempts wait as long as their timeout.",
}
