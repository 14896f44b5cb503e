package bench_test

import (
	"context"
	"time"

	"github.com/retrygo/retry"
)

// epoch is a fixed instant: time.Since of it reads only the monotonic clock, which is cheaper than time.Now.
var epoch = time.Now()

var (
	sinkDuration time.Duration
	sinkRecord   []retry.Attempt
)

// The limits of the loops: what the work itself costs, without a library.
var (
	bareCall = loop{"bare-call", func(ctx context.Context, _ config, fn attempt) func() error {
		return func() error { return fn(ctx) }
	}}
	// bareLoop is what a careful engineer writes by hand: it looks at its context before each attempt and notes its
	// start.
	bareLoop = loop{"bare-loop", func(ctx context.Context, c config, fn attempt) func() error {
		fn = limited(c.timeout, fn)
		if c.delay == 0 {
			return func() error { return second(handLoop(ctx, c.attempts, fn)) }
		}
		return func() error { return second(handLoopWaiting(ctx, c.attempts, c.delay, fn)) }
	}}
	// bareClock reads the clock at the start and after each attempt that fails, as a record of the attempts needs, and
	// keeps nothing.
	bareClock = loop{"bare-clock", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error { return timedLoop(ctx, c.attempts, fn) }
	}}
	// bareRecord is bareClock with a row for each failure, in one allocation.
	bareRecord = loop{"bare-record", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error { return recordingLoop(ctx, c.attempts, fn) }
	}}
	bareDeadline = loop{"bare-deadline", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error {
			ctx, cancel := context.WithDeadline(ctx, time.Now().Add(c.timeout))
			err := fn(ctx)
			cancel()
			return err
		}
	}}
)

// handLoop returns how long it took if it gives up.
//
//go:noinline
func handLoop(ctx context.Context, attempts int, fn attempt) (time.Duration, error) {
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
func handLoopWaiting(ctx context.Context, attempts int, delay time.Duration, fn attempt) (time.Duration, error) {
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

//go:noinline
func timedLoop(ctx context.Context, attempts int, fn attempt) error {
	last := time.Since(epoch)
	var err error
	for range attempts {
		if err = fn(ctx); err == nil {
			return nil
		}
		now := time.Since(epoch)
		sinkDuration, last = now-last, now
	}
	return err
}

//go:noinline
func recordingLoop(ctx context.Context, attempts int, fn attempt) error {
	last := time.Since(epoch)
	record := make([]retry.Attempt, 0, attempts)
	var err error
	for n := range attempts {
		if err = fn(ctx); err == nil {
			return nil
		}
		now := time.Since(epoch)
		record = append(record, retry.Attempt{Number: n + 1, Duration: now - last, Err: err})
		last = now
	}
	sinkRecord = record
	return err
}
