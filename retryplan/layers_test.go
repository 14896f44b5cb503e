package retryplan_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// waiting returns a policy of so many attempts with a constant wait, 0 included.
func waiting(attempts int, timeout, wait time.Duration) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, AttemptTimeout: timeout, Backoff: retry.Backoff{Delays: []time.Duration{wait}}}
}

// layers returns a chain with the same number of attempts in each layer.
func layers(attempts int, timeouts ...time.Duration) retryplan.Chain {
	var c retryplan.Chain
	for _, timeout := range timeouts {
		c.Layers = append(c.Layers, retryplan.Layer{Policy: waiting(attempts, timeout, 0)})
	}
	return c
}

// loads returns the loads of the nodes of c, and the share of runs that succeed in a calm.
func loads(t *testing.T, c retryplan.Chain) ([]retryplan.NodeLoad, float64) {
	t.Helper()
	nodes, success, err := c.Loads()
	require.NoError(t, err)
	return nodes, success
}

// atBottom returns the load of the last node.
func atBottom(t *testing.T, c retryplan.Chain) retryplan.NodeLoad {
	t.Helper()
	nodes, _ := loads(t, c)
	return nodes[len(nodes)-1]
}

const s = time.Second

func TestLayersMultiplyWhenTheBottomIsOut(t *testing.T) {
	mixed := layers(1, 0, 0, 0)
	for i, n := range []int{2, 3, 5} {
		mixed.Layers[i].Policy = waiting(n, 0, 0)
	}
	inner, outer := layers(1, 0, 0, 0), layers(1, 0, 0, 0)
	inner.Layers[2].Policy, outer.Layers[0].Policy = waiting(4, 0, 0), waiting(4, 0, 0)
	told := layers(4, 0, 0, 0)
	told.DoNotRetry = true
	trusted := layers(4, 0, 0, 0)
	trusted.TrustRequests = true
	funded := layers(4, 0, 0, 0)
	for i := range funded.Layers {
		funded.Layers[i].Budget = &retry.BudgetConfig{}
	}
	for _, row := range []struct {
		name string
		c    retryplan.Chain
		want []float64
	}{
		{"2, 3 and 5 attempts", mixed, []float64{2, 6, 30}},
		{"4 attempts in each", layers(4, 0, 0, 0), []float64{4, 16, 64}},
		{"the innermost layer alone", inner, []float64{1, 1, 4}},
		{"the outermost layer alone", outer, []float64{4, 4, 4}},
		{"do-not-retry answers", told, []float64{1, 1, 4}},
		{"trusted requests", trusted, []float64{4, 7, 10}},
		{"a budget in each layer", funded, []float64{1, 1, 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, _ := loads(t, row.c)
			for i, want := range row.want {
				require.Equal(t, want, got[i].Outage, "node %d", i+1)
			}
			row.c.Layers[2].Failure = 1
			require.Equal(t, row.want[2], atBottom(t, row.c).Calm, "every attempt fails")
		})
	}
}

func TestLayersMultiplyFailures(t *testing.T) {
	for _, p := range []float64{0, 0.1, 0.5, 0.9, 0.99} {
		product := (1 - math.Pow(p, 64)) / (1 - p)
		c := layers(4, 0, 0, 0)
		c.Layers[2].Failure = p
		_, success := loads(t, c)
		require.InEpsilon(t, product, atBottom(t, c).Calm, 0.03)
		require.InDelta(t, 1-math.Pow(p, 64), success, 0.01)

		c.DoNotRetry = true
		_, success = loads(t, c)
		require.InEpsilon(t, (1-math.Pow(p, 4))/(1-p), atBottom(t, c).Calm, 0.03)
		require.InDelta(t, 1-math.Pow(p, 4), success, 0.01)

		for alone := range 3 {
			c := layers(1, 0, 0, 0)
			c.Layers[2].Failure = p
			c.Layers[alone].Policy = waiting(4, 0, 0)
			_, success := loads(t, c)
			require.InEpsilon(t, (1-math.Pow(p, 4))/(1-p), atBottom(t, c).Calm, 0.03)
			require.InDelta(t, 1-math.Pow(p, 4), success, 0.01)
		}
	}
	every := layers(3, 0, 0, 0)
	for i := range every.Layers {
		every.Layers[i].Failure = 0.3
	}
	require.InEpsilon(t, 1.381, atBottom(t, every).Calm, 0.02, "each node fails by itself")
}

