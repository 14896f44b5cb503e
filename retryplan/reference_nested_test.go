package retryplan_test

import (
	"fmt"
	"testing"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// Layers that retry multiply: attempts at the bottom for one call at the top, by how often an attempt there fails.
func TestReferenceNestedRetries(t *testing.T) {
	c := compare(t, "Nested retries: attempts at the bottom of 3 layers for one call")
	for _, row := range []struct {
		attempts             int
		half, ninety, outage float64
	}{
		{4, 2.00, 9.99, 64},
		{3, 0, 9.42, 27},
	} {
		bottom := func(failing float64) retryplan.NodeLoad {
			layer := retryplan.Layer{Policy: retry.Policy{MaxAttempts: row.attempts}}
			chain := retryplan.Chain{Layers: []retryplan.Layer{layer, layer, layer}}
			chain.Layers[2].Failure = failing
			return atBottom(t, chain)
		}
		if row.half > 0 {
			c.mean(fmt.Sprintf("%d attempts, half fail", row.attempts), []float64{bottom(0.5).Calm}, figure{want: row.half, runs: 1, sd: .01, unit: .01})
		}
		c.mean(fmt.Sprintf("%d attempts, 90 %% fail", row.attempts), []float64{bottom(0.9).Calm}, figure{want: row.ninety, runs: 1, sd: .05, unit: .01})
		c.mean(fmt.Sprintf("%d attempts, outage", row.attempts), []float64{bottom(0).Outage}, figure{want: row.outage, runs: 1})
	}
	c.done()
}
