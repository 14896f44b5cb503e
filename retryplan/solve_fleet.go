package retryplan

import (
	"fmt"

	"github.com/retrygo/retry"
)

// fleetFit is how the fleet fares with a policy.
type fleetFit struct {
	budget *retry.BudgetConfig
	margin float64
	binds  bool
	why    shortfall
}

// shortfall says how near a policy came for the fleet.
type shortfall struct {
	refused   howFar
	load      float64 // attempts a run at Failure
	stability Stability
	attempts  float64
}

// howFar is what a policy failed by, the later the nearer to what is required.
type howFar uint8

const (
	refusedUnseen howFar = iota
	refusedLoad          // the backend does not bear the attempts at Failure
	refusedStability
	refusedBudget // the fleet's own does not pay for the retries at Failure
	accepted
)

// survives reports whether the fleet fares well with an option, and gives the option the budget it needs: the fleet's
// own, or none or, if that does not suffice, one that pays for the retries at Failure and a tenth more.
func (s *solver) survives(o *option) bool {
	k := keyOf(&o.policy)
	v, ok := s.fleets[k]
	if !ok {
		if s.over() {
			return false
		}
		v = s.fits(o)
		s.fleets[k] = v
	}
	if v.why.refused != accepted {
		if v.why.refused > s.refused.refused || v.why.refused == s.refused.refused && v.why.load < s.refused.load {
			s.refused = v.why
		}
		return false
	}
	o.budget, o.margin, o.binds = v.budget, v.margin, v.binds
	return true
}

func (s *solver) fits(o *option) (v fleetFit) {
	target := *s.r.Fleet
	v.why = shortfall{refused: refusedLoad, load: o.load}
	if target.Rate*o.load >= target.Capacity {
		return v
	}
	try := func(b *retry.BudgetConfig) bool {
		target.Budget = b
		c := newCertifier(o.policy, target)
		c.work /= 4
		given := c.work
		defer func() { s.effort -= 1 + (given-c.work)/workPerEffort }()
		found := c.find(change{rate: 1, trigger: 1})
		switch {
		case !found.stability.Survives():
			if v.why.refused < refusedStability {
				v.why.refused, v.why.stability, v.why.attempts = refusedStability, found.stability, c.attempts(1)
			}
		case !s.pays(b, o):
			v.why.refused = max(v.why.refused, refusedBudget)
		default:
			margin := c.margin(found)
			v = fleetFit{budget: b, margin: margin, binds: o.policy.MaxAttempts > 1 && found.law != NoTimeout && margin < 1-target.Rate/target.Capacity-1./32, why: shortfall{refused: accepted}}
		}
		return v.why.refused == accepted && v.margin >= 0.05 // otherwise chance may decide
	}
	if own := s.r.Fleet.Budget; own != nil || o.policy.MaxAttempts == 1 {
		try(own)
	} else if !try(nil) {
		for _, ratio := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10} {
			if b := (&retry.BudgetConfig{Ratio: ratio}); s.pays(b, o) {
				try(b)
				break
			}
		}
	}
	return v
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

// aloneFleet says why no policy does for the fleet, whatever else is required.
func (s *solver) aloneFleet() string {
	f := s.r.Fleet
	switch {
	case f.Rate >= f.Capacity:
		return fmt.Sprintf("its Rate of %s runs a second is not below its Capacity of %s, whatever the policy", plainNumber(f.Rate), plainNumber(f.Capacity))
	case f.Deadline > 0 && f.service() >= f.Deadline:
		return fmt.Sprintf("one attempt takes its backend %v, and its Deadline of %v leaves no more, so that none succeeds whatever the policy",
			f.service(), f.Deadline)
	default:
		return s.refusedFleet()
	}
}

// refusedFleet says why the last search found the fleet to fare badly, of those policies that came nearest.
func (s *solver) refusedFleet() string {
	f, why := s.r.Fleet, s.refused
	switch why.refused {
	case refusedBudget:
		return fmt.Sprintf("its Budget gives %s tokens a run and does not pay for the %s retries that runs make at Failure %s, with a tenth to spare",
			plainNumber(s.income(f.Budget, 1)), figure(why.load-1), plainNumber(s.r.Failure))
	case refusedStability:
		return fmt.Sprintf("it is %v: if all attempts fail, runs make %s attempts, and %s runs a second are more than a Capacity of %s serves then",
			why.stability, figure(why.attempts), plainNumber(f.Rate), plainNumber(f.Capacity))
	case refusedLoad:
		return fmt.Sprintf("at Failure %s runs make %s attempts, and its Capacity of %s does not bear %s runs a second of them",
			plainNumber(s.r.Failure), figure(why.load), plainNumber(f.Capacity), plainNumber(f.Rate))
	default:
		return "no policy of the family does both"
	}
}
