package retryplan

// Law names a law of storms: what a Certificate's Stability follows from.
//
// In the formulas λ is Fleet.Rate, μ Fleet.Capacity, A Certificate.Attempts, T the client's timeout
// (the shorter of Policy.AttemptTimeout and Fleet.Deadline), D the length of the trigger and S the tokens stored in
// all budgets of the fleet. They are derived for a server that works in the order of arrival and executes abandoned
// work, as in Bronson et al., "Metastable Failures in Distributed Systems" (HotOS 2021), and Huang et al., "Metastable
// Failures in the Wild" (OSDI 2022).
type Law uint8

// The laws.
const (
	// Overload: λ ≥ μ, or λ·A ≥ μ, A the attempts of a run of which Fleet.Failure makes some fail. Even without a
	// trigger more attempts arrive than the backend completes, so that its queue never drains.
	Overload Law = iota + 1
	// SlowService: one attempt takes the backend T or longer, so that none ever succeeds.
	SlowService
	// NoTimeout: no client ever gives up, so that no work is wasted and nothing is retried. The queue drains if λ < μ.
	NoTimeout
	// HiddenCapacity: a storm in which all attempts fail feeds itself iff λ·A > μ, so that the backend has the hidden
	// capacity μ/A. Below it a fleet is Safe; above it a trigger that is large enough makes it Metastable. (HotOS 2021,
	// section 2.)
	HiddenCapacity
	// SuccessFunded: in a storm a budget that only successes fund pays for S retries, those stored, and for those of
	// Trickle. Then A is 1 plus the share of Trickle, and the fleet recovers once S is spent: from a stall after
	// (λ·D + S − μ·T)/(μ − λ).
	SuccessFunded
	// TriggerBelowTimeout: the longest queue that the trigger leaves makes attempts wait for less than T. None fails, so
	// that nothing is retried.
	TriggerBelowTimeout
	// Fluid: some attempts fail. A model in which runs flow, rather than arrive one by one, computes whether their retries
	// suffice for a storm.
	Fluid
	// RandomArrivals: random arrivals alone, without a trigger, make attempts wait for T so often that chance decides
	// whether a storm begins. Such a certificate has no Margin.
	// From the tail of the M/D/c queue, exp(−θ·T) with λ·(exp(θ/μ) − 1) = θ. (Asmussen, "Applied Probability and
	// Queues", chapter XIII.)
	RandomArrivals
)

// String returns "overload", "slow-service", "no-timeout", "hidden-capacity", "success-funded-budget",
// "trigger-below-timeout", "fluid" or "random-arrivals", "" for the zero Law, and "Law(9)" for one that does not exist.
func (l Law) String() string {
	return named(uint8(l), "Law", "", "overload", "slow-service", "no-timeout", "hidden-capacity", "success-funded-budget",
		"trigger-below-timeout", "fluid", "random-arrivals")
}

// MarshalText returns String.
func (l Law) MarshalText() ([]byte, error) { return []byte(l.String()), nil }
