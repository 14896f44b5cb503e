package migrating_test

import (
	"context"
	"errors"
	"time"

	"github.com/avast/retry-go/v5"
)

func (c client) defaultRetryGoV5(ctx context.Context) (string, error) {
	return retry.NewWithData[string](retry.Context(ctx)).Do(func() (string, error) { return c.fetch(ctx) })
}

func (c client) retryGoV5(ctx context.Context) (string, error) {
	return retry.NewWithData[string](
		retry.Context(ctx), retry.Attempts(5), retry.DelayType(retry.BackOffDelay),
		retry.Delay(100*time.Millisecond), retry.MaxDelay(time.Second),
		retry.OnRetry(func(n uint, err error) {
			c.logf("attempt %d: %v", n+1, err)
		}),
	).Do(func() (string, error) {
		s, err := c.fetch(ctx)
		if errors.Is(err, errNotFound) {
			err = retry.Unrecoverable(err)
		}
		return s, err
	})
}

func (c client) constantRetryGoV5(ctx context.Context) (string, error) {
	return retry.NewWithData[string](
		retry.Context(ctx), retry.Attempts(3), retry.Delay(time.Second), retry.DelayType(retry.FixedDelay),
	).Do(func() (string, error) { return c.fetch(ctx) })
}

func (c client) retryAfterRetryGoV5(ctx context.Context) (string, error) {
	return retry.NewWithData[string](
		retry.Context(ctx), retry.Attempts(4), retry.Delay(time.Second),
		retry.DelayType(func(n uint, err error, config retry.DelayContext) time.Duration {
			var busy *busyError
			if errors.As(err, &busy) {
				return busy.after
			}
			return retry.BackOffDelay(n, err, config)
		}),
	).Do(func() (string, error) { return c.fetch(ctx) })
}
