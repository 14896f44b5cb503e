package attempt

import (
	"context"
	"errors"
)

// ErrTimeout is retry.ErrAttemptTimeout.
var ErrTimeout error = timeout{}

type timeout struct{}

func (timeout) Error() string        { return "attempt timeout" }
func (timeout) ErrorType() string    { return "timeout" } // for OpenTelemetry's error.type
func (timeout) Timeout() bool        { return true }
func (timeout) Is(target error) bool { return target == context.DeadlineExceeded }

// MarkTimeout is retryshell.MarkTimeout.
func MarkTimeout(err error) error {
	canceled := errors.Is(err, context.Canceled)
	if !canceled && (errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	return &TimedOut{err}
}

// TimedOut hides context.Canceled, so it has no Unwrap.
type TimedOut struct{ Err error }

func (e *TimedOut) Error() string { return ErrTimeout.Error() + ": " + e.Err.Error() }
func (e *TimedOut) Timeout() bool { return true }

func (e *TimedOut) As(target any) bool {
	if IsProbe(target) {
		return Found(target, e)
	}
	return errors.As(e.Err, target)
}

func (e *TimedOut) Is(target error) bool {
	return target == ErrTimeout || target == context.DeadlineExceeded ||
		target != context.Canceled && errors.Is(e.Err, target)
}
