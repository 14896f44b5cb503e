package retryplan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

func TestAChainOfOneLayerIsAFleet(t *testing.T) {
	policy := retry.Policy{MaxAttempts: 4, AttemptTimeout: time.Second, Backoff: retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.FullJitter}}
	for _, trigger := range []retryplan.Trigger{
		{},
		{Kind: retryplan.Stall, For: 3 * time.Second},
		{Kind: retryplan.Outage, For: 5 * time.Second},
		{Kind: retryplan.CapacityCut, For: 5 * time.Second, Factor: 0.5},
		{Kind: retryplan.Failing, For: 5 * time.Second, Factor: 0.7},
		{Kind: retryplan.Surge, For: 5 * time.Second, Factor: 1.5},
	} {
		t.Run(fmt.Sprint(trigger.Kind), func(t *testing.T) {
			c := retryplan.Chain{
				Layers:   []retryplan.Layer{{Policy: policy, Budget: &retry.BudgetConfig{Burst: 7}, Clients: 5, Failure: 0.1, Capacity: 100, Workers: 4}},
				Deadline: 3 * time.Second, Rate: 60, Trigger: trigger,
			}
			chain := result(t, retryplan.Question{Chain: c}, 9)
			f := retryplan.Fleet{
				Rate: c.Rate, Capacity: 100, Workers: 4, Clients: 5, Budget: c.Layers[0].Budget, Failure: 0.1, Deadline: c.Deadline, Trigger: trigger,
			}
			fleet := result(t, retryplan.Question{Policy: policy, Fleet: f}, 9)
			require.Equal(t, fleet, chain)
			require.Equal(t, []int{fleet.Attempts}, chain.Nodes)
		})
	}
}

func TestAChainWhoseTimeStandsStillIsGivenUp(t *testing.T) {
	if retryplan.RaceDetector {
		t.Skip("millions of events in one goroutine")
	}
	c := retryplan.Chain{Rate: 1, Trigger: retryplan.Trigger{Kind: retryplan.Outage, For: time.Second}}
	for range 2 {
		c.Layers = append(c.Layers, retryplan.Layer{Policy: retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Mode: retry.List, Delays: []time.Duration{0}}}})
	}
	_, err := retryplan.Simulate(t.Context(), retryplan.Question{Chain: c}, 1)
	require.ErrorContains(t, err, "lets attempts that take no time go on without end at 2m")
}
