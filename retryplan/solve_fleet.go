package retryplan

import (
	"fmt"

	"github.com/retrygo/retry"
)

// fit is how the fleet fares with a policy.
type fit struct {
	budget      *retry.BudgetConfig // the fleet's own, or none, or one that the policy needs
	certificate Certificate
	binds       bool   // retries lower the Margin below what Capacity above Rate leaves to any policy, as far as it is exact
	refused     string // why it fares badly
}

// fitOf returns the fit without a budget unless the fleet has one, or with the smallest round one that pays for the
// retries if the fleet then fares better.
func (s *search) fitOf(o *option) fit {
	f := s.fleet
	first := s.fitWith(o, f.Budget)
	if f.Budget != nil || o.attempts == 1 || first.certificate.Margin >= chancy {
		return first
	}
	for _, ratio := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10} {
		if b := (&retry.BudgetConfig{Ratio: ratio}); s.pays(b, o) {
			if funded := s.fitWith(o, b); funded.refused == "" {
				return funded
			}
			break
		}
	}
	return first
}

// fitWith returns how the fleet fares with a budget.
func (s *search) fitWith(o *option, b *retry.BudgetConfig) fit {
	f := *s.fleet
	f.Budget = b
	if f.Rate*o.figures["Load"] >= f.Capacity {
		return fit{refused: fmt.Sprintf("at Failure %s its %s runs a second make %s attempts each, and its Capacity is %s",
			plainNumber(s.required.Failure), plainNumber(f.Rate), figure(o.figures["Load"]), plainNumber(f.Capacity))}
	}
	c := newCertifier(o.policy(), f)
	found := c.find(change{rate: 1, trigger: 1})
	switch {
	case !found.stability.Survives():
		return fit{refused: fmt.Sprintf("with %v, it is %v by the law %v", o.policy(), found.stability, found.law)}
	case !s.pays(b, o):
		return fit{refused: fmt.Sprintf("its Budget does not pay for the %s retries of a run at Failure %s, with a tenth to spare",
			figure(o.figures["Load"]-1), plainNumber(s.required.Failure))}
	}
	got, spare := c.certificate(found), 1-f.Rate/f.Capacity
	return fit{budget: b, certificate: got, binds: o.attempts > 1 && got.Law != NoTimeout && got.Margin < spare-1./32}
}

// pays reports whether a budget pays for the retries of runs outside a storm, with a tenth to spare: each run gives it
// Ratio·success tokens and what Trickle grants between two runs.
func (s *search) pays(b *retry.BudgetConfig, o *option) bool {
	if b == nil {
		return true
	}
	ratio, _, _ := budgetFigures(*b)
	income := ratio * o.figures["Success"]
	if b.Trickle > 0 {
		purses := 1.0
		if !s.fleet.Shared {
			purses = float64(s.fleet.clients())
		}
		income += purses / b.Trickle.Seconds() / s.fleet.Rate
	}
	return income >= 1.1*(o.figures["Load"]-1)-rounding
}
