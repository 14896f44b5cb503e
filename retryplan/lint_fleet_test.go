package retryplan_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// TestAdviceLeavesFleetsAsStable does what each finding about a random policy says, and certifies the policy's fleet
// before and after it. A setting knows how long attempts take in a calm, in the backend's queue too.
//
// It takes 100 policies; with RETRYPLAN_FULL=1 it takes 10,000.
func TestAdviceLeavesFleetsAsStable(t *testing.T) {
	n := 100
	if fullForm {
		n = 10_000
	}
	certified, advised := 0, map[string]int{}
	for i := range uint64(n) {
		rnd := rand.New(rand.NewPCG(41, i))
		p, s := randomPolicy(rnd), randomSetting(rnd)
		_, f := randomFleet(i)
		f.Budget, f.Clients, f.Deadline = nil, s.Clients, s.Deadline
		calm := retryplan.Fleet{Rate: f.Rate, Capacity: f.Capacity, Workers: f.Workers}.Scenario(retry.Policy{}, i)
		load := f.Rate / f.Capacity
		if load >= 1 {
			continue
		}
		calm.Duration = 20*time.Second + inSeconds(100/(f.Capacity*(1-load)*(1-load))) // queues forget in a part of it
		seen, err := retryplan.Simulate(t.Context(), calm)
		require.NoError(t, err)
		s.Duration = retryplan.LogNormal(seen.Latency.Quantile(.5), seen.Latency.Quantile(.99))
		stability := func(p retry.Policy) retryplan.Stability {
			f := f
			if p.Budget != nil {
				f.Budget, p.Budget = &retry.BudgetConfig{}, nil
			}
			c, err := retryplan.Certify(p, f)
			if err != nil {
				return 0
			}
			return c.Stability
		}
		before := stability(p)
		if before == 0 {
			continue
		}
		certified++
		for _, finding := range retryplan.Lint(p, s) {
			applied, err := changed(p, finding.Change)
			if err != nil || finding.Code == "invalid" {
				continue
			}
			if after := stability(applied); after > before && before.Survives() {
				t.Errorf("%d: %s: %v becomes %v: %s\n  %v, timeout %v, TTL %v\n  %+v", i, finding.Code, before, after, finding.Change, p, p.AttemptTimeout, p.TTL, f)
			}
			advised[finding.Code]++
		}
	}
	t.Log(certified, advised)
}
