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
	//    The waits have no jitter: all 200 clients that failed together return in the same instant, 5s after attempt 1; full jitter would spread them evenly.
	//    Set Jitter to retry.FullJitter.
	// unreachable-attempts
	//    Only 2 of 5 attempts can start: attempt 3 would come 15s after the first one began, too late for the TTL of 10s.
	//    Set MaxAttempts to 2, or make the waits shorter.
}

func ExampleCodes() {
	for _, code := range retryplan.Codes()[:4] {
		fmt.Println(code)
	}
	// Output:
	// inline-wait-too-long
	// invalid
	// list-longer-than-attempts
	// long-hint-inline
}
