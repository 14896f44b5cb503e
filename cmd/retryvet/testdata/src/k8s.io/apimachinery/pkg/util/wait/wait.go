package wait

import (
	"context"
	"time"
)

type ConditionWithContextFunc func(context.Context) (done bool, err error)

type Backoff struct{ Steps int }

func PollUntilContextTimeout(ctx context.Context, interval, timeout time.Duration, immediate bool, condition ConditionWithContextFunc) error {
	return nil
}

func ExponentialBackoff(backoff Backoff, condition func() (bool, error)) error {
	return nil
}
