package retryplan

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/retrygo/retry"
)

// Requirements are what a policy has to do. Each field that is set is one requirement; the zero Requirements are met by
// any policy and are refused.
type Requirements struct {
	// Failure is the probability in [0,1) that an attempt fails. It is what Success, P99 and Load are required at.
	Failure float64
	// Duration is how long an attempt takes. Zero means no time.
	Duration Dist
	// Outage is how long the backend may be gone so that a run that begins with the outage still makes an attempt after
	// it, even if every wait is as short as can be and every attempt fails at once. Zero means not required.
	Outage time.Duration
	// Success is the least probability that a run succeeds, in (0,1). Zero means not required.
	Success float64
	// P99 is the most that the 99th percentile of a run's time may be. Zero means not required.
	P99 time.Duration
	// WorstCase is the most that any run may take; with an Outage that is one whose attempts all fail, even if Failure
	// is 0. Zero means not required.
	WorstCase time.Duration
	// Load is the most attempts a run may make on average at Failure, 1 or more. Zero means not required.
	Load float64
	// Fleet and its trigger have to be survived: the certificate must be Safe or Vulnerable, and the backend must bear
	// the load of Failure. Its Budget, if any, is kept and must pay for the retries at Failure and a tenth more;
	// without one Solve may add one. Its Deadline is that of the runs: a success counts until then, no run is longer,
	// and the attempt after an Outage has to begin before it, however long the waits turn out. Nil means not required.
	Fleet *Fleet
}

// Requirement names a field of Requirements: "Success", "P99", "WorstCase", "Load", "Outage", "Fleet".
type Requirement string

// Solution is a policy that meets Requirements, with the proof.
type Solution struct {
	Policy retry.Policy
	// Budget is the budget that the policy needs; nil means none.
	Budget *retry.BudgetConfig
	// Binding is the requirement that is met with the least to spare: loosening it would allow a better policy. A Fleet
	// whose margin no policy changes, as if it is only Capacity above Rate, does not bind; if nothing else is required
	// Binding is empty.
	Binding Requirement
	// Plan is the policy's plan at Requirements.Failure, within the Fleet's Deadline.
	Plan *Plan
	// Certificate and Simulation are the policy's with Requirements.Fleet; nil without one.
	Certificate *Certificate
	Simulation  *Result
}

// Solve returns a policy that meets r, checked by New and, if a Fleet is required, by Certify and Simulate. A
// simulation overrules a certificate whose Margin is below 0.05, since chance may decide, and any certificate if the
// simulated fleet is in a storm at its end. If there is no policy, Solve returns an *InfeasibleError. Other errors are
// retry.FieldErrors, and ctx's cause if ctx ends first.
//
// It looks among policies that a reader understands at a glance: up to 64 attempts, exponential waits that double, from
// a round Base of 1ms to 24h, with full jitter or, to bridge an Outage, with equal or ratio jitter, whose waits have a
// floor; an AttemptTimeout with one or two digits or none; a Cap if there are many attempts; and a TTL if WorstCase
// cannot be met otherwise. An *InfeasibleError speaks of these policies only. Of those that do it prefers few attempts
// and room to spare in every requirement, and with a Fleet an AttemptTimeout, of three times the 99th percentile of
// Duration and of what random arrivals make attempts wait: clients that never give up are safe, but hang.
//
// Closed forms say which of these may do, and which would be best; that one is then verified by New and, if a Fleet is
// required, by its certificate, and the next one if it fails. It takes a fraction of a second, and up to three or so if
// P99, a Deadline or a Fleet make it verify hundreds of policies; then it may give up before it has looked at all,
// which the InfeasibleError says. Simulations, if a Fleet is required, come on top.
func Solve(ctx context.Context, r Requirements) (Solution, error) {
	if err := r.validate(); err != nil {
		return Solution{}, err
	}
	s := newSolver(ctx, r)
	var first *refusal
	for i, o := range s.search(s.all) {
		if i == mostProofs {
			break
		}
		solution, refused, err := s.prove(o)
		if err != nil {
			return Solution{}, err
		}
		if refused == nil {
			return solution, nil
		}
		if first == nil {
			first = refused
		}
	}
	var infeasible *InfeasibleError
	if first != nil {
		infeasible = &InfeasibleError{A: first.by, Why: "policies were found that should meet all that is required, but none passes its proof: " + first.text}
	} else {
		infeasible = s.conflict()
	}
	if err := context.Cause(ctx); err != nil {
		return Solution{}, err
	}
	return Solution{}, infeasible
}

