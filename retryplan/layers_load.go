package retryplan

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

// NodeLoad is the number of attempts that reach a node for one run of the user.
type NodeLoad struct {
	// Calm is the number in a calm, with the Failure of the layers, in which no attempt waits for another's work.
	Calm float64
	// Outage is the number while the bottom refuses every attempt at once, and Hang the number while it answers none,
	// with empty budgets, without what Trickle grants, and with the delays of hedges that a calm has. At most 1,000 attempts
	// of a run of one layer are counted, even if the policy has no limit.
	Outage, Hang float64
	// Stored is the number of tokens in all budgets of the layer when they are full. If every layer has a budget, an
	// outage costs the bottom no more than the sum of all of them beside the runs: a sum, not a product.
	Stored float64
}

// Loads returns the number of attempts that reach each node, the bottom last, and the share of runs that succeed in a
// calm. The calm is arithmetic, and the storms are simulated; what jitter changes is a mean over runs of a fixed seed.
//
// Errors are retry.FieldErrors: each field that is out of its range, including those of Policy.Validate.
func (c Chain) Loads() (nodes []NodeLoad, success float64, err error) {
	var bad retry.FieldErrors
	if c.validate(&bad); bad.Err() != nil {
		return nil, 0, bad.Err()
	}
	calm := c.calm()
	outage, err := c.storm(Outage)
	if err != nil {
		return nil, 0, err
	}
	hang, err := c.storm(Stall)
	if err != nil {
		return nil, 0, err
	}
	for i, l := range c.Layers {
		n := NodeLoad{Calm: calm.attempts[i], Outage: outage[i], Hang: hang[i]}
		if l.Budget != nil {
			n.Stored = float64(max(l.Clients, 1)) * float64(max(filled(l.Budget).Initial, 0))
		}
		nodes = append(nodes, n)
	}
	return nodes, calm.success, nil
}

// chainCalm is the load of runs whose attempts wait for nothing but their work.
type chainCalm struct {
	attempts []float64 // at each node, for one run of the user
	success  float64
	hedged   []float64 // share of the attempts of a layer
}

// calm follows the failures of the nodes from the bottom up. An attempt at node i succeeds with q = (1−f)·s, s that of
// the runs below, and one that fails is repeated: a run makes N = (1−c^a)/(1−c) attempts, c = 1−q, or fewer if TTL or
// deadline leave no time, and succeeds with N·q. With do-not-retry answers only what fails at the node itself is
// repeated, so that c = f. With trusted requests the attempts after the first call runs of one attempt.
func (c *Chain) calm() chainCalm {
	n := len(c.Layers)
	out := chainCalm{attempts: make([]float64, n), hedged: make([]float64, n)}
	below, once := 1.0, 1.0 // the success of a run, and of one of a single attempt
	for i, l := range slices.Backward(c.Layers) {
		succeeds := (1 - l.Failure) * below
		first := 1 - succeeds
		if c.DoNotRetry {
			first = l.Failure
		}
		repeated := first
		if once *= 1 - l.Failure; c.TrustRequests {
			repeated = 1 - once
		}
		deadline := time.Duration(0)
		if i == 0 {
			deadline = c.Deadline
		}
		n := calmAttempts(&l.Policy, l.Budget, deadline, c.work(i), first, repeated, 1-succeeds)
		if below = n * succeeds; c.TrustRequests {
			below = succeeds + (n-1)*once
		}
		out.attempts[i] = n
		out.hedged[i] = l.Hedge.calm(l.Budget, n-1, func() float64 {
			if l.Hedge.Delay < c.work(i) {
				return 1
			}
			return 0
		})
	}
	out.success = below
	runs, single := 1.0, 0.0 // of the layer, and those of one attempt
	for i, n := range out.attempts {
		runs *= 1 + out.hedged[i]
		out.attempts[i] = runs*n + single
		if passed := 1 - c.Layers[i].Failure; c.TrustRequests {
			runs, single = runs*passed, (runs*(n-1)+single)*passed
		} else {
			runs = out.attempts[i] * passed
		}
	}
	return out
}

