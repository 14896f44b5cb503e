package gates

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// Failsafe returns the gate that waits while the breaker is open. Each attempt must go through the breaker, inside
// the retried function, as in FailsafeThrough.
//
// There is a trap. After its delay the breaker still reports that it is open, until a call tries. A gate that called
// IsOpen would wait for an attempt that it defers itself, so this one uses only the remaining delay.
func Failsafe[R any](breaker circuitbreaker.CircuitBreaker[R]) func(context.Context) time.Duration {
	return func(context.Context) time.Duration { return breaker.RemainingDelay() }
}

// FailsafeThrough makes one attempt through the breaker. If the breaker has no permit left, as in its half-open state
// after its trials have begun, it returns circuitbreaker.ErrOpen without a call of fn.
func FailsafeThrough[R any](ctx context.Context, breaker circuitbreaker.CircuitBreaker[R], fn func(context.Context) (R, error)) (R, error) {
	return failsafe.With[R](breaker).WithContext(ctx).Get(func() (R, error) { return fn(ctx) })
}
