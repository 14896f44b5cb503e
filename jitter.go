package retry

import (
	"time"

	"github.com/retrygo/retry/internal/saturate"
)

const defaultJitterRatio = 0.2 // as gRPC's retries do (gRFC A6, "Exponential Backoff")

// JitterMode is the way in which a delay is spread at random, so that clients which failed together do not return
// together.
type JitterMode uint8

// The jitters, for a delay d that the formula gave and Cap bounded. Full, equal and decorrelated jitter are as Brooker,
// "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015) defines them.
//
// There is no additive jitter ("d plus up to j"). It vanishes beside long delays and does not spread them at the cap.
const (
	NoJitter           JitterMode = iota // d, the zero JitterMode
	FullJitter                           // [0, d) spreads a herd best, and a wait can be near 0
	EqualJitter                          // [d/2, d) keeps half of the delay
	RatioJitter                          // [d·(1−JitterRatio), min(d·(1+JitterRatio), Cap)] is around the delay
	DecorrelatedJitter                   // [Base, min(3·prev, Cap)) grows with prev. Exponential only, Base < Cap
)

// String returns "none", "full", "equal", "ratio" or "decorrelated".
func (j JitterMode) String() string {
	return name(int(j), "JitterMode", "none", "full", "equal", "ratio", "decorrelated")
}

func (b *Backoff) jitter() JitterMode {
	if b.Jitter > DecorrelatedJitter || b.Jitter == DecorrelatedJitter && b.mode() != Exponential {
		return NoJitter
	}
	return b.Jitter
}

func (b *Backoff) ratio() float64 {
	if b.JitterRatio > 0 && b.JitterRatio <= 1 {
		return b.JitterRatio
	}
	return defaultJitterRatio
}

// window returns the range from which the delay after attempt is drawn evenly, 0 ≤ lo ≤ hi ≤ Cap.
func (b *Backoff) window(attempt int, prev time.Duration) (lo, hi time.Duration) {
	delay := b.delay(attempt)
	switch b.jitter() {
	case FullJitter:
		return 0, delay
	case EqualJitter:
		return delay / 2, delay
	case RatioJitter:
		limit := b.limit()
		spread := saturate.Truncated(b.ratio()*float64(delay), delay)
		return delay - spread, delay + min(spread, limit-delay)
	case DecorrelatedJitter:
		limit := b.limit()
		base := min(b.base(), limit)
		if prev <= 0 {
			prev = base
		}
		return base, max(base, saturate.Times(prev, 3, limit))
	default:
		return delay, delay
	}
}