// With trusted requests the load of failures is that of an open loop, with do-not-retry answers and without.
func TestTrustedRequestsInACalm(t *testing.T) {
	for _, told := range []bool{false, true} {
		c := layers(3, 0, 0, 0)
		c.Rate, c.TrustRequests, c.DoNotRetry = 1000, true, told
		for i, failure := range []float64{0.1, 0.2, 0.4} {
			c.Layers[i].Failure = failure
		}
		r := result(t, retryplan.Question{Chain: c}, 1)
		got, success := loads(t, c)
		for i, n := range got {
			require.InEpsilon(t, float64(r.Nodes[i])/float64(r.Runs), n.Calm, 0.02, "node %d, told %t", i+1, told)
		}
		require.InEpsilon(t, float64(r.Endings[0])/float64(r.Runs), success, 0.02)
	}
}

func TestBudgetsAddWhileAttemptsMultiply(t *testing.T) {
	chain := func(p float64, budgets ...bool) retryplan.Chain {
		c := layers(4, 0, 0, 0)
		c.Layers[2].Failure = p
		for i, is := range budgets {
			if is {
				c.Layers[i].Budget, c.Layers[i].Clients = &retry.BudgetConfig{}, 20
			}
		}
		return c
	}
	for _, row := range []struct{ p, attempts, success float64 }{
		{0.5, 1.1765, 0.5882}, {0.9, 1.0309, 0.1031}, {0.2, 1.25, 1}, {0.3 / 1.3, 1.3, 1},
	} {
		c := chain(row.p, true, true, true)
		_, success := loads(t, c)
		require.InEpsilon(t, row.attempts, atBottom(t, c).Calm, 0.01, "%v", row.p)
		require.InDelta(t, row.success, success, 0.01, "%v", row.p)
		require.InEpsilon(t, success/(1-row.p), atBottom(t, c).Calm, 0.01, "every success at the bottom ends a run")
	}
	for i := range 3 {
		alone := make([]bool, 3)
		alone[i] = true
		require.InDelta(t, 2, atBottom(t, chain(0.5, alone...)).Calm, 0.05, "a budget in one layer alone leaves the product of the others")
	}
	stored := 0.
	nodes, _ := loads(t, chain(0, true, true, true))
	for _, n := range nodes {
		stored += n.Stored
	}
	require.Equal(t, 600., stored)
}

// While the bottom hangs, the effect of passing deadlines on depends on the timeouts.
func TestLayersMultiplyWhenTheBottomHangs(t *testing.T) {
	for _, row := range []struct {
		attempts         int
		timeouts         [3]time.Duration
		wait             time.Duration
		not, passed, dnr float64
	}{
		{3, [3]time.Duration{s, s, s}, 0, 27, 3, 27},
		{3, [3]time.Duration{10 * s, 3200 * time.Millisecond, s}, 0, 27, 27, 3},
		{3, [3]time.Duration{2500 * time.Millisecond, s, 300 * time.Millisecond}, 50 * time.Millisecond, 27, 24, 0},
		{3, [3]time.Duration{2 * s, s, 400 * time.Millisecond}, 50 * time.Millisecond, 27, 18, 0},
		{4, [3]time.Duration{1500 * time.Millisecond, s, 450 * time.Millisecond}, 100 * time.Millisecond, 64, 12, 0},
	} {
		t.Run(fmt.Sprint(row.timeouts), func(t *testing.T) {
			c := layers(row.attempts, row.timeouts[:]...)
			for i := range c.Layers {
				c.Layers[i].Policy.Delays[0] = row.wait
			}
			require.Equal(t, row.not, atBottom(t, c).Hang)
			c.PassOn = true
			require.Equal(t, row.passed, atBottom(t, c).Hang)
			if row.dnr > 0 {
				c.PassOn, c.DoNotRetry = false, true
				require.Equal(t, row.dnr, atBottom(t, c).Hang, "do-not-retry answers arrive before the caller's timeout only")
			}
		})
	}
}

