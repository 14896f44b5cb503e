package migrating_test

import (
	"context"
	"errors"
	"time"

	"github.com/retrygo/retry"
)

func (c client) afterDefaultBackoff(ctx context.Context) (string, error) {
	return retry.DoValue(ctx, retry.Policy{
		MaxAttempts: retry.Unlimited,
		Backoff: retry.Backoff{
			Base: 500 * time.Millisecond, Factor: 1.5, Cap: time.Minute,
			Jitter: retry.RatioJitter, JitterRatio: 0.5,
		},
		TTL: 15 * time.Minute,
	}, c.fetch)
}

func (c client) afterBackoff(ctx context.Context) (string, error) {
	return retry.DoValue(ctx, retry.Policy{
		MaxAttempts: 5,
		Backoff:     retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second},
		TTL:         time.Minute,
		Classify:    retry.StopOn(errNotFound),
		Observe: func(_ context.Context, e retry.Event) {
			if e.Decision.Status == retry.WaitingRetry {
				c.logf("%v, again in %v", e.Attempt.Err, e.Decision.Delay)
			}
		},
	}, c.fetch)
}

func (c client) afterConstant(ctx context.Context) (string, error) {
	p := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}}
	return retry.DoValue(ctx, p, c.fetch)
}

func (c client) afterRetryAfter(ctx context.Context) (string, error) {
	p := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: time.Second}}
	return retry.DoValue(ctx, p, func(ctx context.Context) (string, error) {
		s, err := c.fetch(ctx)
		var busy *busyError
		if errors.As(err, &busy) {
			err = retry.After(busy.after, err)
		}
		return s, err
	})
}

func (c client) afterDefaultRetryGo(ctx context.Context) (string, error) {
	return retry.DoValue(ctx, retry.Policy{
		MaxAttempts: 10,
		Backoff:     retry.Backoff{Base: 150 * time.Millisecond, Jitter: retry.RatioJitter, JitterRatio: 0.33},
	}, c.fetch)
}

func (c client) afterRetryGo(ctx context.Context) (string, error) {
	return retry.DoValue(ctx, retry.Policy{
		MaxAttempts: 5,
		Backoff:     retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second},
		Classify:    retry.StopOn(errNotFound),
		Observe: func(_ context.Context, e retry.Event) {
			if e.Outcome == nil { // not the final event
				c.logf("attempt %d: %v", e.Attempt.Number, e.Attempt.Err)
			}
		},
	}, c.fetch)
}

func (c client) afterSethvargo(ctx context.Context) (string, error) {
	return retry.DoValue(ctx, retry.Policy{
		MaxAttempts: 5,
		Backoff:     retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second},
		TTL:         time.Minute,
		Classify:    retry.FirstOf(retry.RetryOn(errBusy), retry.Otherwise(retry.Terminal)),
	}, c.fetch)
}

func (c client) afterDefaultFailsafe(ctx context.Context) (string, error) {
	return retry.DoValue(ctx, retry.Policy{
		MaxAttempts: 3,
		Backoff:     retry.Backoff{Delays: []time.Duration{0}},
	}, c.fetch)
}

func (c client) afterFailsafe(ctx context.Context) (string, error) {
	return retry.DoValue(ctx, retry.Policy{
		MaxAttempts:    5,
		Backoff:        retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second},
		TTL:            time.Minute,
		AttemptTimeout: 2 * time.Second,
		Classify:       retry.StopOn(errNotFound),
	}, c.fetch)
}

func (c client) afterByHand(ctx context.Context) (string, error) {
	return retry.DoValue(ctx, retry.Policy{
		MaxAttempts: 5,
		Backoff:     retry.Backoff{Base: 100 * time.Millisecond},
		Classify:    retry.StopOn(errNotFound),
	}, c.fetch)
}

func (c client) afterByHandLoop(ctx context.Context) (s string, err error) {
	p := retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Base: 100 * time.Millisecond}}
	for ctx := range retry.Attempts(ctx, p, &err) {
		s, err = c.fetch(ctx)
		if errors.Is(err, errNotFound) {
			return s, err
		}
	}
	return s, err
}
