package retryplan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// stalledChain returns the chain of a row: 2 to 4 layers of 1 to 4 attempts, whose bottom stalls for 20 timeouts.
func stalledChain(row uint64, timeouts string) retryplan.Chain {
	rnd := rand.New(rand.NewPCG(row, generatorSeed(61)))
	c := retryplan.Chain{Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 20 * time.Second}}
	for range 2 + rnd.IntN(3) {
		c.Layers = append(c.Layers, retryplan.Layer{Policy: waiting(1+rnd.IntN(4), time.Second, 0)})
	}
	bottom := len(c.Layers) - 1
	product := 1.
	for i := bottom; i >= 0; i-- {
		l := &c.Layers[i]
		product *= float64(l.Policy.MaxAttempts)
		if timeouts == "graded" && i < bottom { // longer than a whole run of the layer below
			below := c.Layers[i+1].Policy
			l.Policy.AttemptTimeout = time.Duration(below.MaxAttempts)*below.AttemptTimeout + 200*time.Millisecond
		}
		if rnd.IntN(3) == 0 {
			l.Policy.Delays, l.Policy.Jitter = []time.Duration{inSeconds(between(rnd, 0.05, 0.5))}, retry.FullJitter
		}
		if rnd.IntN(4) == 0 {
			l.Budget, l.Clients = &retry.BudgetConfig{Burst: 10}, 1+rnd.IntN(5)
		}
	}
	c.PassOn, c.DoNotRetry, c.TrustRequests = rnd.IntN(2) == 0, rnd.IntN(3) == 0, row%4 == 3
	c.Layers[bottom].Capacity = 100
	if row%5 == 1 {
		c.TriggerAt = 1 + int(row/5)%len(c.Layers)
	}
	if timeouts == "bounded" {
		for i := range bottom {
			c.Layers[i].Capacity = between(rnd, 10, 150)
		}
	}
	cert, _ := retryplan.CertifyChain(c)
	c.Rate = cert.HiddenCapacity
	if rnd.IntN(2) == 0 {
		c.Rate *= between(rnd, 0.3, 0.75)
	} else {
		c.Rate *= between(rnd, 1.35, 4)
	}
	for _, l := range c.Layers {
		if l.Capacity > 0 {
			c.Rate = min(c.Rate, 0.9*l.Capacity)
		}
	}
	return c
}

// TestChainCertificatesAgreeWithSimulations compares the verdict on random chains with three simulations of each.
// Chains within 25 % of the boundary, and those without a Margin, are left out, since chance decides there. A row comes again from stalledChain(row,
// timeouts).
//
// The short form has 24 rows of each kind, RETRYPLAN_FULL=1 has 600; RETRYPLAN_SEED=1 and so on give others.
func TestChainCertificatesAgreeWithSimulations(t *testing.T) {
	rows := uint64(trials(24, 600))
	for _, timeouts := range []string{"equal", "graded", "bounded"} {
		t.Run(timeouts, func(t *testing.T) {
			agreed, judged := 0, 0
			verdicts := map[string]int{}
			for row := range rows {
				c := stalledChain(row, timeouts)
				cert := certifyChain(t, c)
				if cert.Margin == 0 {
					verdicts["without a margin"]++
					continue
				}
				judged++
				recovered := 0
				for seed := range uint64(3) {
					r, err := retryplan.SimulateChain(context.Background(), c, seed)
					require.NoError(t, err)
					if r.Recovered {
						recovered++
					}
				}
				verdicts[fmt.Sprintf("%v (%v)", cert.Stability, cert.Law)]++
				if cert.Stability.Survives() == (recovered >= 2) {
					agreed++
					continue
				}
				t.Logf("row %d disagrees: %d of 3 recovered: %+v\n  %+v", row, recovered, cert, c)
			}
			t.Logf("%d of %d agree: %v", agreed, judged, verdicts)
			require.GreaterOrEqual(t, float64(agreed), 0.99*float64(judged))
			require.GreaterOrEqual(t, judged, int(rows)/2, "most of the chains are no test")
		})
	}
}
