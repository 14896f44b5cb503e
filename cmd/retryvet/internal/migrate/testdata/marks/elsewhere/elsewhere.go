// Package elsewhere makes a mark that package marks does not know about.
package elsewhere

import (
	"errors"

	"github.com/cenkalti/backoff/v5"
)

// Work fails for good.
func Work() (int, error) { return 0, backoff.Permanent(errors.New("never")) }
