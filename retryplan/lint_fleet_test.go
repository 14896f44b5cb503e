package retryplan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// TestAdviceLeavesFleetsAsStable does what each finding about a random policy says, and compares the stability of the
// policy's fleet before and after it. A setting knows how long attempts take in a calm, in the backend's queue too.
//
// It takes 100 policies; with RETRYPLAN_FULL=1, or with RETRYPLAN_ADVICE=10000, it takes 10,000. RETRYPLAN_SEED=1 and so
// on give others.
func TestAdviceLeavesFleetsAsStable(t *testing.T) {
	n, _ := strconv.ParseUint(os.Getenv("RETRYPLAN_ADVICE"), 10, 64)
	n = cmp.Or(n, uint64(trials(100, 10_000)))
	certified, compared, advised := 0, 0, map[string]int{}
	for i := range n {
		rnd := rand.New(rand.NewPCG(generatorSeed(41), i))
		p, s := randomPolicy(rnd), randomSetting(rnd)
		_, f := randomFleet(i)
		if f.Rate >= f.Capacity {
			continue
		}
		f.Budget, f.Clients, f.Deadline = nil, s.Clients, s.Deadline
		s.Duration = retryplan.CalmDuration(f)
		known := map[string]retryplan.Stability{}
		stability := func(p retry.Policy) retryplan.Stability {
			f := f
			if p.Budget != nil {
				f.Budget, p.Budget = &retry.BudgetConfig{}, nil
			}
			p.MaxHint = 0 // the backend gives no hints
			key := fmt.Sprintf("%+v %v %v %v %v %v %v %v", p.Backoff, p.Wait != nil, f.Budget != nil, p.MaxAttempts, p.AttemptTimeout, p.TTL, p.ResetAfter, p.Disabled)
			if _, ok := known[key]; !ok {
				known[key], _ = retryplan.StabilityOf(p, f)
				compared++
			}
			return known[key]
		}
		before := stability(p)
		if !before.Survives() { // or no certificate
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
	t.Log(n, "policies,", certified, "that survive,", compared, "certificates,", advised)
}
