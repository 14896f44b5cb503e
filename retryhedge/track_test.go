package retryhedge_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

func tracker(t testing.TB, c retryhedge.TrackerConfig) *retryhedge.Tracker {
	t.Helper()
	track, err := retryhedge.NewTracker(c)
	require.NoError(t, err)
	return track
}

func TestTracker(t *testing.T) {
	t.Run("begins at Max, and goes to Min and back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			track := tracker(t, retryhedge.TrackerConfig{Min: 2 * ms, Max: 40 * ms})
			require.Equal(t, 40*ms, track.Delay())
			p := retryhedge.Policy{Tracker: track, Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1, Ratio: -1})}
			for range 3_000 {
				require.NoError(t, retryhedge.Do(t.Context(), p, func(context.Context) error { return nil }))
			}
			require.Equal(t, 2*ms, track.Delay())
			calls := 0
			for range 100 {
				require.NoError(t, retryhedge.Do(t.Context(), p, func(context.Context) error { calls++; <-time.After(time.Second); return nil }))
			}
			require.Equal(t, 40*ms, track.Delay())
			require.Equal(t, 100, calls, "refused hedges are counted as slow calls, and not made")
		})
	})
	t.Run("does not count a failure within the delay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			track := tracker(t, retryhedge.TrackerConfig{})
			p := retryhedge.Policy{Tracker: track}
			for range 100 {
				require.NoError(t, retryhedge.Do(t.Context(), p, func(context.Context) error { <-time.After(20 * ms); return nil }))
			}
			before := track.Delay()
			for range 100 {
				require.Error(t, retryhedge.Do(t.Context(), p, func(context.Context) error { return errors.New("refused") }))
			}
			require.Equal(t, before, track.Delay())
		})
	})
	t.Run("stays where one call in twenty is slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := retryhedge.Policy{Tracker: tracker(t, retryhedge.TrackerConfig{Share: 0.05})}
			lasts := func(d time.Duration) {
				require.NoError(t, retryhedge.Do(t.Context(), p, (&script{steps: []step{{lasts: d}, {}}}).wait))
			}
			lasts(0)
			before := p.Tracker.Delay()
			for range 19 {
				lasts(0)
			}
			require.Less(t, p.Tracker.Delay(), before)
			lasts(time.Minute)
			require.InDelta(t, float64(before), float64(p.Tracker.Delay()), 10)
		})
	})
	t.Run("takes each limit", func(t *testing.T) {
		require.NoError(t, retryhedge.TrackerConfig{Share: 0.5, Min: time.Second, Max: time.Second}.Validate())
	})
	t.Run("refuses what cannot be tracked", func(t *testing.T) {
		for _, row := range []struct {
			c    retryhedge.TrackerConfig
			want string
		}{
			{retryhedge.TrackerConfig{Share: -0.1}, "retryhedge: TrackerConfig.Share -0.1 is outside (0, 0.5]"},
			{retryhedge.TrackerConfig{Share: 0.6}, "retryhedge: TrackerConfig.Share 0.6 is outside (0, 0.5]"},
			{retryhedge.TrackerConfig{Share: math.NaN()}, "retryhedge: TrackerConfig.Share NaN is outside (0, 0.5]"},
			{retryhedge.TrackerConfig{Min: -1}, "retryhedge: TrackerConfig.Min -1ns is negative"},
			{retryhedge.TrackerConfig{Max: -1}, "retryhedge: TrackerConfig.Max -1ns is negative"},
			{retryhedge.TrackerConfig{Max: ms / 2}, "retryhedge: TrackerConfig.Min 1ms is above Max 500µs"},
			{retryhedge.TrackerConfig{Min: time.Minute}, "retryhedge: TrackerConfig.Min 1m is above Max 10s"},
		} {
			track, err := retryhedge.NewTracker(row.c)
			require.EqualError(t, err, row.want)
			require.Nil(t, track)
			var field *retry.FieldError
			require.ErrorAs(t, err, &field)
		}
	})
	t.Run("is used by many goroutines", func(t *testing.T) {
		track := tracker(t, retryhedge.TrackerConfig{})
		p := retryhedge.Policy{Tracker: track}
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for range 100 {
					if err := retryhedge.Do(t.Context(), p, func(context.Context) error { return nil }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		require.GreaterOrEqual(t, track.Delay(), ms)
	})
}

// Of 3,000 reads, 2% fail at once and 3% take 60ms. One budget pays for retries and hedges.
func TestHedgesDoNotStarveRetries(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			r := rand.New(rand.NewPCG(seed, 7))
			read := func(ctx context.Context) error {
				mu.Lock()
				chance := r.Float64()
				mu.Unlock()
				switch {
				case chance < 0.02:
					return errDown
				case chance < 0.05:
					return (&script{steps: []step{{lasts: 60 * ms}}}).wait(ctx)
				default:
					return (&script{steps: []step{{lasts: 5 * ms}}}).wait(ctx)
				}
			}
			run := retry.Inline()
			run.Budget = retry.NewBudget(retry.BudgetConfig{})
			run.Rand = func() float64 { return 0.5 }
			hedge := retryhedge.Policy{Tracker: tracker(t, retryhedge.TrackerConfig{}), Budget: run.Budget, InRun: true}
			failed := 0
			for range 3_000 {
				err := retry.Do(t.Context(), run, func(ctx context.Context) error { return retryhedge.Do(ctx, hedge, read) })
				if err != nil {
					failed++
				}
			}
			require.Zero(t, failed, "seed %d", seed)
		})
	}
}
