package peer

import (
	"context"

	"github.com/eapache/go-resiliency/retrier"

	"github.com/retrygo/retry/bench/internal/contest"
)

var eapache = []Loop{
	{
		Name:   "eapache/go-resiliency",
		Form:   contest.Fastest,
		Remark: "Retrier built once; looks at its context in waits only",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work := limited(c.AttemptTimeout, fn)
			r := retrier.New(retrier.ConstantBackoff(c.Attempts-1, c.Delay), nil)
			return func() error { return r.RunCtx(ctx, work) }
		},
	},
	{
		Name:   "eapache/go-resiliency, usual form",
		Form:   contest.Usual,
		Remark: "Retrier built in each call, as in its README, which seeds a random source of 5 kB",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work, retries, delay := limited(c.AttemptTimeout, fn), c.Attempts-1, c.Delay
			return func() error {
				return retrier.New(retrier.ConstantBackoff(retries, delay), nil).RunCtx(ctx, work)
			}
		},
	},
}
