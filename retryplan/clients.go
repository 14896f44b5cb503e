package retryplan

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrygo/retry"
)

// simClient is what a client keeps between its attempts, beside a budget.
type simClient struct {
	breaker  *simBreaker
	throttle Throttle
}

// clients is what all clients of a node share, and what each has of its own.
type clients struct {
	*Scenario
	policies []retry.Policy  // the scenario's, or with Delay one that waits for delay, and then those of Others
	delay    []time.Duration // one: what Delay gave
	choice   *rand.Rand      // of clients
	network  sampler
	jitter   *rand.Rand
	kinds    *rand.Rand // of runs, with Others
	draws    bool       // a number is drawn for each delay
	breaker  Breaker
	each     []simClient // nil without Breaker and Throttle
	// budgets is nil without Budget. It is apart from each, which is asked at every start and end of an attempt, since
	// with a million clients each look is one at memory outside of the processor's cache.
	budgets  []*retry.Budget
	tokens   int64   // millionths in all budgets
	mask     uint32  // of a client's number: 0 if all share what they have
	closings []int64 // when the open breakers stop being open, in order
}

func newClients(s *Scenario) clients {
	c := clients{
		Scenario: s,
		choice:   newStream(s.Seed, clientStream),
		network:  newSampler(s.Network, newStream(s.Seed, networkStream)),
		jitter:   newStream(s.Seed, jitterStream),
		kinds:    newStream(s.Seed, populationStream),
		draws:    s.Delay != nil,
		policies: []retry.Policy{s.Policy},
	}
	if !s.Shared {
		c.mask = math.MaxUint32
	}
	for _, o := range s.Others {
		c.policies = append(c.policies, o.Policy)
	}
	for i := range c.policies {
		p := &c.policies[i]
		p.Rand, p.Observe = nil, nil
		c.draws = c.draws || p.Jitter != retry.NoJitter
	}
	if s.Delay != nil {
		p := &c.policies[0]
		p.MaxAttempts = s.Policy.Effective().MaxAttempts
		c.delay = make([]time.Duration, 1)
		p.Backoff = retry.Backoff{Mode: retry.List, Delays: c.delay}
	}
	if s.Breaker != nil {
		c.breaker = s.Breaker.withDefaults()
	}
	if s.Breaker != nil || s.Throttle != nil {
		c.each = make([]simClient, s.mechanisms())
	}
	if s.Budget != nil {
		c.budgets = make([]*retry.Budget, s.mechanisms())
		c.tokens = millionths(retry.NewBudgetAt(*s.Budget, simulationStart)) * int64(len(c.budgets))
	}
	return c
}

// simulationStart is time 0 for a Budget. Any instant would do.
var simulationStart = time.Unix(0, 0).UTC()

// millionths returns the tokens of a budget in the unit in which it counts.
func millionths(b *retry.Budget) int64 { return int64(math.Round(b.Tokens() * 1e6)) }

// of returns the state of a client, or nil if it has none.
func (c *clients) of(client uint32) *simClient {
	if c.each == nil {
		return nil
	}
	k := &c.each[client&c.mask]
	if c.Breaker != nil && k.breaker == nil {
		k.breaker = new(simBreaker)
	}
	if c.Throttle != nil && k.throttle == nil {
		k.throttle = c.Throttle()
	}
	return k
}

// budget returns that of a client. There must be one.
func (c *clients) budget(client uint32) *retry.Budget {
	client &= c.mask
	if c.budgets[client] == nil {
		c.budgets[client] = retry.NewBudgetAt(*c.Budget, simulationStart)
	}
	return c.budgets[client]
}

// touch reads the budget of a client: see simulation.touch.
func (c *clients) touch(client uint32) (tokens float64) {
	if c.budgets != nil && c.budgets[client&c.mask] != nil {
		tokens = c.budgets[client&c.mask].Tokens()
	}
	return tokens
}

// pick returns the client of a run that begins.
func (c *clients) pick() uint32 { return uint32(c.choice.Uint64N(uint64(c.Clients))) }

// meanTokens returns the mean over all budgets, or 0 if there are none.
func (c *clients) meanTokens() float64 {
	return float64(c.tokens) / 1e6 / float64(max(len(c.budgets), 1))
}

// choose returns the policy of a run that begins.
func (c *clients) choose() uint8 {
	u := c.kinds.Float64()
	for i, o := range c.Others {
		if u -= o.Share; u < 0 {
			return uint8(i + 1)
		}
	}
	return 0
}

// openBreakers returns how many breakers are open.
func (c *clients) openBreakers(now int64) int {
	for len(c.closings) > 0 && c.closings[0] <= now {
		c.closings = c.closings[1:]
	}
	return len(c.closings)
}

// draw returns the random number for the delay after an attempt that has just failed, and lets Delay compute that.
func (c *clients) draw(attempt int, prev time.Duration) (u float64) {
	if c.draws {
		u = c.jitter.Float64()
	}
	if c.Delay != nil {
		c.delay[0] = c.Delay(attempt, prev, u)
	}
	return u
}
