package retry_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// slowDelay is a second implementation of Delay for valid backoffs, from its doc comment, in math/big: whole factors in
// integers of any size, others in steps of 53 bits. exact is false if a step count beyond 1000 makes the last digits
// a matter of order.
func slowDelay(b retry.Backoff, attempt int) (delay time.Duration, exact bool) {
	n := int64(max(attempt, 1) - 1)
	limit := b.Cap
	base := b.Base
	switch {
	case limit == 0 && len(b.Delays) > 0:
		limit = longest
	case limit == 0:
		limit = max(hour, base)
	}
	if base == 0 {
		base = min(5*sec, limit)
	}
	factor := b.Factor
	var sum *big.Float
	switch {
	case len(b.Delays) > 0:
		sum = bigOf(b.Delays[min(n, int64(len(b.Delays))-1)])
	case b.Mode == retry.Fixed:
		sum = bigOf(base)
	case b.Mode == retry.Linear:
		if factor == 0 {
			factor = 1
		}
		if n == 0 {
			sum = bigOf(base)
		} else if factor == math.Trunc(factor) {
			sum = bigOf(base).Mul(bigOf(base), plus1(mul(big.NewFloat(factor), n)))
		} else {
			step := rounded53(new(big.Float).SetPrec(200).Mul(rounded53(bigOf(base)), big.NewFloat(factor)))
			sum = rounded53(new(big.Float).SetPrec(200).Add(rounded53(bigOf(base)), rounded53(mul(step, n))))
		}
	default:
		if factor == 0 {
			factor = 2
		}
		whole := factor == math.Trunc(factor)
		sum = bigOf(base)
		if !whole {
			sum = rounded53(sum)
		}
		for i := int64(0); i < n && factor != 1; i++ {
			if sum.Cmp(bigOf(longest)) > 0 {
				return limit, true
			}
			if i == 3000 {
				return 0, false
			}
			if sum = new(big.Float).SetPrec(2000).Mul(sum, big.NewFloat(factor)); !whole {
				sum = rounded53(sum)
			}
		}
		if !whole && n > 1000 && sum.Cmp(bigOf(limit)) < 0 {
			delay, _ := truncatedBig(sum, limit)
			return delay, false
		}
	}
	return truncatedBig(sum, limit)
}

func bigOf(d time.Duration) *big.Float { return new(big.Float).SetPrec(2000).SetInt64(int64(d)) }

func plus1(f *big.Float) *big.Float { return f.Add(f, big.NewFloat(1)) }

func mul(f *big.Float, n int64) *big.Float {
	return new(big.Float).SetPrec(2000).Mul(f, bigOf(time.Duration(n)))
}

func rounded53(f *big.Float) *big.Float { return new(big.Float).SetPrec(53).Set(f) }

func truncatedBig(f *big.Float, limit time.Duration) (time.Duration, bool) {
	whole, _ := f.Int(nil)
	if whole.Cmp(big.NewInt(int64(limit))) > 0 {
		return limit, true
	}
	return time.Duration(whole.Int64()), true
}

func FuzzDelay(f *testing.F) {
	f.Add(uint8(1), int64(5*sec), 2.0, int64(hour), int64(0), int64(0), 7)
	f.Add(uint8(1), int64(1), 3.0, int64(longest), int64(0), int64(0), 41)
	f.Add(uint8(1), int64(sec), 1.1, int64(longest), int64(0), int64(0), 2000)
	f.Add(uint8(2), int64(sec), 0.7, int64(0), int64(0), int64(0), 4)
	f.Add(uint8(2), int64(sec), 1e300, int64(longest), int64(0), int64(0), maxTries)
	f.Add(uint8(3), int64(-1), math.NaN(), int64(-1), int64(0), int64(0), math.MinInt)
	f.Add(uint8(4), int64(0), 0.0, int64(0), int64(sec), int64(hour), 2)
	f.Add(uint8(0), int64(1), math.Nextafter(1, 2), int64(0), int64(0), int64(0), maxTries)
	f.Fuzz(func(t *testing.T, mode uint8, base int64, factor float64, limit, first, second int64, attempt int) {
		b := retry.Backoff{Mode: retry.Mode(mode), Base: time.Duration(base), Factor: factor, Cap: time.Duration(limit)}
		if first != 0 {
			b.Delays = []time.Duration{time.Duration(first), time.Duration(second)}
		}
		delay := b.Delay(attempt)
		require.GreaterOrEqual(t, delay, time.Duration(0), "a delay is never negative")
		if b.Cap > 0 {
			require.LessOrEqual(t, delay, b.Cap, "a delay is never above Cap")
		}
		require.Equal(t, delay, b.Delay(attempt), "the same arguments give the same delay")
		lo, hi := b.Bounds(attempt)
		require.Equal(t, [2]time.Duration{delay, delay}, [2]time.Duration{lo, hi}, "without jitter the bounds are the delay")
		if attempt < 1000 && attempt > 1 && len(b.Delays) == 0 {
			require.GreaterOrEqual(t, delay, b.Delay(attempt-1), "a formula's delay never falls")
		}
		if unlimited(b).Validate() != nil {
			return
		}
		want, exact := slowDelay(b, attempt)
		if exact {
			require.Equal(t, want, delay)
		} else if want > 0 {
			require.InEpsilon(t, float64(want)+1, float64(delay)+1, 1e-11)
		}
	})
}

