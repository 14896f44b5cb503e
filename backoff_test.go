package retry_test

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

const (
	ms       = time.Millisecond
	sec      = time.Second
	minute   = time.Minute
	hour     = time.Hour
	longest  = time.Duration(math.MaxInt64)
	almost1  = 1 - 0x1p-53 // the largest u below 1
	maxTries = math.MaxInt
)

func TestPublishedSchedules(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy retry.Policy
		waits  []time.Duration
		total  time.Duration
	}{
		{"the zero policy: 8 attempts, 5s ×2, cap 1h", retry.Policy{},
			[]time.Duration{5 * sec, 10 * sec, 20 * sec, 40 * sec, 80 * sec, 160 * sec, 320 * sec}, 10*minute + 35*sec},
		{"12 attempts, base 10s ×2, cap 30m",
			retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: 10 * sec, Factor: 2, Cap: 30 * minute}},
			[]time.Duration{10 * sec, 20 * sec, 40 * sec, 80 * sec, 160 * sec, 320 * sec, 640 * sec, 1280 * sec,
				30 * minute, 30 * minute, 30 * minute}, 2*hour + 12*minute + 30*sec},
		{"fixed 5s, 3 attempts", retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 5 * sec}},
			[]time.Duration{5 * sec, 5 * sec}, 10 * sec},
		{"Standard", retry.Standard(), []time.Duration{minute, 30 * minute, 3 * hour}, 3*hour + 31*minute},
		{"Aggressive", retry.Aggressive(), []time.Duration{10 * sec, minute, 5 * minute}, 6*minute + 10*sec},
		{"Patient", retry.Patient(), []time.Duration{5 * minute, hour, 6 * hour}, 7*hour + 5*minute},
		{"Cautious", retry.Cautious(), []time.Duration{minute, 10 * minute, hour, 4 * hour, 12 * hour}, 17*hour + 11*minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.NoError(t, row.policy.Validate())
			var waits []time.Duration
			var elapsed time.Duration
			for attempt := 1; ; attempt++ {
				d := row.policy.Decide(retry.Progress{Attempt: attempt, Elapsed: elapsed}, errFlaky, 0.5)
				if d.Status != retry.WaitingRetry {
					require.Equal(t, exhausted, d)
					break
				}
				waits = append(waits, d.Delay)
				elapsed += d.Delay
			}
			require.Equal(t, row.waits, waits)
			require.Equal(t, row.waits, scheduled(t, row.policy, nil))
			lo, hi := row.policy.TotalWait()
			require.Equal(t, []time.Duration{row.total, row.total, row.total}, []time.Duration{elapsed, lo, hi})
		})
	}
}

// scheduled returns the first 20 waits at most of Policy.Schedule, whose attempts count from 1.
func scheduled(t *testing.T, p retry.Policy, rnd func() float64) (waits []time.Duration) {
	for attempt, delay := range p.Schedule(rnd) {
		waits = append(waits, delay)
		require.Len(t, waits, attempt)
		if attempt == 20 {
			break
		}
	}
	return waits
}

