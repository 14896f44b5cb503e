package retryplan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

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
		f, ok := findingOf(retryplan.Lint(retry.Policy{MaxAttempts: row.attempts}, retryplan.Setting{Layers: 3}), "nested-amplification")
		require.True(t, ok)
		var half, ninety, outage float64
		_, err := fmt.Sscanf(f.Text, "3 layers that retry multiply the load by %g if attempts at the bottom fail half the time, by %g at 90 %%, and by %g in an outage.",
			&half, &ninety, &outage)
		require.NoError(t, err, f.Text)
		if row.half > 0 {
			c.mean(fmt.Sprintf("%d attempts, half fail", row.attempts), []float64{half}, figure{want: row.half, runs: 1, unit: .01})
		}
		c.mean(fmt.Sprintf("%d attempts, 90 %% fail", row.attempts), []float64{ninety}, figure{want: row.ninety, runs: 1, unit: .01})
		c.mean(fmt.Sprintf("%d attempts, outage", row.attempts), []float64{outage}, figure{want: row.outage, runs: 1})
	}
	c.done()
}
