// Package constrained has a mark in a file that this build leaves out.
package constrained

import "github.com/cenkalti/backoff/v4"

func call(op func() error) error {
	return backoff.Retry(func() error { return mark(op()) }, &backoff.ZeroBackOff{}) // want `elsewhere (other.go:7) can reach it`
}