func TestATTLAndADeadlineCutALayer(t *testing.T) {
	for _, row := range []struct {
		name string
		c    func(*retryplan.Chain)
		want float64
	}{
		{"neither", func(*retryplan.Chain) {}, 10},
		{"a TTL: 1 + floor(TTL/(d+w))", func(c *retryplan.Chain) { c.Layers[0].Policy.TTL = 3 * s }, 3},
		{"a start exactly at the TTL", func(c *retryplan.Chain) { c.Layers[0].Policy.TTL = 3750 * time.Millisecond }, 4},
		{"a deadline: ceil(D/(d+w))", func(c *retryplan.Chain) { c.Deadline = 3 * s }, 3},
		{"no start exactly at a deadline", func(c *retryplan.Chain) { c.Deadline = 3750 * time.Millisecond }, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := retryplan.Chain{Layers: []retryplan.Layer{{Policy: waiting(10, s, 250*time.Millisecond)}}}
			row.c(&c)
			require.Equal(t, row.want, atBottom(t, c).Hang)
		})
	}
}

// The table of storms in a chain of three, 3 attempts each: nodes 1 and 2 take 1ms and any number, the bottom 100 a
// second, and stalls for 10s.
func TestReferenceStormsInAChain(t *testing.T) {
	graded := []time.Duration{10 * s, 3200 * time.Millisecond, s}
	equal := []time.Duration{s, s, s}
	one := func(attempts ...int) func(*retryplan.Chain) {
		return func(c *retryplan.Chain) {
			for i, n := range attempts {
				c.Layers[i].Policy.MaxAttempts = n
			}
		}
	}
	passed := func(c *retryplan.Chain) { c.PassOn = true }
	told := func(c *retryplan.Chain) { c.DoNotRetry = true }
	budgets := func(clients int, in ...int) func(*retryplan.Chain) {
		return func(c *retryplan.Chain) {
			for _, i := range in {
				c.Layers[i].Budget, c.Layers[i].Clients = &retry.BudgetConfig{Burst: 10}, clients
			}
		}
	}
	seeds := uint64(trials(3, 8))
	for _, row := range []struct {
		name     string
		timeouts []time.Duration
		with     func(*retryplan.Chain)
		a        float64 // attempts at the bottom in a storm
		rate     float64
		late     float64 // goodput at t 200..290
		bottom   float64 // attempts at the bottom then
		back     bool
	}{
		{"1 no retries", equal, one(1, 1, 1), 1, 70, 70.0, 69.9, true},
		{"2 innermost alone", []time.Duration{10 * s, 10 * s, s}, one(1, 1, 3), 3, 28, 28.3, 28, true},
		{"2 innermost alone", []time.Duration{10 * s, 10 * s, s}, one(1, 1, 3), 3, 40, 0, 120, false},
		{"2 outermost alone", equal, one(3, 1, 1), 3, 28, 28.3, 28, true},
		{"2 outermost alone", equal, one(3, 1, 1), 3, 40, 0, 120, false},
		{"3 not passed on", equal, one(), 27, 3, 2.9, 2.9, true},
		{"3 not passed on", equal, one(), 27, 4.5, 0, 121, false},
		{"3 not passed on", equal, one(), 27, 10, 0, 268, false},
		{"4 passed on", equal, passed, 3, 28, 28.3, 28, true},
		{"4 passed on", equal, passed, 3, 40, 0, 120, false},
		{"5 graded, passed on", graded, passed, 27, 10, 0, 267, false},
		{"6 a budget in each layer", equal, budgets(1, 0, 1, 2), 1, 70, 70.0, 70, true},
		{"6 a budget in each layer", equal, budgets(1, 0, 1, 2), 1, 85, 85.1, 85, true},
		{"6b 20 processes in each", equal, budgets(20, 0, 1, 2), 1, 70, 69.6, 70, true},
		{"7 a budget in the outermost layer", equal, budgets(1, 0), 9, 9, 8.9, 9, true},
		{"7 a budget in the outermost layer", equal, budgets(1, 0), 9, 14, 0, 124, false},
		{"8 do-not-retry answers", graded, told, 3, 28, 28.3, 28, true},
		{"8 do-not-retry answers", graded, told, 3, 40, 0, 120, false},
	} {
		t.Run(fmt.Sprintf("%s at %v", row.name, row.rate), func(t *testing.T) {
			c := layers(3, row.timeouts...)
			row.with(&c)
			c.Rate, c.Trigger = row.rate, retryplan.Trigger{Kind: retryplan.Stall, For: 10 * s}
			c.Layers[2].Capacity = 100
			require.Equal(t, row.a, atBottom(t, c).Hang)
			var late, bottom float64
			for seed := range seeds {
				r := result(t, retryplan.Question{Chain: c}, seed)
				require.Equal(t, row.back, r.Recovery >= 0, "seed %d: %v", seed, r.Recovery)
				last := r.Series[len(r.Series)-31 : len(r.Series)-1]
				for _, p := range last {
					late += float64(p.Goodput) / float64(len(last)) / float64(seeds)
					bottom += float64(p.Attempts) / float64(len(last)) / float64(seeds)
				}
			}
			t.Logf("late %.1f, bottom %.1f", late, bottom)
			require.InDelta(t, row.late, late, 0.1*row.late+0.2)
			require.InDelta(t, row.bottom, bottom, 0.1*row.bottom)
		})
	}
}

