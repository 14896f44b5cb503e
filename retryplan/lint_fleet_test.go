package retryplan_test

import (
	"math/rand/v2"
	"testing"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// TestAdviceLeavesFleetsAsStable does what each finding about a random policy says, and certifies the policy's fleet
// before and after it.
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
		s.Duration = retryplan.Constant(f.Scenario(p, 1).Server.Service.Mean())
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
			if after := stability(applied); after > before {
				t.Errorf("%d: %s: %v becomes %v: %s\n  %v, timeout %v, TTL %v\n  %+v", i, finding.Code, before, after, finding.Change, p, p.AttemptTimeout, p.TTL, f)
			}
			advised[finding.Code]++
		}
	}
	t.Log(certified, advised)
}
