package sdks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryhedge"
)

func TestHedgesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSDK(t)
		observe, err := retryotel.ObserveHedges(s.Options)
		require.NoError(t, err)
		p := retryhedge.Policy{Name: "prices", Delay: 50 * time.Millisecond, Observe: observe, Budget: retry.NewBudget(retry.BudgetConfig{Initial: 3})}
		takes := func(each ...time.Duration) func(context.Context) error {
			calls := make(chan time.Duration, len(each))
			for _, d := range each {
				calls <- d
			}
			return func(ctx context.Context) error {
				select {
				case <-time.After(<-calls):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		ctx, span := s.Options.TracerProvider.Tracer("test").Start(t.Context(), "outer")
		const fast, slow = time.Millisecond, time.Second
		require.NoError(t, retryhedge.Do(ctx, p, takes(fast)))
		require.NoError(t, retryhedge.Do(ctx, p, takes(slow, fast)))
		require.NoError(t, retryhedge.Do(ctx, p, takes(100*time.Millisecond, slow)))
		require.NoError(t, retryhedge.Do(ctx, p, takes(slow)), "the last token is for a retry")
		near, cancel := context.WithTimeout(ctx, 90*time.Millisecond)
		defer cancel()
		p.Name = ""
		require.NoError(t, retryhedge.Do(near, p, takes(80*time.Millisecond)))
		span.End()
		require.Equal(t, map[string]float64{
			"retry.hedge=not_needed,retry.policy=prices": 1, "retry.hedge=won,retry.policy=prices": 1,
			"retry.hedge=lost,retry.policy=prices": 1, "retry.hedge=refused,retry.policy=prices": 1, "retry.hedge=not_made": 1,
		}, s.values("retry.hedge.count"))
		require.Equal(t, map[string]float64{"retry.policy=prices": 2}, s.values("retry.hedge.calls"))
		var events []string
		for _, e := range s.span("outer").Events {
			events = append(events, e.Name+" "+e.Attributes[0].Value.AsString())
		}
		require.Equal(t, []string{"retry.hedge won", "retry.hedge lost", "retry.hedge refused", "retry.hedge not_made"}, events)
	})
}
