// Package constrained has a mark in a file that this build leaves out.
package constrained

import "github.com/cenkalti/backoff/v4"

func call(op func() error) error {
	return backoff.Retry(func() error { return mark(op()) }, backoff.NewConstantBackOff(0)) // want `elsewhere (other.go) can reach it`
}
