package retryplan_test

import (
	"context"
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// shortWaits makes three quick retries.
var shortWaits = retry.Policy{
	MaxAttempts: 4, AttemptTimeout: time.Second,
	Backoff: retry.Backoff{Base: 100 * time.Millisecond, Cap: 10 * time.Second, Jitter: retry.FullJitter},
}

// A backend that does 100 attempts a second has 70 runs a second, and stalls for 10s. With three retries each it does
// not come back: they keep it busy with work that no client waits for. A budget ends that.
func ExampleJudge() {
	f := retryplan.Fleet{
		Rate:     70,
		Capacity: 100,
		Trigger:  retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second},
	}
	for _, f.Budget = range []*retry.BudgetConfig{nil, {}} {
		v, err := retryplan.Judge(context.Background(), retryplan.Question{Policy: shortWaits, Fleet: f})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(v)
	}
	// Output:
	// came back in 0 of 10 simulations of a stall of 10s; at least 74 % of others do not either
	// came back in 20 of 20 simulations of a stall of 10s, median 19s, worst of 20 26s; at most 14 % of others do not
}

// One seed in detail: the goodput before, during and after the stall.
func ExampleSimulate() {
	f := retryplan.Fleet{
		Rate: 70, Capacity: 100, Budget: &retry.BudgetConfig{},
		Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second},
	}
	r, err := retryplan.Simulate(context.Background(), retryplan.Question{Policy: shortWaits, Fleet: f}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, at := range []time.Duration{-time.Second, 5 * time.Second, r.Trigger.For + r.Recovery + 10*time.Second} {
		fmt.Println(at, r.Series[(r.Trigger.From+at)/r.Step].Goodput)
	}
	// Output:
	// -1s 76
	// 5s 0
	// 46s 62
}

// Changes are simulated on the same seeds before they are advised.
func ExampleAdvise() {
	q := retryplan.Question{Policy: shortWaits, Fleet: retryplan.Fleet{
		Rate: 30, Capacity: 100, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second},
	}}
	v, err := retryplan.Judge(context.Background(), q)
	if err != nil {
		fmt.Println(err)
		return
	}
	advice, err := retryplan.Advise(context.Background(), q, v)
	fmt.Printf("as it is: %d of %d\n", v.Back, v.Seeds)
	for _, a := range advice {
		fmt.Printf("%s %d of %d\n", a.Change, a.Verdict.Back, a.Verdict.Seeds)
	}
	fmt.Println(err)
	// Output:
	// as it is: 0 of 10
	// Set Budget to retry.NewBudget(retry.BudgetConfig{}), shared by all calls to one backend. 20 of 20
	// Set MaxAttempts to 2. 20 of 20
	// Set AttemptTimeout to 2s. 0 of 10
	// <nil>
}

// A stall is harmless up to about the clients' timeout.
func ExampleBand() {
	none, half, err := retryplan.Band(context.Background(), retryplan.Question{Policy: shortWaits, Fleet: retryplan.Fleet{
		Rate: 70, Capacity: 100, Trigger: retryplan.Trigger{Kind: retryplan.Stall},
	}})
	fmt.Println(none)
	fmt.Println(half)
	fmt.Println(err)
	// Output:
	// came back in 20 of 20 simulations of a stall of 1s, median 0s, worst of 20 0s; at most 14 % of others do not
	// came back in 5 of 20 simulations of a stall of 1.2s, median 0s, worst of 5 0s; of others 50 to 92 % do not
	// <nil>
}

// If every attempt fails, 20 runs a second become 80 attempts a second, and the backend does 100.
func ExampleFleet_Storm() {
	attempts, fits := retryplan.Fleet{Rate: 20, Capacity: 100}.Storm(shortWaits)
	fmt.Println(attempts, fits)
	// Output: 80 true
}
