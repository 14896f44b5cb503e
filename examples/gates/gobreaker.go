// Package gates has circuit breakers and a rate limiter of others as Policy.Gate, each short enough to copy.
package gates

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Gobreaker returns a circuit breaker with the given settings and the gate that waits while it is open. Each
// attempt must go through Execute, inside the retried function, so that the breaker counts attempts, not runs.
//
// There is a trap. The breaker does not report how long it stays open, so the gate records when it opened. The breaker
// calls OnStateChange under its own lock, so its methods must not be called there. It is still open at the exact
// instant at which Timeout has passed.
func Gobreaker[T any](s gobreaker.Settings) (*gobreaker.CircuitBreaker[T], func(context.Context) time.Duration) {
	if s.Timeout <= 0 {
		s.Timeout = time.Minute // the breaker's own default
	}
	var until atomic.Pointer[time.Time]
	until.Store(new(time.Time))
	told := s.OnStateChange
	s.OnStateChange = func(name string, from, to gobreaker.State) {
		if to == gobreaker.StateOpen {
			halfOpen := time.Now().Add(s.Timeout + time.Nanosecond)
			until.Store(&halfOpen)
		}
		if told != nil {
			told(name, from, to)
		}
	}
	gate := func(context.Context) time.Duration { return time.Until(*until.Load()) } // 0 or less means go
	return gobreaker.NewCircuitBreaker[T](s), gate
}
