package retryplan

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/retrygo/retry"
)

// Requirements are what a policy must do. Each field that is set is one requirement. The zero Requirements are refused,
// since any policy meets them.
type Requirements struct {
	// Failure is the probability, in [0,1), that an attempt fails. Success, P99 and Load are required at this Failure.
	Failure float64
	// Duration is how long an attempt takes. Zero means no time.
	Duration Dist
	// Outage is how long the backend may be down so that a run that begins with the outage still makes an attempt after
	// it, even if every wait is as short as it can be and every attempt fails at once. Zero means not required.
	Outage time.Duration
	// Success is the lowest probability, in (0,1), that a run succeeds. Zero means not required.
	Success float64
	// P99 is the longest 99th percentile of a run's time. Zero means not required.
	P99 time.Duration
	// WorstCase is the longest that any run may take. With an Outage it includes a run whose attempts all fail, even if
	// Failure is 0. Zero means not required.
	WorstCase time.Duration
	// Load is the highest average number of attempts of a run, 1 or more. Zero means not required.
	Load float64
	// Fleet must survive its trigger: its certificate must be Safe or Vulnerable, and its backend must bear the load of
	// Failure. A Budget of the Fleet is kept, and must pay for the retries at Failure and a tenth more; without one,
	// Solve may add one. The Fleet's Deadline is the deadline of each run: a success counts until then, no run is
	// longer, and the attempt after an Outage must begin before it, however long the waits are. Nil means not required.
	Fleet *Fleet
}

// Requirement names a field of Requirements: "Success", "P99", "WorstCase", "Load", "Outage", "Fleet".
type Requirement string

// Solution is a policy that meets Requirements, with its plan and its certificate.
type Solution struct {
	Policy retry.Policy
	// Budget is the budget that the policy needs. Nil means none.
	Budget *retry.BudgetConfig
	// Binding is the requirement with the least to spare: a looser one would allow a better policy. It is empty if only
	// a Fleet is required whose margin does not depend on the policy.
	Binding Requirement
	// Plan is the policy's plan at Requirements.Failure, within the Fleet's Deadline.
	Plan *Plan
	// Certificate and Simulation are those of Requirements.Fleet with the policy. Nil means that none was required.
	Certificate *Certificate
	Simulation  *Result
}

// Solve returns a policy that meets r, verified by New and, if a Fleet is required, by Certify. If the certificate's
// Margin is below 0.05, so that chance may decide, a simulation must recover as well. If no policy meets r, Solve
// returns an *InfeasibleError. Other errors are retry.FieldErrors, and ctx's cause if ctx ends first.
//
// Solve searches a grid of policies that a reader understands at a glance: up to 64 attempts, exponential waits that
// double, from a round Base of 1ms to 24h, with full jitter or, to bridge an Outage, with equal or ratio jitter, whose
// waits have a floor; an AttemptTimeout of one or two digits or none; and a Cap if there are many attempts. An
// *InfeasibleError speaks of these policies only. Solve prefers few attempts and room to spare in every requirement,
// and with a Fleet an AttemptTimeout of three times the 99th percentile of Duration, and of what random arrivals make
// attempts wait: clients that never give up are safe, but hang.
//
// It takes some milliseconds, or a second or two if P99, a Deadline or a Fleet rule out hundreds of policies.
// Simulations take their time in addition.
func Solve(ctx context.Context, r Requirements) (Solution, error) {
	if err := r.validate(); err != nil {
		return Solution{}, err
	}
	all := newSearch(ctx, r, r.set())
	found := all.run(10)
	if found == nil {
		conflict := all.conflict()
		return Solution{}, cmp.Or(context.Cause(ctx), error(conflict))
	}
	return all.prove(found)
}

// set returns the names of the requirements.
func (r *Requirements) set() (all []Requirement) {
	limits := r.limits()
	for _, name := range []Requirement{"Success", "P99", "WorstCase", "Load", "Outage"} {
		if limits[name] > 0 {
			all = append(all, name)
		}
	}
	if r.Fleet != nil {
		all = append(all, "Fleet")
	}
	return all
}

// validate returns every bad field of r.
func (r *Requirements) validate() error {
	var bad retry.FieldErrors
	refuse(&bad, !(r.Failure >= 0 && r.Failure < 1), "Requirements.Failure", r.Failure, "is outside [0,1)")
	refuse(&bad, r.Success != 0 && !(r.Success > 0 && r.Success < 1), "Requirements.Success", r.Success, "is outside (0,1)")
	refuse(&bad, r.Load != 0 && !(r.Load >= 1 && r.Load <= math.MaxFloat64), "Requirements.Load", r.Load, "is not 1 or more; every run makes one attempt")
	negative(&bad, "Requirements.Outage", r.Outage)
	negative(&bad, "Requirements.P99", r.P99)
	negative(&bad, "Requirements.WorstCase", r.WorstCase)
	if r.Fleet != nil {
		bad.Append(r.Fleet.validate(retry.Policy{}))
	}
	refuse(&bad, len(bad) == 0 && len(r.set()) == 0, "Requirements", "", "require nothing")
	return bad.Err()
}

// InfeasibleError says that no policy meets the requirements.
type InfeasibleError struct {
	// A and B conflict: some policies meet A and some meet B, but none meets both. B is empty if no policy meets A
	// alone, and if the policy that should meet all requirements does not recover in a simulation. If three or more
	// requirements conflict, any of which can be left out to meet the others, A and B are the first two of them.
	A, B Requirement
	// Why gives the reason in one sentence, with the best value that can be had.
	Why string
}

// Error returns "retryplan: Success and WorstCase cannot both be met: ..." or "retryplan: Success cannot be met: ...".
func (e *InfeasibleError) Error() string {
	if e.B == "" {
		return "retryplan: " + string(e.A) + " cannot be met: " + e.Why
	}
	return "retryplan: " + string(e.A) + " and " + string(e.B) + " cannot both be met: " + e.Why
}
