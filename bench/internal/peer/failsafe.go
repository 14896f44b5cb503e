package peer

import (
	"context"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"

	"github.com/retrygo/retry/bench/internal/contest"
)

// failsafeGo tells how long a run took in the event of OnDone.
var failsafeGo = []Loop{
	{
		Name:         "failsafe-go",
		Form:         contest.Fastest,
		Remark:       "executor built once, with its context; returns the last error only",
		TellsElapsed: true,
		TimesOut:     true,
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			retries := retrypolicy.NewBuilder[any]().WithMaxAttempts(c.Attempts).WithDelay(c.Delay).ReturnLastFailure().Build()
			executor := failsafe.With(failsafePolicies(c, retries)...).WithContext(ctx)
			if c.AttemptTimeout == 0 {
				attempt := func() error { return fn(ctx) }
				return func() error { return executor.Run(attempt) }
			}
			attempt := func(e failsafe.Execution[any]) error { return fn(e.Context()) }
			return func() error { return executor.RunWithExecution(attempt) }
		},
	},
	{
		Name:         "failsafe-go, usual form",
		Form:         contest.Usual,
		Remark:       "policies built once, executor in each call",
		TellsElapsed: true,
		TimesOut:     true,
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			retries := retrypolicy.NewBuilder[any]().WithMaxAttempts(c.Attempts).WithDelay(c.Delay).Build()
			policies := failsafePolicies(c, retries)
			return func() error {
				return failsafe.With(policies...).WithContext(ctx).RunWithExecution(func(e failsafe.Execution[any]) error {
					return fn(e.Context())
				})
			}
		},
	},
}

// failsafePolicies returns retries around the timeout of an attempt, if c has one.
func failsafePolicies(c Config, retries retrypolicy.RetryPolicy[any]) []failsafe.Policy[any] {
	policies := []failsafe.Policy[any]{retries}
	if c.AttemptTimeout > 0 {
		policies = append(policies, timeout.New[any](c.AttemptTimeout))
	}
	return policies
}
