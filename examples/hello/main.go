package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/retrygo/retry"
)

func main() {
	err := retry.Do(context.Background(), retry.Inline(), func(ctx context.Context) error {
		fmt.Println("attempt", retry.AttemptNumber(ctx))
		return errors.New("connection reset")
	})
	fmt.Println(err)
}
