package migrating_test

import (
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
)

func (c client) defaultFailsafe(ctx context.Context) (string, error) {
	return failsafe.With(retrypolicy.NewWithDefaults[string]()).WithContext(ctx).
		GetWithExecution(func(e failsafe.Execution[string]) (string, error) { return c.fetch(e.Context()) })
}

func (c client) failsafe(ctx context.Context) (string, error) {
	retries := retrypolicy.NewBuilder[string]().
		WithMaxAttempts(5).
		WithBackoff(100*time.Millisecond, time.Second).
		WithMaxDuration(time.Minute).
		AbortOnErrors(errNotFound).
		Build()
	return failsafe.With(retries, timeout.New[string](2*time.Second)).WithContext(ctx).
		GetWithExecution(func(e failsafe.Execution[string]) (string, error) {
			return c.fetch(e.Context())
		})
}

func (c client) constantFailsafe(ctx context.Context) (string, error) {
	retries := retrypolicy.NewBuilder[string]().WithMaxAttempts(3).WithDelay(time.Second).Build()
	return failsafe.With(retries).WithContext(ctx).
		GetWithExecution(func(e failsafe.Execution[string]) (string, error) { return c.fetch(e.Context()) })
}

func (c client) retryAfterFailsafe(ctx context.Context) (string, error) {
	retries := retrypolicy.NewBuilder[string]().WithMaxAttempts(4).WithBackoff(time.Second, time.Minute).
		WithDelayFunc(func(e failsafe.ExecutionAttempt[string]) time.Duration {
			var busy *busyError
			if errors.As(e.LastError(), &busy) {
				return busy.after
			}
			return -1 // the backoff's own
		}).Build()
	return failsafe.With(retries).WithContext(ctx).
		GetWithExecution(func(e failsafe.Execution[string]) (string, error) { return c.fetch(e.Context()) })
}
