package retryplan

import (
	"math"

	"github.com/retrygo/retry"
)

// maxLevels is how many levels of a budget are distinguished. Measured as stepsPerTimeout: with 16 all of 848 fleets agreed.
const maxLevels = 64

// purse is all budgets of a fleet as the fluid sees them: how many clients have how many tokens. Runs meet clients at
// random, so that a few empty budgets refuse while others are full.
type purse struct {
	clients float64
	unit    float64   // tokens from one level to the next
	ratio   float64   // tokens for one success
	levels  []float64 // share of the clients at level 0, 1, ...; nil if there is one budget
	tokens  float64   // of the one budget, if there is one
	burst   float64
	trickle float64 // seconds, 0 for none
	granted int     // periods of trickle that have ended
	fresh   float64 // what the last period granted to one budget and no run has taken
}

// newPurse returns the budgets of a fleet after a long calm in which attempts fail with a probability: full if that is
// 0, unless successes do not fund them. A nil c gives nil, which pays for everything.
func newPurse(c *retry.BudgetConfig, clients int, shared bool, failure float64) *purse {
	if c == nil {
		return nil
	}
	ratio, burst, initial := budgetFigures(*c)
	p := &purse{clients: float64(clients), unit: 1, ratio: ratio, burst: burst, trickle: max(c.Trickle, 0).Seconds()}
	if shared {
		p.clients = 1
	}
	level := initial
	if ratio > 0 {
		level = meanLevel(ratio, burst, failure)
	}
	if p.clients == 1 {
		p.tokens = level
		return p
	}
	if burst > maxLevels {
		p.unit = burst / maxLevels
	}
	p.levels = make([]float64, int(math.Round(burst/p.unit))+1)
	p.levels[min(int(level/p.unit), len(p.levels)-1)] = 1
	return p
}

// meanLevel returns the mean number of tokens of a budget to which a success adds ratio and from which a failure takes
// 1, between 0 and burst. It takes the walk of the level for a Brownian motion with drift m and variance σ² an attempt
// between two reflecting barriers, whose density is proportional to exp(2mx/σ²) (Harrison, "Brownian Motion and
// Stochastic Flow Systems", 1985, chapter 5).
func meanLevel(ratio, burst, failure float64) float64 {
	if failure == 0 {
		return burst
	}
	k := 2 * (ratio*(1-failure) - failure) / (ratio*ratio*(1-failure) + failure)
	x := k * burst
	if math.Abs(x) < 1e-3 {
		return burst / 2
	}
	return min(max(burst/(1-exp(-x))-1/k, 0), burst)
}

// budgetFigures returns what is in force of c.
func budgetFigures(c retry.BudgetConfig) (ratio, burst, initial float64) {
	c = c.Effective()
	return max(c.Ratio, 0), float64(c.Burst), float64(max(c.Initial, 0))
}

// stored returns how many tokens there are in all.
func (p *purse) stored() float64 {
	if p == nil {
		return math.Inf(1)
	}
	if p.levels == nil {
		return p.tokens
	}
	sum := 0.0
	for i, share := range p.levels {
		sum += float64(float64(i) * share)
	}
	return sum * p.unit * p.clients
}

// at grants what Trickle gives by the given second.
func (p *purse) at(now float64) {
	if p == nil || p.trickle == 0 {
		return
	}
	periods := int(now / p.trickle)
	if periods == p.granted {
		return
	}
	p.granted = periods
	if p.levels == nil {
		p.fresh = 0
		if p.tokens < 1 {
			p.fresh = 1
		}
		return
	}
	// With units above one token the grant is a part of a level.
	share := p.levels[0] / p.unit
	p.levels[0] -= share
	p.levels[1] += share
}

// withdraw pays for as many of the wanted retries as there are tokens for, and returns how many these are.
func (p *purse) withdraw(wanted float64) float64 {
	if p == nil || wanted == 0 {
		return wanted
	}
	if p.levels == nil {
		paid := min(wanted, p.tokens)
		p.tokens -= paid
		extra := min(wanted-paid, p.fresh)
		p.fresh -= extra
		return paid + extra
	}
	move := min(wanted/(p.clients*p.unit), 1)
	paid := wanted * (1 - p.levels[0])
	for i := 1; i < len(p.levels); i++ {
		down := p.levels[i] * move
		p.levels[i] -= down
		p.levels[i-1] += down
	}
	return paid
}

// deposit adds what the given number of successes is worth.
func (p *purse) deposit(successes float64) {
	if p == nil || successes == 0 || p.ratio == 0 {
		return
	}
	if p.levels == nil {
		p.tokens = min(p.tokens+float64(successes*p.ratio), p.burst)
		return
	}
	move := min(successes*p.ratio/(p.clients*p.unit), 1)
	for i := len(p.levels) - 1; i > 0; i-- {
		up := p.levels[i-1] * move
		p.levels[i-1] -= up
		p.levels[i] += up
	}
}
