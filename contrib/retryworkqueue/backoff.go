package retryworkqueue

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryexport"
)

// FromBackoff returns the policy that makes the attempts of wait.ExponentialBackoff and retry.OnError with b, after
// waits of the same bounds, rounded to the nanosecond. Steps is the number of attempts. Cap ends the run: the step that
// would pass it is the last one, after one more sleep, which the policy does not make.
//
// It refuses a b that a policy cannot express: one that makes no attempt (Steps), whose waits shrink (Factor) or are
// negative, or grow beyond the largest Duration.
func FromBackoff(b wait.Backoff) (retry.Policy, error) {
	var bad retry.FieldErrors
	if b.Steps < 1 {
		bad.Refuse("retryworkqueue.Backoff.Steps", b.Steps, "is below 1, so that no attempt is made")
	}
	if b.Duration < 0 {
		bad.Refuse("retryworkqueue.Backoff.Duration", b.Duration, "is negative")
	}
	if b.Factor != 0 && !(b.Factor >= 1 && b.Factor <= math.MaxFloat64) {
		bad.Refuse("retryworkqueue.Backoff.Factor", b.Factor, "is below 1, or not a number")
	}
	if b.Jitter > math.MaxFloat64 || math.IsNaN(b.Jitter) {
		bad.Refuse("retryworkqueue.Backoff.Jitter", b.Jitter, "is not a number")
	}
	if bad != nil {
		return retry.Policy{}, bad.Err()
	}
	if b.Duration == 0 {
		return retry.Policy{MaxAttempts: b.Steps, Backoff: retry.Backoff{Delays: []time.Duration{0}}}, nil
	}
	jitter, factor := max(b.Jitter, 0), max(b.Factor, 1)
	attempts := 1
	for wait := float64(b.Duration); attempts < b.Steps; attempts++ { // after that many
		next := math.Trunc(wait * factor)
		if b.Cap > 0 && b.Factor != 0 && next > float64(b.Cap) {
			break
		}
		if wait*(1+jitter) >= math.MaxInt64 {
			bad.Refuse("retryworkqueue.Backoff.Steps", b.Steps, "lets a wait grow beyond the largest Duration")
			return retry.Policy{}, bad.Err()
		}
		if next == wait {
			attempts = b.Steps - 1
		}
		wait = next
	}
	p := retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{
		Mode: retry.Exponential, Base: b.Duration, Factor: factor, Cap: math.MaxInt64,
	}}
	if jitter > 0 {
		p.Base = time.Duration(math.Round(float64(b.Duration) * (1 + jitter/2)))
		p.Jitter, p.JitterRatio = retry.RatioJitter, jitter/(2+jitter)
	}
	return p, nil
}

// Backoff returns p as a wait.Backoff for wait.ExponentialBackoffWithContext, retry.OnError and RetryOnConflict of
// client-go: the same attempts, after waits of the same bounds. Its Cap is 0, since a Cap would end the run.
//
// It refuses a schedule that a wait.Backoff cannot express: a List, Linear, Unlimited, full and decorrelated jitter, an
// own Wait, and waits that Cap cuts. lost names everything else that is not kept: one line for each field of Policy, in
// their order, with the field, its value and what happens instead.
func Backoff(p retry.Policy) (b wait.Backoff, lost []string, err error) {
	if err := p.Validate(); err != nil {
		return wait.Backoff{}, nil, err
	}
	inForce := p.Effective()
	if p.Disabled {
		inForce.MaxAttempts = 1
	}
	if err := inexpressible(&inForce); err != nil {
		return wait.Backoff{}, nil, err
	}
	b = wait.Backoff{Duration: inForce.Base, Factor: max(inForce.Factor, 1), Steps: inForce.MaxAttempts}
	switch r := inForce.JitterRatio; inForce.Jitter {
	case retry.EqualJitter:
		b.Duration, b.Jitter = inForce.Base/2, 1
	case retry.RatioJitter:
		b.Duration, b.Jitter = time.Duration(math.Round(float64(inForce.Base)*(1-r))), 2*r/(1-r)
	}
	return b, retryexport.Lost(p, map[string]string{
		"Name":           "a wait.Backoff has no place for it",
		"AttemptTimeout": "an attempt has no timeout of its own",
		"TTL":            "an attempt starts at any time",
		"MaxHint":        "hints are not obeyed",
		"ResetAfter":     "a long attempt counts like any other",
		"Disabled":       "Steps is 1, and a failure ends like one whose attempts are used up",
		"Classify":       "it is not called",
		"Budget":         "it is not asked, and retries are free",
		"Pay":            "it is not called",
		"Gate":           "it is not called",
		"Observe":        "it is not called",
		"Rand":           "it is not called",
	}), nil
}

// inexpressible returns the part of a schedule that a wait.Backoff cannot express, or nil. p is in force.
func inexpressible(p *retry.Policy) error {
	var bad retry.FieldErrors
	refuse := func(is bool, field string, value any, rule string) {
		if is {
			bad.Refuse("retryworkqueue.Policy."+field, value, rule)
		}
	}
	refuse(p.MaxAttempts == retry.Unlimited, "MaxAttempts", "Unlimited", "is not a number of Steps")
	if p.MaxAttempts == 1 {
		return bad.Err() // without waits
	}
	refuse(p.Mode == retry.List || p.Mode == retry.Linear, "Mode", p.Mode, "is neither exponential nor fixed")
	refuse(p.Jitter == retry.FullJitter || p.Jitter == retry.DecorrelatedJitter, "Jitter", p.Jitter,
		"is neither equal nor ratio jitter")
	refuse(p.Jitter == retry.RatioJitter && p.JitterRatio == 1, "JitterRatio", p.JitterRatio, "lets a wait begin at 0")
	refuse(p.Wait != nil, "Wait", "func", "is not called")
	if bad == nil {
		free := p.Backoff
		free.Cap = math.MaxInt64
		lo, hi := p.Bounds(p.MaxAttempts - 1)
		freeLo, freeHi := free.Bounds(p.MaxAttempts - 1)
		refuse(lo != freeLo || hi != freeHi, "Cap", p.Cap, "is reached, and would end the run")
	}
	return bad.Err()
}
