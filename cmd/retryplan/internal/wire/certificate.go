package wire

import (
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// Fleet is what a certificate is about.
type Fleet struct {
	Rate     float64  `json:"rate"`
	Capacity float64  `json:"capacity"`
	Workers  int      `json:"workers,omitzero"`
	Clients  int      `json:"clients,omitzero"`
	Budget   *Budget  `json:"budget,omitempty"`
	Shared   bool     `json:"shared,omitzero"`
	Deadline Duration `json:"deadline,omitzero"`
	Failure  float64  `json:"failure_rate,omitzero"`
	Trigger  Trigger  `json:"trigger,omitzero"` // from is not used; none is none

	Others []Population `json:"others,omitempty"`
}

// Fleet returns f as retryplan has it.
func (f Fleet) Fleet() (retryplan.Fleet, error) {
	var bad retry.FieldErrors
	var trigger retryplan.Trigger
	if f.Trigger.Kind != "" {
		var err error
		trigger, err = f.Trigger.Trigger()
		bad.Append(err)
	}
	others := populations(f.Others, &bad)
	return retryplan.Fleet{
		Rate: f.Rate, Capacity: f.Capacity, Workers: f.Workers, Clients: f.Clients, Budget: f.Budget.Config(), Shared: f.Shared,
		Deadline: time.Duration(f.Deadline), Failure: f.Failure, Others: others, Trigger: trigger,
	}, bad.Err()
}

// Certificate says whether a fleet survives its trigger.
type Certificate struct {
	Stability       string   `json:"verdict"` // safe, vulnerable, metastable, overloaded
	Law             string   `json:"law"`
	Attempts        Number   `json:"attempts"` // null: without bound
	HiddenCapacity  Number   `json:"hidden_capacity"`
	RecoverySeconds *float64 `json:"recovery_seconds"` // null: never
	TippingSeconds  *float64 `json:"tipping_seconds"`  // null: no length does
	Margin          Number   `json:"margin"`
}

// NewCertificate returns c as data.
func NewCertificate(c *retryplan.Certificate) Certificate {
	return Certificate{
		c.Stability.String(), c.Law.String(), Number(c.Attempts), Number(c.HiddenCapacity), never(c.Recovery), never(c.Tipping), Number(c.Margin),
	}
}

// Requirements are what a policy has to do.
type Requirements struct {
	Failure   float64        `json:"failure,omitzero"`
	Duration  retryplan.Dist `json:"duration,omitzero"`
	Outage    Duration       `json:"outage,omitzero"`
	Success   float64        `json:"success,omitzero"`
	P99       Duration       `json:"p99,omitzero"`
	WorstCase Duration       `json:"worst_case,omitzero"`
	Load      float64        `json:"load,omitzero"`
	Fleet     *Fleet         `json:"fleet,omitempty"`
}

// Requirements returns r as retryplan has it.
func (r Requirements) Requirements() (retryplan.Requirements, error) {
	required := retryplan.Requirements{
		Failure: r.Failure, Duration: r.Duration, Outage: time.Duration(r.Outage), Success: r.Success, P99: time.Duration(r.P99),
		WorstCase: time.Duration(r.WorstCase), Load: r.Load,
	}
	if r.Fleet == nil {
		return required, nil
	}
	fleet, err := r.Fleet.Fleet()
	required.Fleet = &fleet
	return required, err
}

// Solution is a policy that meets requirements, with the proof.
type Solution struct {
	Policy      Policy       `json:"policy"`
	Budget      *Budget      `json:"budget,omitempty"`
	Binding     string       `json:"binding,omitempty"`
	Plan        Plan         `json:"plan"`
	Certificate *Certificate `json:"certificate,omitempty"`
	Simulation  *Result      `json:"simulation,omitempty"`
}

// NewSolution returns s as data. The error is that of NewPolicy.
func NewSolution(s *retryplan.Solution) (Solution, error) {
	policy, err := NewPolicy(s.Policy)
	if err != nil {
		return Solution{}, err
	}
	solution := Solution{Policy: policy, Budget: NewBudget(s.Budget), Binding: string(s.Binding), Plan: NewPlan(s.Plan)}
	if s.Certificate != nil {
		c := NewCertificate(s.Certificate)
		solution.Certificate = &c
	}
	if s.Simulation != nil {
		r := NewResult(s.Simulation)
		solution.Simulation = &r
	}
	return solution, nil
}

// Infeasible says that no policy meets the requirements.
type Infeasible struct {
	A   string `json:"a"`
	B   string `json:"b,omitempty"` // none if no policy meets A alone
	Why string `json:"why"`
}

// NewInfeasible returns e as data.
func NewInfeasible(e *retryplan.InfeasibleError) Infeasible {
	return Infeasible{string(e.A), string(e.B), e.Why}
}
