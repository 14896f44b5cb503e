package retryplan_test

import (
	"context"
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// A backend that does 100 attempts a second has 70 runs a second, and stalls for 10s. With three retries each it does
// not come back; with a budget it does.
func ExampleCertify() {
	p := retry.Policy{
		MaxAttempts:    4,
		Backoff:        retry.Backoff{Base: 100 * time.Millisecond, Cap: 10 * time.Second, Jitter: retry.FullJitter},
		AttemptTimeout: time.Second,
	}
	f := retryplan.Fleet{
		Rate:     70,
		Capacity: 100,
		Trigger:  retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second},
	}
	c, err := retryplan.Certify(p, f)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v by %v: serves %v runs/s in a storm, tipped by a stall of %v\n", c.Stability, c.Law, c.HiddenCapacity, c.Tipping.Round(100*time.Millisecond))

	f.Budget = &retry.BudgetConfig{}
	c, err = retryplan.Certify(p, f)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v by %v: back after %v\n", c.Stability, c.Law, c.Recovery.Round(time.Second))
	// Output:
	// metastable by hidden-capacity: serves 25 runs/s in a storm, tipped by a stall of 1.2s
	// safe by success-funded-budget: back after 20s
}

// The certificate is checked by the simulation of the same fleet.
func ExampleFleet_Scenario() {
	p := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.FullJitter}, AttemptTimeout: time.Second}
	f := retryplan.Fleet{
		Rate:     70,
		Capacity: 100,
		Trigger:  retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second},
	}
	for _, f.Budget = range []*retry.BudgetConfig{nil, {Burst: 10}} {
		r, err := retryplan.Simulate(context.Background(), f.Scenario(p, 1))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("with a budget:", f.Budget != nil, "- recovered:", r.Recovered)
	}
	// Output:
	// with a budget: false - recovered: false
	// with a budget: true - recovered: true
}

func ExampleStability_Survives() {
	fmt.Println(retryplan.Vulnerable, retryplan.Vulnerable.Survives())
	fmt.Println(retryplan.Metastable, retryplan.Metastable.Survives())
	// Output:
	// vulnerable true
	// metastable false
}
