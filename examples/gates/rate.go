package gates

import (
	"context"
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Rate returns the gate that takes a token of the limiter for each attempt, including the first, and otherwise returns
// the time until the next token. It does not reserve that token, so a run that ends early owes no token. The first
// attempt to come gets it.
//
// There is a trap. The gate is called again after each wait, so a reservation would take a second token, and canceling
// one does not return its token if another was made since. So the gate takes the token only when it returns 0. If it is
// one of several gates, call it last, and only if all others return 0. Otherwise each of their refusals costs a token.
func Rate(limiter *rate.Limiter) func(context.Context) time.Duration {
	return func(context.Context) time.Duration {
		if limiter.Allow() {
			return 0
		}
		missing, limit := 1-limiter.Tokens(), float64(limiter.Limit())
		wait := missing / limit * float64(time.Second)
		if limit <= 0 || limiter.Burst() < 1 || !(wait < math.MaxInt64) {
			return math.MaxInt64 // no token ever comes, so the TTL or the deadline ends the run at once
		}
		return max(time.Duration(wait), time.Nanosecond) // the token may have come in the meantime, but 0 would mean to go without it
	}
}
