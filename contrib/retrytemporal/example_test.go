package retrytemporal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrytemporal"
)

func ExamplePolicy() {
	policy := retry.Policy{
		MaxAttempts: 6,
		Backoff:     retry.Backoff{Base: time.Second, Cap: 10 * time.Second, Jitter: retry.EqualJitter},
		TTL:         time.Minute,
	}
	retryPolicy, lost, err := retrytemporal.Policy(policy)
	if err != nil {
		panic(err)
	}
	fmt.Println(retryPolicy.InitialInterval, retryPolicy.BackoffCoefficient, retryPolicy.MaximumInterval, retryPolicy.MaximumAttempts)
	for _, line := range lost {
		fmt.Println("lost:", line)
	}

	// Output:
	// 1s 2 10s 6
	// lost: Policy.Jitter equal: there is none
	// lost: Policy.TTL 1m: ActivityOptions.ScheduleToCloseTimeout can take its place, and ends an attempt under way, too
}

// An activity with a list of waits, and a workflow that calls it.
func ExampleError() {
	policy := retry.Standard()
	charge := func(ctx context.Context) error {
		fmt.Println("attempt", activity.GetInfo(ctx).Attempt)
		return retrytemporal.Error(ctx, policy, errors.New("card service is down"))
	}
	order := func(ctx workflow.Context) error {
		retryPolicy, _, err := retrytemporal.PolicyForErrors(policy)
		if err != nil {
			return err
		}
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: retryPolicy})
		start := workflow.Now(ctx)
		err = workflow.ExecuteActivity(ctx, charge).Get(ctx, nil)
		fmt.Println("ended after", workflow.Now(ctx).Sub(start))
		return err
	}

	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(charge)
	env.ExecuteWorkflow(order)
	var failure *temporal.ApplicationError
	if errors.As(errors.Unwrap(env.GetWorkflowError()), &failure) {
		fmt.Println(errors.Unwrap(failure))
	}

	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// attempt 4
	// ended after 3h31m0s
	// card service is down
}

func ExamplePolicyForErrors() {
	policy := retry.Cautious()
	retryPolicy, lost, err := retrytemporal.PolicyForErrors(policy)
	if err != nil {
		panic(err)
	}
	fmt.Println("at most", retryPolicy.MaximumAttempts, "attempts, waits up to", retryPolicy.MaximumInterval)
	for _, line := range lost {
		fmt.Println("lost:", line)
	}

	// Output:
	// at most 6 attempts, waits up to 12h0m0s
	// lost: Policy.Delays of 5 entries: after a timeout, a panic or the loss of a worker the waits are 1m 5m10.8s 26m50s 2h19m 12h instead of 1m 10m 1h 4h 12h
}

// A workflow that is itself retried has no clock and no random numbers: it passes its progress.
func ExampleErrorAt() {
	policy := retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{time.Minute, time.Hour}}}
	for attempt := 1; attempt <= 3; attempt++ {
		err := retrytemporal.ErrorAt(policy, retry.Progress{Attempt: attempt}, errors.New("down"), 0)
		var failure *temporal.ApplicationError
		errors.As(err, &failure)
		fmt.Println(failure.NextRetryDelay(), failure.NonRetryable(), failure.Message())
	}

	// Output:
	// 1m0s false retry: attempt 1 failed, the next is due in 1m0s
	// 1h0m0s false retry: attempt 2 failed, the next is due in 1h0m0s
	// 0s true retry: gave up after 3 attempts in 0s (attempts_exhausted)
}