// stormAttempts is about the number of attempts to simulate in a storm if waits are random.
const stormAttempts = 1_000_000

// storm returns the mean number of attempts at each node for one run of the user, while the bottom has trouble that does
// not end. Budgets are empty, no node fails by itself, and no attempt waits in a queue.
func (c *Chain) storm(trouble TriggerKind) ([]float64, error) {
	q := Question{Chain: *c}
	q.Chain.Layers = slices.Clone(c.Layers)
	runs, product := 1, 1
	for i := range q.Chain.Layers {
		l := &q.Chain.Layers[i]
		l.Policy.MaxAttempts = l.attempts()
		if l.Budget == nil {
			product *= l.attempts()
			if l.attempts() > 1 && (l.Policy.Effective().Jitter != retry.NoJitter || l.Policy.Wait != nil) {
				runs = randomRuns
			}
		}
	}
	runs = min(runs, max(stormAttempts/product, 1))
	front, nodes := q.nodes(1)
	front.Trigger, front.Rate, front.Clients = Trigger{}, 0, runs
	front.Duration, front.Step = maxDuration, maxDuration
	for i := range nodes {
		n := &nodes[i]
		n.Trigger, n.Server.Workers, n.Server.FailureRate = Trigger{}, 0, 0
		if n.Budget != nil {
			n.Budget = &retry.BudgetConfig{Initial: -1}
		}
	}
	nodes[0].Clients = runs
	nodes[c.bottom()].Trigger = Trigger{Kind: trouble, For: maxDuration}
	s := q.simulation(front, nodes)
	err := s.play(context.Background())
	attempts := make([]float64, len(nodes))
	for i := range nodes {
		attempts[i] = float64(s.nodes[i].sent) / float64(runs)
	}
	return attempts, err
}

// randomRuns is the number of runs to look at if their waits are random.
const randomRuns = 2048

// calmAttempts returns the number of attempts of a run if each takes the given time, the first is repeated with one
// probability and the others with another; fails is the probability that one fails. A budget of ratio r pays for
// r·(1−fails) retries an attempt; if more are asked for, these are 1/(1 − r·(1−fails)) attempts, whatever the policy
// allows.
func calmAttempts(p *retry.Policy, b *retry.BudgetConfig, deadline, takes time.Duration, first, repeated, fails float64) (n float64) {
	most := Layer{Policy: *p}
	if n = amplification(repeated, most.attempts()); (p.TTL > 0 || deadline > 0) && n > 1 {
		rnd, runs := rand.New(rand.NewPCG(1, 2)), randomRuns
		if p.Jitter == retry.NoJitter && p.Wait == nil {
			runs = 1
		}
		n = 0
		for range runs {
			n += amplification(repeated, startable(p, deadline, takes, rnd.Float64)) / float64(runs)
		}
	}
	if first != repeated {
		n = 1 + (n-1)*first/repeated
	}
	if b != nil {
		if ratio := max(b.Effective().Ratio, 0); n-1 > ratio*n*(1-fails) {
			n = 1 / (1 - ratio*(1-fails))
		}
	}
	return n
}

// startable returns the number of attempts of a run whose attempts all fail, each after the given time or its timeout.
func startable(p *retry.Policy, deadline, takes time.Duration, u func() float64) int {
	pr := retry.Progress{Deadline: deadline}
	for pr.Attempt < mostCounted {
		pr.Attempt++
		pr.Lasted = takes
		if p.AttemptTimeout > 0 {
			pr.Lasted = min(takes, p.AttemptTimeout)
		}
		pr.Elapsed = saturatingAdd(pr.Elapsed, pr.Lasted)
		d := p.Decide(pr, ErrWorkFailed, u())
		if d.Status != retry.WaitingRetry {
			break
		}
		pr.Elapsed, pr.Prev, pr.Forgiven = saturatingAdd(pr.Elapsed, d.Delay), d.Backoff, d.Forgiven
	}
	return pr.Attempt
}
