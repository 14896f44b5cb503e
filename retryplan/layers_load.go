package retryplan

import (
	"context"

	"github.com/retrygo/retry"
)

// NodeLoad is the number of attempts that reach a node for one run of the user.
type NodeLoad struct {
	// Calm is the number in a calm, with the Failure of the layers, in which no attempt waits for another's work.
	Calm float64
	// Outage is the number while the bottom refuses every attempt at once, and Hang the number while it answers none,
	// with empty budgets, without the tokens of Trickle, and with the delays of hedges that a calm has. At most 1,000
	// attempts of a run of one layer are counted, even if the policy has no limit.
	Outage, Hang float64
	// Stored is the number of tokens in all budgets of the layer when they are full. If every layer has a budget, an
	// outage costs the bottom no more than the sum of all of them beside the runs, a sum and not a product.
	Stored float64
}

// Loads returns the number of attempts that reach each node, the bottom last, and the share of runs that succeed in a
// calm. It simulates runs with a fixed seed. Figures that depend on chance, as those of failures and jitter do, are means
// over up to 100,000 runs.
//
// Errors are retry.FieldErrors with each field that is out of its range, including those of Policy.Validate.
func (c Chain) Loads() (nodes []NodeLoad, success float64, err error) {
	var bad retry.FieldErrors
	if c.validate(&bad); bad.Err() != nil {
		return nil, 0, bad.Err()
	}
	var loads [3]Result // calm, outage, hang
	for i, bottom := range []TriggerKind{0, Outage, Stall} {
		if loads[i], err = c.load(bottom); err != nil {
			return nil, 0, err
		}
	}
	for i, l := range c.Layers {
		n := NodeLoad{Calm: each(loads[0], i), Outage: each(loads[1], i), Hang: each(loads[2], i)}
		if l.Budget != nil {
			n.Stored = float64(max(l.Clients, 1)) * float64(max(filled(l.Budget).Initial, 0))
		}
		nodes = append(nodes, n)
	}
	return nodes, float64(loads[0].Endings[0]) / float64(loads[0].Runs), nil
}

// each returns the number of attempts at a node for each run.
func each(r Result, node int) float64 { return float64(r.Nodes[node]) / float64(r.Runs) }

// load simulates runs in turn, in a calm, or while the bottom has a trigger that does not end and no node fails by itself.
// One run is enough if nothing in it is left to chance.
func (c *Chain) load(bottom TriggerKind) (Result, error) {
	q, runs := Question{Chain: *c}, 1
	for i := range c.Layers {
		l := &c.Layers[i]
		fails := l.Failure > 0 && bottom == 0
		waits := l.Policy.Jitter != retry.NoJitter || l.Policy.Wait != nil
		if fails || waits || l.Hedge.Share > 0 {
			runs = 100_000
		}
	}
	return q.inTurn(context.Background(), runs, func(i int, n *scenario) {
		if bottom != 0 {
			n.Server.FailureRate = 0
		}
		if i == c.bottom() {
			n.Trigger = Trigger{Kind: bottom, For: maxDuration}
		}
		if n.Budget != nil {
			n.Budget.Trickle = 0
		}
	})
}
