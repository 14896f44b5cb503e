package retryplan

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/retrygo/retry"
)

// Chain is services that call each other, each with a policy of its own. The user calls node 1, node 1 calls node 2,
// and so on down to the bottom. The user's calls to node 1 follow Layers[0]. The zero Chain has no layers and
// is refused.
type Chain struct {
	// Layers are the layers from the user's down, 1 to 16, and are required. The product of their attempts is
	// 1,000,000 at most.
	Layers []Layer
	// PassOn says that a node's calls end when its own caller gives up, because its handlers pass the context of the
	// request on. False means that they go on.
	PassOn bool
	// DoNotRetry says that a node whose calls have failed for good answers that the request must not be repeated, and
	// that its caller obeys. A node that fails by itself may be called again. False means that the caller retries both
	// alike.
	DoNotRetry bool
	// TrustRequests says that requests carry whether they are retries, and that all nodes believe it. A node makes one
	// attempt of its own calls for a retry, and the node below does as well. False means that each run makes all attempts.
	TrustRequests bool
	// Deadline is the user's, counted from the start of each run. Zero means none.
	Deadline time.Duration
	// Rate is the number of runs that the users begin in a second, in an open loop. Loads does not need it, and a
	// Question does.
	Rate float64
	// Trigger is the trouble. Its From is not used. A Trigger without a Kind is none.
	Trigger Trigger
	// TriggerAt is the node that has the trouble, from 1, the user's. Zero means the bottom.
	TriggerAt int
}

// Layer is a node of a Chain and the calls to it.
type Layer struct {
	// Policy is that of the calls. Its Budget, Gate and Pay must be nil.
	Policy retry.Policy
	// Budget is the retry budget of each process that calls. Nil means none.
	Budget *retry.BudgetConfig
	// Clients is the number of processes that call. Zero means 1.
	Clients int
	// Hedge starts second calls beside slow attempts. Zero means none.
	Hedge Hedge
	// Failure is the probability, in [0,1], that an attempt fails at the node itself, before the node calls another.
	Failure float64
	// Capacity is the number of attempts that the node completes in a second, as the backend of a Fleet does. Its own
	// work comes before its calls, and a worker does not wait for these. Zero means any number, each in no time.
	Capacity float64
	// Workers is the number of them that it works on at the same time. Zero means 1.
	Workers int
}

// Limits of a Chain.
const (
	maxLayers        = 16
	maxChainAttempts = 1_000_000
	mostCounted      = 1000 // attempts of a run of one layer
)

// attempts returns the most attempts that a run of the layer makes, of which 1,000 are counted.
func (l *Layer) attempts() int {
	p := l.Policy.Effective()
	switch {
	case p.Disabled:
		return 1
	case p.MaxAttempts == retry.Unlimited:
		return mostCounted
	}
	return min(p.MaxAttempts, mostCounted)
}

// service returns the time for which the node works on one attempt.
func (l *Layer) service() time.Duration {
	if l.Capacity == 0 {
		return 0
	}
	return serviceTime(l.Workers, l.Capacity)
}

// bottom returns the last node.
func (c *Chain) bottom() int { return len(c.Layers) - 1 }

// hit returns the node that has the trouble.
func (c *Chain) hit() int {
	if c.TriggerAt == 0 {
		return c.bottom()
	}
	return c.TriggerAt - 1
}

// validate adds every bad field of c.
func (c *Chain) validate(bad *retry.FieldErrors) {
	if n := len(c.Layers); n == 0 || n > maxLayers {
		bad.Refuse("retryplan.Chain.Layers", fmt.Sprintf("(%d)", n), fmt.Sprintf("are not 1 to %d", maxLayers))
	}
	product := 1.0
	for i := range c.Layers {
		l := &c.Layers[i]
		of := func(field string) string { return indexedField("Chain.Layers", i) + "." + field }
		validateAt(l.Policy, of, bad)
		refuse(bad, l.Policy.ResetAfter > 0, of("Policy.ResetAfter"), l.Policy.ResetAfter,
			"is for connections, and a chain has requests")
		refuse(bad, l.Clients < 0 || l.Clients > maxClients, of("Clients"), l.Clients,
			fmt.Sprintf("is outside [0,%d]", maxClients))
		l.Hedge.validate(bad, of("Hedge"))
		refuse(bad, !(l.Failure >= 0 && l.Failure <= 1), of("Failure"), l.Failure, "is outside [0,1]")
		inRange(bad, of("Capacity"), cmp.Or(l.Capacity, 1))
		negative(bad, of("Workers"), l.Workers)
		if l.Policy.Validate() == nil {
			product *= float64(l.attempts())
			if l.Hedge != (Hedge{}) {
				product *= 2
			}
		}
	}
	refuse(bad, product > maxChainAttempts, "Chain.Layers", fmt.Sprintf("(%.3g attempts)", product),
		fmt.Sprintf("multiply to more than %d attempts", maxChainAttempts))
	negative(bad, "Chain.Deadline", c.Deadline)
	inRange(bad, "Chain.Rate", cmp.Or(c.Rate, 1))
	c.Trigger.validate("Chain.Trigger", bad)
	known := c.TriggerAt >= 0 && c.TriggerAt <= len(c.Layers)
	refuse(bad, !known, "Chain.TriggerAt", c.TriggerAt, "is no node: they are 1 to "+strconv.Itoa(len(c.Layers)))
	if k := c.Trigger.Kind; (k == Slowdown || k == CapacityCut) && len(c.Layers) > 0 && known {
		refuse(bad, c.Layers[c.hit()].Capacity == 0, "Chain.Trigger.Kind", k, "needs a Capacity of the node")
	}
}