// A stall of a node in the middle leaves nothing to do for those below it, and the requests that it has kept come as fast
// as it works.
func TestATriggerAtAnyNode(t *testing.T) {
	c := layers(2, s, s, s)
	c.Rate, c.Trigger = 10, retryplan.Trigger{Kind: retryplan.Stall, For: 5 * s}
	c.Layers[1].Capacity, c.Layers[2].Capacity = 200, 100
	for at := range 4 {
		c.TriggerAt = at
		r := result(t, retryplan.Question{Chain: c}, 1)
		require.GreaterOrEqual(t, r.Recovery, time.Duration(0))
		busy := 0
		for _, p := range r.Series[r.Trigger.From/s+1 : (r.Trigger.From+r.Trigger.For)/s-1] {
			busy += p.Attempts
		}
		require.Equal(t, at == 1 || at == 2, busy == 0, "the bottom has nothing to do")
	}
	c.Rate, c.TriggerAt = 60, 2
	require.Zero(t, judged(t, retryplan.Question{Chain: c}).Back)
	c.Layers[1].Capacity, c.Layers[2].Capacity = 1000, 1000
	require.Equal(t, 20, judged(t, retryplan.Question{Chain: c}).Back)
}

// The requests that a node with trouble has kept come to those below it with all the retries of its callers, though those
// would not retry an attempt below.
func TestKeptRequestsComeWithTheirRetries(t *testing.T) {
	c := retryplan.Chain{
		Layers: []retryplan.Layer{
			{Policy: waiting(4, 3200*time.Millisecond, 0)},
			{Policy: waiting(1, time.Second, 0), Capacity: 100},
		},
		DoNotRetry: true, Rate: 90, TriggerAt: 1,
		Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second},
	}
	r := result(t, retryplan.Question{Chain: c}, 1)
	require.Greater(t, r.Recovery, 2*time.Minute, "900 runs have been kept, most of them more than once, and 10/s are to spare")
}
