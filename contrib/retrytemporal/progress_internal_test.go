package retrytemporal

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/retrygo/retry"
)

func TestProgress(t *testing.T) {
	scheduled := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	info := activity.Info{ActivityID: "5", Attempt: 3, ScheduledTime: scheduled, StartedTime: scheduled.Add(time.Minute)}
	t.Run("counts from the scheduling to now", func(t *testing.T) {
		pr, u := progress(&retry.Policy{}, &info, scheduled.Add(90*time.Second))
		require.Equal(t, retry.Progress{Attempt: 3, Elapsed: 90 * time.Second}, pr)
		require.Zero(t, u)
	})
	t.Run("counts what the server has seen where the worker's clock is behind", func(t *testing.T) {
		pr, _ := progress(&retry.Policy{}, &info, scheduled.Add(-time.Hour))
		require.Equal(t, time.Minute, pr.Elapsed)
	})
	p := retry.Policy{Backoff: retry.Backoff{Base: time.Second, Jitter: retry.DecorrelatedJitter}}
	t.Run("finds the wait before on any worker", func(t *testing.T) {
		info := info
		var prev time.Duration
		seen := make(map[float64]bool)
		for attempt := 1; attempt <= 20; attempt++ {
			info.Attempt = int32(attempt)
			pr, u := progress(&p, &info, scheduled)
			require.Equal(t, prev, pr.Prev)
			prev = p.Jittered(attempt, prev, u)
			seen[u] = true
		}
		require.Len(t, seen, 20)
	})
	t.Run("follows no more than the last attempts", func(t *testing.T) {
		info := info
		info.Attempt = 1<<31 - 1
		drawn := 0
		p := p
		p.Rand = func() float64 { drawn++; return 0.5 }
		pr, _ := progress(&p, &info, scheduled)
		require.Equal(t, followed+1, drawn)
		require.Positive(t, pr.Prev)
	})
	t.Run("draws evenly over activities and attempts", func(t *testing.T) {
		p := retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}}
		var tenths [10]int
		const each, attempts = 1000, 10
		for id := range each {
			info := info
			info.ActivityID = fmt.Sprint(id)
			for attempt := range attempts {
				info.Attempt = int32(attempt + 1)
				_, u := progress(&p, &info, scheduled)
				require.GreaterOrEqual(t, u, 0.0)
				require.Less(t, u, 1.0)
				tenths[int(u*10)]++
			}
		}
		// Always the same numbers: 1,000 are expected in each tenth, with a standard deviation of 30.
		for _, n := range tenths {
			require.InDelta(t, each*attempts/10, n, 120)
		}
	})
}
