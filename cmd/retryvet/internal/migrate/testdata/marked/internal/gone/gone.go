// Package gone makes a mark that only this module sees.
package gone

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Retry ends at final.
func Retry(ctx context.Context, work func() (string, error), final error) (string, error) {
	return backoff.Retry(ctx, func() (string, error) {
		s, err := work()
		return s, mark(err, final)
	}, backoff.WithMaxTries(4), backoff.WithBackOff(backoff.NewConstantBackOff(time.Second)))
}

func mark(err, final error) error {
	if errors.Is(err, final) {
		return backoff.Permanent(err)
	}
	return err
}
