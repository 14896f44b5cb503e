package retryfailsafe_test

import (
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryfailsafe"
)

// An execution that succeeds at the first attempt, and one that does at the third.
func BenchmarkExecution(b *testing.B) {
	carried, _, err := retryfailsafe.Policy[int](retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}})
	if err != nil {
		b.Fatal(err)
	}
	own := retrypolicy.NewBuilder[int]().WithMaxRetries(7).WithDelay(time.Nanosecond).Build()
	for name, policy := range map[string]failsafe.Policy[int]{"policy=carried": carried, "policy=failsafe": own} {
		for failures, title := range map[int]string{0: "first", 2: "third"} {
			b.Run(name+"/attempt="+title, func(b *testing.B) {
				b.ReportAllocs()
				executor := failsafe.With(policy)
				for b.Loop() {
					made := 0
					_ = executor.Run(func() error {
						if made++; made <= failures {
							return errDown
						}
						return nil
					})
				}
			})
		}
	}
}
