package migrating_test

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

func (c client) defaultBackoffV4(ctx context.Context) (string, error) {
	return backoff.RetryWithData(func() (string, error) { return c.fetch(ctx) },
		backoff.WithContext(backoff.NewExponentialBackOff(), ctx))
}

func (c client) backoffV4(ctx context.Context) (string, error) {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0),
		backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(time.Minute))
	return backoff.RetryNotifyWithData(func() (string, error) {
		s, err := c.fetch(ctx)
		if errors.Is(err, errNotFound) {
			err = backoff.Permanent(err)
		}
		return s, err
	}, backoff.WithContext(backoff.WithMaxRetries(b, 4), ctx),
		func(err error, wait time.Duration) {
			c.logf("%v, again in %v", err, wait)
		})
}

func (c client) constantBackoffV4(ctx context.Context) (string, error) {
	b := backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 2)
	return backoff.RetryWithData(func() (string, error) { return c.fetch(ctx) }, backoff.WithContext(b, ctx))
}
