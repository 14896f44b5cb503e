package retryotel_test

import (
	"context"
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

// Metrics of all runs, events on the caller's span and a span for each attempt, by the global providers.
func Example() {
	observe, err := retryotel.Observe(retryotel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := retry.Policy{Name: "price", MaxAttempts: 4, Observe: observe}
	err = retryotel.Do(context.Background(), p, retryotel.Options{}, func(context.Context) error {
		return nil // price
	})
	fmt.Println(err)
	// Output: <nil>
}
