// Package marks makes marks outside of the work of a call.
package marks

import (
	"context"
	"errors"

	"example.com/marks/elsewhere"
	"github.com/cenkalti/backoff/v4"
	backoff5 "github.com/cenkalti/backoff/v5"
)

func work() error { return &backoff.PermanentError{Err: errors.New("never")} }

func call(ctx context.Context) {
	_, _ = backoff5.Retry(ctx, elsewhere.Work)      // want `elsewhere (elsewhere.go:11) can reach it`
	_ = backoff.Retry(work, &backoff.ZeroBackOff{}) // want `elsewhere (marks.go:13) can reach it`
}
