package retryplan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// FuzzLoads holds the promises of the doc comments for any chain, an answer without a panic, in the ranges that are
// named.
func FuzzLoads(f *testing.F) {
	f.Add(3, 4, int64(time.Second), int64(0), 0.5, 10.0, 100.0, int64(10*time.Second), uint8(1), 0.0, true, false, int64(0))
	f.Add(2, 3, int64(1), int64(math.MaxInt64), 0.0, 1e9, 1e-9, int64(math.MaxInt64), uint8(4), 0.5, false, true, int64(1))
	f.Add(16, 1, int64(math.MaxInt64), int64(1), 1.0, 1.0, 1.0, int64(0), uint8(3), 2.0, true, true, int64(math.MaxInt64))
	f.Add(1, -1, int64(time.Second), int64(time.Second), 0.9, 50.0, 100.0, int64(time.Second), uint8(5), 3.0, false, false, int64(time.Minute))
	f.Fuzz(func(t *testing.T, layers, attempts int, timeout, wait int64, failure, rate, capacity float64, lasts int64, kind uint8, factor float64, pass, told bool, deadline int64) {
		c := retryplan.Chain{
			PassOn: pass, DoNotRetry: told, Deadline: time.Duration(deadline), Rate: rate,
			Trigger: retryplan.Trigger{Kind: retryplan.TriggerKind(kind), For: time.Duration(lasts), Factor: factor},
		}
		for i := range min(max(layers, 0), 20) {
			l := retryplan.Layer{Policy: waiting(attempts, time.Duration(timeout), time.Duration(wait)), Failure: failure}
			if i%2 == 1 {
				l.Policy.Jitter, l.Capacity, l.Budget = retry.FullJitter, capacity, &retry.BudgetConfig{}
			}
			c.Layers = append(c.Layers, l)
		}
		if n := len(c.Layers); n > 0 {
			c.Layers[n-1].Capacity = capacity
		}
		nodes, success, err := c.Loads()
		if err != nil {
			var bad *retry.FieldError
			require.ErrorAs(t, err, &bad)
			return
		}
		require.Len(t, nodes, len(c.Layers))
		require.True(t, success >= 0 && success <= 1+1e-9, "%v", success)
		for _, n := range nodes {
			require.True(t, n.Calm >= 0 && n.Calm <= 1e6+1 && n.Outage >= 1 && n.Outage <= 1e6 && n.Hang >= 1 && n.Hang <= 1e6 || c.PassOn, "%+v", n)
		}
	})
}

// The attempts of the callers are multiplied, and not tried one by one.
func TestAMillionAttemptsWithWaitsOfAnHourAreCounted(t *testing.T) {
	if retryplan.RaceDetector {
		t.Skip("seconds of arithmetic in one goroutine")
	}
	c := layers(100, time.Second, time.Second, time.Second)
	for i := range c.Layers {
		c.Layers[i].Policy.Jitter = retry.FullJitter
		c.Layers[i].Policy.Delays[0] = time.Hour
	}
	require.Equal(t, 1e6, atBottom(t, c).Hang)
}
