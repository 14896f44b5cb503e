package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/bench/internal/contest"
)

// sums returns the sum of the delays after attempts 1 to n, for each n up to 2·delaysInTurn: two such lists are equal
// only where every delay is.
func sums(c contest.Contender) []time.Duration {
	loop := c.New()
	sums := make([]time.Duration, 2*delaysInTurn)
	for i := range sums {
		loop(i + 1)
		sums[i] = delaySum
	}
	return sums
}

// slowSums is sums by repeated addition, without a shift or a product.
func slowSums(grow func(time.Duration) time.Duration) []time.Duration {
	sums := make([]time.Duration, 2*delaysInTurn)
	var sum, delay time.Duration
	for i := range sums {
		if i%delaysInTurn == 0 {
			delay = firstDelay
		} else {
			delay = min(grow(delay), longestDelay)
		}
		sum += delay
		sums[i] = sum
	}
	return sums
}

func TestAllContendersDoubleTheDelay(t *testing.T) {
	want := slowSums(func(d time.Duration) time.Duration { return d + d })
	for _, c := range doublingDelay().Contenders {
		t.Run(c.Name, func(t *testing.T) {
			require.Equal(t, want, sums(c))
		})
	}
}

func TestLimitAndOursAgreeOnOtherFormulas(t *testing.T) {
	wants := map[string][]time.Duration{
		"Delay, factor 3": slowSums(func(d time.Duration) time.Duration { return d + d + d }),
		"Delay, linear":   slowSums(func(d time.Duration) time.Duration { return d + firstDelay }),
	}
	for _, s := range DelayMath() {
		if len(s.Contenders) != 2 {
			continue // with peers
		}
		t.Run(s.Name, func(t *testing.T) {
			limit, ours := sums(s.Contenders[0]), sums(s.Contenders[1])
			require.Equal(t, limit, ours)
			if want, ok := wants[s.Name]; ok {
				require.Equal(t, want, ours)
			}
		})
	}
}

// TestDrawnDelaysSpread shows that each contender's delays are random within what its remark says.
func TestDrawnDelaysSpread(t *testing.T) {
	full := spread{0, 1, firstDelay}
	spreads := map[string]spread{
		"jpillora/backoff":         {0, 1, firstDelay}, // from firstDelay on, but for the first itself
		"k8s.io/apimachinery wait": {1, 2, firstDelay},
		"cenkalti/backoff v5":      {0.5, 1.5, firstDelay},
		"cenkalti/backoff v7":      {0.5, 1.5, firstDelay},
		"avast/retry-go v4":        {0, 1, 2 * firstDelay},
		"avast/retry-go v5":        {0, 1, 2 * firstDelay},
		"codeGROOVE-dev/retry":     {0, 1, 2 * firstDelay},
		"aws-sdk-go-v2":            {0, 1, firstDelay},
	}
	for _, c := range drawnDelay().Contenders {
		t.Run(c.Name, func(t *testing.T) {
			within, ok := spreads[c.Name]
			if !ok {
				within = full
			}
			first, second := sums(c), sums(c)
			require.NotEqual(t, first, second)
			least, most := within.bounds()
			for i := range first {
				require.GreaterOrEqual(t, first[i], least[i], "attempt %d", i+1)
				require.LessOrEqual(t, first[i], most[i], "attempt %d", i+1)
			}
		})
	}
}

// spread says that a delay is from lo to hi times the doubling delay that starts with first.
type spread struct {
	lo, hi float64
	first  time.Duration
}

// bounds returns the least and the most that sums can be, with a nanosecond for the rounding of each.
func (s spread) bounds() (least, most []time.Duration) {
	var lo, hi time.Duration
	delay := s.first
	for i := range 2 * delaysInTurn {
		if i%delaysInTurn == 0 {
			delay = s.first
		}
		lo += time.Duration(s.lo*float64(delay)) - 1
		hi += time.Duration(s.hi*float64(delay)) + 1
		least, most = append(least, lo), append(most, hi)
		delay = min(2*delay, longestDelay)
	}
	return least, most
}
