// Package through gets a mark of another module through a package of its own.
package through

import (
	"example.com/through/in"
	"github.com/cenkalti/backoff/v4"
)

func call() error { return backoff.Retry(in.Work, &backoff.ZeroBackOff{}) } // want `example.com/x, which this module imports, makes marks`
