package retryplan

import (
	"context"
	"math"
	"time"

	"github.com/retrygo/retry"
)

// Requirements are what a policy has to do. Each field that is set is one requirement; the zero Requirements are met by any
// policy and are refused.
type Requirements struct {
	// Failure is the probability in [0,1) that an attempt fails. It is what Success, P99 and Load are required at.
	Failure float64
	// Duration is how long an attempt takes. Zero means no time.
	Duration Dist
	// Outage is how long the backend may be gone so that a run that begins with the outage still makes an attempt after it,
	// even if every wait is as short as can be and every attempt fails at once. Zero means not required.
	Outage time.Duration
	// Success is the least probability that a run succeeds, in (0,1). Zero means not required.
	Success float64
	// P99 is the most that the 99th percentile of a run's time may be. Zero means not required.
	P99 time.Duration
	// WorstCase is the most that any run may take. Zero means not required.
	WorstCase time.Duration
	// Load is the most attempts a run may make on average at Failure, 1 or more. Zero means not required.
	Load float64
	// Fleet and its trigger have to be survived: the certificate must be Safe or Vulnerable, and the backend must bear the
	// load of Failure. Its Budget, if any, is kept and must pay for the retries at Failure; without one Solve may add one. Nil
	// means not required.
	Fleet *Fleet
}

// Requirement names a field of Requirements: "Success", "P99", "WorstCase", "Load", "Outage", "Fleet".
type Requirement string

// Solution is a policy that meets Requirements, with the proof.
type Solution struct {
	Policy retry.Policy
	// Budget is what the policy needs beside it; nil where none is needed.
	Budget *retry.BudgetConfig
	// Binding is the requirement that is met with the least to spare: loosening it would allow a better policy.
	Binding Requirement
	// Plan is the policy's plan at Requirements.Failure.
	Plan *Plan
	// Certificate and Simulation are the policy's with Requirements.Fleet; nil without one.
	Certificate *Certificate
	Simulation  *Result
}

// Solve returns a policy that meets r, checked by New and, where a Fleet is required, by Certify and Simulate. Where there is
// none it returns an *InfeasibleError. Other errors are *FieldError, and ctx's cause when ctx ends before Simulate does.
//
// It looks among policies that a reader understands at a glance: up to 64 attempts, exponential waits that double, from a
// round Base of 1ms to 24h, with full jitter, or where an Outage has to be bridged with equal or ratio jitter, whose waits have
// a floor; an AttemptTimeout with one or two digits or none; a Cap where there are many attempts; and a TTL where WorstCase
// cannot be met otherwise. "None exists" is said of these. Of those that do it prefers few attempts and room to spare in
// every requirement.
//
// Solve takes well under a second, and the time of the simulation where a Fleet is required.
func Solve(ctx context.Context, r Requirements) (Solution, error) {
	if err := r.check(); err != nil {
		return Solution{}, err
	}
	s := newSolver(ctx, r)
	for _, o := range s.search(s.all) {
		solution, ok, err := s.prove(o)
		if err != nil {
			return Solution{}, err
		}
		if ok {
			return solution, nil
		}
	}
	if err := context.Cause(ctx); err != nil {
		return Solution{}, err
	}
	return Solution{}, s.conflict()
}

// check returns every bad field of r.
func (r *Requirements) check() error {
	var bad faults
	if !(r.Failure >= 0 && r.Failure < 1) {
		bad.add("Requirements.Failure", r.Failure, "is outside [0,1)")
	}
	if r.Success != 0 && !(r.Success > 0 && r.Success < 1) {
		bad.add("Requirements.Success", r.Success, "is outside (0,1)")
	}
	if r.Load != 0 && !(r.Load >= 1 && r.Load <= math.MaxFloat64) {
		bad.add("Requirements.Load", r.Load, "is not 1 or more; every run makes one attempt")
	}
	for _, field := range []struct {
		name string
		d    time.Duration
	}{{"Outage", r.Outage}, {"P99", r.P99}, {"WorstCase", r.WorstCase}} {
		if field.d < 0 {
			bad.add("Requirements."+field.name, field.d, "is negative")
		}
	}
	if r.Fleet != nil {
		if err := r.Fleet.check(retry.Policy{}); err != nil {
			bad = append(bad, err)
		}
	}
	if len(bad) == 0 && r.needs() == 0 {
		bad.add("Requirements", "", "require nothing")
	}
	return bad.err()
}

// prove checks an option by what the package says of it, rather than by the formulas that found it.
func (s *solver) prove(o *option) (Solution, bool, error) {
	plan, err := New(o.policy, s.model())
	if err != nil {
		return Solution{}, false, err
	}
	f := figures{success: plan.Success, load: plan.Load, worst: plan.WorstCase, outage: o.outage, p99: plan.Elapsed.Quantile(0.99)}
	const rounding = 1e-9
	f.success += rounding
	f.load -= rounding
	if !s.meets(f, s.all&^needFleet) {
		return Solution{}, false, nil
	}
	solution := Solution{Policy: o.policy, Budget: o.budget, Binding: s.binding(o), Plan: plan}
	if s.all&needFleet == 0 {
		return solution, true, nil
	}
	target := *s.r.Fleet
	target.Budget = o.budget
	certificate, err := Certify(o.policy, target)
	if err != nil || !certificate.Verdict.Survives() {
		return Solution{}, false, err
	}
	solution.Certificate = &certificate
	result, err := Simulate(s.ctx, target.Scenario(o.policy, 1))
	if err != nil {
		return Solution{}, false, err
	}
	solution.Simulation = &result
	return solution, result.Recovered || target.Trigger.Kind == 0, nil
}

// InfeasibleError says that no policy meets the requirements.
type InfeasibleError struct {
	// A and B conflict: there is a policy for either of them, but none for both. B is empty where no policy meets A alone.
	// Where there is a policy for any two requirements, but none for all, A and B are two of which either had to be given up.
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
