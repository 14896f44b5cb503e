package retryshell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

var quick = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Millisecond}}

func ExampleWithAttempt() {
	two := retry.Progress{Attempt: 2} // deliveries of a message that have failed
	ctx := retryshell.WithAttempt(context.Background(), quick, two)
	fmt.Println(retry.AttemptNumber(ctx), retry.LastAttempt(ctx), retryshell.IsOneAttempt(ctx))
	// Output: 3 true false
}

// What a reader of the stream calls under its context is not part of the attempt that opened the stream.
func ExampleWithAttemptOf() {
	caller := context.Background()
	opened := retry.OneAttempt(retryshell.WithAttempt(caller, quick, retry.Progress{Attempt: 1}))
	stream := retryshell.WithAttemptOf(opened, caller)
	fmt.Println(retry.AttemptNumber(opened), retry.AttemptNumber(stream), retryshell.IsOneAttempt(stream))
	// Output: 2 1 false
}

func ExampleWithRemoteAttempt() {
	ctx := retryshell.WithRemoteAttempt(context.Background(), 2) // what a request says that a trusted caller sent
	err := retry.Do(ctx, quick, func(ctx context.Context) error {
		fmt.Println("attempt", retry.AttemptNumber(ctx), "within attempt", retryshell.OuterAttemptNumber(ctx))
		return errors.New("down")
	})
	fmt.Println(errors.Is(err, retry.RetriesDisabled))
	// Output:
	// attempt 1 within attempt 2
	// true
}

func ExampleOuterAttemptNumber() {
	_ = retry.Do(context.Background(), quick, func(ctx context.Context) error {
		ctx = retry.OneAttempt(ctx) // what follows is repeated by this run alone
		fmt.Println("send attempt", max(retry.AttemptNumber(ctx), retryshell.OuterAttemptNumber(ctx)))
		return errors.New("down")
	})
	// Output:
	// send attempt 1
	// send attempt 2
	// send attempt 3
}

// A shell that limits attempts itself says so as Do does.
func ExampleMarkTimeout() {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Millisecond, retry.ErrAttemptTimeout)
	defer cancel()
	<-ctx.Done()
	err := fmt.Errorf("read: %w", ctx.Err())
	if context.Cause(ctx) == retry.ErrAttemptTimeout {
		err = retryshell.MarkTimeout(err)
	}
	fmt.Println(err)
	fmt.Println(errors.Is(err, retry.ErrAttemptTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled))
	// Output:
	// attempt timeout: read: context deadline exceeded
	// true true false
}
