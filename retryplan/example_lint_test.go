package retryplan_test

import (
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

func ExampleLint() {
	p := retry.Policy{MaxAttempts: 5, AttemptTimeout: 2 * time.Second, TTL: 10 * time.Second, Budget: retry.NewBudget(retry.BudgetConfig{})}
	for _, f := range retryplan.Lint(p, retryplan.Setting{Inline: true, Clients: 200}) {
		fmt.Println(f.Code)
		fmt.Println("  ", f.Text)
		fmt.Println("  ", f.Change)
	}
	// Output:
	// no-jitter
	//    The waits have no jitter: all 200 clients return in the same instant if they failed together, 5s after their 1st attempt, where full jitter would spread them evenly.
	//    Set Jitter to retry.FullJitter.
	// unreachable-attempts
	//    Only 2 of 5 attempts can start: the 3rd would start 15s after the first one at the earliest, too late for the TTL of 10s.
	//    Set MaxAttempts to 2, or make the waits shorter.
}

func ExampleCodes() {
	for _, code := range retryplan.Codes()[:4] {
		fmt.Println(code)
	}
	// Output:
	// cap-never-reached
	// cap-stops-growth
	// decorrelated-without-cap
	// hint-beyond-ttl
}
