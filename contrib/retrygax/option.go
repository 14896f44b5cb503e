// Package retrygax lets a retry.Policy decide the retries of Google Cloud clients, those that are generated for gRPC
// and for REST on top of gax-go.
//
//	option, lost, err := retrygax.Option(policy)
//	...
//	client.CallOptions.AccessSecretVersion = append(client.CallOptions.AccessSecretVersion, option)
//
// Append to it, since the slice of a generated client also has its timeout, without which a call to a server that hangs never ends.
// The option comes after the client's own retries and so replaces them.
//
// # What is repeated
//
// Marks such as retry.Permanent decide first, then Policy.Classify. Other errors are repeated if their code is
// UNAVAILABLE (503 in REST), or RESOURCE_EXHAUSTED (429) with a hint, as AIP-194 and package retryrpc say. Any other
// error ends the call. The status detail RetryInfo and the header Retry-After are hints in the sense of retry.After.
//
// # Differences from retry.Do
//
// A call that fails returns its last error as gax does, without the outcome of the run. gax does not pass the caller's
// context on. A wait past the caller's deadline is begun, interrupted and costs the last error, and retry.OneAttempt
// has no effect. TTL counts from the beginning of the call.
//
// This package may change until it says otherwise.
package retrygax

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/googleapis/gax-go/v2"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryexport"
	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryhttp/hints"
)

// unkept has the reasons and effects for the fields that gax cannot express.
var unkept = map[string]string{
	"Name":           "a gax.Retryer has no place for it",
	"AttemptTimeout": "an attempt lasts until the deadline of the call",
	"Budget":         "successes do not fund it, and it is not paid back if the retry does not come",
	"Pay":            "it is not called",
	"Gate":           "it is not called",
	"Observe":        "it is not called",
}

// Option returns p for the CallOptions of a client, method by method, or for one call. It replaces the client's own
// retries. If p has no part of a schedule, it gets that of retry.Inline. Use it only for methods that may take effect
// twice, because a call that ends with UNAVAILABLE may have taken effect.
//
// lost lists the fields of Policy that gax cannot express, one on a line, in their order, with the value and the effect
// that it has instead. If there is no Policy.Classify, the last line is that RESOURCE_EXHAUSTED without a hint is not
// repeated, which the own settings of some clients do. The error is that of p.Validate.
func Option(p retry.Policy) (option gax.CallOption, lost []string, err error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	p = p.OrSchedule(retry.Inline())
	lost = retryexport.Lost(p, unkept)
	if p.Classify == nil {
		lost = append(lost, "Policy.Classify is not set: RESOURCE_EXHAUSTED without a hint ends the call, "+
			"even if the client's own settings repeat it")
	}
	p.Classify, p.Pay = retry.FirstOf(p.Classify, classify), nil
	return callOption{p}, lost, nil
}

// callOption is resolved once for each call.
type callOption struct{ policy retry.Policy }

// Resolve is for gax.
func (o callOption) Resolve(s *gax.CallSettings) {
	r := &retryer{policy: o.policy, began: time.Now()}
	s.Retry = func() gax.Retryer { return r }
}

// retryer is the run of one call.
type retryer struct {
	policy   retry.Policy
	began    time.Time
	progress retry.Progress
}

// Retry is for gax, which calls it after each failed attempt.
func (r *retryer) Retry(err error) (pause time.Duration, again bool) {
	pr, u := &r.progress, r.policy.Rand
	if u == nil {
		u = rand.Float64
	}
	started := pr.Elapsed // when the wait before the attempt ended
	pr.Attempt, pr.Elapsed = pr.Attempt+1, time.Since(r.began)
	pr.Lasted = pr.Elapsed - started
	d := r.policy.Spend(context.Background(), r.policy.Decide(*pr, retry.After(hint(err), err), u()), time.Now())
	pr.Prev, pr.Forgiven = d.Backoff, d.Forgiven
	pr.Elapsed += d.Delay
	return d.Delay, d.Status == retry.WaitingRetry
}

// classify is the table of package retryrpc.
func classify(err error) retry.Class {
	code := codes.Unknown
	if failed, ok := apierror.FromError(err); ok {
		code = status.Code(failed)
	}
	return retryrpc.Failure{Code: retryrpc.Code(code), Hint: hint(err)}.Class()
}

// hint returns the wait that err asks for, the longer one of a status detail and a header.
func hint(err error) (wait time.Duration) {
	if failed, ok := apierror.FromError(err); ok {
		wait = failed.Details().RetryInfo.GetRetryDelay().AsDuration()
	}
	if failed := new(googleapi.Error); errors.As(err, &failed) {
		wait = max(wait, hints.RetryAfter(failed.Header, time.Now()))
	}
	return wait
}
