// Package inforce tells what is in force where a field of a policy is zero, for exports that write it down. The core decides by
// the same defaults; the test holds the two together.
package inforce

import (
	"math"
	"time"

	"github.com/retrygo/retry"
)

// Attempts returns how many attempts p makes, and math.MaxInt where there is no limit.
func Attempts(p *retry.Policy) int {
	switch {
	case p.Disabled:
		return 1
	case p.MaxAttempts == retry.Unlimited:
		return math.MaxInt
	case p.MaxAttempts > 0:
		return p.MaxAttempts
	case len(p.Delays) > 0:
		return len(p.Delays) + 1
	default:
		return 8 // Policy.MaxAttempts: "Zero means 8"
	}
}

// Mode returns the formula of b.
func Mode(b *retry.Backoff) retry.Mode {
	switch {
	case b.Mode != 0:
		return b.Mode
	case len(b.Delays) > 0:
		return retry.List
	default:
		return retry.Exponential
	}
}

// Factor returns the Factor of an exponential b.
func Factor(b *retry.Backoff) float64 {
	if b.Factor != 0 {
		return b.Factor
	}
	return 2 // Backoff.Factor: "Zero means 2 for Exponential"
}

// Cap returns the Cap of a b with a formula, which a list need not have.
func Cap(b *retry.Backoff) time.Duration {
	if b.Cap > 0 {
		return b.Cap
	}
	return max(time.Hour, b.Base) // Backoff.Cap: "Zero means 1h", which a set Base raises
}

// MaxHint returns the MaxHint of p.
func MaxHint(p *retry.Policy) time.Duration {
	if p.MaxHint > 0 {
		return p.MaxHint
	}
	return time.Hour // Policy.MaxHint: "Zero means 1h"
}
