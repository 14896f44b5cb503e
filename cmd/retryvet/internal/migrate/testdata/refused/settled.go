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
		_ = backoff.Retry(op, b) // want `the interval is neither a constant nor a variable that keeps its value`
		d *= 2
	}
	limit := time.Hour
	e := backoff.NewConstantBackOff(limit)
	later := func() error { return backoff.Retry(op, e) } // want `the interval is neither`
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

func shadowed(ctx context.Context, op func() error) error {
	bo := backoff.WithContext(backoff.NewConstantBackOff(time.Second), ctx)
	for i := range 3 {
		ctx := context.WithValue(ctx, i, i)
		_ = backoff.Retry(op, bo) // want `the context is not a variable that keeps its value`
		<-ctx.Done()
	}
	d := time.Second
	c := backoff.NewConstantBackOff(d)
again:
	err := backoff.Retry(op, c) // want `the interval is neither`
	d *= 2
	if err != nil {
		goto again
	}
	return nil
}
