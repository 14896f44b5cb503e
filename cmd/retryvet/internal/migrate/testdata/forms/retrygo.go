package forms

import (
	"context"
	"errors"
	"time"

	"github.com/avast/retry-go/v4"
	retry5 "github.com/avast/retry-go/v5"
)

var retryGo = map[string]Form{
	"avast v4 fixed":   avast4Fixed,
	"avast v4 backoff": avast4Backoff,
	"avast v4 if":      avast4If,
	"avast v5 backoff": avast5Backoff,
	"avast v5 jitter":  avast5Jitter,
	"avast v5 forever": avast5Forever,
	"avast v4 settings": func(_ context.Context, work Work, note func(...any)) (string, error) {
		return avast4Settings(work, note, options{attempts: 6, wait: time.Second, longest: 5 * time.Second})
	},
}

func avast4Fixed(ctx context.Context, work Work, note func(...any)) (string, error) {
	var s string
	err := retry.Do(func() error {
		var err error
		s, err = work(ctx)
		if err != nil && errors.Is(err, errNotFound) {
			return retry.Unrecoverable(err)
		}
		return err
	}, retry.Context(ctx), retry.Attempts(3), retry.Delay(time.Second), retry.DelayType(retry.FixedDelay),
		retry.OnRetry(func(n uint, err error) { note(n, err) }), retry.LastErrorOnly(true))
	return s, err
}

func avast4Backoff(_ context.Context, work Work, _ func(...any)) (string, error) {
	s, err := retry.DoWithData(func() (string, error) {
		return work(context.Background())
	}, retry.DelayType(retry.BackOffDelay), retry.MaxDelay(time.Second))
	if err != nil {
		return "", errFailed
	}
	return s, nil
}

func avast4If(ctx context.Context, work Work, note func(...any)) (string, error) {
	return retry.DoWithData(
		func() (string, error) { return work(ctx) },
		retry.Context(ctx),
		retry.DelayType(retry.BackOffDelay),
		retry.RetryIf(func(err error) bool { return errors.Is(err, errBusy) }),
		retry.OnRetry(func(n uint, err error) { note(n, err) }),
		retry.LastErrorOnly(true),
	)
}

func avast5Backoff(ctx context.Context, work Work, note func(...any)) (string, error) {
	return retry5.NewWithData[string](
		retry5.Context(ctx), retry5.Attempts(5), retry5.DelayType(retry5.BackOffDelay),
		retry5.Delay(100*time.Millisecond), retry5.MaxDelay(time.Second), retry5.LastErrorOnly(true),
		retry5.OnRetry(func(n uint, err error) {
			note(n+1, err)
		}),
	).Do(func() (string, error) {
		s, err := work(ctx)
		if errors.Is(err, errNotFound) {
			err = retry5.Unrecoverable(err)
		}
		return s, err
	})
}

func avast5Jitter(ctx context.Context, work Work, _ func(...any)) (s string, _ error) {
	err := retry5.New(retry5.Context(ctx), retry5.DelayType(retry5.FullJitterBackoffDelay), retry5.Attempts(4)).Do(
		func() (err error) {
			s, err = work(ctx)
			return err
		})
	if err != nil {
		return "", errFailed
	}
	return s, nil
}

func avast5Forever(ctx context.Context, work Work, _ func(...any)) (s string, _ error) {
	err := retry5.New(retry5.Context(ctx), retry5.DelayType(retry5.FixedDelay), retry5.UntilSucceeded()).Do(
		func() (err error) {
			s, err = work(ctx)
			return err
		})
	if err != nil {
		return "", errFailed
	}
	return s, nil
}

type options struct {
	attempts      uint
	wait, longest time.Duration
}

func avast4Settings(work Work, note func(...any), o options) (s string, err error) {
	err = retry.Do(func() error {
		s, err = work(context.Background())
		return err
	},
		retry.Attempts(o.attempts), retry.Delay(o.wait), retry.MaxDelay(o.longest), retry.DelayType(retry.BackOffDelay),
		retry.OnRetry(func(n uint, err error) { note(n+1, err) }))
	return s, err
}
