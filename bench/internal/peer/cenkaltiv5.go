package peer

import (
	"context"

	"github.com/cenkalti/backoff/v5"

	"github.com/retrygo/retry/bench/internal/contest"
)

// cenkaltiV5 reads the clock when a run begins, for its limit on the time of all attempts, and tells nobody.
var cenkaltiV5 = []Loop{
	{
		Name: "cenkalti/backoff v5",
		Form: contest.Fastest,
		Remark: "options built once, with one ConstantBackOff, which has no state; does not look at its context before the " +
			"first attempt",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work := limited(c.AttemptTimeout, fn)
			operation := func() (struct{}, error) { return struct{}{}, work(ctx) }
			options := []backoff.RetryOption{
				backoff.WithBackOff(backoff.NewConstantBackOff(c.Delay)),
				backoff.WithMaxTries(uint(c.Attempts)),
			}
			return func() error {
				_, err := backoff.Retry(ctx, operation, options...)
				return err
			}
		},
	},
	{
		Name:   "cenkalti/backoff v5, usual form",
		Form:   contest.Usual,
		Remark: "does not look at its context before the first attempt",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work, attempts, delay := limited(c.AttemptTimeout, fn), uint(c.Attempts), c.Delay
			return func() error {
				_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, work(ctx) },
					backoff.WithBackOff(backoff.NewConstantBackOff(delay)), backoff.WithMaxTries(attempts))
				return err
			}
		},
	},
}
