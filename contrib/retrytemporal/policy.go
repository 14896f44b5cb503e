package retrytemporal

import (
	"math"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryexport"
)

// Policy returns p as a temporal.RetryPolicy, for activities, local activities, child workflows and workflows whose
// errors do not go through Error. MaximumAttempts is MaxAttempts, and 0 for Unlimited. The waits are
// min(InitialInterval·BackoffCoefficient^(n−1), MaximumInterval) without jitter, which are p's waits if those are of
// that form; otherwise the first one is p's, and the others are a geometric series up to p's longest, as lost describes
// with figures. NonRetryableErrorTypes is not set.
//
// lost names what a temporal.RetryPolicy cannot express: one line for each field of Policy, in their order, with the
// field, its value and what happens instead. The lines are the same for the same p. It is empty for a policy that
// Temporal expresses entirely. Temporal does not know marks such as retry.Permanent, hints such as retry.After, or the
// rule that context.Canceled is terminal; lost does not repeat that.
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
// The formula applies only if there is no error with a delay: after a timeout, a panic or the loss of a worker.
//
// lost names what is still not as in retry.Do, as that of Policy does. The error is that of p.Validate.
func PolicyForErrors(p retry.Policy) (rp *temporal.RetryPolicy, lost []string, err error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	x := newExport(p)
	top := max(x.series.Top, x.inForce.MaxHint)
	if p.Wait != nil {
		if top = max(top, x.inForce.Cap); x.inForce.Cap == 0 {
			top = math.MaxInt64 // a list without a cap
		}
	}
	const looked = 100 // waits of a formula: with any relevant factor, the rest are equal to the cap
	for n := 1; n <= min(x.attempts-1, max(looked, len(p.Delays))); n++ {
		_, hi := p.Bounds(n) // if a list has no Cap, jitter can exceed its longest entry
		top = max(top, hi)
	}
	return x.retryPolicy(top), x.lost(top, true), nil
}

type export struct {
	policy   retry.Policy
	inForce  retry.Policy // policy with its defaults written out
	attempts int          // of the policy; math.MaxInt for no limit
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

// unlimited reports whether there is no limit, which attempts does not show: it can be math.MaxInt.
func (x *export) unlimited() bool {
	return x.policy.MaxAttempts == retry.Unlimited && !x.policy.Disabled
}
