package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

func TestJittered(t *testing.T) {
	full := retry.Backoff{Base: 100 * ms, Cap: 250 * ms, Jitter: retry.FullJitter}
	equal := retry.Backoff{Base: 100 * ms, Cap: 250 * ms, Jitter: retry.EqualJitter}
	ratio := retry.Backoff{Base: 100 * ms, Cap: 250 * ms, Jitter: retry.RatioJitter}
	decorrelated := retry.Backoff{Base: 100 * ms, Cap: 250 * ms, Jitter: retry.DecorrelatedJitter}
	with := func(b retry.Backoff, r float64) retry.Backoff { b.JitterRatio = r; return b }
	for _, row := range []struct {
		name    string
		backoff retry.Backoff
		attempt int
		prev    time.Duration
		u       float64
		want    time.Duration
	}{
		{name: "no jitter ignores u", backoff: retry.Backoff{}, attempt: 3, u: 0.9, want: 20 * sec},
		{name: "full begins at 0", backoff: full, attempt: 2, u: 0, want: 0},
		{name: "full is u of the delay", backoff: full, attempt: 2, u: 0.5, want: 100 * ms},
		{name: "full ends below the delay", backoff: full, attempt: 2, u: almost1, want: 200*ms - 1},
		{name: "full spreads at the cap", backoff: full, attempt: 9, u: 0.5, want: 125 * ms},
		{name: "equal keeps half", backoff: equal, attempt: 2, u: 0, want: 100 * ms},
		{name: "equal spreads the other half", backoff: equal, attempt: 2, u: 0.5, want: 150 * ms},
		{name: "equal spreads at the cap", backoff: equal, attempt: 9, u: 0.5, want: 187500 * time.Microsecond},
		{name: "ratio begins at d(1-r)", backoff: ratio, attempt: 1, u: 0, want: 80 * ms},
		{name: "ratio has its middle at d", backoff: ratio, attempt: 1, u: 0.5, want: 100 * ms},
		{name: "ratio goes up to d(1+r)", backoff: ratio, attempt: 1, u: 0.75, want: 110 * ms},
		{name: "ratio clips the window at the cap, not the sample", backoff: ratio, attempt: 3, u: 0.5, want: 225 * ms},
		{name: "ratio stays below the cap", backoff: ratio, attempt: 9, u: almost1, want: 250*ms - 1},
		{name: "ratio 1 covers 0 to 2d", backoff: with(ratio, 1), attempt: 1, u: 0.25, want: 50 * ms},
		{name: "a bad ratio counts as unset", backoff: with(ratio, 2), attempt: 1, u: 0, want: 80 * ms},
		{name: "a NaN ratio counts as unset", backoff: with(ratio, math.NaN()), attempt: 1, u: 0, want: 80 * ms},
		{name: "decorrelated begins with the base before it", backoff: decorrelated, attempt: 1, u: 0.25, want: 137500 * time.Microsecond},
		{name: "decorrelated goes to three times the last", backoff: decorrelated, attempt: 2, prev: 80 * ms, u: 0.5, want: 170 * ms},
		{name: "decorrelated stops at the cap", backoff: decorrelated, attempt: 2, prev: 200 * ms, u: 0.5, want: 175 * ms},
		{name: "decorrelated never falls below the base", backoff: decorrelated, attempt: 2, prev: ms, u: 0.5, want: 100 * ms},
		{name: "decorrelated is cut if the base is above the cap", backoff: retry.Backoff{Base: hour, Cap: minute, Jitter: retry.DecorrelatedJitter},
			attempt: 2, prev: hour, u: 0.5, want: minute},
		{name: "full is cut if the base is above the cap", backoff: retry.Backoff{Base: hour, Cap: minute, Jitter: retry.FullJitter},
			attempt: 1, u: 0.5, want: 30 * sec},
		{name: "decorrelated takes a negative last as none", backoff: decorrelated, attempt: 2, prev: -ms, u: 0.25, want: 137500 * time.Microsecond},
		{name: "decorrelated does not overflow", backoff: retry.Backoff{Cap: longest, Jitter: retry.DecorrelatedJitter},
			attempt: 2, prev: longest, u: 0, want: 5 * sec},
		{name: "an unknown jitter counts as none", backoff: retry.Backoff{Jitter: 9}, attempt: 1, u: 0.5, want: 5 * sec},
		{name: "decorrelated without exponential counts as none",
			backoff: retry.Backoff{Mode: retry.Fixed, Jitter: retry.DecorrelatedJitter}, attempt: 1, u: 0.5, want: 5 * sec},
		{name: "a list has jitter too", backoff: retry.Backoff{Delays: []time.Duration{sec}, Jitter: retry.FullJitter},
			attempt: 1, u: 0.5, want: 500 * ms},
		{name: "a zero delay has nothing to spread", backoff: retry.Backoff{Delays: []time.Duration{0}, Jitter: retry.FullJitter},
			attempt: 1, u: 0.5, want: 0},
		{name: "the longest delay stays in range", backoff: retry.Backoff{Delays: []time.Duration{longest}, Jitter: retry.RatioJitter, JitterRatio: 1},
			attempt: 1, u: almost1, want: longest - 1023},
		{name: "u below 0 counts as 0", backoff: equal, attempt: 2, u: -3, want: 100 * ms},
		{name: "u of 1 counts as the largest below", backoff: full, attempt: 2, u: 1, want: 200*ms - 1},
		{name: "u of +Inf counts as the largest below 1", backoff: full, attempt: 2, u: math.Inf(1), want: 200*ms - 1},
		{name: "u of NaN counts as 0", backoff: full, attempt: 2, u: math.NaN(), want: 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, row.backoff.Jittered(row.attempt, row.prev, row.u))
		})
	}
}

