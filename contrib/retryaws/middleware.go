package retryaws

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/retrygo/retry"
)

const (
	theirs = "Retry"           // the SDK's step
	runs   = "RetryRun"        // ours before it, once for each operation
	header = "RetryHeader"     // ours after it, once for each attempt
	bodies = "RetryBody"       // ours around the transport
	field  = "Amz-Sdk-Request" // the SDK's header field with the number of the attempt
)

// Middleware returns an option for aws.Config.APIOptions, or the APIOptions of one client, which makes each operation
// follow p. If p sets no part of a schedule, that of retry.Inline is used (see retry.Policy.OrSchedule). The error is
// that of p.Validate.
//
// For one operation, append the option to the APIOptions of that operation. The last of several applies. The SDK's own
// settings for retries (Retryer, RetryMaxAttempts, RetryMode, AWS_MAX_ATTEMPTS, AWS_RETRY_MODE, AWS_NEW_RETRIES_2026)
// have no effect, even if they are set for one operation. Presigning makes no request, and does not change.
//
// Policy.AttemptTimeout ends an attempt that has no result. For an operation whose output has a body to read, such as
// GetObject, it covers the attempt up to the response's headers and never cuts off the body. For others it covers the
// whole response. A request whose body cannot be rewound is not repeated.
//
// A run that fails returns the *retry.Error within the SDK's *smithy.OperationError. errors.As finds both, and the SDK's
// error of the last attempt.
func Middleware(p retry.Policy) (func(*middleware.Stack) error, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	r := &run{p.OrSchedule(retry.Inline())}
	return func(stack *middleware.Stack) error {
		found, ok := stack.Finalize.Get(theirs)
		if !ok {
			return nil // a presigned request is not sent
		}
		sdk, ok := found.(*awsretry.Attempt)
		if !ok {
			return fmt.Errorf("retryaws: the step %q is a %T, not the SDK's", theirs, found)
		}
		if _, again := stack.Finalize.Get(runs); again {
			_, err := stack.Finalize.Swap(runs, r)
			return err
		}
		return install(stack, r, sdk)
	}, nil
}

// install puts r before the SDK's step, which still makes one attempt. It measures and traces the attempt, corrects the
// clock for signatures, and reports that in its error.
func install(stack *middleware.Stack, r *run, sdk *awsretry.Attempt) error {
	once := awsretry.NewAttemptMiddleware(aws.NopRetryer{}, smithyhttp.RequestCloner, func(once *awsretry.Attempt) {
		once.OperationMeter = sdk.OperationMeter
		once.DisableClockSkewCorrection = sdk.DisableClockSkewCorrection
		if once.ClientSkew = sdk.ClientSkew; once.ClientSkew == nil {
			once.ClientSkew = new(atomic.Int64) // the skew has to reach the next attempt
		}
	})
	if _, err := stack.Finalize.Swap(theirs, once); err != nil {
		return err
	}
	if err := stack.Finalize.Insert(r, theirs, middleware.Before); err != nil {
		return err
	}
	if err := stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc(header, numbered), theirs, middleware.After); err != nil {
		return err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc(bodies, guarded), middleware.After)
}

// run is the step that runs a retry.Do for each operation.
type run struct{ policy retry.Policy }

func (*run) ID() string { return runs }

// HandleFinalize makes one operation.
func (r *run) HandleFinalize(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (middleware.FinalizeOutput, middleware.Metadata, error) {
	p := r.policy
	c := &call{policy: p, in: in, next: next}
	c.policy.Classify = classifier(p.Classify)
	p.AttemptTimeout = 0 // it must not cut off a body, which Do does not know
	p.Classify = func(error) retry.Class { return c.class }
	err := retry.Do(ctx, p, c.attempt)
	if err == nil {
		err = c.answer
	}
	return c.out, c.metadata, err
}

// numbered corrects the attempt number in the header, since the SDK's step counts only one attempt.
func numbered(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (middleware.FinalizeOutput, middleware.Metadata, error) {
	req, ok := in.Request.(*smithyhttp.Request)
	if a := attemptOf(ctx); ok && a != nil {
		_, rest, _ := strings.Cut(req.Header.Get(field), "max=1")
		number := "attempt=" + strconv.Itoa(retry.AttemptNumber(ctx))
		if most := a.policy.Effective().MaxAttempts; most > 0 {
			number += "; max=" + strconv.Itoa(most)
		}
		req.Header.Set(field, number+rest)
	}
	return next.HandleFinalize(ctx, in)
}
