package page

import (
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// story describes the state in a title and a text, for a reader who does not know the fields.
type story struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

func (q *question) story() *story {
	f := &q.fleet
	text := fmt.Sprintf("It can serve %s attempts a second and gets %s. ", say.Number(f.Capacity), say.Number(f.Rate))
	return &story{happens(f.Trigger) + " Does the fleet come back?", text + q.clientsDo() + " " + q.budgetDoes()}
}

// happens describes the effect of the trigger.
func happens(t retryplan.Trigger) string {
	lasts := say.Duration(t.For)
	switch t.Kind {
	case retryplan.Stall:
		return "A backend stalls for " + lasts + "."
	case retryplan.Outage:
		return "A backend rejects everything for " + lasts + "."
	case retryplan.Slowdown:
		return fmt.Sprintf("A backend takes %v times as long for %s.", t.Factor, lasts)
	case retryplan.CapacityCut:
		return fmt.Sprintf("A backend has %v of its workers left for %s.", t.Factor, lasts)
	case retryplan.Surge:
		return fmt.Sprintf("A backend gets %v times as many runs for %s.", t.Factor, lasts)
	case retryplan.Failing:
		return fmt.Sprintf("A backend fails %v of its attempts for %s.", t.Factor, lasts)
	default:
		return "Nothing happens to a backend."
	}
}

// clientsDo says when clients give up, and how often they try.
func (q *question) clientsDo() string {
	p := q.policy.Effective()
	again := fmt.Sprintf("tries again, up to %d times", p.MaxAttempts-1)
	switch {
	case p.MaxAttempts == retry.Unlimited:
		again = "tries again without a limit"
	case p.MaxAttempts == 2:
		again = "tries again once"
	case p.Disabled || p.MaxAttempts == 1:
		again = "does not try again"
	}
	patience := p.AttemptTimeout
	if d := q.model.Deadline; d > 0 && (patience == 0 || d < patience) {
		patience = d
	}
	if patience == time.Duration(0) {
		return "Its clients wait for as long as an answer takes, so that no work is wasted, but runs can take ever longer. After a failure each " + again + "."
	}
	return fmt.Sprintf("Each client waits for %s, gives up and %s. The backend works on what was given up all the same: if more attempts arrive than it can serve, each is answered too late and repeated, a metastable failure.", say.Duration(patience), again)
}

// budgetDoes says which budget pays for retries.
func (q *question) budgetDoes() string {
	switch {
	case q.fleet.Budget == nil:
		return "No budget bounds the retries."
	case q.fleet.Clients < q.clients:
		return "One retry budget, which successes fund, bounds those of all clients."
	default:
		return "A retry budget, which successes fund, bounds those of each client."
	}
}
