package nested

import (
	"context"

	"github.com/retrygo/retry"
	"nested/store"
)

type service struct {
	store store.Store
}

func direct(ctx context.Context, write func(context.Context) error) error { // want direct:`retries`
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		return retry.Do(ctx, retry.Policy{MaxAttempts: 3}, write) // want `retry.Do retries, inside what retry.Do retries, so that attempts multiply: give it retry.OneAttempt\(ctx\), or retry in one place`
	})
}

func (s *service) across(ctx context.Context) error { // want across:`retries`
	return retry.Do(ctx, retry.Policy{MaxAttempts: 3}, func(ctx context.Context) error {
		return s.step(ctx) // want `s.step retries, inside what retry.Do retries`
	})
}

func (s *service) step(ctx context.Context) error { return s.store.Save(ctx) } // want step:`retries`

func (s *service) named(ctx context.Context, p retry.Policy) error { // want named:`retries`
	return retry.Do(ctx, p, s.store.Save) // want `s.store.Save retries, inside what retry.Do retries`
}

func generic(ctx context.Context) error { // want generic:`retries`
	return retry.Do(ctx, retry.Policy{}, func(ctx context.Context) error {
		_, err := store.Load[int](ctx) // want `store.Load\[int\] retries, inside what retry.Do retries`
		return err
	})
}

func (s *service) onPurpose(ctx context.Context, p retry.Policy) error { // want onPurpose:`retries`
	return retry.Do(ctx, p, func(ctx context.Context) error {
		go s.store.Save(ctx)
		if err := store.Once(ctx); err != nil {
			return err
		}
		if err := s.store.Save(retry.OneAttempt(ctx)); err != nil {
			return err
		}
		one := retry.OneAttempt(ctx)
		return s.store.Save(one)
	})
}

func loops(ctx context.Context, s *service) (err error) { // want loops:`retries`
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		err = s.step(ctx) // want `s.step retries, inside what retry.Attempts retries`
	}
	return err
}

func aroundALoop(ctx context.Context, s *service) error { // want aroundALoop:`retries`
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) (err error) {
		for ctx := range retry.Attempts(ctx, retry.Inline(), &err) { // want `retry.Attempts retries, inside what retry.Do retries`
			err = store.Once(ctx)
		}
		return err
	})
}

func underOneAttempt(ctx context.Context, s *service) (err error) { // want underOneAttempt:`retries`
	for ctx := range retry.Attempts(retry.OneAttempt(ctx), retry.Inline(), &err) {
		err = s.step(ctx)
	}
	return err
}
