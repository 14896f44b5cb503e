package forms

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

var backoff4 = map[string]Form{
	"v4 constant": func(ctx context.Context, work Work, _ func(...any)) (string, error) { return v4Constant(ctx, work) },
	"v4 fields":   func(_ context.Context, work Work, _ func(...any)) (string, error) { return v4Fields(work) },
	"v4 options":  v4Options,
	"v4 elapsed": func(ctx context.Context, work Work, _ func(...any)) (string, error) {
		return v4Elapsed(ctx, work, &config{limit: 3 * time.Second})
	},
	"v4 no limit": func(ctx context.Context, work Work, _ func(...any)) (string, error) {
		return v4Elapsed(ctx, work, &config{})
	},
	"v4 retries":  v4Retries,
	"v4 none":     v4None,
	"v4 interval": func(ctx context.Context, work Work, _ func(...any)) (string, error) { return v4Interval(work) },
	"v4 jitter":   v4Jitter,
	"v4 rounding": v4Rounding,
	"v4 nested":   v4Nested,
}

func v4Constant(ctx context.Context, work Work) (string, error) {
	var s string
	err := backoff.Retry(func() error {
		var err error
		s, err = work(ctx)
		if errors.Is(err, errNotFound) {
			return backoff.Permanent(err) // no use
		}
		return err
	}, backoff.WithContext(backoff.WithMaxRetries(backoff.NewConstantBackOff(100*time.Millisecond), 4), ctx))
	return s, err
}

func v4Fields(work Work) (string, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = 100 * time.Millisecond
	b.Multiplier, b.RandomizationFactor = 2, 0
	b.MaxInterval = 5 * time.Second
	b.Reset()
	var s string
	operation := func() (err error) {
		s, err = work(context.TODO())
		if errors.Is(err, errNotFound) {
			err = backoff.Permanent(fmt.Errorf("fetch: %w", err))
		}
		return err
	}
	// The comment stays.
	if err := backoff.Retry(operation, b); err != nil {
		return "", errFailed
	}
	return s, nil
}

const first = 100 * time.Millisecond

func v4Options(ctx context.Context, work Work, _ func(...any)) (string, error) {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first),
		backoff.WithRandomizationFactor(0),
		backoff.WithMultiplier(3),
		backoff.WithMaxElapsedTime(0),
	)
	bo := backoff.WithContext(b, ctx)
	return backoff.RetryWithData(func() (string, error) { return work(ctx) }, bo)
}

type config struct{ limit time.Duration }

func v4Elapsed(ctx context.Context, work Work, cfg *config) (s string, _ error) {
	policy := backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(cfg.limit), backoff.WithRandomizationFactor(0))
	policy.MaxInterval = time.Second
	if err := backoff.Retry(func() (err error) {
		s, err = work(ctx)
		return err
	}, policy); err != nil {
		return "", errFailed
	}
	return s, nil
}

func v4Retries(ctx context.Context, work Work, _ func(...any)) (s string, _ error) {
	b := backoff.WithMaxRetries(backoff.NewConstantBackOff(50*time.Millisecond), 3)
	err := backoff.Retry(func() (err error) {
		s, err = work(ctx)
		return err
	}, b)
	if err != nil {
		return "", errFailed
	}
	return s, nil
}

func v4None(ctx context.Context, work Work, _ func(...any)) (s string, _ error) {
	if err := backoff.Retry(func() (err error) {
		s, err = work(ctx)
		return err
	}, backoff.WithMaxRetries(backoff.NewConstantBackOff(50*time.Millisecond), 0)); err != nil {
		return "", errFailed
	}
	return s, nil
}

func v4Interval(work Work) (s string, _ error) {
	if backoff.Retry(func() (err error) {
		s, err = work(context.Background())
		return err
	}, backoff.WithMaxRetries(backoff.NewConstantBackOff(0), 4)) != nil {
		return "", errFailed
	}
	return s, nil
}

func v4Jitter(ctx context.Context, work Work, _ func(...any)) (string, error) {
	return backoff.RetryWithData(func() (string, error) {
		return work(ctx)
	}, backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(), 5), ctx))
}

func v4Rounding(ctx context.Context, work Work, _ func(...any)) (string, error) {
	b := backoff.NewExponentialBackOff()
	b.RandomizationFactor = 0
	bo := backoff.WithContext(backoff.WithMaxRetries(b, 4), ctx)
	return backoff.RetryWithData(func() (string, error) {
		ctx := context.WithoutCancel(ctx)
		return work(ctx)
	}, bo)
}

func v4Nested(ctx context.Context, work Work, _ func(...any)) (string, error) {
	var s string
	err := backoff.Retry(func() error {
		return backoff.Retry(func() (err error) {
			s, err = work(ctx)
			if errors.Is(err, errNotFound) {
				return backoff.Permanent(err)
			}
			return err
		}, backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 1))
	}, backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Minute), 1))
	if err != nil {
		return "", errFailed
	}
	return s, nil
}
