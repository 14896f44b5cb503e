// Package marks makes the marks of three libraries in functions that any run may call.
package marks

import (
	"context"
	"errors"

	"example.com/marks/apart"
	retrygo "github.com/avast/retry-go/v4"
	"github.com/cenkalti/backoff/v4"
	backoff5 "github.com/cenkalti/backoff/v5"
	"github.com/sethvargo/go-retry"
)

func work() error {
	return backoff.Permanent(errors.New("never"))
}

func other(context.Context) error {
	return errors.Join(retry.RetryableError(errors.New("busy")), retrygo.Unrecoverable(errors.New("never")))
}

func call(ctx context.Context) {
	_, _ = backoff5.Retry(ctx, apart.Work)                                                    // want `a mark of backoff/v5 that is made`
	_ = backoff.Retry(work, &backoff.ZeroBackOff{})                                           // want `a mark of backoff/v4 that is made`
	_ = retry.Do(ctx, retry.NewConstant(1), other)                                            // want `a mark of go-retry that is made`
	_ = retrygo.Do(func() error { return other(ctx) }, retrygo.DelayType(retrygo.FixedDelay)) // want `a mark of retry-go/v4 that is made`
}
