package retrytemporal

import (
	"fmt"
	"math"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryexport"
)

// Policy returns p as a temporal.RetryPolicy, for activities, local activities, child workflows and workflows whose
// errors do not go through Error. MaximumAttempts is MaxAttempts, and 0 for Unlimited. The waits are
// min(InitialInterval·BackoffCoefficient^(n−1), MaximumInterval) without jitter, which are p's waits if those are of
// that form. Otherwise the first one is p's, and the others are a geometric series up to p's longest, as lost describes
// with figures. NonRetryableErrorTypes is not set.
//
// lost lists the fields of Policy that a temporal.RetryPolicy cannot express, one on a line, in their order, with the
// value and the effect that it has instead. The lines are the same for the same p. It is empty for a policy that
// Temporal expresses entirely. Temporal does not know marks such as retry.Permanent, hints such as retry.After, or the
// rule that context.Canceled is terminal, and lost does not repeat that.
//
// The error is that of p.Validate.
func Policy(p retry.Policy) (rp *temporal.RetryPolicy, lost []string, err error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	x := newExport(p)
	return x.retryPolicy(x.series.Top), x.lost(x.series.Top, false), nil
}

// PolicyForErrors returns the temporal.RetryPolicy for activities that pass every error to Error. It is that of Policy,
// but MaximumInterval is the longest wait that Error asks for, MaxHint included, because the server cuts longer waits.
// The formula applies only if there is no error with a delay, as after a timeout, a panic or the loss of a worker.
//
// lost lists the remaining differences from retry.Do, as that of Policy does. The error is that of p.Validate.
func PolicyForErrors(p retry.Policy) (rp *temporal.RetryPolicy, lost []string, err error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	x := newExport(p)
	top := max(x.series.Top, x.inForce.MaxHint)
	if p.Wait != nil {
		top = max(top, x.inForce.Cap)
		if x.inForce.Cap == 0 {
			top = math.MaxInt64 // a list without a cap
		}
	}
	const looked = 100 // waits of a formula. With any relevant factor, the rest are equal to the cap
	for n := 1; n <= min(x.attempts-1, max(looked, len(p.Delays))); n++ {
		_, hi := p.Bounds(n) // if a list has no Cap, jitter can exceed its longest entry
		top = max(top, hi)
	}
	return x.retryPolicy(top), x.lost(top, true), nil
}

type export struct {
	policy   retry.Policy
	inForce  retry.Policy // policy with its defaults written out
	attempts int          // of the policy, math.MaxInt for no limit
	series   retryexport.Series
	exact    bool // whether series gives the policy's own delays
}

func newExport(p retry.Policy) *export {
	x := &export{policy: p, inForce: p.Effective()}
	switch {
	case p.Disabled:
		x.attempts = 1
	case x.unlimited():
		x.attempts = math.MaxInt
	default:
		x.attempts = x.inForce.MaxAttempts
	}
	x.series, x.exact = retryexport.SeriesOf(x.inForce.Backoff, x.attempts-1, func(s *retryexport.Series) {
		s.Factor = max(s.Factor, 1) // Temporal refuses less
	})
	return x
}

func (x *export) retryPolicy(top time.Duration) *temporal.RetryPolicy {
	most := int32(min(x.attempts, math.MaxInt32))
	if x.unlimited() {
		most = 0
	}
	return &temporal.RetryPolicy{
		InitialInterval:    min(x.series.First, top),
		BackoffCoefficient: x.series.Factor,
		MaximumInterval:    top,
		MaximumAttempts:    most,
	}
}

// unlimited reports whether there is no limit, which attempts does not show, since it can be math.MaxInt.
func (x *export) unlimited() bool {
	return x.policy.MaxAttempts == retry.Unlimited && !x.policy.Disabled
}

// lost returns a line for each thing that a temporal.RetryPolicy with MaximumInterval top does not express, alone or
// together with Error, which sees all failures except timeouts, panics and lost workers.
func (x *export) lost(top time.Duration, withError bool) []string {
	p, waits := x.policy, x.attempts-1
	short := retryexport.Short
	const unseen = "after a timeout, a panic or the loss of a worker "
	when := ""
	says := map[string]string{
		"AttemptTimeout": "ActivityOptions.StartToCloseTimeout takes its place",
		"Disabled":       "MaximumAttempts is 1, and a failure ends like one whose attempts are used up",
		"Gate":           "it is not asked",
		"Observe":        "it is not called",
	}
	if withError {
		when = unseen
	} else {
		says["Name"] = "a temporal.RetryPolicy has no place for it"
	}
	if x.attempts > math.MaxInt32 && !x.unlimited() {
		says["MaxAttempts"] = fmt.Sprintf("MaximumAttempts is %d", math.MaxInt32)
	}
	if waits == 0 {
		return retryexport.Lost(p, says)
	}
	if !x.exact {
		field := "Mode"
		if len(p.Delays) > 0 {
			field = "Delays"
		}
		says[field] = fmt.Sprintf("%sthe waits are %s instead of %s", when,
			retryexport.Waits(x.series.Wait, waits), retryexport.Waits(p.Delay, waits))
	}
	if p.Jitter != retry.NoJitter {
		says["Jitter"] = when + "there is none"
	}
	says["ResetAfter"] = "a long attempt counts like any other"
	says["Wait"] = when + "it is not asked"
	if !withError {
		says["TTL"] = "ActivityOptions.ScheduleToCloseTimeout can take its place, and ends an attempt under way, too"
		says["MaxHint"] = fmt.Sprintf("an error's next delay is cut to MaximumInterval, %s, and ends nothing", short(top))
		says["Classify"] = "it is not asked, and only non-retryable application errors end a run"
		says["Budget"] = "it is not asked, and retries are free"
		says["Pay"] = "it is not asked"
		if p.Jitter != retry.NoJitter {
			says["Rand"] = "there is no jitter to draw"
		}
		return retryexport.Lost(p, says)
	}
	says["TTL"] = "it counts from the scheduling of the activity, and " + unseen + "it is not looked at"
	says["Classify"] = unseen + "it is not asked"
	says["Budget"] = "it is that of one worker process, and is not paid back if the retry does not come"
	if (retryexport.Series{First: x.series.First, Top: top, Factor: x.series.Factor}).Wait(waits) > x.series.Top {
		p.MaxHint = x.inForce.MaxHint
		says["MaxHint"] = fmt.Sprintf("MaximumInterval is %s so that nothing is cut, and %sa wait grows beyond %s",
			short(top), unseen, short(x.series.Top))
	}
	if p.Jitter == retry.DecorrelatedJitter && waits > 1 {
		says["Rand"] = "the wait before, which the next is drawn from, is drawn anew and is not the one that was waited"
	}
	return retryexport.Lost(p, says)
}
