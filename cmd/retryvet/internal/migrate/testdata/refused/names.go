package refused

import . "github.com/cenkalti/backoff/v5"

func dotted() error {
	_, err := Retry(ctx, fetch) // want `imported by a dot`
	return err
}
