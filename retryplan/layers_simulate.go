package retryplan

import (
	"context"
	"time"

	"github.com/retrygo/retry"
)

// ChainResult is what the simulation of a chain saw.
type ChainResult struct {
	// Result is about the runs of the user and the attempts at the bottom: Attempts, Rejected, Wasted, Amplification,
	// Peak, and in Series Attempts, Rejected, Queue and Tokens (of the budgets of the innermost layer) are the bottom's.
	// TimedOut are those of all layers.
	Result
	// Nodes is how many attempts were sent to each node.
	Nodes []int
	// Trigger is Chain.Trigger with the From that it had.
	Trigger Trigger
}

// SimulateChain runs c event by event: a while of calm, the trigger, and a time after it that is long
// enough to see a recovery if there is one. It calls each layer's own Decide and a real Budget for each process, with
// the simulation's time as their argument. Every node works in the order of arrival and executes abandoned work. The
// same Chain and seed give the same ChainResult.
//
// Errors are retry.FieldErrors: each field that is out of its range, those of Policy.Validate included; Rate is
// required. When ctx ends, or time stands still, SimulateChain does what Simulate does.
func SimulateChain(ctx context.Context, c Chain, seed uint64) (ChainResult, error) {
	var bad retry.FieldErrors
	bad.Append(c.validate())
	if c.Rate == 0 {
		bad.Refuse("retryplan.Chain.Rate", c.Rate, "is required")
	}
	if err := bad.Err(); err != nil {
		return ChainResult{}, err
	}
	front := c.scenario(seed)
	s := newSimulation(&front, c.nodes(&front)...)
	s.passOn, s.doNotRetry, s.trusts, s.recovery.share = c.PassOn, c.DoNotRetry, c.TrustRequests, c.calm().success
	err := s.play(ctx)
	r := ChainResult{Result: s.finish(), Trigger: c.Trigger}
	for i := range s.nodes {
		r.Nodes = append(r.Nodes, s.nodes[i].sent)
	}
	if c.Trigger.Kind != 0 {
		r.Trigger = front.Triggers[0]
	}
	return r, err
}

// scenario returns the user's side of the simulation of c.
func (c *Chain) scenario(seed uint64) Scenario {
	top := &c.Layers[0]
	s := Scenario{
		Policy: top.Policy, Deadline: c.Deadline, Clients: max(top.Clients, 1), Rate: c.Rate, Seed: seed,
		Server: Server{Service: Constant(inNanoseconds(c.work(0)))},
	}
	longest := time.Duration(0)
	for i := range c.Layers {
		longest = max(longest, c.Layers[i].Policy.AttemptTimeout)
	}
	s.last(longest, c.Trigger, c.aftermath())
	s.Duration = saturatingAdd(s.Duration, (time.Second-s.Duration%time.Second)%time.Second) // whole steps
	return s
}

// aftermath returns how long to look at a chain after its trigger: one and a half minutes and twice the time from the
// first attempt of a run to its last, for an hour at most; if a recovery is predicted, at least three times that and the
// time in which all stored tokens are spent and worked off, should chance start a storm.
func (c *Chain) aftermath() time.Duration {
	const least, most = 90, 3600. // seconds
	if c.Trigger.Kind == 0 {
		return seconds(least)
	}
	storm := c.storm(c.hit(), c.hit(), true)
	after := 2 * storm.starts[len(storm.starts)-1].Seconds()
	certifier, certified := newChainCertifier(c), c.Trigger.Kind != Outage && c.Trigger.Kind != Failing
	if found, _ := certifier.find(change{rate: 1, trigger: 1}); certified && found.stability.Survives() {
		stored, tokens := 0., 0.
		for i, l := range c.Layers {
			stored += certifier.stored[i]
			if spare := l.Capacity - c.Rate*certifier.worst[i]; spare > 0 {
				tokens = max(tokens, 1/spare)
			}
		}
		after = max(after, 3*(found.recovery+stored*tokens))
	}
	return seconds(least + min(after, most))
}

// nodes returns each node with the calls to it.
func (c *Chain) nodes(front *Scenario) []Scenario {
	nodes, calm := make([]Scenario, len(c.Layers)), c.calm()
	for i, l := range c.Layers {
		n := Scenario{Policy: l.Policy, Clients: max(l.Clients, 1), Budget: afterCalm(l.Budget, 1-calm.succeeds[i]+l.Hedge.Share), Hedge: l.Hedge, Seed: front.Seed}
		n.Server = Server{Service: Constant(l.service()), FailureRate: l.Failure}
		if l.Capacity > 0 {
			n.Server.Workers = max(l.Workers, 1)
		}
		if i == c.hit() {
			n.Triggers = front.Triggers
		}
		if i > 0 {
			n.Seed = scrambled(n.Seed + uint64(i))
		}
		nodes[i] = n
	}
	return nodes
}
