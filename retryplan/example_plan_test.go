package retryplan_test

import (
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

func ExampleNew() {
	policy := retry.Policy{
		MaxAttempts: 5,
		Backoff:     retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.FullJitter},
		TTL:         time.Second,
	}
	plan, err := retryplan.New(policy, retryplan.Model{
		Failure:  []float64{0.3},
		Duration: retryplan.Exponential(50 * time.Millisecond),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, a := range plan.Attempts {
		fmt.Printf("attempt %d after %v to %v: made by %.1f %%\n", i+1, a.Wait.Min(), a.Wait.Max(), 100*a.Starts)
	}
	fmt.Printf("success %.3f, load %.2f\n", plan.Success, plan.Load)
	// Output:
	// attempt 1 after 0s to 0s: made by 100.0 %
	// attempt 2 after 0s to 100ms: made by 30.0 %
	// attempt 3 after 0s to 200ms: made by 9.0 %
	// attempt 4 after 0s to 400ms: made by 2.7 %
	// attempt 5 after 0s to 800ms: made by 0.5 %
	// success 0.995, load 1.42
}

func ExampleDistribution() {
	plan, _ := retryplan.New(retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}}, retryplan.Model{})
	total := plan.TotalWait
	fmt.Println(total.Min(), total.Max(), total.Mean().Round(10*time.Second), total.Quantile(0.99).Round(10*time.Second))
	fmt.Printf("%.2f\n", total.CDF(5*time.Minute))
	// Output:
	// 0s 10m35s 5m20s 9m0s
	// 0.45
}

func ExampleDist_UnmarshalText() {
	var d retryplan.Dist
	err := d.UnmarshalText([]byte("lognormal 20ms 200ms"))
	fmt.Println(d.At(0.5), d.At(0.99).Round(time.Microsecond), d.Mean().Round(time.Microsecond), err)
	fmt.Println(d.UnmarshalText([]byte("uniform 20ms")))
	// Output:
	// 20ms 200ms 32.641ms <nil>
	// retryplan: distribution "uniform 20ms" has 1 duration, not 2; the forms are "10ms", "exponential MEAN", "uniform LO HI" and "lognormal MEDIAN P99"
}
