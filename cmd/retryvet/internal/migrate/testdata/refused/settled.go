package refused

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
)

func afterwards(op func() error) error {
	d := time.Second
	b := backoff.NewConstantBackOff(d)
	for range 3 {
		_ = backoff.Retry(op, b) // want `b is not made by a statement before it`
		d *= 2
	}
	limit := time.Hour
	e := backoff.NewConstantBackOff(limit)
	limit = time.Minute
	println(limit)
	return backoff.Retry(op, e) // want `Interval is not a constant`
}

func elapsed(op func() error, limits map[string]*time.Duration) {
	b := backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(*limits["b"]))
	_ = backoff.Retry(op, b) // want `MaxElapsedTime is neither a constant`
}

func commented(op func() error) {
	_ = backoff.Retry(func( /* no context */ ) error { return op() }, backoff.NewConstantBackOff(0)) // want `contains a comment`
}

func zero[T any]() (z T, err error) { return z, nil }

func generic() (int, error) {
	return backoff.RetryWithData[int](zero, backoff.NewConstantBackOff(0)) // want `the work is not a function literal`
}

func reassigned(op func() error, note backoff.Notify) {
	_ = backoff.Retry(op, backoff.NewConstantBackOff(0)) // want `the work is not a function literal`
	op = func() error { return nil }
	note = nil
	_ = backoff.RetryNotify(func() error { return nil }, backoff.NewConstantBackOff(0), note) // want `moved by hand`
}

func shadowed(ctx context.Context, op func() error) error {
	bo := backoff.WithContext(backoff.NewConstantBackOff(time.Second), ctx)
	var inner, cancel = context.WithCancel(ctx)
	ctx = inner
	defer cancel()
	_ = backoff.Retry(op, bo) // want `the context is not a variable that keeps its value`
	d := time.Second
	c := backoff.NewConstantBackOff(d)
again:
	err := backoff.Retry(op, c) // want `c is made once, and the call can be repeated`
	d *= 2
	if err != nil {
		goto again
	}
	e := backoff.NewConstantBackOff(d)
	for backoff.Retry(op, e) != nil { // want `e is made once, and the call can be repeated`
		d *= 2
	}
	return nil
}
