package refused

import . "github.com/cenkalti/backoff/v4"

func dotted() error {
	return Retry(work, NewConstantBackOff(0)) // want `imported by a dot`
}
