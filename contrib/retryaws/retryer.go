package retryaws

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryexport"
	"github.com/retrygo/retry/retryshell"
)

// Retryer returns p for config.WithRetryer, or for the Retryer of a client or an operation. If p sets no part of a
// schedule, that of retry.Inline is used. Prefer Middleware, which loses nothing.
//
// MaxAttempts, the waits, Wait, Classify, hints up to MaxHint, Budget, Pay and Gate mean what they mean in retry.Do,
// with either setting of AWS_NEW_RETRIES_2026. Only a Gate knows the caller's deadline, so a wait may begin although
// the deadline will cut it short. The text of an error whose retry was refused has a line break from the SDK.
// RetryMaxAttempts of an operation overrides MaxAttempts.
//
// lost names what the SDK's interface cannot express: one line for each field of Policy, in their order, with the
// field, its value and what happens instead. It is empty for a policy that the interface expresses entirely. The error
// is that of p.Validate.
func Retryer(p retry.Policy) (r aws.RetryerV2, lost []string, err error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	p = p.OrSchedule(retry.Inline())
	says := map[string]string{
		"Name":           "an aws.Retryer has no place for it",
		"AttemptTimeout": "an attempt lasts until the deadline of the caller or of the HTTP client",
		"TTL":            "an attempt starts at any time",
		"ResetAfter":     "a long attempt counts like any other",
		"Disabled":       "MaxAttempts is 1, and a failure ends like one whose attempts are used up",
		"Budget":         "it is not paid back if the retry does not come",
		"Pay":            "its Decision has no Delay",
		"Observe":        "it is not called",
	}
	if p.Jitter == retry.DecorrelatedJitter {
		says["Jitter"] = "each wait is drawn as the first one is"
	}
	lost = retryexport.Lost(p, says)
	p.Classify = classifier(p.Classify)
	return &retryer{p}, lost, nil
}

// retryer is an aws.RetryerV2. It has no state per operation, so one value serves a client.
type retryer struct{ policy retry.Policy }

// MaxAttempts returns the policy's, and 0 for Unlimited.
func (r *retryer) MaxAttempts() int {
	if r.policy.Disabled {
		return 1
	}
	return max(r.policy.Effective().MaxAttempts, 0)
}

// IsErrorRetryable reports whether err should be repeated and an attempt is left.
func (r *retryer) IsErrorRetryable(err error) bool {
	class, _ := r.policy.Judge(err)
	return class == retry.Retryable
}

// RetryDelay returns how long to wait after attempt. With AWS_NEW_RETRIES_2026 the SDK counts attempts from 0,
// otherwise from 1.
func (r *retryer) RetryDelay(attempt int, err error) (time.Duration, error) {
	if newRetries() {
		attempt++
	}
	p := r.policy
	p.MaxAttempts, p.Disabled = retry.Unlimited, false // the SDK counts, perhaps to the maximum of an operation
	p.TTL = 0                                          // which cannot be held, as the start is not known
	draw := p.Rand
	if draw == nil {
		draw = rand.Float64
	}
	err = hinted(err)
	d := p.Decide(retry.Progress{Attempt: attempt}, err, draw())
	if d.Status != retry.Waiting {
		return 0, p.NewError(context.Background(), retry.Outcome{Policy: p.Name, Status: d.Status, Reason: d.Reason, Attempts: attempt}, err)
	}
	return d.Delay, nil
}

// GetRetryToken pays for a retry. The SDK joins the error with that of the attempt.
func (r *retryer) GetRetryToken(ctx context.Context, _ error) (func(error) error, error) {
	if retryshell.IsOneAttempt(ctx) {
		return nil, fmt.Errorf("retry: gave up (%w)", retry.RetriesDisabled)
	}
	if d := r.policy.Spend(ctx, retry.Decision{Status: retry.Waiting}, time.Now()); d.Status != retry.Waiting {
		return nil, fmt.Errorf("retry: gave up (%w)", d.Reason)
	}
	if newRetries() {
		return r.deposit, nil // the attempt's own is called for the first attempt only
	}
	return nothing, nil
}

// GetAttemptToken waits for the gate.
func (r *retryer) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	for r.policy.Gate != nil {
		wait := r.policy.Gate(ctx)
		if wait <= 0 {
			break
		}
		if err := r.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
	return r.deposit, nil
}

// sleep waits for a gate, if that may end before ctx does.
func (r *retryer) sleep(ctx context.Context, wait time.Duration) error {
	var pr retry.Progress
	if deadline, ok := ctx.Deadline(); ok {
		pr.Deadline = cmp.Or(time.Until(deadline), -1)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	d := r.policy.Admit(pr, wait)
	if d.Status == retry.Waiting {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			pr.Caller = retry.CallerCanceled
			d = r.policy.Admit(pr, 0)
		}
	}
	return r.policy.NewError(ctx, retry.Outcome{Policy: r.policy.Name, Status: d.Status, Reason: d.Reason, Gated: d.Reason != retry.CallerCanceled}, nil)
}

// GetInitialToken is not called, since there is GetAttemptToken.
func (r *retryer) GetInitialToken() func(error) error { return nothing }

// deposit funds the budget after a success, which includes an answer.
func (r *retryer) deposit(err error) error {
	if err == nil || !r.IsErrorRetryable(err) && answered(err) {
		r.policy.Spend(context.Background(), retry.Decision{Status: retry.Succeeded}, time.Now())
	}
	return nil
}

func nothing(error) error { return nil }

// newRetries reports which of its two loops the SDK uses now. Like the SDK it reads the variable at every call.
func newRetries() bool { return os.Getenv("AWS_NEW_RETRIES_2026") == "true" }
