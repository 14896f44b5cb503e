package migrating_test

import (
	"context"
	"errors"
	"time"

	"github.com/sethvargo/go-retry"
)

func (c client) sethvargo(ctx context.Context) (string, error) {
	b := retry.NewExponential(100 * time.Millisecond)
	b = retry.WithMaxRetries(4, retry.WithCappedDuration(time.Second, b))
	b = retry.WithMaxDuration(time.Minute, b)
	return retry.DoValue(ctx, b, func(ctx context.Context) (string, error) {
		s, err := c.fetch(ctx)
		if errors.Is(err, errBusy) {
			err = retry.RetryableError(err)
		}
		return s, err
	})
}

func (c client) constantSethvargo(ctx context.Context) (string, error) {
	b := retry.WithMaxRetries(2, retry.NewConstant(time.Second))
	return retry.DoValue(ctx, b, func(ctx context.Context) (string, error) {
		s, err := c.fetch(ctx)
		return s, retry.RetryableError(err)
	})
}

func (c client) retryAfterSethvargo(ctx context.Context) (string, error) {
	var hint time.Duration
	exponential := retry.NewExponential(time.Second)
	b := retry.WithMaxRetries(3, retry.BackoffFunc(func() (time.Duration, bool) {
		if hint > 0 {
			return hint, false
		}
		return exponential.Next()
	}))
	return retry.DoValue(ctx, b, func(ctx context.Context) (string, error) {
		s, err := c.fetch(ctx)
		hint = 0
		var busy *busyError
		if errors.As(err, &busy) {
			hint = busy.after
		}
		return s, retry.RetryableError(err)
	})
}
