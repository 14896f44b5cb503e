package refused

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
	backoff5 "github.com/cenkalti/backoff/v5"
)

var (
	ctx     = context.Background()
	errBusy = errors.New("busy")
	shared  = backoff.NewExponentialBackOff()
)

type job struct{ b backoff.BackOff }

func work() error          { return nil }
func fetch() (int, error)  { return 0, nil }
func making() func() error { return work }

// steps is a BackOff of one's own.
type steps struct{}

func (steps) NextBackOff() time.Duration { return time.Second }
func (steps) Reset()                     {}

func own(j job, param backoff.BackOff) {
	_ = backoff.Retry(work, steps{})                                                                             // want `the waits are not made here`
	_ = backoff.Retry(work, backoff.WithMaxRetries(j.b, 3))                                                      // want `the waits are not made here`
	_ = backoff.Retry(work, param)                                                                               // want `not made by a statement before it`
	_ = backoff.Retry(work, shared)                                                                              // want `not made by a statement before it`
	_ = backoff.Retry(making(), backoff.NewConstantBackOff(0))                                                   // want `the work is not a function literal`
	_ = backoff.Retry(nil, backoff.NewConstantBackOff(0))                                                        // want `the work is not a function literal`
	_ = backoff.Retry(work, &backoff.ZeroBackOff{})                                                              // want `the waits are not made here`
	_ = backoff.Retry(work, &backoff.StopBackOff{})                                                              // want `the waits are not made here`
	_ = backoff.RetryNotifyWithTimer(work, backoff.NewConstantBackOff(0), nil, nil)                              // want `moved by hand`
	_ = backoff.NewTicker(backoff.NewConstantBackOff(0))                                                         // want `moved by hand`
	_ = backoff.Retry(work, backoff.WithMaxRetries(backoff.NewConstantBackOff(-1), 3))                           // want `Interval is negative`
	_ = backoff.Retry(work, backoff.WithMaxRetries(backoff.NewConstantBackOff(0), 1<<63))                        // want `too large`
	_ = backoff.Retry(work, backoff.WithMaxRetries(backoff.WithMaxRetries(backoff.NewConstantBackOff(0), 1), 1)) // want `set twice`
	_ = backoff.Retry(func() error { return nil } /* a comment */, backoff.NewConstantBackOff(0))                // want `contains a comment`
}

var atInit = backoff.Retry(func() error { return nil }, backoff.NewConstantBackOff(0)) // want `package-level variable`

func schedules(interval time.Duration) {
	b := backoff.NewExponentialBackOff()
	b.Multiplier = float64(interval)
	_ = backoff.Retry(work, b) // want `Multiplier is not a constant`

	h := backoff.NewExponentialBackOff()
	h.InitialInterval = interval
	interval++
	_ = backoff.Retry(work, h) // want `InitialInterval is not a constant`

	d := backoff.NewExponentialBackOff()
	d.Stop = time.Second
	_ = backoff.Retry(work, d) // want `Stop has no counterpart`

	e := backoff.NewExponentialBackOff()
	if interval > 0 {
		e.MaxElapsedTime = 0
	}
	_ = backoff.Retry(work, e) // want `the use of e is not understood`

	g := backoff.NewExponentialBackOff( // for ever
		backoff.WithMaxElapsedTime(0))
	_ = backoff.Retry(func() error { return nil }, g) // want `contains a comment`

	f := backoff.NewExponentialBackOff()
	_ = backoff.Retry(work, f) // want `used for something else too`
	_ = f.NextBackOff()

	i := backoff.NewConstantBackOff(time.Second)
	_ = backoff.Retry(work, backoff.WithMaxRetries(i, uint64(i.Interval))) // want `i is used for something else too`

	_ = backoff.Retry(work, backoff.NewExponentialBackOff(backoff.WithClockProvider(backoff.SystemClock))) // want `has no counterpart`
}

func nested() error {
	b := backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 3)
	try := func() error { return backoff.Retry(work, b) } // want `b is not made by a statement before it`
	return backoff.Retry(try, b)                          // want `the use of b is not understood`
}

func (j job) backOff() backoff.BackOff { return j.b }

func made(j job) {
	_ = backoff.Retry(work, j.backOff())                            // want `the waits are not made here`
	_ = backoff.Retry(work, backoff.WithMaxRetries(j.backOff(), 3)) // want `the waits are not made here`
}

func results() error {
	err := backoff.Retry(func() error { return nil }, backoff.NewConstantBackOff(0)) // want `compared by ==`
	if err == errBusy {
		return nil
	}
	err2 := backoff.Retry(func() error { return nil }, backoff.NewConstantBackOff(0)) // want `the text of its error is compared`
	if err2.Error() == "busy" {
		return nil
	}
	err3 := backoff.Retry(func() error { return nil }, backoff.NewConstantBackOff(0)) // want `its error's type is asserted`
	if _, ok := err3.(interface{ Timeout() bool }); ok {
		return nil
	}
	err4 := backoff.Retry(func() error { return nil }, backoff.NewConstantBackOff(0)) // want `not followed`
	switch err4 {
	case errBusy:
	}
	return nil
}

func tries(ctx context.Context, n int, f *uint64) {
	_ = backoff.Retry(work, backoff.WithMaxRetries(backoff.NewConstantBackOff(0), uint64(n))) // want `retries is not a constant`
	b := backoff.WithMaxRetries(backoff.NewConstantBackOff(0), *f)
	_ = backoff.Retry(work, b)                      // want `retries is not a constant`
	_, _ = backoff5.Retry(ctx, fetch)               // want `not moved by machine`
	_ = backoff5.NewTicker(&backoff5.ZeroBackOff{}) // want `not moved by machine`
}
