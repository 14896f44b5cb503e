package store

import (
	"context"

	"github.com/retrygo/retry"
)

type Store struct{}

func (s *Store) Save(ctx context.Context) error { // want Save:`retries`
	return retry.Do(ctx, retry.Policy{MaxAttempts: 3}, s.Write)
}

func (s *Store) Write(ctx context.Context) error { return nil }

func Load[T any](ctx context.Context) (T, error) { // want Load:`retries`
	return retry.DoValue(ctx, retry.Inline(), func(ctx context.Context) (value T, err error) { return value, nil })
}

func Once(ctx context.Context) error {
	return retry.Do(ctx, retry.Policy{MaxAttempts: 1}, func(context.Context) error { return nil })
}
