package retryplan

import (
	"time"

	"github.com/retrygo/retry"
)

// Model describes attempts. In the zero Model every attempt fails at once.
type Model struct {
	// Failure is the probability, in [0,1], that attempt 1, 2, ... fails. The last value repeats. Failures are
	// independent. Nil means 1, so that every attempt fails, which shows the whole schedule.
	Failure []float64
	// Duration is the time that an attempt takes, whether it fails or not. An attempt that would take longer than
	// Policy.AttemptTimeout fails at that time, as an fn that honors its context does. Zero means no time.
	Duration Dist
	// Deadline is the caller's deadline, counted from the start of the run. Zero means none.
	Deadline time.Duration
}

// Plan is the effect of a policy on one run under a Model.
type Plan struct {
	// Attempts are the attempts in order, from the first up to the limit of the policy, 100 at most. They include those
	// that can never start.
	Attempts []PlannedAttempt
	// Truncated reports whether the policy allows more than 100 attempts. The plan is then that of a run that ends after
	// the hundredth.
	Truncated bool
	// CanStart is the number of attempts that TTL, deadline and AttemptTimeout allow to start.
	CanStart int
	// TotalWait is the distribution of the sum of all waits of a run that never succeeds. TTL, Deadline and Duration do
	// not shorten it. Policy.TotalWait returns its bounds.
	TotalWait Distribution
	// Elapsed is the distribution of the time from the start of a run to its end, whether it succeeds or not.
	Elapsed Distribution
	// Success is the probability that a run succeeds, by Model.Deadline if there is one, in [0,1].
	Success float64
	// Load is the expected number of attempts of a run, by which the policy multiplies the load on the backend.
	Load float64
	// WorstCase is the longest that a run can take, with every wait and every attempt at its longest, within TTL and
	// deadline. It is the largest Duration if attempts have no longest duration, or if it would overflow.
	WorstCase time.Duration
	// Endings maps each Reason to the probability that a run ends with it, and the zero Reason to that of success. They
	// add up to 1. An ending for lack of time is left out if at most 10⁻⁹ of the failed attempts lead to it.
	Endings map[retry.Reason]float64
}

// PlannedAttempt is one attempt of a Plan.
type PlannedAttempt struct {
	// Wait is the distribution of the wait before this attempt, over all histories that lead to it, zero for the first.
	Wait Distribution
	// Starts is the probability that a run makes this attempt.
	Starts float64
	// Succeeds is the probability that a run succeeds with this attempt.
	Succeeds float64
	// Earliest and Latest bound the time at which it can start, counted from the start of the run. For an attempt that
	// can never start they leave TTL and deadline out.
	Earliest, Latest time.Duration
	// Never is the reason that it can never start: TTLElapsed, DeadlineTooNear, DeadlinePassed or RetriesDisabled. Zero
	// means that it can.
	Never retry.Reason
}

// horizon is the maximum number of attempts to plan. A policy that goes on repeats its longest wait by then.
const horizon = 100

// New returns the plan of p under m. Errors are retry.FieldErrors with every field of p or m that is out of range. It
// refuses a policy with Wait, or with a ResetAfter that an attempt can reach, since the distribution of its waits is not
// known. It ignores p.Budget, p.Pay and p.Gate, as if a token and an open gate were always there, and p.Classify, so
// that every failure of the Model is retryable.
//
// Probabilities are computed, not sampled, but with decorrelated jitter. Its CDFs are within 10⁻² of the truth, from a
// fixed seed. Without jitter and random durations they are exact to the nanosecond.
// Otherwise times are on grids of some thousand steps. The CDFs of TotalWait and Elapsed are then within 10⁻³ of the
// truth, or of the truth at a time that differs by a thousandth of the span from Min to the 99.99th percentile. The
// latter matters if many runs take nearly the same time, as with jitter narrower than a step. Plans of more than 50
// attempts, and Durations whose 99th percentile is more than ten times their median, are exact to a few 10⁻³.
func New(p retry.Policy, m Model) (*Plan, error) {
	if err := m.validate(p); err != nil {
		return nil, err
	}
	return newPlanner(p, m).plan(), nil
}

// validate returns every bad field of m and p.
func (m *Model) validate(p retry.Policy) error {
	var bad retry.FieldErrors
	bad.Append(p.Validate())
	_, longest := m.attempt(&p)
	refuse(&bad, p.Wait != nil, "Policy.Wait", "(set)", "is code, whose waits have no distribution to compute with")
	refuse(&bad, p.ResetAfter > 0 && longest >= p.ResetAfter, "Policy.ResetAfter", p.ResetAfter,
		"can be reached by an attempt, and a plan counts attempts without resets")
	for i, f := range m.Failure {
		refuse(&bad, !(f >= 0 && f <= 1), indexedField("Model.Failure", i), f, "is outside [0,1]")
	}
	negative(&bad, "Model.Deadline", m.Deadline)
	return bad.Err()
}

// attempt returns the shortest and the longest duration of an attempt under p.
func (m *Model) attempt(p *retry.Policy) (shortest, longest time.Duration) {
	shortest, longest = m.Duration.least(), m.Duration.Max()
	if p.AttemptTimeout > 0 {
		shortest, longest = min(shortest, p.AttemptTimeout), min(longest, p.AttemptTimeout)
	}
	return shortest, longest
}

// failure returns the probability that the given attempt fails.
func (m *Model) failure(attempt int) float64 {
	if len(m.Failure) == 0 {
		return 1
	}
	return m.Failure[min(attempt, len(m.Failure))-1]
}
