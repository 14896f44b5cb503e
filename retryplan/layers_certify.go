package retryplan

import (
	"math"
	"slices"

	"github.com/retrygo/retry"
)

// ChainCertificate says how the layers of a chain multiply each other's attempts, and whether the chain survives its
// trigger.
type ChainCertificate struct {
	// Nodes are the nodes of Chain.Layers, the bottom last.
	Nodes []NodeLoad
	// Success is the share of runs that succeed when nothing but Layer.Failure fails, in [0,1].
	Success float64
	// Stored is the number of tokens in all budgets of all layers. If every layer has a budget, an outage costs the
	// bottom this many calls beside the runs: a sum, not a product.
	Stored float64

	// Certificate says whether the chain recovers from its trigger, as that of a Fleet whose backend is the node Weakest,
	// but for runs of the user: HiddenCapacity is the least of all nodes. Tipping is not computed: it is 0. All of it is
	// zero if no node has a Capacity, and all but HiddenCapacity and Attempts if Chain.Rate is. With graded timeouts users
	// may not notice what Recovery waits for.
	Certificate
	// Weakest is the index of the node that Stability describes: the one with the least hidden capacity if the chain is
	// safe.
	Weakest int
}

// NodeLoad is how many attempts reach a node for one run of the user.
type NodeLoad struct {
	// Calm is the number in a calm, with the Failure of the layers, in which no attempt waits for another's work.
	Calm float64
	// Outage is the number while the bottom refuses every attempt at once, and Hang the number while it answers none,
	// with empty budgets. At most 1,000 attempts of a run of one layer are counted, even if the policy has no limit.
	Outage, Hang float64
	// HiddenCapacity is Layer.Capacity over the attempts that reach the node if it, or a node below it with a Capacity,
	// answers none: the rate of runs of the user that it can serve during a storm. It is 0 for a node without a
	// Capacity.
	HiddenCapacity float64
}

// CertifyChain returns the certificate of c. Only waits with jitter are sampled, from a fixed seed.
//
// A chain is safe if and only if λ·A < μ at every node, A its attempts for a run of the user while all attempts fail at
// it or at a node below. Otherwise a deterministic model in which runs flow follows the queue through the trigger. Its
// arrivals are even; where chance can decide instead, Margin is 0, and SimulateChain with several seeds shows how often.
//
// Errors are retry.FieldErrors: each field that is out of its range, including those of Policy.Validate.
func CertifyChain(c Chain) (ChainCertificate, error) {
	if err := c.validate(); err != nil {
		return ChainCertificate{}, err
	}
	if kind := c.Trigger.Kind; kind == Outage || kind == Failing {
		var bad retry.FieldErrors
		bad.Refuse("retryplan.Chain.Trigger.Kind", kind, "is one that is simulated, but not certified")
		return ChainCertificate{}, bad.Err()
	}
	return newChainCertifier(&c).certificate(), nil
}

// chainCertifier is a chain with what its policies do in a storm.
type chainCertifier struct {
	*Chain
	calm   chainCalm
	outage chainStorm
	own    []chainStorm // of the nodes with a Capacity and the bottom, while they hang
	worst  []float64    // attempts at each node while it or one below it with a Capacity hangs
	stored []float64    // tokens, by layer
	saved  bool         // the chain would not be safe without its budgets
}

func newChainCertifier(c *Chain) *chainCertifier {
	bottom, n := c.bottom(), len(c.Layers)
	cert := &chainCertifier{
		Chain: c, calm: c.calm(), outage: c.storm(bottom, bottom, false),
		own: make([]chainStorm, n), worst: make([]float64, n), stored: make([]float64, n),
	}
	for j := range c.Layers {
		l := &c.Layers[j]
		if l.Capacity > 0 || j == bottom || j == c.hit() {
			cert.own[j] = c.storm(j, j, true)
			for i := range j + 1 {
				cert.worst[i] = max(cert.worst[i], cert.own[j].attempts[i])
			}
		}
		if l.Budget != nil {
			cert.stored[j] = newPurse(l.Budget, max(l.Clients, 1), false, 1-cert.calm.succeeds[j]+l.Hedge.Share).stored()
		}
	}
	cert.saved = cert.budgetsSave()
	return cert
}

func (c *chainCertifier) certificate() ChainCertificate {
	out := ChainCertificate{Success: c.calm.success}
	for i := range c.Layers {
		n := NodeLoad{Calm: c.calm.attempts[i], Outage: c.outage.attempts[i], Hang: c.own[c.bottom()].attempts[i]}
		if capacity := c.Layers[i].Capacity; capacity > 0 {
			n.HiddenCapacity = capacity / c.worst[i]
			if out.HiddenCapacity == 0 || n.HiddenCapacity < out.HiddenCapacity {
				out.HiddenCapacity, out.Weakest = n.HiddenCapacity, i
			}
		}
		out.Stored += c.stored[i]
		out.Nodes = append(out.Nodes, n)
	}
	if out.HiddenCapacity == 0 {
		return out
	}
	out.Attempts = c.worst[out.Weakest]
	if c.Rate == 0 {
		return out
	}
	found, weakest := c.find(change{rate: 1, trigger: 1})
	if found.stability != Safe {
		out.Weakest, out.Attempts = weakest, c.worst[weakest]
	}
	out.Stability, out.Law, out.Recovery, out.Margin = found.stability, found.law, -1, c.margin(found, &out)
	if found.stability.Survives() {
		out.Recovery = seconds(found.recovery)
	}
	return out
}

