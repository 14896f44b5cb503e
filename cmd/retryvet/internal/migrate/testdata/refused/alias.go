package refused

import (
	tm "time"

	"github.com/cenkalti/backoff/v4"
)

func renamed() error {
	return backoff.Retry(func() error { return nil }, backoff.NewExponentialBackOff(backoff.WithMaxInterval(tm.Hour))) // want `undefined: time`
}
