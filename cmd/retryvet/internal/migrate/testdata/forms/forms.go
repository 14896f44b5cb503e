// Package forms has one function for each form of call that is moved.
package forms

import (
	"context"
	"errors"
)

// Work is what is retried.
type Work func(context.Context) (string, error)

// Form retries work. It calls note if the library reports a failure.
type Form func(ctx context.Context, work Work, note func(...any)) (string, error)

var (
	errBusy     = errors.New("busy")
	errNotFound = errors.New("not found")
	errFailed   = errors.New("failed")
)
