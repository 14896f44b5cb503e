//go:build windows && !windows

package refused

import "github.com/cenkalti/backoff/v4" // want `its build constraints leave it out`

func elsewhere() error { return backoff.Retry(work, backoff.NewConstantBackOff(0)) }
