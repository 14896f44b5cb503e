package retryplan_test

import (
	"context"
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// A stall of ten seconds tips a fleet into a storm that lasts forever: its retries keep the server busy with work that
// no client waits for. A budget ends it.
func ExampleSimulate() {
	s := retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: 4, AttemptTimeout: time.Second, Backoff: retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.FullJitter}},
		Rate:     70,
		Server:   retryplan.Server{Workers: 1, Service: retryplan.Constant(10 * time.Millisecond)},
		Triggers: []retryplan.Trigger{{Kind: retryplan.Stall, From: 60 * time.Second, For: 10 * time.Second}},
		Duration: 240 * time.Second,
	}
	for _, budget := range []*retry.BudgetConfig{nil, {Ratio: 0.1}} {
		s.Budget = budget
		r, err := retryplan.Simulate(context.Background(), s)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("recovered: %v; amplification %.2f; %.0f %% failed\n", r.Recovered, r.Amplification, 100*r.Failed)
	}
	// Output:
	// recovered: false; amplification 3.24; 76 % failed
	// recovered: true; amplification 1.00; 13 % failed
}

func ExampleScenario_herd() {
	r, err := retryplan.Simulate(context.Background(), retryplan.Scenario{
		Clients:  10,
		Server:   retryplan.Server{Workers: 1, Service: retryplan.Constant(10 * time.Millisecond)},
		Duration: time.Second,
	})
	fmt.Println(err, r.Endings[0], r.Latency.Mean().Round(time.Millisecond), r.Latency.Quantile(0), r.Latency.Quantile(1))
	// Output:
	// <nil> 10 55ms 10ms 100ms
}

func ExampleTrigger_End() {
	t := retryplan.Trigger{Kind: retryplan.Stall, From: 60 * time.Second, For: 10 * time.Second}
	fmt.Println(t.End())
	// Output: 1m10s
}
