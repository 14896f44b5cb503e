package retry

import (
	"fmt"
	"math"
	"time"

	"github.com/retrygo/retry/internal/saturate"
)

// Defaults of a Backoff. 5s ×2 up to 1h is the delivery schedule that Policy{} publishes, 10m35s over 8 attempts.
const (
	defaultBase   = 5 * time.Second
	defaultCap    = time.Hour
	defaultFactor = 2 // of Exponential, the doubling of Ethernet's backoff (IEEE 802.3, 4.2.3.2.5)
	defaultSlope  = 1 // of Linear, for Base, 2·Base, 3·Base, ...
)

// Mode is the formula of a Backoff. The zero Mode is List if Delays is set, otherwise Exponential.
type Mode uint8

// The modes, for the attempt n that just failed, counted from 1.
const (
	Exponential Mode = iota + 1 // Base·Factor^(n−1)
	Linear                      // Base·(1+Factor·(n−1))
	Fixed                       // Base
	List                        // Delays[n−1], and the last one repeats
)

// String returns "exponential", "linear", "fixed" or "list", and "" for the zero Mode.
func (m Mode) String() string {
	return name(int(m), "Mode", "", "exponential", "linear", "fixed", "list")
}

// Backoff computes how long to wait after a failed attempt. It is plain data. Its methods are pure, do not allocate and
// return the same delay for the same arguments on every platform. The zero Backoff is exponential, 5s ×2, at most 1h.
//
// A default gives way to a value that was set. A set Base above the default Cap raises that Cap to itself, and a set
// Cap below the default Base lowers that Base.
//
// Every method accepts every Backoff, even one that Validate refuses:
//   - An invalid value counts as unset, and a negative entry of Delays as 0.
//   - A Base above Cap counts as Cap.
//   - A Mode other than List comes before Delays.
type Backoff struct {
	// Mode is the formula. Zero means List if Delays is set, otherwise Exponential.
	Mode Mode
	// Base is the first delay and the unit of the others. List does not use it. Zero means 5s.
	Base time.Duration
	// Factor is the growth per attempt, at least 1 for Exponential and above 0 for Linear. Fixed and List do not use
	// it. Zero means 2 for Exponential and 1 for Linear.
	Factor float64
	// Cap bounds every delay that is computed, jitter included. A hint (see After) can ask for more. Reaching it never
	// ends a run. Zero means 1h, and no cap for List.
	Cap time.Duration
	// Delays are the waits after attempt 1, 2, ... of a List. The last one repeats. Nil means no list.
	Delays []time.Duration
	// Jitter is the way in which a delay is spread at random. Zero means that it is not.
	Jitter JitterMode
	// JitterRatio is the half-width of RatioJitter's window as a share of the delay, in (0,1]. Zero means 0.2.
	JitterRatio float64
}

// Delay returns the wait after the given failed attempt, without jitter. It is min(formula, Cap), in [0, Cap]. attempt
// counts from 1, and anything below counts as 1. If the formula overflows, the delay is Cap.
//
// Whole-number factors are computed in integers, others in float64 steps, each rounded once and truncated at the end.
func (b Backoff) Delay(attempt int) time.Duration { return b.delay(attempt) }

// delay is Delay, without a copy of b.
func (b *Backoff) delay(attempt int) time.Duration {
	grown := max(attempt, 1) - 1 // how often the first delay has grown
	mode := b.mode()
	base := b.base()
	limit := b.limit()
	switch {
	case mode == Exponential && (b.Factor == 0 || b.Factor == 2): // the commonest: 6 ns by a shift, 19 ns by the loop
		if base > limit>>uint(grown) {
			return limit
		}
		return base << uint(grown)
	case mode == Exponential:
		return saturate.Power(base, b.factor(), grown, limit)
	case mode == Linear:
		return saturate.Line(base, b.factor(), grown, limit)
	case mode == Fixed:
		return min(base, limit)
	default:
		return min(max(b.Delays[min(grown, len(b.Delays)-1)], 0), limit)
	}
}

// Jittered returns the wait after the given failed attempt, spread by Jitter, in [0, Cap]. u in [0,1) chooses the point
// of the window. A u below 0 or NaN counts as 0, and one of 1 or more as the largest float64 below 1. prev is the delay
// that Jittered gave for the attempt before, 0 for the first. Only DecorrelatedJitter uses it.
//
// The order is formula, cap, jitter, cap. The window is clipped to [0, Cap] before the point is chosen, so that delays
// that have reached the cap still spread.
func (b Backoff) Jittered(attempt int, prev time.Duration, u float64) time.Duration {
	lo, hi := b.window(attempt, prev)
	return lo + saturate.Within(hi-lo, u)
}

