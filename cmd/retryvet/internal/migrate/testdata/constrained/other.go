//go:build other

package constrained

import "github.com/cenkalti/backoff/v4" // want `its build constraints leave it out`

func mark(err error) error { return backoff.Permanent(err) }
