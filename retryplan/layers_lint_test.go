package retryplan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

func TestLintFindsWhatLayersDoToEachOther(t *testing.T) {
	equal := []time.Duration{s, s, s}
	graded := []time.Duration{10 * s, 3200 * time.Millisecond, s}
	for _, row := range []struct {
		name     string
		timeouts []time.Duration
		with     func(*retryplan.Chain)
		want     []string
	}{
		{"equal timeouts", equal, func(*retryplan.Chain) {}, []string{"layers-without-budget"}},
		{"equal timeouts, passed on", equal, func(c *retryplan.Chain) { c.PassOn = true }, []string{"layers-without-budget"}},
		{"equal timeouts, do-not-retry answers", equal, func(c *retryplan.Chain) { c.PassOn, c.DoNotRetry = true, true }, nil},
		{"graded timeouts", graded, func(*retryplan.Chain) {}, []string{"layers-without-budget"}},
		{"graded timeouts, passed on", graded, func(c *retryplan.Chain) { c.PassOn = true }, []string{"layers-without-budget"}},
		{"graded timeouts, do-not-retry answers", graded, func(c *retryplan.Chain) { c.DoNotRetry = true }, nil},
		{"no timeouts", []time.Duration{0, 0, 0}, func(*retryplan.Chain) {}, []string{"layers-without-budget"}},
		{"one layer retries", equal, func(c *retryplan.Chain) { c.Layers[0].Policy.MaxAttempts, c.Layers[1].Policy.MaxAttempts = 1, 1 }, nil},
		{"a budget in each", equal, func(c *retryplan.Chain) {
			c.PassOn = true
			for i := range c.Layers {
				c.Layers[i].Budget = &retry.BudgetConfig{}
			}
		}, nil},
		{"a budget in all but one", equal, func(c *retryplan.Chain) {
			c.PassOn = true
			for i := range c.Layers[1:] {
				c.Layers[i].Budget = &retry.BudgetConfig{}
			}
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := layers(3, row.timeouts...)
			row.with(&c)
			found, err := retryplan.LintChain(c)
			require.NoError(t, err)
			var codes []string
			for _, f := range found {
				t.Logf("%v %s\n%s\n%s", f.Level, f.Code, f.Text, f.Change)
				codes = append(codes, f.Code)
			}
			require.Equal(t, row.want, codes)
		})
	}
}
