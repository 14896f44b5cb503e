package retryplan_test

import (
	"context"
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// Three layers of four attempts are 64 calls at the bottom for one request of a user.
func ExampleChain_Loads() {
	layer := retryplan.Layer{Policy: retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 50 * time.Millisecond}}}
	c := retryplan.Chain{Layers: []retryplan.Layer{layer, layer, layer}}
	show := func(what string) {
		nodes, _, err := c.Loads()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %v\n", what, nodes[2].Outage)
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
func ExampleChain() {
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
		v, err := retryplan.Judge(context.Background(), retryplan.Question{Chain: c})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("with budgets %v: %d of %d come back\n", budget != nil, v.Back, v.Seeds)
	}
	// Output:
	// with budgets false: 0 of 10 come back
	// with budgets true: 20 of 20 come back
}
