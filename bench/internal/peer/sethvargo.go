package peer

import (
	"context"
	"time"

	seth "github.com/sethvargo/go-retry"

	"github.com/retrygo/retry/bench/internal/contest"
)

var sethvargo = []Loop{
	{
		Name: "sethvargo/go-retry",
		Form: contest.Fastest,
		Remark: "WithMaxRetries counts one run, so it is built in each call; a delay of 0 is a BackoffFunc, since NewConstant " +
			"refuses it",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work, retries := limited(c.AttemptTimeout, fn), uint64(c.Attempts-1)
			attempt := func(ctx context.Context) error { return seth.RetryableError(work(ctx)) }
			backoff := constant(c.Delay)
			return func() error { return seth.Do(ctx, seth.WithMaxRetries(retries, backoff), attempt) }
		},
	},
	{
		Name:   "sethvargo/go-retry, usual form",
		Form:   contest.Usual,
		Remark: "a delay of 0 is a BackoffFunc, since NewConstant refuses it",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work, retries, delay := limited(c.AttemptTimeout, fn), uint64(c.Attempts-1), c.Delay
			return func() error {
				backoff := seth.WithMaxRetries(retries, constant(delay))
				return seth.Do(ctx, backoff, func(ctx context.Context) error {
					return seth.RetryableError(work(ctx))
				})
			}
		},
	},
}

// constant returns a backoff that always gives delay. NewConstant panics at 0.
func constant(delay time.Duration) seth.Backoff {
	if delay == 0 {
		return seth.BackoffFunc(func() (time.Duration, bool) { return 0, false })
	}
	return seth.NewConstant(delay)
}
