package bench_test

import (
	"context"
	"time"

	avast4 "github.com/avast/retry-go/v4"
	avast5 "github.com/avast/retry-go/v5"
	cenkalti5 "github.com/cenkalti/backoff/v5"
	cenkalti7 "github.com/cenkalti/backoff/v7"
	codegroove "github.com/codeGROOVE-dev/retry"
	eapache "github.com/eapache/go-resiliency/retrier"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	sethvargo "github.com/sethvargo/go-retry"
	k8s "k8s.io/apimachinery/pkg/util/wait"

	"github.com/retrygo/retry"
)

type attempt = func(context.Context) error

// config is what a loop is to do.
type config struct {
	attempts int           // the total, the first one included
	delay    time.Duration // before each retry
	timeout  time.Duration // of each attempt; zero means none
	policy   retry.Policy  // the same for ours
}

// loop is one way to retry with one library: "retry" is ours, a name with "bare-" a limit, one with "-usual" a peer in
// the form that most people write, and any other a peer in the fastest form that its documentation shows. What that
// form allows to be built once is built by make. The result of make is safe for concurrent use if fn is.
type loop struct {
	name string
	make func(ctx context.Context, c config, fn attempt) func() error
}

var (
	ours = loop{"retry", func(ctx context.Context, c config, fn attempt) func() error {
		p := c.policy
		return func() error { return retry.Do(ctx, p, fn) }
	}}
	oursWithBudget = loop{"retry", func(ctx context.Context, c config, fn attempt) func() error {
		c.policy.Budget = retry.NewBudget(retry.BudgetConfig{Burst: 1_000, Initial: 1_000})
		return ours.make(ctx, c, fn)
	}}
	oursWithValue = loop{"retry", func(ctx context.Context, c config, fn attempt) func() error {
		p := c.policy
		return func() error {
			_, err := retry.DoValue(ctx, p, func(ctx context.Context) (int, error) { return 1, fn(ctx) })
			return err
		}
	}}
	oursByRange = loop{"retry-attempts", func(ctx context.Context, c config, fn attempt) func() error {
		p := c.policy
		return func() (err error) {
			for ctx := range retry.Attempts(ctx, p, &err) {
				err = fn(ctx)
			}
			return err
		}
	}}
)

