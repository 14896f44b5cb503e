package retryfailsafe_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/fallback"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryfailsafe"
)

// One schedule, composed by failsafe-go with its circuit breaker inside and its fallback outside.
func ExamplePolicy() {
	retries, lost, err := retryfailsafe.Policy[string](retry.Policy{
		MaxAttempts: 4,
		Backoff:     retry.Backoff{Base: 2 * time.Millisecond, Jitter: retry.FullJitter},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	breaker := circuitbreaker.NewBuilder[string]().WithFailureThreshold(2).Build()
	cached := fallback.NewBuilderWithResult("the cached page").HandleErrors(retrypolicy.ErrExceeded).Build()

	sent := 0
	page, err := failsafe.With[string](cached, retries, breaker).Get(func() (string, error) {
		sent++
		return "", errors.New("503")
	})
	fmt.Println(page, err)
	fmt.Println("sent:", sent, "breaker:", breaker.State(), "lost:", lost)
	// Output:
	// the cached page <nil>
	// sent: 2 breaker: open lost: []
}

// What failsafe-go cannot carry in full is said, not dropped.
func ExamplePolicy_lost() {
	_, lost, err := retryfailsafe.Policy[int](retry.Policy{MaxAttempts: 3, AttemptTimeout: 2 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, what := range lost {
		fmt.Println(what)
	}
	// Output:
	// Policy.AttemptTimeout 2s: the attempt's context is canceled then, but without a Deadline that fn could read and with context.Canceled as its error and cause; the run gets retry.ErrAttemptTimeout
}

// The error says how the run ended, to both libraries.
func ExamplePolicy_error() {
	retries, _, err := retryfailsafe.Policy[int](retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = failsafe.With(retries).Get(func() (int, error) { return 0, errors.New("503") })
	var gaveUp *retry.Error
	if errors.As(err, &gaveUp) {
		fmt.Println(gaveUp.Status, gaveUp.Reason, gaveUp.Attempts)
	}
	fmt.Println(errors.Is(err, retrypolicy.ErrExceeded), errors.Is(err, retry.AttemptsExhausted))

	_, err = failsafe.With(retries).Get(func() (int, error) { return 0, retry.Permanent(errors.New("404")) })
	fmt.Println(errors.Is(err, retrypolicy.ErrExceeded), errors.Is(err, retry.TerminalError))
	// Output:
	// dead_letter attempts_exhausted 2
	// true true
	// false true
}