// Bounds returns the smallest delay that Jittered can give after the given attempt and the supremum of them. hi itself
// is reached only if lo == hi. For DecorrelatedJitter it covers all histories that start with the first attempt.
func (b Backoff) Bounds(attempt int) (lo, hi time.Duration) {
	var prev time.Duration
	if b.jitter() == DecorrelatedJitter {
		// Each delay is below three times the one before, so prev < Base·3^(n−1).
		prev = saturate.Power(b.base(), 3, max(attempt, 1)-1, b.limit())
	}
	return b.window(attempt, prev)
}

func (b *Backoff) check() (bad FieldErrors) {
	list := len(b.Delays) > 0
	finite := !math.IsNaN(b.Factor) && !math.IsInf(b.Factor, 0)
	refuse(&bad, b.Mode > List, "Policy.Mode", uint8(b.Mode), "is not one of Exponential, Linear, Fixed and List")
	refuse(&bad, b.Base < 0, "Policy.Base", b.Base, "is negative")
	refuse(&bad, b.Cap < 0, "Policy.Cap", b.Cap, "is negative")
	refuse(&bad, !finite, "Policy.Factor", b.Factor, "is not a finite number")
	refuse(&bad, finite && b.Factor < 0, "Policy.Factor", b.Factor, "is negative")
	refuse(&bad, b.Factor > 0 && b.Factor < 1 && b.mode() == Exponential, "Policy.Factor", b.Factor,
		"is below 1, which Exponential needs")
	if b.Cap > 0 && b.Base > b.Cap {
		bad.Refuse("Policy.Cap", b.Cap, "is below Base", b.Base)
	}
	refuse(&bad, b.Mode == List && !list, "Policy.Delays", "[]", "is empty, and Mode List needs one delay at least")
	refuse(&bad, list && b.Mode != 0 && b.Mode != List, "Policy.Mode", b.Mode,
		"is set together with Delays, which need Mode List or none")
	refuse(&bad, list && b.Base != 0, "Policy.Base", b.Base, "is set together with Delays")
	refuse(&bad, list && b.Factor != 0, "Policy.Factor", b.Factor, "is set together with Delays")
	b.checkDelays(&bad)
	refuse(&bad, b.Jitter > DecorrelatedJitter, "Policy.Jitter", uint8(b.Jitter),
		"is not one of NoJitter, FullJitter, EqualJitter, RatioJitter and DecorrelatedJitter")
	if b.Jitter == DecorrelatedJitter && b.mode() != Exponential {
		bad.Refuse("Policy.Jitter", b.Jitter, "goes with Exponential only, not with", b.mode())
	}
	refuse(&bad, b.JitterRatio != 0 && b.Jitter != RatioJitter, "Policy.JitterRatio", b.JitterRatio,
		"is set without RatioJitter")
	refuse(&bad, !(b.JitterRatio >= 0 && b.JitterRatio <= 1), "Policy.JitterRatio", b.JitterRatio,
		"is outside (0,1]") // NaN too; 0 is not set
	return bad
}

// checkDelays refuses the negative entries of Delays, the first ten of them one by one.
func (b *Backoff) checkDelays(bad *FieldErrors) {
	negative := 0
	for i, d := range b.Delays {
		if d >= 0 {
			continue
		}
		negative++
		if negative > 10 {
			bad.Refuse(fmt.Sprintf("Policy.Delays[%d]", i), d, "is negative, and later ones are not looked at")
			return
		}
		bad.Refuse(fmt.Sprintf("Policy.Delays[%d]", i), d, "is negative")
	}
}

func (b *Backoff) mode() Mode {
	switch {
	case b.Mode >= Exponential && b.Mode < List:
		return b.Mode
	case len(b.Delays) > 0:
		return List
	default:
		return Exponential
	}
}

func (b *Backoff) limit() time.Duration {
	switch {
	case b.Cap > 0:
		return b.Cap
	case b.mode() == List:
		return saturate.Max
	default:
		return max(defaultCap, b.Base)
	}
}

// base returns the Base in force, which is never 0.
func (b *Backoff) base() time.Duration {
	switch {
	case b.Base > 0:
		return b.Base
	case b.Cap > 0:
		return min(defaultBase, b.Cap)
	default:
		return defaultBase
	}
}

// factor returns the Factor in force of Exponential or Linear. NaN fails every comparison.
func (b *Backoff) factor() float64 {
	least := 1.0
	unset := float64(defaultFactor)
	if b.Mode == Linear {
		least = math.SmallestNonzeroFloat64
		unset = defaultSlope
	}
	if b.Factor >= least && b.Factor <= math.MaxFloat64 {
		return b.Factor
	}
	return unset
}

// next returns attempt+1, at most math.MaxInt, which an Unlimited run without delays can reach on 32 bits.
func next(attempt int) int { return attempt + min(1, math.MaxInt-attempt) }
