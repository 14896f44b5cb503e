package retryplan_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

func TestAChainReportsEveryBadField(t *testing.T) {
	_, _, err := retryplan.Chain{}.Loads()
	require.Equal(t, []string{"Chain.Layers (0) are not 1 to 16"}, fieldTexts(t, err))
	bad := retryplan.Chain{
		Layers: []retryplan.Layer{
			{Policy: retry.Policy{MaxAttempts: -5}, Clients: -1, Failure: 2, Capacity: -3, Workers: -1},
			{
				Policy: retry.Policy{
					Budget: retry.NewBudget(retry.BudgetConfig{}), Gate: func(context.Context) time.Duration { return 0 },
					Pay: func(context.Context, retry.Decision) bool { return true }, ResetAfter: time.Second,
				},
				Capacity: math.NaN(),
			},
		},
		Deadline: -1, Rate: math.Inf(1), Trigger: retryplan.Trigger{Kind: retryplan.CapacityCut, Factor: 2, For: -1},
	}
	_, _, err = bad.Loads()
	require.Equal(t, []string{
		"Chain.Layers[0].Policy.MaxAttempts -5 is below -1, which is Unlimited",
		"Chain.Layers[0].Clients -1 is outside [0,10000000]",
		"Chain.Layers[0].Failure 2 is outside [0,1]",
		"Chain.Layers[0].Capacity -3 is not above 0",
		"Chain.Layers[0].Workers -1 is negative",
		"Chain.Layers[1].Policy.Budget (set) is state of a running program",
		"Chain.Layers[1].Policy.Gate (set) is state of a running program",
		"Chain.Layers[1].Policy.Pay (set) is state of a running program",
		"Chain.Layers[1].Policy.ResetAfter 1s is for connections, and a chain has requests",
		"Chain.Layers[1].Capacity NaN is not above 0",
		"Chain.Deadline -1ns is negative",
		"Chain.Rate +Inf is outside [1e-9, 1e9]",
		"Chain.Trigger.Factor 2 is outside [0,1), which CapacityCut needs",
		"Chain.Trigger.For -1ns is negative",
	}, fieldTexts(t, err))

	_, _, err = layers(101, 0, 0, 0).Loads()
	require.Equal(t, []string{"Chain.Layers (1.03e+06 attempts) multiply to more than 1000000 attempts"}, fieldTexts(t, err))
	_, err = retryplan.Simulate(t.Context(), retryplan.Question{Chain: layers(3, 0)}, 1)
	require.Equal(t, []string{"Chain.Rate 0 is required"}, fieldTexts(t, err))
	_, _, err = retryplan.Chain{Layers: layers(3, 0).Layers, Trigger: retryplan.Trigger{Kind: retryplan.Slowdown, Factor: 3}}.Loads()
	require.Equal(t, []string{"Chain.Trigger.Kind slowdown needs a Capacity of the node"}, fieldTexts(t, err))
	_, _, err = retryplan.Chain{Layers: layers(3, 0).Layers, TriggerAt: 2}.Loads()
	require.Equal(t, []string{"Chain.TriggerAt 2 is no node: they are 1 to 1"}, fieldTexts(t, err))
}

func TestASimulationOfAChainStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := layers(3, time.Second)
	c.Rate = 10
	_, err := retryplan.Simulate(ctx, retryplan.Question{Chain: c}, 1)
	require.ErrorIs(t, err, context.Canceled)
}
