package retryplan_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/retrygo/retry/retryplan"
)

// One attempt in ten fails; nine runs in ten thousand may, and no caller is to wait for more than two seconds.
func ExampleSolve() {
	s, err := retryplan.Solve(context.Background(), retryplan.Requirements{
		Failure:   0.1,
		Duration:  retryplan.LogNormal(30*time.Millisecond, 200*time.Millisecond),
		Success:   0.999,
		WorstCase: 2 * time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Policy)
	fmt.Printf("succeeds with %.5f, in %v at worst; %s binds\n", s.Plan.Success, s.Plan.WorstCase, s.Binding)
	// Output:
	// 4 attempts, exponential 50ms ×2, cap 1h, full jitter, attempt timeout 300ms: 50ms 100ms 200ms (0s to 350ms in all)
	// succeeds with 0.99989, in 1.55s at worst; WorstCase binds
}

// Six attempts are needed, and they take their time.
func ExampleInfeasibleError() {
	_, err := retryplan.Solve(context.Background(), retryplan.Requirements{
		Failure:   0.3,
		Duration:  retryplan.Constant(200 * time.Millisecond),
		Success:   0.999,
		WorstCase: time.Second,
	})
	var infeasible *retryplan.InfeasibleError
	if errors.As(err, &infeasible) {
		fmt.Println(infeasible.A, "against", infeasible.B)
		fmt.Println(infeasible.Why)
	}
	// Output:
	// Success against WorstCase
	// policies that meet Success 0.999 have at best WorstCase 1.22s, and WorstCase 1s is required
}
