package queues_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryworkqueue"
)

func Example() {
	limiter, err := retryworkqueue.New[string](retry.Policy{
		MaxAttempts: 3,
		TTL:         time.Hour,
		Backoff:     retry.Backoff{Base: 10 * time.Millisecond},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := workqueue.NewTypedRateLimitingQueue[string](limiter)
	queue.Add("default/broken")
	for {
		item, shutdown := queue.Get()
		if shutdown {
			return
		}
		decision, err := retryworkqueue.Handle(context.Background(), queue, limiter, item, func(context.Context) error {
			return errors.New("the API server is busy")
		})
		queue.Done(item)
		fmt.Println(item, decision)
		if decision.Status != retry.WaitingRetry {
			fmt.Println(errors.Is(err, retry.AttemptsExhausted))
			queue.ShutDown()
		}
	}
	// Output:
	// default/broken waiting_retry 10ms
	// default/broken waiting_retry 20ms
	// default/broken dead_letter (attempts_exhausted)
	// true
}

func Example_reconciler() {
	limiter, err := retryworkqueue.New[string](retry.Policy{MaxAttempts: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	type result struct{ RequeueAfter time.Duration }
	// Of controller-runtime: string is reconcile.Request, result is reconcile.Result, and Terminal is
	// reconcile.TerminalError.
	reconciler := &retryworkqueue.Reconciler[string, result]{
		Limiter:  limiter,
		Inside:   func(context.Context, string) (result, error) { return result{}, errors.New("not yet") },
		Terminal: func(err error) error { return fmt.Errorf("terminal: %w", err) },
	}
	for range 2 {
		_, err := reconciler.Reconcile(context.Background(), "default/broken")
		fmt.Println(errors.Is(err, retry.AttemptsExhausted), limiter.NumRequeues("default/broken"))
	}
	// Output:
	// false 1
	// true 0
}