func TestDelay(t *testing.T) {
	exp := func(base time.Duration, factor float64, limit time.Duration) retry.Backoff {
		return retry.Backoff{Mode: retry.Exponential, Base: base, Factor: factor, Cap: limit}
	}
	lin := func(base time.Duration, factor float64, limit time.Duration) retry.Backoff {
		return retry.Backoff{Mode: retry.Linear, Base: base, Factor: factor, Cap: limit}
	}
	list := func(delays ...time.Duration) retry.Backoff { return retry.Backoff{Delays: delays} }
	for _, row := range []struct {
		name    string
		backoff retry.Backoff
		attempt int
		want    time.Duration
	}{
		{"the zero backoff begins with 5s", retry.Backoff{}, 1, 5 * sec},
		{"the zero backoff doubles", retry.Backoff{}, 4, 40 * sec},
		{"the zero backoff stops at 1h", retry.Backoff{}, 11, hour},
		{"the largest attempt gets the cap", retry.Backoff{}, maxTries, hour},

		{"a whole factor is exact if it just fits", exp(1, 3, longest), 40, 4052555153018976267},
		{"a whole factor saturates one step later", exp(1, 3, longest), 41, longest},
		{"doubling reaches the largest power", exp(1, 2, longest), 63, 1 << 62},
		{"doubling saturates one step later", exp(1, 2, longest), 64, longest},
		{"doubling from an odd base saturates", exp(3, 2, longest), 62, 3 << 61},
		{"doubling from an odd base saturates in time", exp(3, 2, longest), 63, longest},
		{"factor 1 keeps the base forever", exp(7*ms, 1, hour), maxTries, 7 * ms},
		{"a huge factor goes straight to the cap", exp(1, math.MaxFloat64, hour), 2, hour},
		{"a huge factor leaves the first delay", exp(1, math.MaxFloat64, hour), 1, 1},
		{"a huge factor leaves a first delay that no float64 is", exp(1<<53+1, 1<<63, longest), 1, 1<<53 + 1},
		{"a fraction leaves a first delay that no float64 is", exp(1<<53+1, 1.5, longest), 1, 1<<53 + 1},
		{"a whole factor overflows 128 bits' lower half", exp(longest, 1<<62, longest), 2, longest},
		{"factor 2^63 does not overflow", exp(1, 1<<63, longest), 2, longest},
		{"factor 1.5 is exact in ns", exp(100*ms, 1.5, hour), 5, 506_250_000},
		{"factor 1.7 gives whole nanoseconds", exp(sec, 1.7, hour), 3, 2890 * ms},
		{"factor 1.6 gives whole nanoseconds", exp(sec, 1.6, hour), 4, 4096 * ms},
		{"a fraction of a nanosecond is dropped", exp(3, 1.5, hour), 2, 4},
		{"a factor a hair above 1 needs no counting", exp(1, math.Nextafter(1, 2), hour), math.MaxInt32, 1},
		{"a small factor reaches the cap in the end", exp(sec, 1.000001, hour), 100_000_000, hour},
		{"the cap cuts the base's successor", exp(20*sec, 2, 30*sec), 2, 30 * sec},

		{"linear grows by the base", lin(2*sec, 0, hour), 5, 10 * sec},
		{"linear with a factor grows by base times factor", lin(2*sec, 3, hour), 3, 14 * sec},
		{"linear with a fraction grows by whole nanoseconds", lin(sec, 0.7, hour), 4, 3100 * ms},
		{"linear saturates", lin(longest/2, 1, longest), 3, longest},
		{"linear saturates in the number of steps", lin(hour, 1<<62, longest), maxTries, longest},
		{"linear with a huge fraction saturates", lin(sec, 1e300, longest), 2, longest},
		{"linear with an infinite step leaves the first delay", lin(sec, math.MaxFloat64, longest), 1, sec},
		{"linear with an infinite step saturates", lin(hour, math.MaxFloat64, longest), 2, longest},
		{"linear stops at the cap", lin(sec, 0, 3*sec), 4, 3 * sec},

		{"fixed stays", retry.Backoff{Mode: retry.Fixed, Base: 3 * sec}, 99, 3 * sec},
		{"fixed without a base is 5s", retry.Backoff{Mode: retry.Fixed}, 1, 5 * sec},
		{"fixed without a base gives way to the cap", retry.Backoff{Mode: retry.Fixed, Cap: sec}, 1, sec},

		{"a list gives its delays", list(sec, 3*sec), 2, 3 * sec},
		{"a list repeats its last delay", list(sec, 3*sec), 3, 3 * sec},
		{"a list repeats its last delay forever", list(sec, 3*sec), maxTries, 3 * sec},
		{"a list has no cap by default", list(100 * hour), 1, 100 * hour},
		{"a list obeys a cap", retry.Backoff{Delays: []time.Duration{hour}, Cap: minute}, 1, minute},
		{"a list may be given with its mode", retry.Backoff{Mode: retry.List, Delays: []time.Duration{hour}}, 1, hour},
		{"a list of zero does not wait", list(0), 5, 0},

		{"a set base raises the default cap", retry.Backoff{Base: 2 * hour}, 1, 2 * hour},
		{"a raised cap still bounds", retry.Backoff{Base: 2 * hour}, 9, 2 * hour},
		{"a set cap lowers the default base", retry.Backoff{Cap: 3 * sec}, 1, 3 * sec},

		{"a bad base counts as unset", retry.Backoff{Base: -sec}, 1, 5 * sec},
		{"a bad cap counts as unset", retry.Backoff{Cap: -sec}, 20, hour},
		{"a NaN factor counts as unset", retry.Backoff{Factor: math.NaN()}, 2, 10 * sec},
		{"an infinite factor counts as unset", retry.Backoff{Factor: math.Inf(1)}, 2, 10 * sec},
		{"a factor below 1 counts as unset", retry.Backoff{Factor: 0.5}, 2, 10 * sec},
		{"a negative factor counts as unset for linear", lin(sec, -3, hour), 2, 2 * sec},
		{"an unknown mode counts as unset", retry.Backoff{Mode: 77}, 2, 10 * sec},
		{"an unknown mode with delays is a list", retry.Backoff{Mode: 77, Delays: []time.Duration{sec}}, 2, sec},
		{"a mode goes before delays: exponential", retry.Backoff{Mode: retry.Exponential, Delays: []time.Duration{sec}}, 2, 10 * sec},
		{"a mode goes before delays: linear", retry.Backoff{Mode: retry.Linear, Delays: []time.Duration{sec}}, 3, 15 * sec},
		{"a mode goes before delays: fixed", retry.Backoff{Mode: retry.Fixed, Delays: []time.Duration{sec}}, 3, 5 * sec},
		{"mode List without delays counts as unset", retry.Backoff{Mode: retry.List}, 2, 10 * sec},
		{"a negative entry of a list counts as 0", list(-sec), 1, 0},
		{"a base above the cap is cut", exp(hour, 2, minute), 1, minute},
		{"a base above the cap is cut, and stays so", exp(hour, 2, minute), 2, minute},
		{"a base 1ns above the cap is cut", exp(minute+1, 2, minute), 1, minute},
		{"a base above the cap is cut with factor 1", exp(hour, 1, minute), 3, minute},
		{"a base above the cap is cut with factor 3", exp(hour, 3, minute), 1, minute},
		{"a base above the cap is cut with factor 3, and stays so", exp(hour, 3, minute), 2, minute},
		{"a base above the cap is cut with factor 1.5", exp(hour, 1.5, minute), 1, minute},
		{"a base above the cap is cut with factor 1.5, and stays so", exp(hour, 1.5, minute), 2, minute},
		{"a base above the cap is cut with a huge factor", exp(hour, math.MaxFloat64, minute), 2, minute},
		{"a base above the cap is cut for linear", lin(hour, 0, minute), 1, minute},
		{"a base above the cap is cut for linear, and stays so", lin(hour, 0, minute), 2, minute},
		{"a base above the cap is cut for linear with a fraction", lin(hour, 0.5, minute), 2, minute},
		{"a base above the cap is cut for fixed", retry.Backoff{Mode: retry.Fixed, Base: hour, Cap: minute}, 1, minute},
		{"a set base raises the default cap with factor 1", exp(2*hour, 1, 0), 9, 2 * hour},
		{"a set base raises the default cap with factor 3", exp(2*hour, 3, 0), 1, 2 * hour},
		{"a set base raises the default cap with factor 3, which bounds", exp(2*hour, 3, 0), 2, 2 * hour},
		{"a set base raises the default cap with factor 1.5", exp(2*hour, 1.5, 0), 1, 2 * hour},
		{"a set base raises the default cap with factor 1.5, which bounds", exp(2*hour, 1.5, 0), 2, 2 * hour},
		{"a set base raises the default cap for linear", lin(2*hour, 0, 0), 1, 2 * hour},
		{"a set base raises the default cap for linear, which bounds", lin(2*hour, 0, 0), 2, 2 * hour},
		{"a set base raises the default cap for fixed", retry.Backoff{Mode: retry.Fixed, Base: 2 * hour}, 9, 2 * hour},
		{"a set base 1ns above the default cap raises it", lin(hour+1, 0, 0), 1, hour + 1},
		{"the longest base is its own cap", lin(longest, 0.5, 0), 9, longest},

		{"doubling is exact at the last step below the cap", exp(3*ms, 2, 3*ms<<20), 21, 3 * ms << 20},
		{"doubling is cut at the first step above the cap", exp(3*ms, 2, 3*ms<<20-1), 21, 3*ms<<20 - 1},
		{"doubling is not cut a step before", exp(3*ms, 2, 3*ms<<20-1), 20, 3 * ms << 19},
		{"a shift by 63 of the smallest base", exp(1, 2, longest), 64, longest},
		{"a shift by 64 of the smallest base", exp(1, 2, longest), 65, longest},
		{"a shift by 65 of the smallest base, which a machine may take as one by 1", exp(1, 2, longest), 66, longest},
		{"a shift by 129 of the smallest base", exp(1, 2, longest), 130, longest},
		{"linear overflows in base times steps", lin(1<<40, 1, longest), 1 << 24, longest},
		{"linear is exact just below that", lin(1<<40, 1, longest), 1<<23 - 1, 1<<63 - 1<<40},
		{"linear overflows in factor times attempts", lin(1, 1<<62, longest), 5, longest},
		{"linear is cut if it comes to 2^63 exactly", lin(1<<62, 0.5, longest), 3, longest},
		{"a fraction is cut if it comes to 2^63 exactly", exp(3<<60, 8.0/3, longest), 2, longest},
		{"linear is cut at the first step above the cap", lin(sec, 1, 4*sec-1), 4, 4*sec - 1},
		{"linear is exact at the cap", lin(sec, 1, 4*sec), 4, 4 * sec},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, row.backoff.Delay(row.attempt))
		})
	}
}

