// Package client is the example of README.md.
package client

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

var errNotFound = errors.New("not found")

type client struct {
	fetch func(ctx context.Context, id string) (string, error)
}

func (c *client) get(ctx context.Context, id string) (string, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = 100 * time.Millisecond
	return backoff.RetryWithData(func() (string, error) {
		s, err := c.fetch(ctx, id)
		if errors.Is(err, errNotFound) {
			err = backoff.Permanent(err)
		}
		return s, err
	}, backoff.WithContext(backoff.WithMaxRetries(b, 4), ctx))
}
