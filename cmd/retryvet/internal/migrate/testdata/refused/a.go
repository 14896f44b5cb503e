package refused

import (
	"context"
	"errors"
	"time"

	"github.com/avast/retry-go/v4"
	sethvargo "github.com/sethvargo/go-retry"
)

func defaults() error {
	_ = retry.Do(work, retry.Attempts(3), retry.Delay(time.Second))                                // want `the default jitter`
	_ = retry.Do(work, retry.DelayType(retry.CombineDelay(retry.BackOffDelay, retry.RandomDelay))) // want `the delay is a function other than`
	_ = retry.Do(work, retry.DelayType(retry.FixedDelay), retry.AttemptsForError(2, errBusy))      // want `has no counterpart`
	_ = retry.Do(work, retry.DelayType(retry.FixedDelay), retry.Delay(0))                          // want `not positive`
	_ = retry.Do(work, options...)                                                                 // want `its options are a variable`
	_ = retry.Do(func() error {                                                                    // want `the error here may be nil`
		err := work()
		return retry.Unrecoverable(err)
	}, retry.DelayType(retry.FixedDelay))
	err := retry.Do(work, retry.DelayType(retry.FixedDelay)) // want `asked for a type of retry-go`
	var all retry.Error
	if errors.As(err, &all) {
		return all[0]
	}
	return nil
}

var (
	options []retry.Option
	unknown sethvargo.RetryFunc
)

func counted(ctx context.Context) {
	b := sethvargo.WithMaxRetries(2, sethvargo.NewConstant(time.Second))
	for range 2 {
		_ = sethvargo.Do(ctx, b, func(context.Context) error { return sethvargo.RetryableError(errBusy) }) // want `used more than once`
	}
	_ = sethvargo.Fibonacci(ctx, 1, nil)                                                                                                                                          // want `Fibonacci has no counterpart`
	_ = sethvargo.Do(ctx, sethvargo.NewFibonacci(1), func(context.Context) error { return nil })                                                                                  // want `the Backoff is made by`
	_ = sethvargo.Do(ctx, sethvargo.WithMaxDuration(1, sethvargo.NewConstant(1)), func(context.Context) error { return errors.New("") })                                          // want `WithMaxDuration shortens`
	_ = sethvargo.Do(ctx, sethvargo.WithCappedDuration(time.Second, sethvargo.WithFullJitter(sethvargo.NewExponential(time.Second))), unknown)                                    // want `the work is not a literal`
	_ = sethvargo.Do(ctx, sethvargo.WithCappedDuration(time.Second, sethvargo.WithFullJitter(sethvargo.NewExponential(time.Second))), func(context.Context) error { return nil }) // want `wrapper of the jitter`
}
