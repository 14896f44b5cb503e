package peer

import (
	"context"

	avast "github.com/avast/retry-go/v4"

	"github.com/retrygo/retry/bench/internal/contest"
)

// avastV4 has FixedDelay, because its default delay turns 0 into 1 ns and panics at a jitter of 0.
var avastV4 = []Loop{
	{
		Name:   "avast/retry-go v4",
		Form:   contest.Fastest,
		Remark: "options built once, the context among them; returns the last error only",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work := limited(c.AttemptTimeout, fn)
			attempt := func() error { return work(ctx) }
			options := []avast.Option{
				avast.Context(ctx),
				avast.Attempts(uint(c.Attempts)),
				avast.Delay(c.Delay),
				avast.DelayType(avast.FixedDelay),
				avast.LastErrorOnly(true),
			}
			return func() error { return avast.Do(attempt, options...) }
		},
	},
	{
		Name:   "avast/retry-go v4, usual form",
		Form:   contest.Usual,
		Remark: "returns all errors",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work, attempts, delay := limited(c.AttemptTimeout, fn), uint(c.Attempts), c.Delay
			return func() error {
				return avast.Do(func() error { return work(ctx) },
					avast.Context(ctx), avast.Attempts(attempts), avast.Delay(delay), avast.DelayType(avast.FixedDelay))
			}
		},
	},
}
