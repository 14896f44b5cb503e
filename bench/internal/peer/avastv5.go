package peer

import (
	"context"

	avast "github.com/avast/retry-go/v5"

	"github.com/retrygo/retry/bench/internal/contest"
)

// avastV5 has FixedDelay, because its default delay has a jitter of up to 100 ms.
var avastV5 = []Loop{
	{
		Name: "avast/retry-go v5",
		Form: contest.Fastest,
		Remark: "Retrier built once; it holds one context, so that a server with a context for each request cannot share it; " +
			"returns the last error only",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work := limited(c.AttemptTimeout, fn)
			attempt := func() error { return work(ctx) }
			retrier := avast.New(
				avast.Context(ctx),
				avast.Attempts(uint(c.Attempts)),
				avast.Delay(c.Delay),
				avast.DelayType(avast.FixedDelay),
				avast.LastErrorOnly(true),
			)
			return func() error { return retrier.Do(attempt) }
		},
	},
	{
		Name:   "avast/retry-go v5, usual form",
		Form:   contest.Usual,
		Remark: "returns all errors",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work, attempts, delay := limited(c.AttemptTimeout, fn), uint(c.Attempts), c.Delay
			return func() error {
				return avast.New(
					avast.Context(ctx), avast.Attempts(attempts), avast.Delay(delay), avast.DelayType(avast.FixedDelay),
				).Do(func() error { return work(ctx) })
			}
		},
	},
}
