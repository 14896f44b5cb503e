package refused

import (
	"context"
	"time"

	"github.com/avast/retry-go/v4"
	sethvargo "github.com/sethvargo/go-retry"
)

func others(ctx context.Context) {
	_ = retry.Do(work, retry.Attempts(3), retry.Delay(time.Second))                                                   // want `not moved by machine`
	_ = sethvargo.Do(ctx, sethvargo.NewConstant(time.Second), func(context.Context) error { return nil })             // want `not moved by machine`
	_ = sethvargo.Exponential(ctx, time.Second, func(context.Context) error { return sethvargo.RetryableError(nil) }) // want `not moved by machine`
}
