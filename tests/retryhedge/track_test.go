package retryhedge_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

const ms = time.Millisecond

// backend is a function whose calls take as long as latency says; it honors its context.
type backend struct {
	mu      sync.Mutex
	r       *rand.Rand
	latency func(*rand.Rand) time.Duration
	times   time.Duration // factor of all durations
	calls   int
}

func (b *backend) call(ctx context.Context) error {
	b.mu.Lock()
	b.calls++
	d := b.latency(b.r) * max(b.times, 1)
	b.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func tracker(t testing.TB, c retryhedge.TrackerConfig) *retryhedge.Tracker {
	t.Helper()
	track, err := retryhedge.NewTracker(c)
	require.NoError(t, err)
	return track
}

// latencies are distributions of how long a call takes, by name.
var latencies = map[string]func(r *rand.Rand) time.Duration{
	"a long tail": tail,
	"constant":    func(*rand.Rand) time.Duration { return 20 * ms },
	"lognormal": func(r *rand.Rand) time.Duration {
		return time.Duration(20e6 * math.Exp(r.NormFloat64()))
	},
	"bimodal": func(r *rand.Rand) time.Duration {
		if r.IntN(2) == 0 {
			return between(r, 5, 10)
		}
		return between(r, 100, 120)
	},
}

// tail returns 5 to 15 ms in 95 % of the calls, 50 to 200 ms in 4 %, and 1 to 2 s in 1 %.
func tail(r *rand.Rand) time.Duration {
	switch n := r.IntN(100); {
	case n < 95:
		return between(r, 5, 15)
	case n < 99:
		return between(r, 50, 200)
	default:
		return between(r, 1000, 2000)
	}
}

// between returns a random duration between lo and hi milliseconds.
func between(r *rand.Rand, lo, hi int64) time.Duration {
	return time.Duration(lo*int64(ms) + r.Int64N((hi-lo)*int64(ms)))
}

// TestTheShareOfHedgedCallsIsTheOneAskedFor counts 20,000 calls after the first 2,000, in which the delay is found.
func TestTheShareOfHedgedCallsIsTheOneAskedFor(t *testing.T) {
	for name, latency := range latencies {
		for _, share := range []float64{0.02, 0.05} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := &backend{r: rand.New(rand.NewPCG(1, 2)), latency: latency}
					slow := 0
					p := retryhedge.Policy{
						Tracker: tracker(t, retryhedge.TrackerConfig{Share: share}),
						Observe: func(_ context.Context, e retryhedge.Event) {
							if e.Slow {
								slow++
							}
						},
					}
					for range 8_000 {
						require.NoError(t, retryhedge.Do(t.Context(), p, b.call))
					}
					slow, b.calls = 0, 0
					const n = 20_000
					for range n {
						require.NoError(t, retryhedge.Do(t.Context(), p, b.call))
					}
					require.Equal(t, n+slow, b.calls, "each slow call has one hedge")
					t.Logf("share %v: %v", share, float64(slow)/n)
					require.InDelta(t, share, float64(slow)/n, 0.005)
				})
			})
		}
	}
}

// TestFanOut compares the slowest of 100 parallel calls with and without hedges.
func TestFanOut(t *testing.T) {
	median := func(t *testing.T, p retryhedge.Policy) (m time.Duration, calls int) {
		synctest.Test(t, func(t *testing.T) {
			b := &backend{r: rand.New(rand.NewPCG(1, 2)), latency: tail}
			for range 4_000 {
				_ = retryhedge.Do(t.Context(), p, b.call)
			}
			b.calls = 0
			var worst []time.Duration
			for range 301 {
				start := time.Now()
				var group sync.WaitGroup
				for range 100 {
					group.Go(func() { _ = retryhedge.Do(t.Context(), p, b.call) })
				}
				group.Wait()
				worst = append(worst, time.Since(start))
			}
			slices.Sort(worst)
			m, calls = worst[len(worst)/2], b.calls
			t.Logf("median %v, p99 %v of the slowest of 100; %d calls", m, worst[len(worst)*99/100], calls)
		})
		return m, calls
	}
	bare, calls := median(t, retryhedge.Policy{})
	require.Equal(t, 30_100, calls)
	hedged, calls := median(t, retryhedge.Policy{Tracker: tracker(t, retryhedge.TrackerConfig{})})
	require.Less(t, 20*hedged, bare)
	require.Less(t, calls, 30_100*107/100)
}

// TestASlowdownThatAllCallsShare makes every call 20 times slower for a minute.
func TestASlowdownThatAllCallsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{r: rand.New(rand.NewPCG(3, 4)), latency: tail}
		slow, refused := 0, 0
		p := retryhedge.Policy{
			Tracker: tracker(t, retryhedge.TrackerConfig{}),
			Budget:  retry.NewBudget(retry.BudgetConfig{Initial: 1}),
			Observe: func(_ context.Context, e retryhedge.Event) {
				if e.Slow {
					slow++
				}
				if e.Refused {
					refused++
				}
			},
		}
		for range 5_000 {
			_ = retryhedge.Do(t.Context(), p, b.call)
		}
		b.times, b.calls, refused = 20, 0, 0
		made := 0
		for start := time.Now(); time.Since(start) < time.Minute; made++ {
			_ = retryhedge.Do(t.Context(), p, b.call)
			// What the budget grants: what it held, and a tenth of a token a success.
			require.LessOrEqual(t, b.calls-(made+1), 10+(made+1)/10, "after %d calls", made+1)
		}
		require.Positive(t, refused)
		b.times = 1
		for range 2_000 {
			_ = retryhedge.Do(t.Context(), p, b.call)
		}
		slow = 0
		const n = 10_000
		for range n {
			_ = retryhedge.Do(t.Context(), p, b.call)
		}
		require.InDelta(t, 0.05, float64(slow)/n, 0.005)
	})
}
