package migrating_test

import (
	"context"
	"errors"
	"time"

	"github.com/avast/retry-go/v4"
)

func (c client) defaultRetryGoV4(ctx context.Context) (string, error) {
	return retry.DoWithData(func() (string, error) { return c.fetch(ctx) }, retry.Context(ctx))
}

func (c client) retryGoV4(ctx context.Context) (string, error) {
	return retry.DoWithData(func() (string, error) {
		s, err := c.fetch(ctx)
		if errors.Is(err, errNotFound) {
			err = retry.Unrecoverable(err)
		}
		return s, err
	},
		retry.Context(ctx),
		retry.Attempts(5),
		retry.DelayType(retry.BackOffDelay),
		retry.Delay(100*time.Millisecond),
		retry.MaxDelay(time.Second),
		retry.OnRetry(func(n uint, err error) {
			c.logf("attempt %d: %v", n+1, err)
		}))
}

func (c client) constantRetryGoV4(ctx context.Context) (string, error) {
	return retry.DoWithData(func() (string, error) { return c.fetch(ctx) },
		retry.Context(ctx), retry.Attempts(3), retry.Delay(time.Second), retry.DelayType(retry.FixedDelay))
}

func (c client) retryAfterRetryGoV4(ctx context.Context) (string, error) {
	return retry.DoWithData(func() (string, error) { return c.fetch(ctx) },
		retry.Context(ctx), retry.Attempts(4), retry.Delay(time.Second),
		retry.DelayType(func(n uint, err error, config *retry.Config) time.Duration {
			var busy *busyError
			if errors.As(err, &busy) {
				return busy.after
			}
			return retry.BackOffDelay(n, err, config)
		}))
}
