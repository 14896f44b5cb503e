package retryplan

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

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
		n := calmAttempts(&l.Policy, l.Budget, deadline, inNanoseconds(c.work(i)), first, repeated, 1-succeeds)
		if below = n * succeeds; c.TrustRequests {
			below = succeeds + (n-1)*once
		}
		out.attempts[i], out.succeeds[i] = n, below/n
		out.hedged[i] = l.Hedge.calm(l.Budget, n-1, func() float64 {
			if l.Hedge.Delay.Seconds() < c.work(i) {
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

// chainStorm is the load of runs whose attempts at one node all fail, by the policies' own Decide.
type chainStorm struct {
	attempts []float64       // at each node down to that one, for one run of the user
	starts   []time.Duration // of the attempts at the node that is watched, from the start of the run, in order
	plays    int             // runs to which these starts belong
}

// storm returns s as the storm of a fluid in which each run makes calm attempts at the node that is watched. If the
// first attempt fails, the run sends all of the others at their times.
func (s *chainStorm) storm(calm, timeout float64) *storm {
	first := stage{timeout: timeout, goes: max(float64(len(s.starts))/float64(s.plays)/calm-1, 0)}
	var waits []float64
	for _, start := range s.starts[min(s.plays, len(s.starts)):] {
		waits = append(waits, max((start-s.starts[0]).Seconds()-timeout, 0))
	}
	first.waits = pieces(waits)
	return &storm{attempts: 1 + first.goes, stages: []stage{first, {timeout: timeout}}, timeout: timeout}
}

// chainPlays is the number of attempts to play if waits are random.
const chainPlays = 1_000_000

// storm plays runs whose attempts at a node all fail: the node hangs, or refuses at once. Budgets are empty. One node,
// this one or one above it, is watched.
func (c *Chain) storm(node, watched int, hangs bool) chainStorm {
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
	p := &chainPlay{chain: c, node: node, watched: watched, hangs: hangs, u: rnd.Float64, counts: make([]int, node+1)}
	out := chainStorm{attempts: make([]float64, node+1), plays: plays}
	cut := maxDuration
	if c.Deadline > 0 {
		cut = c.Deadline
	}
	for range plays {
		p.run(0, 0, cut, false)
	}
	for i, n := range p.counts {
		out.attempts[i] = float64(n) / float64(plays)
	}
	slices.Sort(p.starts)
	out.starts = p.starts
	return out
}

// chainPlay plays one run after the other.
type chainPlay struct {
	chain   *Chain
	node    int
	watched int
	hangs   bool
	u       func() float64
	counts  []int
	starts  []time.Duration
}

// run plays a run of a layer, or its first attempt only, which is cut short at the given time, and returns when it ends;
// the largest Duration means never.
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
		p.count(i, starts)
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
		if pr.Attempt == maxStormAttempts || l.Budget != nil || once {
			return ends
		}
		d := l.Policy.Decide(pr, err, p.u())
		if d.Status != retry.WaitingRetry {
			return ends
		}
		pr.Elapsed, pr.Prev, pr.Forgiven = saturatingAdd(pr.Elapsed, d.Delay), d.Backoff, d.Forgiven
	}
}

// count counts a call of a layer.
func (p *chainPlay) count(i int, starts time.Duration) {
	p.counts[i]++
	if i == p.watched {
		p.starts = append(p.starts, starts)
	}
}

// answered returns when a node answers an attempt with an error; the largest Duration means never.
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
