package main

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// failsafeGate returns the gate that waits while the breaker is open. Each attempt is to go through the breaker, inside
// the function that is retried, as failsafeThrough does.
//
// The trap: after its delay the breaker still says that it is open, until a call tries. A gate that asked IsOpen would
// wait for an attempt that it holds back itself, so this asks for the remaining delay alone.
func failsafeGate[R any](breaker circuitbreaker.CircuitBreaker[R]) func(context.Context) time.Duration {
	return func(context.Context) time.Duration { return breaker.RemainingDelay() }
}

// failsafeThrough makes one attempt through the breaker. If the breaker has no permit left, as in its half-open state
// once its trials are under way, that is circuitbreaker.ErrOpen and nothing is sent.
func failsafeThrough[R any](ctx context.Context, breaker circuitbreaker.CircuitBreaker[R], fn func(context.Context) (R, error)) (R, error) {
	return failsafe.With[R](breaker).WithContext(ctx).Get(func() (R, error) { return fn(ctx) })
}
