package retryplan

import "time"

// scenario returns the side of the users of c, with the runs that begin and the time that one can take.
func (c *Chain) scenario(seed uint64) scenario {
	top := &c.Layers[0]
	return scenario{
		Policy: top.Policy, Deadline: c.Deadline, Clients: max(top.Clients, 1), Rate: c.Rate, Seed: seed,
		Server: backend{Service: Constant(c.work(0))},
	}
}

// nodes returns each node with the calls to it.
func (c *Chain) nodes(seed uint64) []scenario {
	nodes := make([]scenario, len(c.Layers))
	for i, l := range c.Layers {
		n := scenario{Policy: l.Policy, Clients: max(l.Clients, 1), Budget: filled(l.Budget), Hedge: l.Hedge, Seed: seed}
		n.Server = backend{Service: Constant(l.service()), FailureRate: l.Failure}
		if l.Capacity > 0 {
			n.Server.Workers = max(l.Workers, 1)
		}
		if i > 0 {
			n.Seed = scrambled(seed + uint64(i))
		}
		nodes[i] = n
	}
	return nodes
}

// work returns the time for which a node and those below it work on an attempt.
func (c *Chain) work(node int) (sum time.Duration) {
	for i := range c.Layers[node:] {
		sum = saturatingAdd(sum, c.Layers[node+i].service())
	}
	return sum
}