// find returns how the chain fares with a change, and the node that this describes unless it is Safe.
func (c *chainCertifier) find(ch change) (worst finding, weakest int) {
	worst = finding{stability: Safe, law: lawHiddenCapacity, decided: true}
	if c.saved {
		worst.law = lawSuccessFunded
	}
	look := func(i int) {
		if c.Layers[i].Capacity == 0 {
			return
		}
		found := c.findNode(i, ch, worst)
		worse := found.stability > worst.stability
		if worse || worst.stability == Safe && found.law == lawNoTimeout {
			worst.stability, worst.law = found.stability, found.law
		}
		if worse {
			weakest = i
		}
		worst.recovery = max(worst.recovery, found.recovery)
		worst.decided, worst.chance = worst.decided && found.decided, worst.chance || found.chance
	}
	for i := c.hit(); i <= c.bottom(); i++ { // those below it work off what it has kept
		look(i)
	}
	for i := c.hit() - 1; i >= 0; i-- {
		look(i)
	}
	return worst, weakest
}

// margin returns how far the chain is from another stability.
func (c *chainCertifier) margin(found finding, cert *ChainCertificate) float64 {
	nearest, over := 1., 0.
	for i := range c.Layers {
		if l := &c.Layers[i]; l.Capacity > 0 {
			load := max(c.Rate*c.calm.attempts[i]/l.Capacity, l.service().Seconds()/(c.patience(i)-c.work(i+1)))
			nearest, over = min(nearest, 1-load), max(over, load-1)
		}
	}
	switch {
	case !found.decided || found.law == lawRandomArrivals:
		return 0
	case found.stability == Overloaded:
		return min(over, 1)
	case found.law == lawNoTimeout:
		return nearest
	case found.stability == Vulnerable:
		nearest = min(nearest, c.Rate/cert.HiddenCapacity-1) // to Safe
	}
	return min(nearest, distances(found, func(ch change) finding {
		got, _ := c.find(ch)
		return got
	}))
}

// budgetsSave reports whether the chain would not be safe without its budgets.
func (c *chainCertifier) budgetsSave() bool {
	without := *c.Chain
	without.Layers = slices.Clone(c.Layers)
	for i := range without.Layers {
		without.Layers[i].Budget = nil
	}
	for j, l := range c.Layers {
		if l.Capacity > 0 && c.Rate*without.storm(j, j, true).attempts[j] >= l.Capacity {
			return true
		}
	}
	return false
}

// patience returns how many seconds an attempt at a node can take before the first caller above it gives up.
func (c *chainCertifier) patience(node int) float64 {
	least := maxDuration
	for i := range node + 1 {
		least = min(least, attemptEnds(&c.Layers[i].Policy, c.Deadline, 0))
	}
	if least == maxDuration {
		return math.Inf(1)
	}
	return least.Seconds()
}

// work returns how many seconds a node and those below it work on an attempt.
func (c *Chain) work(node int) float64 {
	sum := 0.0
	for i := range c.Layers[node:] {
		sum += c.Layers[node+i].service().Seconds()
	}
	return sum
}

// findNode returns how one node fares with a change; below is the finding of those below it.
func (c *chainCertifier) findNode(node int, ch change, below finding) finding {
	l, calm := &c.Layers[node], c.calm.attempts[node]
	fleet := l.fleet(c.Rate*calm, c.Trigger)
	fleet.Budget = nil // its tokens are among those stored
	hit := c.hit()
	kept := c.Layers[hit].fleet(c.Rate, c.Trigger)
	t := kept.trouble()
	t.lasts *= ch.trigger
	ch.trigger = 1
	triggered := t.lasts
	switch {
	case node < hit:
		// To a node above, the failures of the node with the trouble are the trouble, for as long as they last.
		if t.work < 1 {
			t.lasts += below.recovery
			t.arrive = max(c.own[hit].attempts[node]/calm, 1)
		}
		t.work, t.service, t.job = 1, 1, 0
	case node > hit && t.work < 1 && kept.Capacity == 0:
		// To a node below, what has been kept comes at once, as after a trouble of its own, but with all the retries of
		// the layers above the trouble.
		t.arrive = max(c.worst[hit]/c.own[node].attempts[hit], 1)
	case node > hit && t.work < 1:
		// Or it comes as fast as the node with the trouble works.
		spare := max(kept.Capacity-c.Rate*c.calm.attempts[hit], 1e-9*kept.Capacity)
		t.lasts = max(below.recovery, c.Rate*c.worst[hit]*(1-t.work)*t.lasts/spare)
		t.arrive = max(kept.Capacity/(c.Rate*c.calm.attempts[hit]), 1)
		t.work, t.service, t.job = 1, 1, 0
	}
	storm := c.own[node].storm(calm, c.patience(node)-c.work(node+1))
	storm.attempts = c.worst[node] / calm
	q := certifier{fleet: fleet, trouble: t, storm: *storm, refused: storm, calm: 1}
	for i, own := range c.own[node].attempts {
		if own > 0 {
			q.stored += c.stored[i] * c.own[node].attempts[node] / own
		}
	}
	found := q.find(ch)
	if found.recovery > 0 {
		found.recovery += t.lasts - triggered
	}
	return found
}
