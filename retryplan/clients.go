package retryplan

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrygo/retry"
)

// simClient is what a client keeps between its runs.
type simClient struct {
	budget   *retry.Budget
	breaker  *simBreaker
	throttle Throttle
	known    bool
}

// clients is what all clients share, and what each has of its own.
type clients struct {
	*Scenario
	policies []retry.Policy   // the scenario's, or with Delay one that waits for delay, and then those of Others
	delay    [1]time.Duration // what Delay gave
	jitter   *rand.Rand
	kinds    *rand.Rand // of runs, with Others
	draws    bool       // a number is drawn for each delay
	breaker  Breaker
	each     []simClient // empty where clients keep nothing
	budgets  int         // that there are
	full     int64       // millionths of a token in a new budget
	tokens   int64       // millionths in all budgets
	closings ring[int64] // when the open breakers stop being open, in order
}

func newClients(s *Scenario) *clients {
	c := &clients{Scenario: s, jitter: newStream(s.Seed, jitterStream), kinds: newStream(s.Seed, populationStream)}
	c.draws = s.Delay != nil
	c.policies = append(c.policies, s.Policy)
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
		p.Backoff = retry.Backoff{Mode: retry.List, Delays: c.delay[:]}
	}
	if s.Breaker != nil {
		c.breaker = s.Breaker.withDefaults()
	}
	if s.Budget != nil || s.Breaker != nil || s.Throttle != nil {
		c.each = make([]simClient, s.mechanisms())
	}
	if s.Budget != nil {
		c.budgets = len(c.each)
		c.full = millionths(retry.NewBudgetAt(*s.Budget, simulationStart))
		c.tokens = c.full * int64(c.budgets)
	}
	return c
}

// simulationStart is time 0 for a Budget. Any instant would do.
var simulationStart = time.Unix(0, 0).UTC()

// millionths returns the tokens of a budget in the unit in which it counts.
func millionths(b *retry.Budget) int64 { return int64(math.Round(b.Tokens() * 1e6)) }

// of returns what a client keeps, nil where that is nothing.
func (c *clients) of(client uint32) *simClient {
	if len(c.each) == 0 {
		return nil
	}
	if c.Shared {
		client = 0
	}
	k := &c.each[client]
	if !k.known {
		k.known = true
		if c.Budget != nil {
			k.budget = retry.NewBudgetAt(*c.Budget, simulationStart)
		}
		if c.Breaker != nil {
			k.breaker = new(simBreaker)
		}
		if c.Throttle != nil {
			k.throttle = c.Throttle()
		}
	}
	return k
}

// meanTokens returns the mean over all budgets, 0 where there are none.
func (c *clients) meanTokens() float64 {
	if c.budgets == 0 {
		return 0
	}
	return float64(c.tokens) / 1e6 / float64(c.budgets)
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
	for c.closings.n > 0 && *c.closings.first() <= now {
		c.closings.pop()
	}
	return c.closings.n
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
