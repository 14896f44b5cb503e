package retryplan

import (
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

// Model says what becomes of attempts. The zero Model is an attempt that always fails, at once.
type Model struct {
	// Failure is the probability that an attempt fails, in [0,1], for attempt 1, 2, ...; the last one repeats. Failures
	// are independent. Nil means 1: every attempt fails, which shows the whole schedule.
	Failure []float64
	// Duration is how long an attempt takes, whether it fails or not. One that would take longer than
	// Policy.AttemptTimeout fails at that time, as does an fn that honors its context. Zero means no time.
	Duration Dist
	// Deadline is the caller's, counted from the start of the run. Zero means none.
	Deadline time.Duration
	// Horizon is how many attempts are looked at, up to 1,000. A policy may allow more; see Plan.Truncated. Zero means
	// 100.
	Horizon int
}

// Plan is what a policy does to one run under a Model.
type Plan struct {
	// Attempts are the attempts in order, as far as policy and horizon allow, those that can never start included.
	Attempts []PlannedAttempt
	// Truncated says that the policy allows more attempts than were looked at. What is said of the whole run then holds
	// for a run that is given up after the last attempt looked at.
	Truncated bool
	// CanStart is how many attempts can start at all: neither TTL nor deadline nor AttemptTimeout makes them impossible.
	CanStart int
	// TotalWait is the distribution of the sum of all waits of a run that never succeeds, by the policy alone: TTL,
	// Deadline and Duration do not shorten it. It is what Policy.TotalWait bounds.
	TotalWait Distribution
	// Elapsed is the distribution of the time from the start of a run to its end, however it ends.
	Elapsed Distribution
	// Success is the probability that a run succeeds, in [0,1].
	Success float64
	// InTime is the probability that a run has succeeded by Model.Deadline; without a deadline it is Success.
	InTime float64
	// Load is the expected number of attempts of a run: how much the policy multiplies the load on the backend.
	Load float64
	// WorstCase is the longest that a run can take from its start to its end: every wait and every attempt at its
	// longest, within TTL and deadline. It saturates at the largest Duration, which is also what an attempt of
	// unbounded duration gives.
	WorstCase time.Duration
	// Endings is the probability of each ending: by reason, and that of success under the zero Reason. They add up to
	// 1. An ending for lack of time is left out if at most 10⁻⁹ of the failed attempts lead to it.
	Endings map[retry.Reason]float64
}

// PlannedAttempt is one attempt of a Plan.
type PlannedAttempt struct {
	Number int // from 1
	// Wait is the wait before this attempt; zero for the first.
	Wait Wait
	// Starts is the probability that a run makes this attempt.
	Starts float64
	// Succeeds is the probability that a run succeeds with this attempt.
	Succeeds float64
	// Earliest and Latest bound when it can start, from the start of the run; of one that can never start, when it would
	// without TTL and deadline.
	Earliest, Latest time.Duration
	// Never is the reason for which it can never start: TTLElapsed, DeadlineTooNear, DeadlinePassed or RetriesDisabled.
	// Zero means that it can.
	Never retry.Reason
}

// Wait is what is known of one wait, over all histories that lead to it.
type Wait struct {
	Lo, Hi        time.Duration // as Backoff.Bounds gives them
	Mean          time.Duration // of [Lo, Hi), not cut to whole nanoseconds; for DecorrelatedJitter over all histories
	P50, P90, P99 time.Duration // quantiles of the same
}

// The limits of Model.Horizon.
const (
	defaultHorizon = 100
	maxHorizon     = 1000
)

// New returns the plan of p under m. It returns an error on one line, retry.FieldErrors, for a policy that does not
// validate and for a Model field that is out of its range. It ignores p.Budget, p.Pay and p.Gate: a single run is
// planned as if it had a token and an open gate. It also ignores p.Classify, which is code: every failure of the Model
// counts as retryable. It refuses a policy with Wait, or with a ResetAfter that an attempt can reach, since their
// distributions are not known.
//
// Probabilities are computed, not sampled. If neither jitter nor duration is random they are exact to the nanosecond.
// Otherwise times are kept on grids of some thousand steps. The CDFs of TotalWait and Elapsed are then within 10⁻³ of
// the truth, or of the truth a thousandth of the span from Min to the 99.99th percentile earlier or later. The latter
// counts if many runs take nearly the same time, since the jitter is narrower than a step. Plans of more than 50
// attempts, and Durations whose 99th percentile is more than ten times their median, are exact to a few 10⁻³; plans
// with more than 200 random waits to 10⁻².
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
	refuse(&bad, m.Horizon < 0 || m.Horizon > maxHorizon, "Model.Horizon", m.Horizon, "is outside [0,1000]")
	return bad.Err()
}

func indexedField(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// attempt returns the least and the most that an attempt under p takes.
func (m *Model) attempt(p *retry.Policy) (shortest, longest time.Duration) {
	shortest, longest = m.Duration.Min(), m.Duration.Max()
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