// mostProofs is how many options are tried: what ten simulations refuse is none.
const mostProofs = 10

// refusal says which requirement is not met, and why.
type refusal struct {
	by   Requirement
	text string
}

// validate returns every bad field of r.
func (r *Requirements) validate() error {
	var bad retry.FieldErrors
	if !(r.Failure >= 0 && r.Failure < 1) {
		bad.Add(pkg, "Requirements.Failure", r.Failure, "is outside [0,1)")
	}
	if r.Success != 0 && !(r.Success > 0 && r.Success < 1) {
		bad.Add(pkg, "Requirements.Success", r.Success, "is outside (0,1)")
	}
	if r.Load != 0 && !(r.Load >= 1 && r.Load <= math.MaxFloat64) {
		bad.Add(pkg, "Requirements.Load", r.Load, "is not 1 or more; every run makes one attempt")
	}
	negative(&bad, "Requirements.Outage", r.Outage)
	negative(&bad, "Requirements.P99", r.P99)
	negative(&bad, "Requirements.WorstCase", r.WorstCase)
	if r.Fleet != nil {
		bad.Append(r.Fleet.validate(retry.Policy{}))
	}
	if len(bad) == 0 && r.needs() == 0 {
		bad.Add(pkg, "Requirements", "", "require nothing")
	}
	return bad.Err()
}

// prove checks an option by what the package says of it, rather than by the formulas that found it.
func (s *solver) prove(o *option) (Solution, *refusal, error) {
	if s.ctx.Err() != nil {
		return Solution{}, nil, context.Cause(s.ctx)
	}
	plan, err := New(o.policy, s.model(s.all))
	if err != nil {
		return Solution{}, nil, err
	}
	f := planned(plan)
	if f.outage = o.outage; s.all&needOutage != 0 {
		f.worst = max(f.worst, o.worst)
	}
	const slip = 1e-9
	f.success += slip
	f.load -= slip
	for _, n := range namedNeeds {
		if !s.meets(&f, s.all&n.need) {
			return Solution{}, &refusal{n.name, fmt.Sprintf("the plan of %v does not meet %s", o.policy, s.required(n.need))}, nil
		}
	}
	solution := Solution{Policy: o.policy, Budget: o.budget, Binding: s.binding(o), Plan: plan}
	if s.all&needFleet == 0 {
		return solution, nil, nil
	}
	target := *s.r.Fleet
	target.Budget = o.budget
	certificate, err := Certify(o.policy, target)
	if err != nil {
		return Solution{}, nil, err
	}
	if !certificate.Stability.Survives() {
		return Solution{}, &refusal{"Fleet", fmt.Sprintf("with %v, it is %v", o.policy, certificate.Stability)}, nil
	}
	solution.Certificate = &certificate
	result, err := Simulate(s.ctx, target.Scenario(o.policy, 1))
	if err != nil {
		return Solution{}, nil, err
	}
	solution.Simulation = &result
	switch {
	case storms(&result, target.Rate):
	case certificate.Margin >= 0.05 || result.Recovered || target.Trigger.Kind == 0:
		return solution, nil, nil
	}
	return Solution{}, &refusal{"Fleet", fmt.Sprintf("with %v, it does not recover in a simulation", o.policy)}, nil
}

// storms reports whether a simulated fleet hardly succeeds at its end: in the last 20 s or, if few runs begin, while
// the last 50 did.
func storms(r *Result, rate float64) bool {
	from := r.Simulated - max(20*time.Second, seconds(50/rate))
	offered, goodput := 0, 0
	for _, p := range r.Series {
		if p.Start >= from {
			offered += p.Offered
			goodput += p.Goodput
		}
	}
	return offered >= 20 && float64(goodput) < 0.1*float64(offered)
}

// InfeasibleError says that no policy meets the requirements.
type InfeasibleError struct {
	// A and B conflict: there is a policy for either of them, but none for both. B is empty if no policy meets A alone,
	// and if policies were found that should meet all requirements, but A was not proven of any. If three or more
	// requirements conflict of which all but any one can be met, A and B are the first two of them.
	A, B Requirement
	// Why says so with figures, in one sentence.
	Why string
}

// Error returns "retryplan: Success and WorstCase cannot both be met: ..." or "retryplan: Success cannot be met: ...".
func (e *InfeasibleError) Error() string {
	if e.B == "" {
		return "retryplan: " + string(e.A) + " cannot be met: " + e.Why
	}
	return "retryplan: " + string(e.A) + " and " + string(e.B) + " cannot both be met: " + e.Why
}
