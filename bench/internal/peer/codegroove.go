package peer

import (
	"context"

	groove "github.com/codeGROOVE-dev/retry"

	"github.com/retrygo/retry/bench/internal/contest"
)

// codeGROOVE has FixedDelay, because its default delay turns 0 into 1 ns and has a jitter of up to 100 ms.
var codeGROOVE = []Loop{
	{
		Name:   "codeGROOVE-dev/retry",
		Form:   contest.Fastest,
		Remark: "options built once, the context among them; returns the last error only",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work := limited(c.AttemptTimeout, fn)
			attempt := func() error { return work(ctx) }
			options := []groove.Option{
				groove.Context(ctx),
				groove.Attempts(uint(c.Attempts)),
				groove.Delay(c.Delay),
				groove.DelayType(groove.FixedDelay),
				groove.LastErrorOnly(true),
			}
			return func() error { return groove.Do(attempt, options...) }
		},
	},
	{
		Name:   "codeGROOVE-dev/retry, usual form",
		Form:   contest.Usual,
		Remark: "returns all errors",
		New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
			work, attempts, delay := limited(c.AttemptTimeout, fn), uint(c.Attempts), c.Delay
			return func() error {
				return groove.Do(func() error { return work(ctx) },
					groove.Context(ctx), groove.Attempts(attempts), groove.Delay(delay), groove.DelayType(groove.FixedDelay))
			}
		},
	},
}
