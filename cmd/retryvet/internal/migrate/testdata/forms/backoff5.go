package forms

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

var backoff5 = map[string]Form{
	"v5 tries":    v5Tries,
	"v5 variable": v5Variable,
	"v5 elapsed":  v5Elapsed,
	"v5 jitter":   v5Jitter,
}

func v5Tries(ctx context.Context, work Work, _ func(...any)) (string, error) {
	return backoff.Retry(ctx, func() (string, error) {
		s, err := work(ctx)
		if errors.Is(err, errNotFound) {
			err = backoff.Permanent(err)
		}
		return s, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(time.Second)), backoff.WithMaxTries(3))
}

func v5Variable(ctx context.Context, work Work, note func(...any)) (string, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.Multiplier, b.RandomizationFactor = time.Second, 2, 0
	s, err := backoff.Retry(ctx, func() (string, error) { return work(ctx) },
		backoff.WithBackOff(b),
		backoff.WithNotify(func(err error, _ time.Duration) { note(err) }))
	if err != nil {
		return "", errFailed
	}
	return s, nil
}

func v5Elapsed(ctx context.Context, work Work, _ func(...any)) (string, error) {
	operation := func() (string, error) { return work(ctx) }
	return backoff.Retry(ctx, operation, backoff.WithMaxElapsedTime(3*time.Second),
		backoff.WithBackOff(backoff.NewConstantBackOff(time.Second)))
}

func v5Jitter(ctx context.Context, work Work, _ func(...any)) (string, error) {
	return backoff.Retry(ctx, func() (string, error) { return work(ctx) }, backoff.WithMaxTries(4))
}
