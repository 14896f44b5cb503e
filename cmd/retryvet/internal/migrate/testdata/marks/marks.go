// Package marks makes marks that cannot be made for retry as well.
package marks

import (
	"context"
	"errors"

	"example.com/marks/elsewhere"
	retrygo "github.com/avast/retry-go/v4"
	"github.com/cenkalti/backoff/v4"
	backoff5 "github.com/cenkalti/backoff/v5"
	"github.com/sethvargo/go-retry"
)

func work() error { return &backoff.PermanentError{Err: errors.New("never")} }

func other(err error) error { return retrygo.Unrecoverable(err) }

var mark = retry.RetryableError

func call(ctx context.Context) {
	_, _ = backoff5.Retry(ctx, elsewhere.Work)                                                // want `elsewhere (elsewhere.go:1) can reach it`
	_ = backoff.Retry(work, &backoff.ZeroBackOff{})                                           // want `elsewhere (marks.go:15) can reach it`
	_ = retry.Constant(ctx, 1, func(context.Context) error { return mark(errors.New("")) })   // want `elsewhere (marks.go:19) can reach it`
	_ = retrygo.Do(func() error { return other(nil) }, retrygo.DelayType(retrygo.FixedDelay)) // want `elsewhere (marks.go:17) can reach it`
}
