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
			chain, err := retryplan.SimulateChain(t.Context(), c, 9)
			require.NoError(t, err)
			s := retryplan.Scenario{
				Policy: policy, Deadline: c.Deadline, Clients: 5, Rate: c.Rate, Seed: 9,
				Server: retryplan.Server{Workers: 4, Service: retryplan.Constant(40 * time.Millisecond), FailureRate: 0.1},
				Budget: retryplan.Fleet{Budget: c.Layers[0].Budget, Failure: 0.1}.Scenario(policy, 9).Budget, Duration: chain.Simulated, Step: chain.Step,
			}
			if trigger.Kind != 0 {
				s.Triggers = []retryplan.Trigger{chain.Trigger}
			}
			fleet, err := retryplan.Simulate(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, fleet, chain.Result)
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
	_, err := retryplan.SimulateChain(t.Context(), c, 1)
	require.ErrorContains(t, err, "events go on without end and take no time")
}
