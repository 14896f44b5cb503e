package main

import (
	"context"
	"math"
	"time"

	"golang.org/x/time/rate"
)

// rateGate returns the gate that gives each attempt, a first one too, a token of the limiter, and else says when the
// next token will be there. Nothing is reserved meanwhile, so a run that ends early owes nothing; who comes first then
// gets it.
//
// The trap: the gate is asked again after each wait, so a reservation would take a second token, and the Cancel of one
// does not give its token back if another was made since. So it takes the token only when it says go. If it is one of
// several gates, ask it last, and only if all others say go: otherwise each refusal of theirs costs a token.
func rateGate(limiter *rate.Limiter) func(context.Context) time.Duration {
	return func(context.Context) time.Duration {
		if limiter.Allow() {
			return 0
		}
		missing, limit := 1-limiter.Tokens(), float64(limiter.Limit())
		wait := missing / limit * float64(time.Second)
		if limit <= 0 || limiter.Burst() < 1 || !(wait < math.MaxInt64) {
			return math.MaxInt64 // no token ever: the TTL or the deadline ends the run at once
		}
		return max(time.Duration(wait), time.Nanosecond) // the token may have come meanwhile: 0 would mean go without it
	}
}
