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
	_, err := retryplan.CertifyChain(retryplan.Chain{})
	require.Equal(t, []string{"Chain.Layers (0) are not 1 to 16"}, fieldTexts(t, err))
	bad := retryplan.Chain{
		Layers: []retryplan.Layer{
			{Policy: retry.Policy{MaxAttempts: -5}, Clients: -1, Failure: 2, Capacity: -3, Workers: -1},
			{
				Policy: retry.Policy{
					Budget: retry.NewBudget(retry.BudgetConfig{}), Gate: func(context.Context) time.Duration { return 0 },
					Pay: func(context.Context, retry.Decision) bool { return true }, ResetAfter: time.Second,
				},
				Budget: &retry.BudgetConfig{Trickle: time.Second}, Capacity: math.NaN(),
			},
		},
		Deadline: -1, Rate: math.Inf(1), Trigger: retryplan.Trigger{Kind: retryplan.CapacityCut, Factor: 2, For: -1},
	}
	_, err = retryplan.CertifyChain(bad)
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
		"Chain.Layers[1].Budget.Trickle 1s is not followed through a chain",
		"Chain.Layers[1].Capacity NaN is not above 0",
		"Chain.Deadline -1ns is negative",
		"Chain.Rate +Inf is outside [1e-9, 1e9]",
		"Chain.Trigger.Factor 2 is outside [0,1), which CapacityCut needs",
		"Chain.Trigger.For -1ns is negative",
	}, fieldTexts(t, err))

	_, err = retryplan.CertifyChain(layers(101, 0, 0, 0))
	require.Equal(t, []string{"Chain.Layers (1.03e+06 attempts) multiply to more than 1000000 attempts"}, fieldTexts(t, err))
	_, err = retryplan.SimulateChain(context.Background(), layers(3, 0), 1)
	require.Equal(t, []string{"Chain.Rate 0 is required"}, fieldTexts(t, err))
	_, err = retryplan.CertifyChain(retryplan.Chain{Layers: layers(3, 0).Layers, Trigger: retryplan.Trigger{Kind: retryplan.Slowdown, Factor: 3}})
	require.Equal(t, []string{"Chain.Trigger.Kind slowdown needs a Capacity of the node"}, fieldTexts(t, err))
	_, err = retryplan.CertifyChain(retryplan.Chain{Layers: layers(3, 0).Layers, TriggerAt: 2})
	require.Equal(t, []string{"Chain.TriggerAt 2 is no node: they are 1 to 1"}, fieldTexts(t, err))
}

func TestASimulationOfAChainStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := layers(3, time.Second)
	c.Rate = 10
	_, err := retryplan.SimulateChain(ctx, c, 1)
	require.ErrorIs(t, err, context.Canceled)
}

// Verdicts that have a law of their own.
func TestLawsOfAChain(t *testing.T) {
	stall := retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}
	chain := func(rate float64, timeouts ...time.Duration) retryplan.Chain {
		c := layers(3, timeouts...)
		c.Rate, c.Trigger = rate, stall
		c.Layers[len(c.Layers)-1].Capacity = 100
		return c
	}
	short := chain(30, s, s)
	short.Trigger.For = 500 * time.Millisecond
	slow := chain(3, s, s)
	slow.Layers[0].Capacity, slow.Layers[0].Workers = 100, 200
	middle := chain(10, s, s)
	middle.Layers[0].Capacity = 20
	calm := chain(60, s, s)
	calm.Layers[1].Failure = 0.5
	for _, row := range []struct {
		name    string
		c       retryplan.Chain
		want    retryplan.Stability
		law     string
		weakest int
	}{
		{"more runs than the bottom can do", chain(120, s, s), retryplan.Overloaded, "overload", 1},
		{"more retries in the calm than the bottom can do", calm, retryplan.Overloaded, "overload", 1},
		{"a node that works for longer than its callers wait", slow, retryplan.Overloaded, "slow-service", 0},
		{"no client ever gives up", chain(30, 0, 0), retryplan.Safe, "no-timeout", 1},
		{"a stall that is shorter than every timeout", short, retryplan.Vulnerable, "trigger-below-timeout", 1},
		{"a storm of the bottom", chain(30, s, s), retryplan.Metastable, "hidden-capacity", 1},
		{"a node in the middle that the bottom's storm tips", middle, retryplan.Metastable, "hidden-capacity", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := certifyChain(t, row.c)
			require.Equal(t, row.want, got.Stability, "%+v", got)
			require.Equal(t, row.law, got.Law)
			require.Equal(t, row.weakest, got.Weakest)
		})
	}
	unknown := certifyChain(t, retryplan.Chain{Layers: layers(3, s).Layers, Rate: 10})
	require.Zero(t, unknown.Stability, "without a capacity there is no verdict")
}
