package retryplan

import (
	"fmt"

	"github.com/retrygo/retry"
)

// fit is how the fleet fares with a policy.
type fit struct {
	budget      *retry.BudgetConfig // that it needs: the fleet's own, or none or, if that does not suffice, one that pays
	certificate Certificate
	binds       bool   // retries make the Margin less, as far as it is exact, than Capacity above Rate leaves to any policy
	refused     string // why it fares badly
}

// survives reports whether the fleet fares well with an option, and gives the option its fit.
func (s *search) survives(o *option) bool {
	v, ok := s.fits[o.member]
	if !ok {
		if s.over() {
			return false
		}
		v = s.fitOf(o)
		s.fits[o.member] = v
	}
	o.fit = v
	if v.refused != "" && o.load < s.fewest {
		s.refused, s.fewest = v.refused, o.load
	}
	return v.refused == ""
}

func (s *solver) fitOf(o *option) fit {
	f := s.r.Fleet
	if f.Rate*o.load >= f.Capacity {
		return fit{refused: fmt.Sprintf("at Failure %s runs make %s attempts, and its Capacity of %s does not bear %s runs a second of them",
			plainNumber(s.r.Failure), figure(o.load), plainNumber(f.Capacity), plainNumber(f.Rate))}
	}
	first := s.fitWith(o, f.Budget)
	if f.Budget != nil || o.attempts == 1 || first.certificate.Margin >= 0.05 { // otherwise chance may decide
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

// fitWith returns how the fleet, whose backend bears the load, fares with a budget.
func (s *solver) fitWith(o *option, b *retry.BudgetConfig) fit {
	f := *s.r.Fleet
	f.Budget = b
	c := newCertifier(o.policy(), f)
	defer func() { s.effort -= 1 + (allWork-c.work)/workPerEffort }()
	switch found := c.find(change{rate: 1, trigger: 1}); {
	case found.law == SlowService:
		return fit{refused: fmt.Sprintf("one attempt takes its backend %v, and its Deadline of %v leaves no more, so that none succeeds whatever the policy",
			f.service(), f.Deadline)}
	case !found.stability.Survives():
		return fit{refused: fmt.Sprintf("it is %v: if all attempts fail, runs make %s attempts, and %s runs a second are more than a Capacity of %s serves then",
			found.stability, figure(c.attempts(1)), plainNumber(f.Rate), plainNumber(f.Capacity))}
	case !s.pays(b, o):
		return fit{refused: fmt.Sprintf("its Budget gives %s tokens a run and does not pay for the %s retries that runs make at Failure %s, with a tenth to spare",
			plainNumber(s.income(b, 1)), figure(o.load-1), plainNumber(s.r.Failure))}
	default:
		got, spare := c.certificate(found), 1-f.Rate/f.Capacity
		return fit{budget: b, certificate: got, binds: o.attempts > 1 && got.Law != NoTimeout && got.Margin < spare-1./32}
	}
}

// pays reports whether a budget pays for the retries of runs outside a storm, with a tenth to spare.
func (s *solver) pays(b *retry.BudgetConfig, o *option) bool {
	return b == nil || s.income(b, o.success) >= 1.1*(o.load-1)-1e-12
}

// income returns how many tokens a budget is given for a run: ratio·success, and Trickle's.
func (s *solver) income(b *retry.BudgetConfig, success float64) float64 {
	ratio, _, _ := budgetFigures(*b)
	income := ratio * success
	if b.Trickle > 0 {
		purses := 1.0
		if !s.r.Fleet.Shared {
			purses = float64(s.r.Fleet.clients())
		}
		income += purses / b.Trickle.Seconds() / s.r.Fleet.Rate
	}
	return income
}
