package policy

import (
	"context"
	"time"

	"github.com/retrygo/retry"
)

func call(context.Context) error { return nil }

const limit = 3 * time.Second

func calls(ctx context.Context, n int) {
	retry.Do(ctx, retry.Policy{Backoff: retry.Backoff{Base: 100}}, call)                           // want `policy: .*missing-unit`
	retry.Do(ctx, retry.Policy{MaxAttempts: -2}, call)                                             // want `policy: .*MaxAttempts -2 is below -1, which is Unlimited, and Do refuses the policy \(invalid\)`
	retry.Do(ctx, retry.Policy{Backoff: retry.Backoff{Base: time.Minute, Cap: limit}}, call)       // want `policy: .*Base 1m0s above Cap|policy: .*\(invalid\)`
	retry.Do(ctx, retry.Policy{TTL: time.Second, Backoff: retry.Backoff{Base: time.Minute}}, call) // want `policy: .*no-retry-can-start`
	retry.Do(ctx, retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{5, 10}}}, call)      // want `policy: .*missing-unit`

	// What follows is valid, or not known.
	retry.Do(ctx, retry.Policy{}, call)
	retry.Do(ctx, retry.Policy{MaxAttempts: 3, TTL: time.Minute, Backoff: retry.Backoff{Base: time.Second}}, call)
	retry.Do(ctx, retry.Policy{MaxAttempts: n, Backoff: retry.Backoff{Base: 100}}, call)
	retry.Do(ctx, retry.Policy{Backoff: retry.Backoff{JitterRatio: 0.5}}.Or(retry.Policy{Backoff: retry.Backoff{Jitter: retry.RatioJitter}}), call)
	retry.Do(ctx, retry.Policy{TTL: time.Second, Gate: func(context.Context) time.Duration { return 0 }}, call)
	p := retry.Policy{Backoff: retry.Backoff{JitterRatio: 0.5}}
	p.Jitter = retry.RatioJitter
	retry.Do(ctx, p, call)
	retry.Do(ctx, retry.Policy{MaxAttempts: retry.Unlimited}, call)
	//retryvet:ignore policy shows what is refused
	retry.Do(ctx, retry.Policy{MaxAttempts: -2}, call)
}