func FuzzJittered(f *testing.F) {
	f.Add(uint8(0), uint8(1), int64(100*ms), 2.0, int64(250*ms), int64(0), 0.0, 3, int64(0), 0.5)
	f.Add(uint8(1), uint8(3), int64(sec), 1.5, int64(hour), int64(0), 1.0, 9, int64(0), almost1)
	f.Add(uint8(1), uint8(4), int64(sec), 0.0, int64(longest), int64(0), 0.0, 9, int64(longest), 0.1)
	f.Add(uint8(0), uint8(3), int64(0), 0.0, int64(0), int64(longest), 1.0, 1, int64(0), 1.0)
	f.Add(uint8(0), uint8(3), int64(0), 0.0, int64(1<<53+3), int64(1<<53+3), 1e-17, 1, int64(0), math.NaN())
	f.Fuzz(func(t *testing.T, mode, jitter uint8, base int64, factor float64, limit, first int64, ratio float64, attempt int, prev int64, u float64) {
		b := retry.Backoff{Mode: retry.Mode(mode), Base: time.Duration(base), Factor: factor, Cap: time.Duration(limit),
			Jitter: retry.JitterMode(jitter), JitterRatio: ratio}
		if first != 0 {
			b.Delays = []time.Duration{time.Duration(first)}
		}
		got := b.Jittered(attempt, time.Duration(prev), u)
		require.GreaterOrEqual(t, got, time.Duration(0), "a delay is never negative")
		if b.Cap > 0 {
			require.LessOrEqual(t, got, b.Cap, "jitter included, a delay is never above Cap")
		}
		require.Equal(t, got, b.Jittered(attempt, time.Duration(prev), u), "the same arguments give the same delay")
		lo, hi := b.Jittered(attempt, time.Duration(prev), 0), b.Jittered(attempt, time.Duration(prev), 1)
		require.LessOrEqual(t, lo, got, "delays do not fall as u grows")
		require.LessOrEqual(t, got, hi, "delays do not fall as u grows")
		if b.Jitter != retry.DecorrelatedJitter {
			require.Equal(t, got, b.Jittered(attempt, 0, u), "jitter never compounds, but for decorrelated jitter")
		}
		if b.Jitter != retry.DecorrelatedJitter || attempt <= 1 && prev <= 0 {
			inf, sup := b.Bounds(attempt)
			require.Equal(t, inf, lo, "u of 0 gives the lower bound")
			require.True(t, got < sup || got == sup && inf == sup, "the upper bound is never reached by a window that has a width")
		}
		if unlimited(b).Validate() == nil {
			require.Equal(t, slowJittered(b, attempt, time.Duration(prev), u), got)
		}
	})
}

// slowJittered is a second implementation of Jittered for valid backoffs, from rule and doc comment, in math/big; the
// delay itself is taken from Delay, which has its own.
func slowJittered(b retry.Backoff, attempt int, prev time.Duration, u float64) time.Duration {
	d := b.Delay(attempt)
	limit := b.Cap
	if limit == 0 && len(b.Delays) > 0 {
		limit = longest
	} else if limit == 0 {
		limit = max(hour, b.Base)
	}
	lo, hi := big.NewInt(int64(d)), big.NewInt(int64(d))
	switch b.Jitter {
	case retry.FullJitter:
		lo.SetInt64(0)
	case retry.EqualJitter:
		lo.Quo(lo, big.NewInt(2))
	case retry.RatioJitter:
		ratio := b.JitterRatio
		if ratio == 0 {
			ratio = 0.2
		}
		spread := product53(ratio, int64(d))
		if spread.Cmp(big.NewInt(int64(d))) > 0 {
			spread.SetInt64(int64(d))
		}
		lo.Sub(lo, spread)
		hi.Add(hi, spread)
	case retry.DecorrelatedJitter:
		base := b.Base
		if base == 0 {
			base = min(5*sec, limit)
		}
		if prev <= 0 {
			prev = base
		}
		lo.SetInt64(int64(base))
		hi.Mul(big.NewInt(3), big.NewInt(int64(prev)))
	}
	if hi.Cmp(big.NewInt(int64(limit))) > 0 {
		hi.SetInt64(int64(limit))
	}
	if hi.Cmp(lo) < 0 {
		hi.Set(lo)
	}
	switch {
	case !(u > 0):
		u = 0
	case u >= 1:
		u = math.Nextafter(1, 0)
	}
	return time.Duration(lo.Int64() + product53(u, hi.Int64()-lo.Int64()).Int64())
}

// product53 returns f·d, rounded to 53 bits as one float64 multiplication is, and truncated.
func product53(f float64, d int64) *big.Int {
	x := new(big.Float).SetPrec(53).SetInt64(d)
	whole, _ := new(big.Float).SetPrec(53).Mul(x, big.NewFloat(f)).Int(nil)
	return whole
}
