package forms

import (
	"context"
	"errors"
	"fmt"
	"time"

	retrygo "github.com/avast/retry-go/v4"
	"github.com/cenkalti/backoff/v4"
	"github.com/sethvargo/go-retry"

	"example.com/forms/internal/gone"
)

// The marks of these forms are made by functions.
var tables = []map[string]Form{{
	"v4":        v4,
	"v5":        v5,
	"avast":     avast,
	"sethvargo": sethvargo,
}}

// final is looked at by isFinal, so that the mark of backoff stays.
func final(err error) error {
	if errors.Is(err, errNotFound) {
		return fmt.Errorf("marked: %w", backoff.Permanent(err))
	}
	return err
}

func isFinal(err error) bool {
	var mark *backoff.PermanentError
	return errors.As(err, &mark)
}

func v4(ctx context.Context, work Work, note func(...any)) (s string, err error) {
	err = backoff.Retry(func() error {
		s, err = work(ctx)
		err = final(err)
		note(isFinal(err))
		return err
	}, backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 4))
	if err != nil {
		return "", errFailed
	}
	return s, nil
}

func v5(ctx context.Context, work Work, _ func(...any)) (string, error) {
	return gone.Retry(ctx, func() (string, error) { return work(ctx) }, errNotFound)
}

// Unless is called by others, so that the mark of retry-go stays.
func Unless(err error) error {
	if errors.Is(err, errNotFound) {
		err = retrygo.Unrecoverable(err)
	}
	return err
}

func avast(ctx context.Context, work Work, _ func(...any)) (s string, err error) {
	err = retrygo.Do(func() error {
		s, err = work(ctx)
		return Unless(err)
	}, retrygo.DelayType(retrygo.FixedDelay), retrygo.Attempts(4))
	if err != nil {
		return "", errFailed
	}
	return s, nil
}

func again(err error) error {
	if errors.Is(err, errBusy) {
		return retry.RetryableError(err)
	}
	return err
}

func sethvargo(ctx context.Context, work Work, _ func(...any)) (s string, err error) {
	err = retry.Do(ctx, retry.WithMaxRetries(3, retry.NewConstant(time.Second)), func(ctx context.Context) error {
		s, err = work(ctx)
		return again(err)
	})
	if err != nil {
		return "", errFailed
	}
	return s, nil
}
