package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

func main() {
	policy := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 50 * time.Millisecond}}
	err := retry.Do(context.Background(), policy, func(ctx context.Context) error {
		fmt.Println("attempt", retry.AttemptNumber(ctx))
		return errors.New("connection reset")
	})
	fmt.Println(err)
}