// TestAttemptsBelowOne holds that an attempt below 1 counts as 1 in every mode.
func TestAttemptsBelowOne(t *testing.T) {
	for _, b := range []retry.Backoff{{}, {Factor: 1}, {Factor: 3}, {Factor: 1.5}, {Mode: retry.Linear}, {Mode: retry.Linear, Factor: 0.5},
		{Mode: retry.Fixed}, {Delays: []time.Duration{sec, minute}}} {
		for jitter := retry.NoJitter; jitter <= retry.DecorrelatedJitter; jitter++ {
			b.Jitter = jitter
			lo, hi := b.Bounds(1)
			for _, attempt := range []int{0, -1, -7, math.MinInt32, math.MinInt} {
				require.Equal(t, b.Delay(1), b.Delay(attempt))
				require.Equal(t, b.Jittered(1, 0, 0.5), b.Jittered(attempt, 0, 0.5))
				atLeast, below := b.Bounds(attempt)
				require.Equal(t, [2]time.Duration{lo, hi}, [2]time.Duration{atLeast, below})
				p := retry.Policy{Backoff: b}
				require.Equal(t, p.Decide(retry.Progress{Attempt: 1}, errFlaky, 0.5), p.Decide(retry.Progress{Attempt: attempt}, errFlaky, 0.5))
			}
		}
	}
}

