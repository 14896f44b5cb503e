package retryplan

import (
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
	// with empty budgets and without what Trickle grants. At most 1,000 attempts of a run of one layer are counted, even
	// if the policy has no limit.
	Outage, Hang float64
	// Stored is the number of tokens in all budgets of the layer when they are full. If every layer has a budget, an
	// outage costs the bottom no more than the sum of all of them beside the runs: a sum, not a product.
	Stored float64
}

// Loads returns the number of attempts that reach each node, the bottom last, and the share of runs that succeed in a
// calm. It counts; only waits with jitter are sampled, from a fixed seed.
//
// Errors are retry.FieldErrors: each field that is out of its range, including those of Policy.Validate.
func (c Chain) Loads() (nodes []NodeLoad, success float64, err error) {
	var bad retry.FieldErrors
	if c.validate(&bad); bad.Err() != nil {
		return nil, 0, bad.Err()
	}
	calm, outage, hang := c.calm(), c.storm(c.bottom(), false), c.storm(c.bottom(), true)
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
	succeeds []float64 // probability that an attempt of a layer succeeds
	hedged   []float64 // share of its attempts
}

// calm follows the failures of the nodes from the bottom up. An attempt at node i succeeds with q = (1−f)·s, s that of
// the runs below, and one that fails is repeated: a run makes N = (1−c^a)/(1−c) attempts, c = 1−q, or fewer if TTL or
// deadline leave no time, and succeeds with N·q. With do-not-retry answers only what fails at the node itself is
// repeated, so that c = f. With trusted requests the attempts after the first call runs of one attempt.
func (c *Chain) calm() chainCalm {
	n := len(c.Layers)
	out := chainCalm{attempts: make([]float64, n), succeeds: make([]float64, n), hedged: make([]float64, n)}
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
		out.attempts[i], out.succeeds[i] = n, below/n
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

// chainPlays is the number of attempts to play if waits are random.
const chainPlays = 1_000_000

// storm returns the mean number of attempts at each node down to the given one, for one run of the user, while all
// attempts at that node fail: it hangs, or refuses at once. Budgets are empty.
func (c *Chain) storm(node int, hangs bool) []float64 {
	plays, product := 1, 1
	for i := range c.Layers[:node+1] {
		if l := &c.Layers[i]; l.Budget == nil {
			product *= l.attempts()
			if l.Hedge.Share > 0 || l.attempts() > 1 && (l.Policy.Effective().Jitter != retry.NoJitter || l.Policy.Wait != nil) {
				plays = stormRuns
			}
		}
	}
	plays = min(plays, max(chainPlays/product, 4))
	rnd := rand.New(rand.NewPCG(1, 2))
	p := &chainPlay{chain: c, node: node, hangs: hangs, u: rnd.Float64, counts: make([]int, node+1)}
	cut := maxDuration
	if c.Deadline > 0 {
		cut = c.Deadline
	}
	for range plays {
		p.run(0, 0, cut, false)
	}
	attempts := make([]float64, node+1)
	for i, n := range p.counts {
		attempts[i] = float64(n) / float64(plays)
	}
	return attempts
}

// chainPlay plays one run after the other.
type chainPlay struct {
	chain  *Chain
	node   int
	hangs  bool
	u      func() float64
	counts []int
}

// run plays a run of a layer, or its first attempt only, which is cut short at the given time, and returns the time at
// which it ends; the largest Duration means never.
func (p *chainPlay) run(i int, begins, cut time.Duration, once bool) time.Duration {
	l := &p.chain.Layers[i]
	pr := retry.Progress{}
	if cut < maxDuration {
		pr.Deadline = cut - begins
	}
	for {
		pr.Attempt++
		starts := saturatingAdd(begins, pr.Elapsed)
		giveUp := min(cut, attemptEnds(&l.Policy, 0, starts))
		p.counts[i]++
		again := p.chain.TrustRequests && (once || pr.Attempt > 1)
		ends, err := p.hedged(i, starts, giveUp, p.answered(i, starts, giveUp, again), once, again), ErrWorkFailed
		if p.chain.DoNotRetry && i < p.chain.bottom() && !again {
			err = retry.Permanent(err)
		}
		if ends >= giveUp {
			ends, err = giveUp, retry.ErrAttemptTimeout
		}
		if ends == cut {
			return cut
		}
		pr.Elapsed, pr.Lasted = ends-begins, ends-starts
		if pr.Attempt == mostCounted || l.Budget != nil || once {
			return ends
		}
		d := l.Policy.Decide(pr, err, p.u())
		if d.Status != retry.WaitingRetry {
			return ends
		}
		pr.Elapsed, pr.Prev, pr.Forgiven = saturatingAdd(pr.Elapsed, d.Delay), d.Backoff, d.Forgiven
	}
}

// answered returns the time at which a node answers an attempt with an error; the largest Duration means never.
func (p *chainPlay) answered(i int, starts, giveUp time.Duration, again bool) time.Duration {
	if i == p.node {
		if p.hangs {
			return maxDuration
		}
		return starts
	}
	calls := saturatingAdd(starts, p.chain.Layers[i].service())
	switch {
	case !p.chain.PassOn:
		return p.run(i+1, calls, maxDuration, again)
	case calls < giveUp:
		return p.run(i+1, calls, giveUp, again)
	default:
		return maxDuration
	}
}

// stormRuns is the number of runs to play through if their waits are random.
const stormRuns = 2048

// calmAttempts returns the number of attempts of a run if each takes the given time, the first is repeated with one
// probability and the others with another; fails is the probability that one fails. A budget of ratio r pays for
// r·(1−fails) retries an attempt; if more are asked for, these are 1/(1 − r·(1−fails)) attempts, whatever the policy
// allows.
func calmAttempts(p *retry.Policy, b *retry.BudgetConfig, deadline, takes time.Duration, first, repeated, fails float64) (n float64) {
	most := Layer{Policy: *p}
	if n = amplification(repeated, most.attempts()); (p.TTL > 0 || deadline > 0) && n > 1 {
		rnd, runs := rand.New(rand.NewPCG(1, 2)), stormRuns
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
		begins := pr.Elapsed
		ends := min(attemptEnds(p, deadline, begins), saturatingAdd(begins, takes))
		pr.Elapsed, pr.Lasted = ends, ends-begins
		d := p.Decide(pr, ErrWorkFailed, u())
		if d.Status != retry.WaitingRetry {
			break
		}
		pr.Elapsed, pr.Prev, pr.Forgiven = saturatingAdd(pr.Elapsed, d.Delay), d.Backoff, d.Forgiven
	}
	return pr.Attempt
}

// attemptEnds returns the time at which a client gives up an attempt that begins at the given time; the largest Duration
// means never.
func attemptEnds(p *retry.Policy, deadline, begins time.Duration) time.Duration {
	ends := maxDuration
	if p.AttemptTimeout > 0 {
		ends = saturatingAdd(begins, p.AttemptTimeout)
	}
	if deadline > 0 {
		ends = min(ends, deadline)
	}
	return ends
}
