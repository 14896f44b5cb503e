package retryplan

import (
	"cmp"
	"context"
	"errors"
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
// simulation overrules a certificate whose Margin is below 0.05, since chance may decide. If there is no policy, Solve
// returns an *InfeasibleError. Other errors are retry.FieldErrors, and ctx's cause if ctx ends first.
//
// It looks among policies that a reader understands at a glance: up to 64 attempts, exponential waits that double, from
// a round Base of 1ms to 24h, with full jitter or, to bridge an Outage, with equal or ratio jitter, whose waits have a
// floor; an AttemptTimeout with one or two digits or none; and a Cap if there are many attempts. An *InfeasibleError
// speaks of these policies only. Of those that do it prefers few attempts and room to spare in every requirement, and
// with a Fleet an AttemptTimeout, of three times the 99th percentile of Duration and of what random arrivals make
// attempts wait: clients that never give up are safe, but hang.
//
// Closed forms say which of these may do, and which would be best; that one is then verified by New and, if a Fleet is
// required, by its certificate, and the next one if it fails. It takes a fraction of a second, and up to three or so if
// P99, a Deadline or a Fleet make it verify hundreds of policies; then it may give up before it has looked at all,
// which the InfeasibleError says. Simulations, if a Fleet is required, come on top.
func Solve(ctx context.Context, r Requirements) (Solution, error) {
	if err := r.validate(); err != nil {
		return Solution{}, err
	}
	s := &solver{ctx: ctx, r: r, plans: map[planKey]figures{}, waits: map[member]Wait{}, fits: map[member]fit{}, effort: searchEffort}
	all := s.search(r.set())
	var refused *InfeasibleError
	for i, o := range all.run() {
		if i == mostProofs {
			break
		}
		solution, err := all.prove(o)
		var infeasible *InfeasibleError
		if !errors.As(err, &infeasible) {
			return solution, err
		}
		refused = cmp.Or(refused, infeasible)
	}
	if refused == nil {
		refused = s.conflict(all)
	}
	if err := context.Cause(ctx); err != nil {
		return Solution{}, err
	}
	return Solution{}, refused
}

// mostProofs is how many options are tried: what ten simulations refuse is none.
const mostProofs = 10

// set returns the names of the requirements.
func (r *Requirements) set() (all []Requirement) {
	names := []Requirement{"Success", "P99", "WorstCase", "Load", "Outage", "Fleet"}
	for i, is := range []bool{r.Success > 0, r.P99 > 0, r.WorstCase > 0, r.Load > 0, r.Outage > 0, r.Fleet != nil} {
		if is {
			all = append(all, names[i])
		}
	}
	return all
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
	if len(bad) == 0 && len(r.set()) == 0 {
		bad.Add(pkg, "Requirements", "", "require nothing")
	}
	return bad.Err()
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
