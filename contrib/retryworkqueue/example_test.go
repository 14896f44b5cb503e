package retryworkqueue_test

import (
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryworkqueue"
)

// A Limiter is the rate limiter of a queue of client-go, which calls these methods. The README has a whole program.
func ExampleLimiter() {
	limiter, err := retryworkqueue.New[string](retry.Policy{Backoff: retry.Backoff{Base: 10 * time.Millisecond}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		fmt.Println(limiter.When("default/broken"))
	}
	limiter.Forget("default/broken")
	fmt.Println(limiter.When("default/broken"))
	// Output:
	// 10ms
	// 20ms
	// 40ms
	// 10ms
}
