package peer

import (
	"context"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/contest"
)

// Ours is retry.Do with Config.Policy, which is a value that all calls share.
var Ours = Loop{
	Name:         "retry",
	Form:         contest.Ours,
	TellsElapsed: true,
	TimesOut:     true,
	New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
		policy := c.Policy
		return func() error { return retry.Do(ctx, policy, fn) }
	},
}

// OursWithBudget is Ours with a budget that all calls share, large enough for every retry of the scenarios.
var OursWithBudget = Loop{
	Name:         "retry",
	Form:         contest.Ours,
	Remark:       "all calls share a budget",
	TellsElapsed: true,
	TimesOut:     true,
	New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
		policy := c.Policy
		policy.Budget = retry.NewBudget(retry.BudgetConfig{Burst: 1_000, Initial: 1_000})
		return func() error { return retry.Do(ctx, policy, fn) }
	},
}

// OursWithValue is Ours by DoValue.
var OursWithValue = Loop{
	Name:         "retry",
	Form:         contest.Ours,
	Remark:       "DoValue",
	TellsElapsed: true,
	TimesOut:     true,
	New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
		policy := c.Policy
		return func() error {
			_, err := retry.DoValue(ctx, policy, func(ctx context.Context) (int, error) { return 1, fn(ctx) })
			return err
		}
	},
}
