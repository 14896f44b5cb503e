package migrating_test

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

func (c client) defaultBackoffV5(ctx context.Context) (string, error) {
	return backoff.Retry(ctx, func() (string, error) { return c.fetch(ctx) })
}

func (c client) backoffV5(ctx context.Context) (string, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = 100 * time.Millisecond
	b.Multiplier, b.RandomizationFactor = 2, 0
	b.MaxInterval = time.Second
	return backoff.Retry(ctx, func() (string, error) {
		s, err := c.fetch(ctx)
		if errors.Is(err, errNotFound) {
			err = backoff.Permanent(err)
		}
		return s, err
	}, backoff.WithBackOff(b), backoff.WithMaxTries(5),
		backoff.WithMaxElapsedTime(time.Minute),
		backoff.WithNotify(func(err error, wait time.Duration) {
			c.logf("%v, again in %v", err, wait)
		}))
}

func (c client) constantBackoffV5(ctx context.Context) (string, error) {
	return backoff.Retry(ctx, func() (string, error) { return c.fetch(ctx) },
		backoff.WithBackOff(backoff.NewConstantBackOff(time.Second)), backoff.WithMaxTries(3))
}

func (c client) retryAfterBackoffV5(ctx context.Context) (string, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.Multiplier, b.RandomizationFactor = time.Second, 2, 0
	return backoff.Retry(ctx, func() (string, error) {
		s, err := c.fetch(ctx)
		var busy *busyError
		if errors.As(err, &busy) {
			err = backoff.RetryAfter(int(busy.after.Seconds()))
		}
		return s, err
	}, backoff.WithBackOff(b), backoff.WithMaxTries(4))
}
