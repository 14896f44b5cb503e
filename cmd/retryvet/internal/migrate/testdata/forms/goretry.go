package forms

import (
	"context"
	"errors"
	"time"

	"github.com/sethvargo/go-retry"
)

var goRetry = map[string]Form{
	"sethvargo chain":    sethvargoChain,
	"sethvargo inline":   sethvargoInline,
	"sethvargo constant": sethvargoConstant,
	"sethvargo jitter":   sethvargoJitter,
	"sethvargo percent":  sethvargoPercent,
}

func sethvargoChain(ctx context.Context, work Work, _ func(...any)) (string, error) {
	b := retry.NewExponential(100 * time.Millisecond)
	b = retry.WithMaxRetries(4, retry.WithCappedDuration(500*time.Millisecond, b))
	return retry.DoValue(ctx, b, func(ctx context.Context) (string, error) {
		s, err := work(ctx)
		if !errors.Is(err, errNotFound) {
			err = retry.RetryableError(err)
		}
		return s, err
	})
}

func sethvargoInline(ctx context.Context, work Work, _ func(...any)) (s string, _ error) {
	if err := retry.Do(ctx, retry.WithMaxRetries(3, retry.NewConstant(time.Second)), func(ctx context.Context) (err error) {
		s, err = work(ctx)
		if errors.Is(err, errBusy) {
			return retry.RetryableError(err)
		}
		return err
	}); err != nil {
		return "", errFailed
	}
	return s, nil
}

func sethvargoConstant(ctx context.Context, work Work, _ func(...any)) (s string, _ error) {
	err := retry.Constant(ctx, 2*time.Second, func(ctx context.Context) (err error) {
		s, err = work(ctx)
		return retry.RetryableError(err)
	})
	if err != nil {
		return "", errFailed
	}
	return s, nil
}

func sethvargoJitter(ctx context.Context, work Work, _ func(...any)) (s string, _ error) {
	b := retry.WithFullJitter(retry.WithMaxRetries(4, retry.NewExponential(time.Second)))
	err := retry.Do(ctx, b, func(ctx context.Context) (err error) {
		s, err = work(ctx)
		return retry.RetryableError(err)
	})
	return s, err
}

func sethvargoPercent(ctx context.Context, work Work, _ func(...any)) (s string, _ error) {
	b := retry.WithMaxRetries(4, retry.WithJitterPercent(15+5, retry.NewConstant(time.Second)))
	err := retry.Do(ctx, b, func(ctx context.Context) (err error) {
		s, err = work(ctx)
		return retry.RetryableError(err)
	})
	return s, err
}
