package retryplan

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// clients is what all clients of a node share, and what each has of its own.
type clients struct {
	*Scenario
	policy   retry.Policy // the scenario's, without Rand and Observe
	choice   *rand.Rand   // of clients
	network  sampler
	jitter   *rand.Rand
	budgets  []*retry.Budget       // nil without Budget
	trackers []*retryhedge.Tracker // nil without Hedge.Share
	tokens   int64                 // millionths in all budgets
}

func newClients(s *Scenario) clients {
	c := clients{
		Scenario: s,
		choice:   newStream(s.Seed, clientStream),
		network:  newSampler(s.Network, newStream(s.Seed, networkStream)),
		jitter:   newStream(s.Seed, jitterStream),
		policy:   s.Policy,
	}
	c.policy.Rand, c.policy.Observe = nil, nil
	each := s.Clients
	if s.Shared {
		each = 1
	}
	if s.Hedge.Share > 0 {
		c.trackers = make([]*retryhedge.Tracker, each)
	}
	if s.Budget != nil {
		c.budgets = make([]*retry.Budget, each)
		c.tokens = millionths(s.Budget.NewAt(simulationStart)) * int64(each)
	}
	return c
}

// simulationStart is time 0 for a Budget. Any instant would do.
var simulationStart = time.Unix(0, 0).UTC()

// millionths returns the tokens of a budget in the unit in which it counts.
func millionths(b *retry.Budget) int64 { return int64(math.Round(b.Tokens() * 1e6)) }

// pay calls do with the budget of a client, if there is one.
func (c *clients) pay(client uint32, do func(b *retry.Budget)) {
	if c.budgets == nil {
		return
	}
	if c.budgets[client] == nil {
		c.budgets[client] = c.Budget.NewAt(simulationStart)
	}
	b := c.budgets[client]
	before := millionths(b)
	do(b)
	c.tokens += millionths(b) - before
}

// pick returns the client of a run that begins.
func (c *clients) pick() uint32 { return uint32(c.choice.Uint64N(uint64(c.Clients))) }

// meanTokens returns the mean over all budgets, or 0 if there are none.
func (c *clients) meanTokens() float64 {
	return float64(c.tokens) / 1e6 / float64(max(len(c.budgets), 1))
}
