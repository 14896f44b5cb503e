package peer

import (
	"context"
	"time"

	"github.com/retrygo/retry/bench/internal/contest"
)

// Hand is what a careful engineer writes by hand for the work at hand, and no more.
var Hand = Loop{
	Name:         "hand-written loop",
	Form:         contest.Limit,
	TellsElapsed: true,
	New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
		work, attempts, delay := limited(c.AttemptTimeout, fn), c.Attempts, c.Delay
		if delay == 0 {
			return func() error {
				_, err := handLoop(ctx, attempts, work)
				return err
			}
		}
		return func() error {
			_, err := handLoopWaiting(ctx, attempts, delay, work)
			return err
		}
	},
}

// epoch is a fixed instant: time.Since of it reads only the monotonic clock, which is cheaper than time.Now.
var epoch = time.Now()

// handLoop looks at its context before each attempt and notes when it started. It returns how long it took where it
// gives up.
//
//go:noinline
func handLoop(ctx context.Context, attempts int, fn func(context.Context) error) (time.Duration, error) {
	start := time.Since(epoch)
	var err error
	for range attempts {
		if ctx.Err() != nil {
			return time.Since(epoch) - start, ctx.Err()
		}
		if err = fn(ctx); err == nil {
			return 0, nil
		}
	}
	return time.Since(epoch) - start, err
}

// handLoopWaiting is handLoop with a wait before each retry, on one timer for all of them.
//
//go:noinline
func handLoopWaiting(
	ctx context.Context, attempts int, delay time.Duration, fn func(context.Context) error,
) (time.Duration, error) {
	start := time.Since(epoch)
	var timer *time.Timer
	var err error
	for n := range attempts {
		switch {
		case n == 1:
			timer = time.NewTimer(delay)
			defer timer.Stop()
		case n > 1:
			timer.Reset(delay)
		}
		if n > 0 {
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return time.Since(epoch) - start, ctx.Err()
		}
		if err = fn(ctx); err == nil {
			return 0, nil
		}
	}
	return time.Since(epoch) - start, err
}
