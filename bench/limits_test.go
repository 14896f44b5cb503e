package bench_test

import (
	"context"
	"errors"
	"time"

	"github.com/retrygo/retry"
)

// epoch is a fixed instant: time.Since of it reads only the monotonic clock, which is cheaper than time.Now.
var epoch = time.Now()

var sinkDuration time.Duration

// The limits of the loops: what the work itself costs, without a library.
var (
	bareCall = loop{"bare-call", func(ctx context.Context, _ config, fn attempt) func() error {
		return func() error { return fn(ctx) }
	}}
	// bareLoop is what a careful engineer writes by hand: it looks at its context before each attempt and notes its
	// start.
	bareLoop = untimed("bare-loop", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error { return second(handLoop(ctx, c.attempts, c.delay, fn)) }
	})
	// bareClock reads the clock at the start and after each attempt that fails, as a record of the attempts needs, and
	// keeps nothing.
	bareClock = loop{"bare-clock", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error {
			last := time.Since(epoch)
			var err error
			for range c.attempts {
				if err = fn(ctx); err == nil {
					return nil
				}
				now := time.Since(epoch)
				sinkDuration, last = now-last, now
			}
			return err
		}
	}}
	// bareRun is what Do promises, written by hand for retries at once: a policy by value, a number in the context of each
	// retry, marks and cancellations looked for in each error, and an error with the history.
	bareRun = loop{"bare-run", func(ctx context.Context, c config, fn attempt) func() error {
		p := c.policy
		return func() error { return runByHand(ctx, p, c.attempts, fn) }
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

// handLoop returns how long it took if it gives up. It waits on one timer for all retries.
//
//go:noinline
func handLoop(ctx context.Context, attempts int, delay time.Duration, fn attempt) (time.Duration, error) {
	start := time.Since(epoch)
	var timer *time.Timer
	var err error
	for n := range attempts {
		if n > 0 && delay > 0 {
			if n == 1 {
				timer = time.NewTimer(delay)
				defer timer.Stop()
			} else {
				timer.Reset(delay)
			}
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

// runByHand is in two functions, as Do is, so that a success does not pay for what a failure needs.
//
//go:noinline
func runByHand(ctx context.Context, p retry.Policy, attempts int, fn attempt) error {
	began := time.Since(epoch)
	if p.Disabled || ctx.Err() != nil {
		return ctx.Err()
	}
	err := fn(ctx)
	if err == nil {
		return nil
	}
	return retryByHand(ctx, attempts, began, err, fn)
}

//go:noinline
func retryByHand(ctx context.Context, attempts int, began time.Duration, err error, fn attempt) error {
	r := newHandRecord()
	for number, start := 1, began; ; number++ {
		ended := time.Since(epoch)
		_, terminal := errors.AsType[*handMark](err)
		terminal = terminal || errors.Is(err, context.Canceled)
		r.note(number, attempts, handFailure{start: start - began, duration: ended - start, err: err})
		if number == attempts || terminal || ctx.Err() != nil {
			return handError(began, ended, r.failures[:min(number, 3)], r.others)
		}
		start = ended
		if err = fn(r.context(ctx, number+1, attempts)); err == nil {
			return nil
		}
	}
}

// handMark is an error that is not to be retried.
type handMark struct{ error }

type handFailure struct {
	start, duration, delay time.Duration
	err                    error
}

// handNumber is a context with the number of an attempt.
type handNumber struct {
	context.Context
	number int
}

// handRecord has room for three failures with the contexts of their retries.
type handRecord struct {
	failures [3]handFailure
	contexts [3]handNumber
	others   []handFailure
	later    []handNumber
}

//go:noinline
func newHandRecord() *handRecord { return new(handRecord) }

func (r *handRecord) note(number, attempts int, f handFailure) {
	if number <= 3 {
		r.failures[number-1] = f
		return
	}
	if r.others == nil {
		r.others = make([]handFailure, 0, attempts-3)
	}
	r.others = append(r.others, f)
}

func (r *handRecord) context(ctx context.Context, number, attempts int) context.Context {
	if number > 4 && r.later == nil {
		r.later = make([]handNumber, attempts-4)
	}
	c := &r.contexts[min(number-2, 2)]
	if number > 4 {
		c = &r.later[number-5]
	}
	c.Context, c.number = ctx, number
	return c
}

// handError has the history of the failures.
func handError(began, ended time.Duration, failures, others []handFailure) error {
	made := len(failures) + len(others)
	e := &retry.Error{Outcome: retry.Outcome{Attempts: made, Elapsed: ended - began, History: make([]retry.Attempt, made)}}
	now := time.Now()
	start := now.Add(began - now.Sub(epoch))
	for i := range e.History {
		var f *handFailure
		if i < len(failures) {
			f = &failures[i]
		} else {
			f = &others[i-len(failures)]
		}
		e.History[i] = retry.Attempt{Number: i + 1, Start: start.Add(f.start), Duration: f.duration, Err: f.err, Delay: f.delay}
	}
	e.Last = e.History[made-1].Err
	return e
}