func TestDrawDelay(t *testing.T) {
	for _, row := range []struct {
		name    string
		backoff retry.Backoff
		u       float64
		want    [4]time.Duration // after attempts 0 to 3
		drawn   int
	}{
		{"is the Delay without jitter, and draws nothing", retry.Backoff{Base: sec}, 0.5, [4]time.Duration{sec, sec, 2 * sec, 4 * sec}, 0},
		{"is what Jittered returns", retry.Backoff{Base: sec, Jitter: retry.EqualJitter}, 0.5, [4]time.Duration{750 * ms, 750 * ms, 1500 * ms, 3 * sec}, 4},
		{"ends below the cap", retry.Backoff{Base: sec, Cap: 2 * sec, Jitter: retry.FullJitter}, 1, [4]time.Duration{sec - 1, sec - 1, 2*sec - 1, 2*sec - 1}, 4},
		{"covers all histories of decorrelated", retry.Backoff{Base: sec, Cap: 20 * sec, Jitter: retry.DecorrelatedJitter}, 0.5,
			[4]time.Duration{2 * sec, 2 * sec, 5 * sec, 10500 * ms}, 4},
	} {
		t.Run(row.name, func(t *testing.T) {
			drawn := 0
			p := retry.Policy{Backoff: row.backoff, MaxAttempts: 1, Rand: func() float64 { drawn++; return row.u }}
			var hook func(int) time.Duration = p.DrawDelay
			var got [4]time.Duration
			for n := range got {
				got[n] = hook(n)
			}
			require.Equal(t, row.want, got)
			require.Equal(t, row.drawn, drawn)
		})
	}
	p := retry.Inline()
	for n := range 100 {
		lo, hi := p.Bounds(n)
		got := p.DrawDelay(n)
		require.True(t, lo <= got && got < hi, "%v is not in [%v, %v)", got, lo, hi)
	}
}

func TestBounds(t *testing.T) {
	for _, row := range []struct {
		name    string
		jitter  retry.JitterMode
		attempt int
		lo, hi  time.Duration
	}{
		{"none is a point", retry.NoJitter, 2, 2 * sec, 2 * sec},
		{"full is 0 to the delay", retry.FullJitter, 2, 0, 2 * sec},
		{"equal is the upper half", retry.EqualJitter, 2, sec, 2 * sec},
		{"ratio is around the delay", retry.RatioJitter, 2, 1600 * ms, 2400 * ms},
		{"ratio ends at the cap", retry.RatioJitter, 9, 16 * sec, 20 * sec},
		{"decorrelated begins below three bases", retry.DecorrelatedJitter, 1, sec, 3 * sec},
		{"decorrelated covers all histories", retry.DecorrelatedJitter, 2, sec, 9 * sec},
		{"decorrelated ends at the cap", retry.DecorrelatedJitter, 3, sec, 20 * sec},
	} {
		t.Run(row.name, func(t *testing.T) {
			lo, hi := retry.Backoff{Base: sec, Cap: 20 * sec, Jitter: row.jitter}.Bounds(row.attempt)
			require.Equal(t, [2]time.Duration{row.lo, row.hi}, [2]time.Duration{lo, hi})
		})
	}
}

func TestJitterSpreadsAtTheCap(t *testing.T) {
	for _, jitter := range []retry.JitterMode{retry.FullJitter, retry.EqualJitter, retry.RatioJitter, retry.DecorrelatedJitter} {
		t.Run(jitter.String(), func(t *testing.T) {
			b := retry.Backoff{Base: sec, Cap: 10 * sec, Jitter: jitter}
			seen := map[time.Duration]bool{}
			for i := range 1000 {
				seen[b.Jittered(50, 10*sec, float64(i)/1000)] = true
			}
			require.Len(t, seen, 1000, "every u gives another delay")
			require.NotContains(t, seen, 10*sec, "nothing piles up on the cap")
		})
	}
}
