package refused

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
	backoff5 "github.com/cenkalti/backoff/v5"
)

func afterwards(op func() error) error {
	d := time.Second
	b := backoff.NewConstantBackOff(d)
	for range 3 {
		_ = backoff.Retry(op, b) // want `Interval is neither a constant nor a duration that keeps its value`
		d *= 2
	}
	limit := time.Hour
	e := backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(limit))
	later := func() error { return backoff.Retry(op, e) } // want `MaxElapsedTime is neither`
	limit = time.Minute
	return later()
}

func commented(op func() error) {
	_ = backoff.RetryNotify(op, &backoff.ZeroBackOff{}, func(err error /* never nil */, _ time.Duration) { println(err) }) // want `the options contain a comment`
	_ = backoff.Retry(func( /* no context */ ) error { return op() }, &backoff.ZeroBackOff{})                              // want `parameters of the work contain a comment`
}

func zero[T any]() (z T, err error) { return z, nil }

func generic(ctx context.Context) (int, error) {
	return backoff5.Retry[int](ctx, zero) // want `the work is a generic function`
}

const pause = time.Second

func shadowed(ctx context.Context, op func() error) error {
	b := backoff.NewConstantBackOff(pause)
	bo := backoff.WithContext(backoff.NewConstantBackOff(time.Second), ctx)
	for pause := range 3 {
		ctx := context.WithValue(ctx, pause, pause)
		_ = backoff.Retry(op, b)  // want `a name in pause, Interval, means something else`
		_ = backoff.Retry(op, bo) // want `the context is not a variable that keeps its value`
		<-ctx.Done()
	}
	d := time.Second
	c := backoff.NewConstantBackOff(d)
again:
	err := backoff.Retry(op, c) // want `Interval is neither`
	d *= 2
	if err != nil {
		goto again
	}
	return nil
}
