// Package elsewhere makes a mark that package marks does not know about.
package elsewhere

import (
	"errors"

	"github.com/cenkalti/backoff/v4"
)

// Work fails for good.
func Work() error { return backoff.Permanent(errors.New("never")) }