// peers are the loops of other libraries. FixedDelay is the only delay of avast and codegroove without jitter. An
// attempt that fails is a condition not met for k8s, since an error of a condition would end the run.
var peers = []loop{
	untimed("cenkalti-v5", func(ctx context.Context, c config, fn attempt) func() error {
		operation := func() (struct{}, error) { return struct{}{}, fn(ctx) }
		options := []cenkalti5.RetryOption{
			cenkalti5.WithBackOff(cenkalti5.NewConstantBackOff(c.delay)), cenkalti5.WithMaxTries(uint(c.attempts)),
		}
		return func() error { return second(cenkalti5.Retry(ctx, operation, options...)) }
	}),
	untimed("cenkalti-v5-usual", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error {
			return second(cenkalti5.Retry(ctx, func() (struct{}, error) { return struct{}{}, fn(ctx) },
				cenkalti5.WithBackOff(cenkalti5.NewConstantBackOff(c.delay)), cenkalti5.WithMaxTries(uint(c.attempts))))
		}
	}),
	untimed("cenkalti-v7", func(ctx context.Context, c config, fn attempt) func() error {
		operation := func() (struct{}, error) { return struct{}{}, fn(ctx) }
		options := []cenkalti7.RetryOption{
			cenkalti7.WithBackOff(cenkalti7.NewConstantBackOff(c.delay)), cenkalti7.WithMaxTries(uint(c.attempts)),
		}
		return func() error { return second(cenkalti7.Retry(ctx, operation, options...)) }
	}),
	untimed("cenkalti-v7-usual", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error {
			return second(cenkalti7.Retry(ctx, func() (struct{}, error) { return struct{}{}, fn(ctx) },
				cenkalti7.WithBackOff(cenkalti7.NewConstantBackOff(c.delay)), cenkalti7.WithMaxTries(uint(c.attempts))))
		}
	}),
	untimed("avast-v4", func(ctx context.Context, c config, fn attempt) func() error {
		try := func() error { return fn(ctx) }
		options := []avast4.Option{
			avast4.Context(ctx), avast4.Attempts(uint(c.attempts)), avast4.Delay(c.delay),
			avast4.DelayType(avast4.FixedDelay), avast4.LastErrorOnly(true),
		}
		return func() error { return avast4.Do(try, options...) }
	}),
	untimed("avast-v4-usual", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error {
			return avast4.Do(func() error { return fn(ctx) }, avast4.Context(ctx), avast4.Attempts(uint(c.attempts)),
				avast4.Delay(c.delay), avast4.DelayType(avast4.FixedDelay))
		}
	}),
	untimed("avast-v5", func(ctx context.Context, c config, fn attempt) func() error {
		try := func() error { return fn(ctx) }
		r := avast5.New(avast5.Context(ctx), avast5.Attempts(uint(c.attempts)), avast5.Delay(c.delay),
			avast5.DelayType(avast5.FixedDelay), avast5.LastErrorOnly(true))
		return func() error { return r.Do(try) }
	}),
	untimed("avast-v5-usual", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error {
			return avast5.New(avast5.Context(ctx), avast5.Attempts(uint(c.attempts)), avast5.Delay(c.delay),
				avast5.DelayType(avast5.FixedDelay)).Do(func() error { return fn(ctx) })
		}
	}),
	untimed("codegroove", func(ctx context.Context, c config, fn attempt) func() error {
		try := func() error { return fn(ctx) }
		options := []codegroove.Option{
			codegroove.Context(ctx), codegroove.Attempts(uint(c.attempts)), codegroove.Delay(c.delay),
			codegroove.DelayType(codegroove.FixedDelay), codegroove.LastErrorOnly(true),
		}
		return func() error { return codegroove.Do(try, options...) }
	}),
	untimed("codegroove-usual", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error {
			return codegroove.Do(func() error { return fn(ctx) }, codegroove.Context(ctx), codegroove.Attempts(uint(c.attempts)),
				codegroove.Delay(c.delay), codegroove.DelayType(codegroove.FixedDelay))
		}
	}),
	untimed("sethvargo", func(ctx context.Context, c config, fn attempt) func() error {
		try := func(ctx context.Context) error { return sethvargo.RetryableError(fn(ctx)) }
		delay := sethvargoConstant(c.delay)
		return func() error { return sethvargo.Do(ctx, sethvargo.WithMaxRetries(uint64(c.attempts-1), delay), try) }
	}),
	untimed("sethvargo-usual", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error {
			return sethvargo.Do(ctx, sethvargo.WithMaxRetries(uint64(c.attempts-1), sethvargoConstant(c.delay)),
				func(ctx context.Context) error { return sethvargo.RetryableError(fn(ctx)) })
		}
	}),
	{"failsafe-go", func(ctx context.Context, c config, fn attempt) func() error {
		retries := retrypolicy.NewBuilder[any]().WithMaxAttempts(c.attempts).WithDelay(c.delay).ReturnLastFailure().Build()
		executor := failsafe.With(failsafePolicies(c, retries)...).WithContext(ctx)
		if c.timeout == 0 {
			try := func() error { return fn(ctx) }
			return func() error { return executor.Run(try) }
		}
		try := func(e failsafe.Execution[any]) error { return fn(e.Context()) }
		return func() error { return executor.RunWithExecution(try) }
	}},
	{"failsafe-go-usual", func(ctx context.Context, c config, fn attempt) func() error {
		policies := failsafePolicies(c, retrypolicy.NewBuilder[any]().WithMaxAttempts(c.attempts).WithDelay(c.delay).Build())
		return func() error {
			return failsafe.With(policies...).WithContext(ctx).RunWithExecution(func(e failsafe.Execution[any]) error {
				return fn(e.Context())
			})
		}
	}},
	untimed("eapache", func(ctx context.Context, c config, fn attempt) func() error {
		r := eapache.New(eapache.ConstantBackoff(c.attempts-1, c.delay), nil)
		return func() error { return r.RunCtx(ctx, fn) }
	}),
	untimed("eapache-usual", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error { return eapache.New(eapache.ConstantBackoff(c.attempts-1, c.delay), nil).RunCtx(ctx, fn) }
	}),
	untimed("k8s-wait", func(ctx context.Context, c config, fn attempt) func() error {
		condition := func(ctx context.Context) (bool, error) { return fn(ctx) == nil, nil }
		steps := k8s.Backoff{Duration: c.delay, Steps: c.attempts}
		return func() error { return k8s.ExponentialBackoffWithContext(ctx, steps, condition) }
	}),
}

// untimed returns the loop of a library that has no timeout of an attempt: it gets an fn with its own.
func untimed(name string, make func(ctx context.Context, c config, fn attempt) func() error) loop {
	return loop{name, func(ctx context.Context, c config, fn attempt) func() error {
		return make(ctx, c, limited(c.timeout, fn))
	}}
}

// limited returns fn with a timeout of its own, as users of a library without one write it.
func limited(timeout time.Duration, fn attempt) attempt {
	if timeout == 0 {
		return fn
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return fn(ctx)
	}
}

func second[T any](_ T, err error) error { return err }

// sethvargoConstant is NewConstant, which panics at 0.
func sethvargoConstant(delay time.Duration) sethvargo.Backoff {
	return sethvargo.BackoffFunc(func() (time.Duration, bool) { return delay, false })
}

func failsafePolicies(c config, retries retrypolicy.RetryPolicy[any]) []failsafe.Policy[any] {
	policies := []failsafe.Policy[any]{retries}
	if c.timeout > 0 {
		policies = append(policies, timeout.New[any](c.timeout))
	}
	return policies
}
