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
	budget := retry.NewBudget(retry.BudgetConfig{Initial: -1, Trickle: time.Minute})
	now := time.Now()
	fmt.Println("at first:", budget.Withdraw(now))
	later := now.Add(10 * time.Minute)
	fmt.Println("ten minutes later:", budget.Withdraw(later))
	fmt.Println("and once more:", budget.Withdraw(later)) // idle periods are not saved
	// Output:
	// at first: false
	// ten minutes later: true
	// and once more: false
}

// A simulation brings its own clock: created and the times of Withdraw are its own, and nothing else tells the time.
func ExampleNewBudgetAt() {
	start := time.Unix(0, 0)
	budget := retry.NewBudgetAt(retry.BudgetConfig{Initial: -1, Trickle: time.Minute}, start)
	fmt.Println("after 59s:", budget.Withdraw(start.Add(59*time.Second)))
	fmt.Println("after 60s:", budget.Withdraw(start.Add(60*time.Second)))
	// Output:
	// after 59s: false
	// after 60s: true
}

// A shell of one's own settles with a budget as Do does: it takes a token for each retry, before the wait; gives it
// back where the retry does not happen; and deposits once where the call succeeds. Here it retries what a queue sends
// again.
func ExampleBudget_Withdraw() {
	budget := retry.NewBudget(retry.BudgetConfig{Initial: 2})
	deliver := func(send func() error, stopping bool) string {
		if send() == nil {
			budget.Deposit()
			return "delivered"
		}
		if !budget.Withdraw(time.Now()) {
			return "given up"
		}
		if stopping { // while it waits for the retry
			budget.Refund()
			return "left to the next process"
		}
		if send() == nil {
			budget.Deposit()
			return "delivered by a retry"
		}
		return "failed twice"
	}
	up := func() error { return nil }
	down := func() error { return errors.New("connection refused") }
	for _, message := range []struct {
		send     func() error
		stopping bool
	}{{up, false}, {down, true}, {down, false}, {down, false}, {down, false}} {
		fmt.Printf("%s, %.1f tokens\n", deliver(message.send, message.stopping), budget.Tokens())
	}
	// Output:
	// delivered, 2.1 tokens
	// left to the next process, 2.1 tokens
	// failed twice, 1.1 tokens
	// failed twice, 0.1 tokens
	// given up, 0.1 tokens
}

// Ten successes pay for one retry.
func ExampleBudget_Deposit() {
	budget := retry.NewBudget(retry.BudgetConfig{Initial: -1})
	for range 9 {
		budget.Deposit()
	}
	fmt.Println(budget.Tokens(), budget.Withdraw(time.Now()))
	budget.Deposit()
	fmt.Println(budget.Tokens(), budget.Withdraw(time.Now()))
	// Output:
	// 0.9 false
	// 1 true
}

// A retry that was paid for and did not happen is paid back.
func ExampleBudget_Refund() {
	budget := retry.NewBudget(retry.BudgetConfig{Initial: 3})
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the caller gives up while the retry waits
	if budget.Withdraw(time.Now()) && ctx.Err() != nil {
		budget.Refund()
	}
	fmt.Println(budget.Tokens())
	// Output: 3
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

// With maxKeys 2 a third key takes a place. A budget that is full goes without a loss; Forgotten counts the others,
// and if it grows, maxKeys is too small.
func ExampleBudgets_Forgotten() {
	budgets := retry.NewBudgets(retry.BudgetConfig{Burst: 5, Initial: 5}, 2)
	budgets.For("a").Withdraw(time.Now())
	budgets.For("b")
	budgets.For("c") // b is full and goes
	fmt.Println(budgets.Len(), "keys,", budgets.Forgotten(), "forgotten")
	budgets.For("c").Withdraw(time.Now())
	budgets.For("d") // none is full
	fmt.Println(budgets.Len(), "keys,", budgets.Forgotten(), "forgotten")
	// Output:
	// 2 keys, 0 forgotten
	// 2 keys, 1 forgotten
}