// TestFractionalFactorsFarOut holds that the power is right as well if it is taken by squaring.
func TestFractionalFactorsFarOut(t *testing.T) {
	for _, attempt := range []int{1000, 1001, 1002, 1003, 1004, 1005, 1500, 2047, 3333, 10_000, 65_536, 123_457} {
		const factor = 1.0001
		want := new(big.Float).SetPrec(2000).SetInt64(int64(ms))
		power := new(big.Float).SetPrec(2000).SetFloat64(factor)
		for n := attempt - 1; n > 0; n >>= 1 {
			if n&1 == 1 {
				want.Mul(want, power)
			}
			power.Mul(power, power)
		}
		exact, _ := want.Float64()
		got := retry.Backoff{Base: ms, Factor: factor, Cap: longest}.Delay(attempt)
		require.InEpsilon(t, exact, float64(got), 1e-6, "attempt %d", attempt) // a nanosecond of a millisecond
		require.InDelta(t, exact, float64(got), 1+exact*1e-11, "attempt %d", attempt)
	}
}

func TestLinearStepsThatWrapAround(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("needs attempts beyond 32 bits")
	}
	// (2³²+1)·(2³²−1) = 2⁶⁴−1 steps, and one more is 0.
	attempt := math.MaxInt >> 31
	require.Equal(t, longest, retry.Backoff{Mode: retry.Linear, Base: 1, Factor: 1<<32 + 1, Cap: longest}.Delay(attempt+1))
}

func unlimited(b retry.Backoff) retry.Policy {
	return retry.Policy{MaxAttempts: retry.Unlimited, Backoff: b}
}

// TestGoldenDelays holds on every platform: it hashes the bounds and samples of 5,460 windows, fractional factors
// included, whose last digits a fused multiply-add would change.
func TestGoldenDelays(t *testing.T) {
	hash := fnv.New64a()
	put := func(delays ...time.Duration) {
		for _, d := range delays {
			_ = binary.Write(hash, binary.LittleEndian, int64(d))
		}
	}
	windows := 0
	for _, mode := range []retry.Mode{retry.Exponential, retry.Linear, retry.Fixed} {
		for _, base := range []time.Duration{1, 3, 999_999_937, 5 * sec, hour + 1} {
			for _, factor := range []float64{0, 1, 1.1, 1.6, math.Pi, 7, 1e9 + 0.5} {
				for jitter := retry.NoJitter; jitter <= retry.DecorrelatedJitter; jitter++ {
					b := retry.Backoff{Mode: mode, Base: base, Factor: factor, Cap: 1 << 60, Jitter: jitter}
					if jitter == retry.DecorrelatedJitter && mode != retry.Exponential {
						continue
					}
					for _, attempt := range []int{1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 1500, 1 << 30} {
						lo, hi := b.Bounds(attempt)
						put(lo, hi, b.Delay(attempt))
						for _, u := range []float64{0, 0.1, 1.0 / 3, math.Sqrt2 / 2, almost1} {
							put(b.Jittered(attempt, hi/3, u))
						}
						windows++
					}
				}
			}
		}
	}
	require.Equal(t, 5460, windows)
	require.Equal(t, uint64(0xd63061b355240f05), hash.Sum64())
}
