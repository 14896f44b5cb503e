// Package x makes a mark.
package x

import (
	"io"

	"github.com/cenkalti/backoff/v4"
)

// Work fails for good.
func Work() error { return backoff.Permanent(io.EOF) }
