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
	"v4 notify":   v4Notify,
	"v4 data":     v4Data,
	"v4 method":   func(_ context.Context, work Work, _ func(...any)) (string, error) { return v4Method(work) },
	"v4 elapsed": func(ctx context.Context, work Work, _ func(...any)) (string, error) {
		return v4Elapsed(ctx, work, &config{limit: 3 * time.Second})
	},
	"v4 no limit": func(ctx context.Context, work Work, _ func(...any)) (string, error) {
		return v4Elapsed(ctx, work, &config{})
	},
	"v4 retries": func(ctx context.Context, work Work, _ func(...any)) (string, error) {
		return v4Retries(ctx, work, 3)
	},
	"v4 none":     func(ctx context.Context, work Work, _ func(...any)) (string, error) { return v4Retries(ctx, work, 0) },
	"v4 interval": func(ctx context.Context, work Work, _ func(...any)) (string, error) { return v4Interval(work, 0) },
	"v4 jitter":   v4Jitter,
	"v4 rounding": v4Rounding,
	"v4 nested":   v4Nested,
	"v4 typed":    v4Typed,
	"v4 settings": v4Settings,
	"v4 negative": func(ctx context.Context, work Work, _ func(...any)) (string, error) {
		return v4Interval(work, -time.Second)
	},
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

func v4Notify(ctx context.Context, work Work, note func(...any)) (string, error) {
	var s string
	b := backoff.NewExponentialBackOff(backoff.WithRandomizationFactor(0), backoff.WithMultiplier(1))
	err := backoff.RetryNotify(
		func() error {
			var err error
			s, err = work(ctx)
			return err
		},
		backoff.WithMaxRetries(backoff.WithContext(b, ctx), 3),
		func(err error, d time.Duration) {
			if err == nil {
				return
			}
			// told of each
			note("failed", err, "again in", d)
		},
	)
	if err != nil {
		return "", fmt.Errorf("v4: %w", err)
	}
	return s, nil
}

func v4Data(ctx context.Context, work Work, note func(...any)) (string, error) {
	notify := func(err error, d time.Duration) { note(err, d) }
	return backoff.RetryNotifyWithData(func() (string, error) {
		return work(ctx)
	}, backoff.WithContext(backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 2), ctx), notify)
}

func v4Method(work Work) (string, error) {
	c := &client{work}
	err := backoff.Retry(c.ping, backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 2))
	if err == nil {
		s, err := backoff.RetryWithData(c.fetch, backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 1))
		if err != nil {
			return "", errFailed
		}
		return s, nil
	}
	return "", errFailed
}

type config struct{ limit time.Duration }

func v4Elapsed(ctx context.Context, work Work, cfg *config) (s string, _ error) {
	policy := backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(cfg.limit), backoff.WithRandomizationFactor(0))
	policy.MaxInterval = time.Second
	failures := 0
	note := func(error, time.Duration) { failures++ }
	if err := backoff.RetryNotify(func() (err error) {
		s, err = work(ctx)
		return err
	}, policy, note); err != nil {
		return "", errFailed
	}
	return s, nil
}

func v4Retries(ctx context.Context, work Work, n uint64) (s string, _ error) {
	b := backoff.WithMaxRetries(backoff.NewConstantBackOff(50*time.Millisecond), uint64(n))
	err := backoff.Retry(func() (err error) {
		s, err = work(ctx)
		return err
	}, b)
	if err != nil {
		return "", errFailed
	}
	return s, nil
}

func v4Interval(work Work, d time.Duration) (s string, _ error) {
	if backoff.Retry(func() (err error) {
		s, err = work(context.Background())
		return err
	}, backoff.WithMaxRetries(backoff.NewConstantBackOff(d), 4)) != nil {
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

const longest = 3 * time.Second

func v4Settings(ctx context.Context, work Work, note func(...any)) (s string, _ error) {
	b := backoff.NewExponentialBackOff(backoff.WithRandomizationFactor(0))
	b.Multiplier = 2
	b.InitialInterval = time.Second
	b.MaxInterval, b.MaxElapsedTime = longest, 0
	errs := make(chan error, 1)
	errs <- backoff.RetryNotify(func() (err error) {
		s, err = work(ctx)
		return err
	}, backoff.WithContext(b, ctx), func(err error, d time.Duration) { note(err, d) })
	return s, <-errs
}

func v4Typed(_ context.Context, work Work, note func(...any)) (string, error) {
	var s string
	var op func() error = func() (err error) {
		s, err = work(context.TODO())
		return err
	}
	told := func(err error, d time.Duration) { note(err, d) }
	if err := backoff.RetryNotify(op, backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 2), told); err != nil {
		return "", errFailed
	}
	return s, nil
}
