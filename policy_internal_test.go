package retry

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPolicyThatIsPlainIsValid holds that the glance at a policy, which Do takes, agrees with Validate in full.
func TestAPolicyThatIsPlainIsValid(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 1))
	durations := []time.Duration{0, 0, 1, time.Second, time.Hour, -1, math.MinInt64, math.MaxInt64}
	d := func() time.Duration { return durations[r.IntN(len(durations))] }
	rarely := func(d time.Duration) time.Duration {
		if r.IntN(12) > 0 {
			return 0
		}
		return d
	}
	plain, bad := 0, 0
	for i := range 100_000 {
		p := Policy{
			MaxAttempts: []int{0, 1, 5, Unlimited, -2, math.MinInt, math.MaxInt}[r.IntN(7)],
			Backoff: Backoff{
				Mode: Mode(r.IntN(2) * r.IntN(6)), Base: rarely(d()), Cap: rarely(d()), Jitter: JitterMode(r.IntN(2) * r.IntN(6)),
				Factor: []float64{0, 0, 0, 0, 0, 0, 2, -1, math.NaN()}[r.IntN(9)], JitterRatio: []float64{0, 0, 0, 0, 0, 0.5, 2}[r.IntN(7)],
			},
			AttemptTimeout: rarely(d()), TTL: rarely(d()), MaxHint: rarely(d()), ResetAfter: rarely(d()),
		}
		for range max(0, r.IntN(6)-3) {
			p.Delays = append(p.Delays, d())
		}
		found := p.check()
		if i < 3 {
			t.Logf("%v: plain %v, %v", p, p.plain(), found)
		}
		switch {
		case p.plain():
			plain++
			require.Empty(t, found, "%+v", p)
		case found != nil:
			bad++
			require.Error(t, p.Validate())
		}
	}
	require.Greater(t, min(plain, bad), 500, "plain %d, bad %d", plain, bad)
}
