package retryplan_test

import (
	"context"
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// Three layers of four attempts are 64 calls at the bottom for one request of a user.
func ExampleCertifyChain() {
	layer := retryplan.Layer{Policy: retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 50 * time.Millisecond}}}
	c := retryplan.Chain{Layers: []retryplan.Layer{layer, layer, layer}}
	show := func(what string) {
		cert, err := retryplan.CertifyChain(c)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %v\n", what, cert.Nodes[2].Outage)
	}
	show("in an outage")
	c.DoNotRetry = true
	show("with do-not-retry answers")
	c.DoNotRetry = false
	for i := range c.Layers {
		c.Layers[i].Budget = &retry.BudgetConfig{}
	}
	show("with a budget in each layer")
	// Output:
	// in an outage: 64
	// with do-not-retry answers: 4
	// with a budget in each layer: 1
}

// A backend at 10 % of its capacity does not come back from a stall of 10s under three layers of three attempts, and
// does if each layer has a budget.
func ExampleSimulateChain() {
	layer := retryplan.Layer{Policy: retry.Policy{MaxAttempts: 3, AttemptTimeout: time.Second, Backoff: retry.Backoff{Base: 10 * time.Millisecond}}}
	c := retryplan.Chain{
		Layers:  []retryplan.Layer{layer, layer, layer},
		Rate:    10,
		Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second},
	}
	c.Layers[2].Capacity = 100
	for _, budget := range []*retry.BudgetConfig{nil, {}} {
		for i := range c.Layers {
			c.Layers[i].Budget = budget
		}
		r, err := retryplan.SimulateChain(context.Background(), c, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("with budgets:", budget != nil, "- recovered:", r.Recovered)
	}
	// Output:
	// with budgets: false - recovered: false
	// with budgets: true - recovered: true
}
