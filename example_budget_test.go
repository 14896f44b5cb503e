package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

// One budget in the policy of all calls to a service: when the service is down, the retries end with the tokens, and
// every further call fails after its first attempt.
func ExampleNewBudget() {
	policy := retry.Policy{
		MaxAttempts: 4,
		Backoff:     retry.Backoff{Delays: []time.Duration{0}}, // at once, for the example
		Budget:      retry.NewBudget(retry.BudgetConfig{Initial: 5}),
	}
	requests := 0
	down := func(context.Context) error {
		requests++
		return errors.New("connection refused")
	}
	var err error
	for range 100 {
		err = retry.Do(context.Background(), policy, down)
	}
	fmt.Println(requests, "requests for 100 calls, not 400")
	fmt.Println(err.(*retry.Error).Status, errors.Is(err, retry.BudgetExhausted))
	// Output:
	// 105 requests for 100 calls, not 400
	// dead_letter true
}

// With Trickle a client whose calls all fail may still try again now and then, so that it sees the service come back.
func ExampleNewBudget_trickle() {
	p := retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1, Trickle: time.Minute})}
	ctx, retryNow := context.Background(), retry.Decision{Status: retry.WaitingRetry}
	now := time.Now()
	fmt.Println("at first:", p.Spend(ctx, retryNow, now))
	later := now.Add(10 * time.Minute)
	fmt.Println("ten minutes later:", p.Spend(ctx, retryNow, later))
	fmt.Println("and once more:", p.Spend(ctx, retryNow, later)) // idle periods are not saved
	// Output:
	// at first: dead_letter (budget_exhausted)
	// ten minutes later: waiting_retry 0s
	// and once more: dead_letter (budget_exhausted)
}

// A simulation has its own clock: created and the times that Spend takes are times of that clock, and no other is read.
func ExampleBudgetConfig_NewAt() {
	start := time.Unix(0, 0)
	p := retry.Policy{Budget: retry.BudgetConfig{Initial: -1, Trickle: time.Minute}.NewAt(start)}
	ctx, retryNow := context.Background(), retry.Decision{Status: retry.WaitingRetry}
	fmt.Println("after 59s:", p.Spend(ctx, retryNow, start.Add(59*time.Second)))
	fmt.Println("after 60s:", p.Spend(ctx, retryNow, start.Add(60*time.Second)))
	// Output:
	// after 59s: dead_letter (budget_exhausted)
	// after 60s: waiting_retry 0s
}

// A shell of your own calls Spend with each decision before it waits, as Do does. Ten successes pay for one retry.
func ExamplePolicy_Spend_budget() {
	ctx, budget := context.Background(), retry.NewBudget(retry.BudgetConfig{Initial: -1})
	p := retry.Policy{Budget: budget}
	success, wait := retry.Decision{Status: retry.Succeeded}, retry.Decision{Status: retry.WaitingRetry, Delay: time.Second}
	for range 9 {
		p.Spend(ctx, success, time.Now())
	}
	fmt.Println(budget.Tokens(), p.Spend(ctx, wait, time.Now()))
	p.Spend(ctx, success, time.Now())
	fmt.Println(budget.Tokens(), p.Spend(ctx, wait, time.Now()))
	// Output:
	// 0.9 dead_letter (budget_exhausted)
	// 1 waiting_retry 1s
}

// A retry that was paid for and did not happen is paid back.
func ExampleBudget_Refund() {
	budget := retry.NewBudget(retry.BudgetConfig{Initial: 3})
	ctx, cancel := context.WithCancel(context.Background())
	d := retry.Policy{Budget: budget}.Spend(ctx, retry.Decision{Status: retry.WaitingRetry, Delay: time.Minute}, time.Now())
	fmt.Println(d, "with", budget.Tokens(), "tokens left")
	cancel() // the caller gives up while the retry waits
	if ctx.Err() != nil {
		budget.Refund()
	}
	fmt.Println(budget.Tokens())
	// Output:
	// waiting_retry 1m with 2 tokens left
	// 3
}

// Tokens is a gauge for dashboards and alerts: a budget that stays near 0 belongs to a service that is down.
func ExampleBudget_Tokens() {
	budget := retry.NewBudget(retry.BudgetConfig{Initial: 3})
	policy := retry.Policy{
		MaxAttempts: 8,
		Backoff:     retry.Backoff{Delays: []time.Duration{0}},
		Budget:      budget,
	}
	fmt.Println("at first:", budget.Tokens())
	_ = retry.Do(context.Background(), policy, func(ctx context.Context) error {
		if retry.AttemptNumber(ctx) < 3 {
			return errors.New("connection reset")
		}
		return nil
	})
	fmt.Println("after two retries and a success:", budget.Tokens())
	// Output:
	// at first: 3
	// after two retries and a success: 1.1
}

// One budget for each tenant and endpoint: what is down for one of them leaves the retries of the others alone.
func ExampleBudgets_For() {
	budgets := retry.NewBudgets(retry.BudgetConfig{Initial: 2}, 1000)
	call := func(tenant, endpoint string, fn func(context.Context) error) error {
		policy := retry.Policy{
			MaxAttempts: 8,
			Backoff:     retry.Backoff{Delays: []time.Duration{0}},
			Budget:      budgets.For(tenant + " " + endpoint),
		}
		return retry.Do(context.Background(), policy, fn)
	}
	err := call("acme", "/orders", func(context.Context) error { return errors.New("connection refused") })
	fmt.Println(errors.Is(err, retry.BudgetExhausted))
	fmt.Println(budgets.For("acme /orders").Tokens(), budgets.For("acme /invoices").Tokens())
	// Output:
	// true
	// 0 2
}

// With maxKeys 2 further keys share a budget, until a call succeeds and one of the others has no tokens or no success. If
// Overflows grows, maxKeys is too small.
func ExampleBudgets_Overflows() {
	ctx := context.Background()
	budgets := retry.NewBudgets(retry.BudgetConfig{Initial: 2}, 2)
	call := func(key string, err error) {
		p := retry.Policy{Budget: budgets.For(key), Backoff: retry.Backoff{Delays: []time.Duration{0}}}
		_ = retry.Do(ctx, p, func(context.Context) error { return err })
	}
	call("a", nil)
	call("b", errors.New("down")) // one retry
	call("c", errors.New("down"))
	fmt.Println(budgets.Len(), "keys,", budgets.Overflows(), "overflow; d has what c left:", budgets.For("d").Tokens())
	call("d", nil)
	fmt.Println("then it has the place of b:", budgets.For("d").Tokens(), "with", budgets.Overflows(), "overflows")
	// Output:
	// 2 keys, 1 overflow; d has what c left: 1
	// then it has the place of b: 1.1 with 3 overflows
}
